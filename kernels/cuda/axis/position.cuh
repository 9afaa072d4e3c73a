/* position: along an axis, where a thread is at work, and its loads from there.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_AXIS_POSITION_CUH
#define CURED_KERNELS_CUDA_AXIS_POSITION_CUH

#include "kernels/cuda/axis/masked.cuh"
#include "kernels/cuda/thread/simt.cuh"

template <int SIZE> struct cr_axis_unit {
    typedef uint32_t type;
};
template <> struct cr_axis_unit<8> {
    typedef uint64_t type;
};

/* Where a thread is at work. */
template <int SIZE> struct cr_axis_spot {
    static constexpr uint32_t C = SIZE < 4 ? 4 / SIZE : 1, V = CR_GPU_VECTOR / (SIZE * C); /* units of a vector */
    const uint8_t *from;    /* its first unit */
    uint64_t index, column; /* the first element's place along the axis; of element 0 of its units, the output's number */
    uint64_t stride;        /* bytes to its next unit, or vector */
    uint32_t count, head, tail; /* units; elements that only the first holds after `head`, and the last before `tail` (0: all) */

    CR_DEVICE void none() {
        from = nullptr;
        index = column = stride = 0;
        count = head = tail = 0;
    }

    /* begin: the unit's place in line 0; s: of the team's m lines; low: the split's first. */
    template <bool SHIFTS> CR_DEVICE void set(const cr_axis_args &args, const uint8_t *begin, uint32_t s, uint64_t low) {
        const cr_axis_launch &at = args.at;
        uint64_t lines = at.n;
        stride = at.line << at.m_log;
        if (at.vector > 1) {
            const uint32_t vector = SHIFTS ? V : at.vector, unit = SHIFTS ? SIZE * C : at.unit; /* the same: kernels that divide read faster so */
            const uint64_t first = low + s * vector;
            lines = at.n * SIZE / unit;
            index = first * (at.wide ? C : 1);
            const uint64_t high = min(low + at.per_split, lines);
            const uint32_t vectors = first < high ? (((uint32_t)(high - low) / vector - s - 1) >> at.m_log) + 1 : 0;
            count = vectors * vector;
            from = begin + first * unit;
            stride = (uint64_t)CR_GPU_VECTOR << at.m_log;
            return;
        }
        if (C > 1 && at.rows && at.wide) {
            const uint32_t shift = (uint32_t)(uintptr_t)begin % 4;
            const uint64_t bytes = shift + at.n * SIZE;
            begin -= shift;
            lines = (bytes + 3) / 4;
            index = (low + s) * C - shift / SIZE;
            cut(lines, low, s, at);
            if (low + s == 0) head = shift / SIZE;
            if (count != 0 && low + s + ((uint64_t)(count - 1) << at.m_log) == lines - 1) tail = (uint32_t)bytes % 4 / SIZE;
        } else {
            index = low + s;
            cut(lines, low, s, at);
        }
        from = begin + (low + s) * at.line;
    }
    CR_DEVICE void cut(uint64_t lines, uint64_t low, uint32_t s, const cr_axis_launch &at) {
        const uint64_t high = min(low + at.per_split, lines);
        count = low + s < high ? (((uint32_t)(high - low) - s - 1) >> at.m_log) + 1 : 0;
    }
    /* Element 0 of the thread's unit j lies at place(j) along the axis. */
    CR_DEVICE uint64_t place(const cr_axis_launch &at, uint32_t j) const {
        const uint32_t c = at.rows && at.wide ? C : 1;
        if (at.vector == 1) return index + ((uint64_t)j << at.m_log) * c;
        return index + (((uint64_t)(j / at.vector) << at.m_log) * at.vector + j % at.vector) * c;
    }
};

template <class A, int U> CR_DEVICE void cr_axis_vectors(typename cr_axis_unit<A::SIZE>::type (&v)[U], const uint8_t *p, uint64_t stride, int left) {
    constexpr int V = CR_GPU_VECTOR / (int)sizeof v[0];
#pragma unroll
    for (int i = 0; i < U; i += V, p += stride) {
        uint4 x = make_uint4(0, 0, 0, 0);
        if (i < left) {
            x = *reinterpret_cast<const uint4 *>(p);
        } else if (A::FIRST && i > 0) {
#pragma unroll
            for (int k = 0; k < V; k++) v[i + k] = v[0];
            continue;
        }
#pragma unroll
        for (int k = 0; k < V; k++) v[i + k] = sizeof v[0] == 8 ? cr_word64(x, (unsigned)k) : cr_word(x, (unsigned)k);
    }
}

/* U units from p on, whatever a mask says of them. */
template <class A, int U>
CR_DEVICE void cr_axis_load_all(typename cr_axis_unit<A::SIZE>::type (&v)[U], const cr_axis_launch &at, const uint8_t *p,
                                uint64_t stride, int left) {
    typedef typename cr_axis_unit<A::SIZE>::type unit;
    if (at.vector > 1) {
        cr_axis_vectors<A, U>(v, p, stride, left);
        return;
    }
    const bool whole = !at.odd && (A::SIZE >= 4 || at.wide);
    if (whole && left >= U) {
#pragma unroll
        for (int i = 0; i < U; i++, p += stride) v[i] = *reinterpret_cast<const unit *>(p);
        return;
    }
#pragma unroll
    for (int i = 0; i < U; i++, p += stride) {
        v[i] = A::FIRST && i > 0 ? v[0] : 0;
        if (i >= left) continue;
        if (whole) {
            v[i] = *reinterpret_cast<const unit *>(p);
        } else if (A::SIZE == 2 && !at.odd) {
            v[i] = *reinterpret_cast<const uint16_t *>(p);
        } else {
            v[i] = (unit)cr_load_one<A::SIZE>(p);
        }
    }
}

/* U units from p on; zeros for what a mask leaves out. */
template <class A, int U, cr_axis_masking MASKING = cr_axis_masking_of<A>::value>
CR_DEVICE void cr_axis_load(typename cr_axis_unit<A::SIZE>::type (&v)[U], const cr_axis_args &args, const uint8_t *p,
                            uint64_t stride, int left) {
    cr_axis_load_all<A, U>(v, args.at, p, stride, left);
    if (MASKING == CR_MASKING_ALWAYS || (MASKING == CR_MASKING_ASKED && args.mask.kind != CR_MASK_NONE))
        cr_axis_hide<A>(v, args, p, stride, left);
}

#endif
