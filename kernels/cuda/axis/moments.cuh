/* moments: along an axis, of floats: Σx and Σx² in one pass, for variances and whatever else is asked of either. Both are sums of
 * floats.cuh, whose windows are placed by the same elements; one look tells whether both take a tile.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_MOMENTS_CUH
#define CURED_KERNELS_CUDA_AXIS_MOMENTS_CUH

#include "kernels/cuda/axis/floats.cuh"

template <cr_dtype D> struct cr_axis_moment {
    typedef cr_axis_float<D, CR_SUM_SQUARE, 16> Squares;
    typedef cr_axis_float<D, CR_SUM_PLAIN, 16> Sums;
    typedef typename Sums::E E;
    static constexpr int SIZE = Sums::SIZE, C = Sums::C, U = Squares::U, BLOCKS = 2;
    static constexpr bool FIRST = false, TOGETHER = true, AHEAD = true, APART = true, REDO = Squares::REDO, STOPS = Squares::STOPS;
    static_assert(REDO, "what is hard is folded again by both kinds' kernels, tile by tile");
    typedef typename Sums::unit unit;
    struct record {
        typename Sums::record sum;
        typename Squares::record squares;
    };
    Sums sums;
    Squares squares;
    cr_span bounds; /* of both */

    CR_DEVICE void begin(const cr_axis_args &args, const unit (&v)[U]) {
        const uint32_t field = Sums::template first_field<true>(args, v);
        sums.begin_at(field);
        squares.begin_at(field);
        bounds = {min(sums.bounds.most, squares.bounds.most), max(sums.bounds.least, squares.bounds.least)};
    }
    template <class THEN> CR_DEVICE void tile(const cr_axis_args &args, unit (&v)[U], uint32_t, int left, const uint8_t *p, uint64_t stride, THEN then) {
        sums.reserve();
        squares.reserve();
        const bool inside = Sums::inside(v, bounds);
        then();
        if (!inside) { /* or a quick look does not vouch for it: they are loaded once more */
            sums.again(args, left, p, stride);
            squares.again(args, left, p, stride);
            return;
        }
#pragma unroll
        for (int i = 0; i < Sums::QUADS; i++) {
            sums.template add_quad<0>(Sums::quad(v, i * Sums::QUAD));
            squares.template add_quad<0>(Sums::quad(v, i * Sums::QUAD));
        }
    }
    CR_DEVICE void one(const cr_axis_args &args, uint32_t e, uint64_t element, uint32_t j) {
        sums.one(args, e, element, j);
        squares.one(args, e, element, j);
    }
    CR_DEVICE bool stop() const { return sums.stop() || squares.stop(); }
    CR_DEVICE record take(const cr_axis_args &args, uint32_t e, const cr_axis_spot<SIZE> &spot) {
        return record{sums.take(args, e, spot), squares.take(args, e, spot)};
    }
    static CR_DEVICE bool is_hard(const record &r) { return Sums::is_hard(r.sum) || Squares::is_hard(r.squares); }
    static CR_DEVICE bool quick(record &r, uint32_t first, uint32_t step) {
        const bool one = Sums::quick(r.sum, first, step), other = Squares::quick(r.squares, first, step);
        if (one == other) return one;
        for (; step >= first; step /= 2) { /* the one that is left */
            if (one) Squares::merge(r.squares, cr_axis_from_lane(r.squares, step));
            else Sums::merge(r.sum, cr_axis_from_lane(r.sum, step));
        }
        return true;
    }
    static CR_DEVICE record empty(const cr_axis_args &args) { return record{Sums::empty(args), Squares::empty(args)}; }
    static CR_DEVICE void merge(record &r, const record &other) {
        Sums::merge(r.sum, other.sum);
        Squares::merge(r.squares, other.squares);
    }
    static CR_DEVICE bool finish(const cr_axis_args &args, const record &r, uint64_t output) {
        const uint64_t marks = r.sum.marks, nans = marks & CR_MARK_NANS;
        const bool none = (nans != 0 && !args.skip) || (marks & (CR_MARK_PLUS | CR_MARK_MINUS)) != 0;
        if (is_hard(r) && !(nans != 0 && !args.skip)) return false;
        for (uint32_t k = 0; k < args.out_count; k++) {
            const cr_axis_out &out = args.out[k];
            if (out.term == CR_TERM_SQUARE) {
                cr_axis_put_sum(args, out, output, r.squares);
            } else if (!cr_is_variance(out)) {
                cr_axis_put_sum(args, out, output, r.sum);
            } else if (none) {
                cr_put_bits(out.to, output, out.result, cr_nan_bits(out.result));
            } else if (!cr_variance_put<6>(args, out, output, cr_count_of(args, output) - nans, r.sum.value, (int)r.sum.unit, r.squares.value, (int)r.squares.unit)) {
                return false;
            }
        }
        return true;
    }
};

#endif
