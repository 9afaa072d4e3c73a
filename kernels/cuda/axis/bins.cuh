/* bins: along an axis, of float32 of any magnitudes: each thread has sixteen float64 sums of its own in shared memory, one for every
 * sixteen exponents (cr_rows of fold/bins.cuh), so nothing depends on the data. The tiles with outputs that floats.cuh could not
 * take come here.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_BINS_CUH
#define CURED_KERNELS_CUDA_AXIS_BINS_CUH

#include "kernels/cuda/axis/levels.cuh"
#include "kernels/cuda/fold/bins.cuh"

/* PLACE: where a block has its bins. */
template <class PLACE> struct cr_axis_bin_in {
    typedef cr_rows<cr_f32, false> Bins;
    static constexpr int SIZE = 4, C = 1, U = 16, QUAD = 4, BLOCKS = 3, W = 6;
    static constexpr bool FIRST = false, REDO = false, STOPS = false, TOGETHER = true, AHEAD = false, APART = true;
    static constexpr cr_axis_masking MASKING = CR_MASKING_ASKED;
    static constexpr int LOWEST = CR_F32_GRID - 1; /* bin k counts in 2^(16·k) of it */
    typedef uint32_t unit;
    typedef cr_axis_level_record<W> record;

    cr_words<W> total;
    uint64_t marks;
    uint32_t adds; /* at most, to a bin */

    static CR_DEVICE Bins::Shared &bins() { return PLACE::bins(); }
    CR_DEVICE void begin(const cr_axis_args &, const unit (&)[U]) {
        Bins::clear(bins());
        total.clear();
        marks = 0;
        adds = 0;
    }
    CR_DEVICE void add(const cr_axis_args &args, uint32_t w) {
        const uint32_t magnitude = w & 0x7fffffffu;
        if (magnitude < 0x7f800000u) {
            Bins::element(bins(), args.family == CR_FAM_SUMABS ? magnitude : w);
        } else if (magnitude > 0x7f800000u) {
            marks++;
        } else {
            marks |= w >> 31 && args.family != CR_FAM_SUMABS ? CR_MARK_MINUS : CR_MARK_PLUS;
        }
    }
    CR_DEVICE void reserve(uint32_t more) {
        if (adds + more > 2 * CR_SUM_ADDS) drain();
        adds += more;
    }
    CR_DEVICE void tile(const cr_axis_args &args, const unit (&v)[U], uint32_t, int, const uint8_t *, uint64_t) {
        reserve(U);
#pragma unroll
        for (int i = 0; i < U; i += QUAD) {
            uint32_t most = 0;
#pragma unroll
            for (int k = 0; k < QUAD; k++) most = max(most, v[i + k] & 0x7fffffffu);
            if (most < 0x7f800000u && args.family != CR_FAM_SUMABS) {
#pragma unroll
                for (int k = 0; k < QUAD; k++) Bins::element(bins(), v[i + k]);
            } else {
                unit some[QUAD];
#pragma unroll
                for (int k = 0; k < QUAD; k++) some[k] = v[i + k];
#pragma unroll 1
                for (int k = 0; k < QUAD; k++) { /* each passes the first place, so that the code for one is enough */
                    add(args, some[0]);
#pragma unroll
                    for (int n = 1; n < QUAD; n++) some[n - 1] = some[n];
                }
            }
        }
    }
    CR_DEVICE void one(const cr_axis_args &args, uint32_t, uint64_t element, uint32_t) {
        reserve(1);
        add(args, (uint32_t)element);
    }
    /* Digits of 16 bits, a bin each, what they carry, and its sign. */
    CR_DEVICE void drain() {
        cr_words<W> value;
        value.clear();
        long long over = 0;
#pragma unroll
        for (int k = 0; k < Bins::ROWS; k++) {
            double &sum = bins().sum[k][threadIdx.x];
            over += (long long)__dmul_rn(sum, cr_power(-LOWEST - 16 * k));
            sum = 0;
            value.word[k / 4] |= (uint64_t)(over & 0xffff) << 16 * (k % 4);
            over >>= 16;
        }
        value.word[W - 2] = (uint64_t)over;
        value.word[W - 1] = (uint64_t)(over >> 63);
        total.add(value);
        adds = 0;
    }
    CR_DEVICE record take(const cr_axis_args &, uint32_t, const cr_axis_spot<SIZE> &) {
        drain();
        return record{total, marks};
    }
    static CR_DEVICE bool is_hard(const record &) { return false; }
    static CR_DEVICE record empty(const cr_axis_args &) { return record::none(); }
    static CR_DEVICE void merge(record &r, const record &other) { r.merge(other); }
    static CR_DEVICE bool quick(record &, uint32_t, uint32_t) { return false; }
    static CR_DEVICE bool finish(const cr_axis_args &args, const record &r, uint64_t output) {
        return cr_axis_level_finish<W, LOWEST, false>(args, r, output);
    }
};

struct cr_axis_bin_place {
    static CR_DEVICE cr_rows<cr_f32, false>::Shared &bins() {
        __shared__ cr_rows<cr_f32, false>::Shared shared;
        return shared;
    }
};
struct cr_axis_bin : cr_axis_bin_in<cr_axis_bin_place> {};

#endif
