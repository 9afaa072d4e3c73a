/* answer: an answer of a segment from what its elements came to (terms.cuh), as the words of a part; and two parts of a segment joined.
 *
 * Thread: GPU; a thread has a segment. Owner: none. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_ANSWER_CUH
#define CURED_KERNELS_CUDA_OFFSETS_ANSWER_CUH

#include "kernels/cuda/axis/extreme.cuh"
#include "kernels/cuda/offsets/cut.cuh"
#include "kernels/cuda/offsets/quarters.cuh"
#include "kernels/cuda/thread/simt.cuh"

/* A chunk to the list, once. */
CR_DEVICE void cr_segments_put_on_list(const cr_segments_args &args, uint32_t chunk) {
    if (atomicExch(&cr_segments_parts(args)[2 * (uint64_t)chunk].listed, 1u) == 0) cr_segments_list(args)[atomicAdd(&cr_segments_head(args)->hard, 1u)] = chunk;
}

CR_CALLED void cr_segments_join(int kind, cr_segments_part &own, const cr_segments_part &other) {
    if (kind == CR_SEGMENTS_QUARTERS) {
        cr_team_quarters::join(own, other);
    } else if (kind == CR_SEGMENTS_INTEGERS) {
        cr_wide<2> sum = {{own.word[0], own.word[1]}};
        cr_wide<3> square = {{own.word[2], own.word[3], own.word[4]}};
        sum.add({{other.word[0], other.word[1]}});
        square.add({{other.word[2], other.word[3], other.word[4]}});
        for (int i = 0; i < 2; i++) own.word[i] = sum.word[i];
        for (int i = 0; i < 3; i++) own.word[2 + i] = square.word[i];
    } else if (kind == CR_SEGMENTS_COUNTS) {
        for (int i = 0; i < 3; i++) own.word[i] += other.word[i];
    } else if (kind == CR_SEGMENTS_BITS) {
        own.word[0] |= other.word[0];
        own.word[1] |= other.word[1];
        own.word[2] ^= other.word[2];
    } else {
        for (int i = 0; i < 4; i += 2) {
            const bool take = other.word[i + 1] != UINT64_MAX && (own.word[i + 1] == UINT64_MAX || other.word[i] < own.word[i] ||
                                                                  (other.word[i] == own.word[i] && other.word[i + 1] < own.word[i + 1]));
            if (take) own.word[i] = other.word[i], own.word[i + 1] = other.word[i + 1];
        }
        own.word[4] = min(own.word[4], other.word[4]);
    }
}
/* Of no elements. */
CR_DEVICE cr_segments_part cr_segments_nothing(int kind) {
    const uint64_t none = kind == CR_SEGMENTS_EXTREMA ? UINT64_MAX : 0;
    return {{0, none, 0, none, none, 0, 0, 0, 0, 0, 0, 0}, 0, 0, 0, 0};
}

CR_DEVICE void cr_segments_whole_answer(const cr_closed &of, const cr_axis_out &out, uint64_t segment, const cr_segments_part &part) {
    const cr_words<2> sum = {{part.word[0], part.word[1]}};
    const cr_words<3> square = {{part.word[2], part.word[3], part.word[4]}};
    if (cr_is_variance(out)) cr_variance_put<6>(of, out, segment, of.at.n, sum, 0, square, 0);
    else if (out.term == CR_TERM_SQUARE) cr_int_answer(of, out, segment, square);
    else cr_int_answer(of, out, segment, sum);
}

/* All answers of a segment of n elements, the first of which is element `begin`. False: it is hard. */
CR_CALLED bool cr_segments_answer(const cr_segments_args &args, int kind, uint64_t segment, uint64_t n, uint64_t begin, const cr_segments_part &part) {
    const bool is_float = (args.elements & CR_ELEMENTS_FLOAT) != 0, skip = args.skip != 0;
    const uint64_t every = args.elements & CR_ELEMENTS_BOOL ? 1 : ~0ull >> (64 - 8 * args.size);
    const cr_closed of = {{n}, args.ddof, skip, 0, reinterpret_cast<cr_axis_failure *>(args.wrong)};
    if (kind == CR_SEGMENTS_QUARTERS) return cr_team_quarters::answer(of, args, segment, part);
    cr_extremes e;
    if (kind == CR_SEGMENTS_EXTREMA) {
        e = {args.dtype, args.size, is_float, (args.elements & CR_ELEMENTS_SIGNED) != 0, skip, n, 0, 0, 0, 0, 0};
        e.nans = part.word[1] == UINT64_MAX ? n : part.word[4] != UINT64_MAX ? 1 : 0;
        e.least = e.bits_of(part.word[0]);
        e.most = e.bits_of(~part.word[2] & every);
        const bool nan = part.word[4] != UINT64_MAX && !skip;
        e.least_at = (nan ? part.word[4] : part.word[1]) - begin;
        e.most_at = (nan ? part.word[4] : part.word[3]) - begin;
    }
    for (uint32_t k = 0; k < args.out_count; k++) {
        const cr_axis_out &out = args.out[k];
        const uint64_t left_out = skip ? part.word[1] : 0;
        if (kind == CR_SEGMENTS_INTEGERS) cr_segments_whole_answer(of, out, segment, part);
        else if (kind == CR_SEGMENTS_COUNTS)
            cr_put_bits(out.to, segment, out.result, cr_close_count((cr_term)out.term, n - left_out, part.word[0] - left_out, part.word[1], part.word[2]));
        else if (kind == CR_SEGMENTS_BITS) cr_put_bits(out.to, segment, out.result, cr_close_bits((cr_term)out.term, ~part.word[0] & every, part.word[1], part.word[2]));
        else if (!cr_extreme_answer(of, out, segment, e)) cr_report_no_value(args.wrong, out, segment);
    }
    return true;
}

#endif
