/* fold: adds the elements of an array to their groups, of which a row of several columns has a cell for each (groups are cells here). A block has a run of neighbouring elements, of which its warps take tiles in turn.
 *
 * A tile whose keys are one or two (sorted keys, long runs, constant ones) is added up in registers, which go on to the next tile while its
 * key is the same. Of other tiles each element goes to its group: in shared memory where the words of all groups fit there, several times
 * over, so that lanes that lie side by side do not wait for each other (the limbs, too, of the fewest groups); else by an atomic of the L2 cache. Shared memory has no quick
 * atomics of 64 bits, so there a word is two of 32, of which the upper one takes what the lower one carries.
 *
 * Thread: GPU. Owner: the block, of its shared memory. */
#ifndef CURED_KERNELS_CUDA_KEYS_FOLD_CUH
#define CURED_KERNELS_CUDA_KEYS_FOLD_CUH

#include "kernels/cuda/keys/source.cuh"
#include "kernels/cuda/keys/term.cuh"
#include "kernels/cuda/thread/shared.cuh"
#include "kernels/cuda/thread/simt.cuh"

CR_DEVICE void cr_keys_add(unsigned long long *word, long long value) { atomicAdd(word, (unsigned long long)value); }

template <class T, bool SHARED> struct cr_keys_fold {
    typedef typename T::Bits Bits;
    static constexpr int HOT = 6; /* lanes of a warp with one key, so that registers keep what it has */
    static constexpr int U = T::U, TILE = U * CR_WARP, WORDS = T::DIGITS > 0 ? T::DIGITS : 1;
    const cr_keys_args &args;
    uint32_t *const shared; /* of a word, its lower half of each group, its upper half; then counts, those that are asked for */
    const uint32_t lane, copy, stride;
    const int window;
    uint32_t run_key, run_count, run_nonzero;
    long long run[WORDS];

    CR_DEVICE cr_keys_fold(const cr_keys_args &of, uint32_t *memory)
        : args(of), shared(memory), lane(threadIdx.x % CR_WARP), copy(SHARED ? lane & (of.copies - 1) : 0), stride(of.groups * of.copies),
          window(T::DIGITS > 0 ? __ldcg(&of.head->window) : 0), run_key(CR_KEYS_NOBODY), run_count(0), run_nonzero(0) {
        clear();
    }
    CR_DEVICE void clear() {
        run_count = run_nonzero = 0;
#pragma unroll
        for (int i = 0; i < WORDS; i++) run[i] = 0;
    }
    CR_DEVICE unsigned long long *plane(int number, uint32_t group) const { return args.planes + (uint64_t)number * args.groups + group; }

    /* Of the plane of a count, the place in shared memory: these planes are the first. */
    CR_DEVICE static uint32_t place_of(int number) { return 2 * T::DIGITS + (uint32_t)number; }

    /* Limb i's lower half of all groups. */
    CR_DEVICE uint32_t *limb(int i) const {
        return shared + (2 * T::DIGITS + (uint32_t)args.at.counts) * stride + 2 * (uint32_t)i * args.groups * args.limb_copies;
    }

    /* ---- To a group ---- */

    /* To a lower half, whose upper one lies so far behind it. */
    CR_DEVICE static void add_halves(uint32_t *low, uint32_t far, long long value) {
        const uint32_t own = (uint32_t)value, before = atomicAdd(low, own);
        const uint32_t upper = (uint32_t)((unsigned long long)value >> 32) + (before + own < before);
        if (upper != 0) atomicAdd(low + far, upper);
    }
    /* A key, which stays where it is the greatest. */
    CR_DEVICE void put_key(int number, uint32_t group, unsigned long long key) const {
        uint32_t *own = shared + 2 * number * stride;
        unsigned long long *word = SHARED ? reinterpret_cast<unsigned long long *>(own) + group * args.copies + copy : plane(args.at.window + number, group);
        if (SHARED && T::SIZE <= 4) atomicMax(own + group * args.copies + copy, (uint32_t)key);
        else if (SHARED || __ldcg(word) < key) atomicMax(word, key);
    }
    CR_DEVICE void add_word(int number, uint32_t group, long long value) const {
        if (T::GREATEST) put_key(number, group, (unsigned long long)value);
        else if (SHARED) add_halves(shared + 2 * number * stride + group * args.copies + copy, stride, value);
        else cr_keys_add(plane(args.at.window + number, group), value);
    }
    CR_DEVICE void add_limb(int number, uint32_t group, long long value) const {
        const uint32_t copies = args.limb_copies;
        if (SHARED && copies != 0) add_halves(limb(number) + group * copies + (lane & (copies - 1)), args.groups * copies, value);
        else cr_keys_add(plane(args.at.limbs + number, group), value);
    }
    CR_DEVICE void add_count(int number, uint32_t group, uint32_t value) const {
        if (SHARED) atomicAdd(shared + place_of(number) * stride + group * args.copies + copy, value);
        else cr_keys_add(plane(number, group), value);
    }
    CR_DEVICE void add(uint32_t group, const long long (&digit)[WORDS], uint32_t count, uint32_t nonzero) const {
        if constexpr (T::JOINED && SHARED) {
            T::put_shared(args, shared + group * args.copies + copy, stride, digit);
        } else if constexpr (T::JOINED) {
            T::put(args, group, digit);
        } else {
#pragma unroll
            for (int i = 0; i < T::DIGITS; i++) {
                if (digit[i] != 0) add_word(i, group, digit[i]);
            }
        }
        if (args.at.count >= 0 && count != 0) add_count(args.at.count, group, count);
        if (args.at.nonzero >= 0 && nonzero != 0) add_count(args.at.nonzero, group, nonzero);
    }
    /* What the window does not hold, and what is no number. */
    CR_DEVICE void add_special(uint32_t group, Bits bits) const {
        if (args.at.special >= 0) cr_keys_add(plane(args.at.special + T::special(bits), group), 1);
    }
    CR_DEVICE void add_limbs(uint32_t group, const T &term) const {
        if constexpr (T::LIMBS > 0) {
#pragma unroll
            for (int i = 0; i < T::PARTS; i++) {
                const long long part = term.part(i);
                if (part != 0) add_limb(term.place / CR_KEYS_DIGIT + i, group, part);
            }
        }
    }
    /* The digits of element i, zeros where they went elsewhere. */
    CR_DEVICE void digits_of(uint32_t group, Bits bits, uint64_t i, long long (&digit)[WORDS]) const {
        if constexpr (T::PLACED) T::places(args, group, bits, i, digit);
        else digits_of(group, bits, digit);
    }
    CR_DEVICE void digits_of(uint32_t group, Bits bits, long long (&digit)[WORDS]) const {
#pragma unroll
        for (int i = 0; i < WORDS; i++) digit[i] = 0;
        if (T::is_special(bits)) {
            add_special(group, bits);
            if (!T::GREATEST || T::special(bits) == 0) return; /* infinities are compared */
        }
        if constexpr (T::DIGITS > 0) {
            const T term(bits, args);
            if (!term.fits(window, (int)args.top, digit)) add_limbs(group, term);
        }
    }

    /* ---- Runs ---- */

    CR_DEVICE static long long both(long long a, long long b) {
        return T::GREATEST ? (long long)max((unsigned long long)a, (unsigned long long)b) : a + b;
    }
    CR_DEVICE static long long of_warp(long long own) {
        if (T::GREATEST) return (long long)~cr_warp_min(~(uint64_t)own);
        cr_wide<1> sum;
        sum.word[0] = (uint64_t)own;
        sum.warp_sum();
        return (long long)sum.word[0];
    }
    CR_DEVICE static void join(long long (&own)[WORDS], const long long (&other)[WORDS]) {
        if constexpr (T::JOINED) {
            T::join(own, other);
        } else {
#pragma unroll
            for (int i = 0; i < T::DIGITS; i++) own[i] = both(own[i], other[i]);
        }
    }
    CR_DEVICE void join_warp() {
        if constexpr (T::JOINED) {
#pragma unroll 1
            for (uint32_t far = CR_WARP / 2; far != 0; far /= 2) {
                long long other[WORDS];
#pragma unroll
                for (int i = 0; i < WORDS; i++) other[i] = __shfl_xor_sync(CR_EVERYONE, run[i], far);
                T::join(run, other);
            }
        } else {
#pragma unroll
            for (int i = 0; i < T::DIGITS; i++) run[i] = of_warp(run[i]);
        }
    }
    /* All lanes: what they have of the run, to its group. */
    CR_DEVICE void flush() {
        if (run_key != CR_KEYS_NOBODY) {
            join_warp();
            const uint32_t count = args.at.count < 0 ? 0 : __reduce_add_sync(CR_EVERYONE, run_count);
            const uint32_t nonzero = args.at.nonzero < 0 ? 0 : __reduce_add_sync(CR_EVERYONE, run_nonzero);
            if (lane == 0) add(run_key, run, count, nonzero);
        }
        clear();
    }
    CR_DEVICE void turn_to(uint32_t key) {
        if (key == run_key) return;
        flush();
        run_key = key;
    }
    /* A tile whose keys are these two, or one. */
    CR_DEVICE void go_on(uint32_t first, uint32_t last, uint64_t at, const Bits (&bits)[U], const uint32_t (&keys)[U]) {
        uint32_t count = 0, nonzero = 0;
        long long rest[WORDS];
        turn_to(first);
#pragma unroll
        for (int i = 0; i < WORDS; i++) rest[i] = 0;
#pragma unroll
        for (int j = 0; j < U; j++) {
            if (keys[j] == CR_KEYS_NOBODY) continue;
            const bool mine = keys[j] == first;
            long long digit[WORDS];
            digits_of(keys[j], bits[j], at + lane + j * CR_WARP, digit);
            if (mine) join(run, digit);
            else join(rest, digit);
            run_count += mine;
            count += !mine;
            run_nonzero += mine && T::is_nonzero(bits[j]);
            nonzero += !mine && T::is_nonzero(bits[j]);
        }
        if (last == first) return;
        turn_to(last);
        run_count = count;
        run_nonzero = nonzero;
#pragma unroll
        for (int i = 0; i < WORDS; i++) run[i] = rest[i];
    }

    /* ---- Tiles ---- */

    /* The group of a key, which is row i's. */
    CR_DEVICE uint32_t group_of(uint64_t key, uint64_t i) const {
        if (key < args.keys_below) return (uint32_t)key;
        if (!args.drop) atomicMax(&args.head->inside, ~(unsigned long long)i);
        return CR_KEYS_NOBODY;
    }
    /* Element i as it lies. */
    CR_DEVICE Bits load(uint64_t i) const {
        if (args.odd) return (Bits)cr_load_one<T::SIZE>(args.data + i * T::SIZE);
        if (T::SIZE == 8) return (Bits) reinterpret_cast<const uint64_t *>(args.data)[i];
        if (T::SIZE == 4) return reinterpret_cast<const uint32_t *>(args.data)[i];
        return T::SIZE == 2 ? reinterpret_cast<const uint16_t *>(args.data)[i] : args.data[i];
    }
    CR_DEVICE void load(uint64_t at, uint64_t end, Bits (&bits)[U]) const {
        const uint64_t first = at + lane;
#pragma unroll
        for (int j = 0; j < U; j++) bits[j] = first + j * CR_WARP < end ? load(first + j * CR_WARP) : 0;
    }
    /* All bits of an element, but for the sign of floats whose magnitudes are asked for. */
    CR_DEVICE Bits wanted() const {
        return args.absolute && args.is_float ? (Bits)~(Bits)0 >> 1 >> (8 * (sizeof(Bits) - T::SIZE)) : (Bits)~(Bits)0;
    }
    CR_DEVICE void cut(Bits (&bits)[U]) const {
        const Bits mask = wanted();
#pragma unroll
        for (int j = 0; j < U; j++) bits[j] &= mask;
    }
    CR_DEVICE void load(uint64_t at, uint64_t end, Bits (&bits)[U], uint32_t (&keys)[U]) {
        const uint64_t first = at + lane;
        load(at, end, bits);
        if (args.source != CR_KEYS_GIVEN) {
#pragma unroll
            for (int j = 0; j < U; j++) {
                keys[j] = CR_KEYS_NOBODY;
                if (first + j * CR_WARP < end) keys[j] = cr_keys_cell(args, (uint32_t)first + j * CR_WARP);
            }
        } else if (args.key_size == 8) {
            uint64_t key[U];
#pragma unroll
            for (int j = 0; j < U; j++) key[j] = first + j * CR_WARP < end ? reinterpret_cast<const uint64_t *>(args.keys)[first + j * CR_WARP] : 0;
#pragma unroll
            for (int j = 0; j < U; j++) keys[j] = first + j * CR_WARP < end ? group_of(key[j], first + j * CR_WARP) : CR_KEYS_NOBODY;
        } else {
#pragma unroll
            for (int j = 0; j < U; j++) keys[j] = first + j * CR_WARP < end ? reinterpret_cast<const uint32_t *>(args.keys)[first + j * CR_WARP] : 0;
#pragma unroll
            for (int j = 0; j < U; j++) keys[j] = first + j * CR_WARP < end ? group_of(keys[j], first + j * CR_WARP) : CR_KEYS_NOBODY;
        }
        cut(bits);
    }
    CR_DEVICE void tile(uint64_t at, uint64_t end) {
        Bits bits[U];
        uint32_t keys[U];
        load(at, end, bits, keys);
        const uint32_t first = __shfl_sync(CR_EVERYONE, keys[0], 0), last = __shfl_sync(CR_EVERYONE, keys[U - 1], CR_WARP - 1);
        bool few = true;
#pragma unroll
        for (int j = 0; j < U; j++) few &= keys[j] == first || keys[j] == last;
        if (__all_sync(CR_EVERYONE, few)) {
            go_on(first, last, at, bits, keys);
            return;
        }
        /* Many of one key, among others: in registers, too, because atomics of one word wait for each other. */
        if (!SHARED && first != run_key && first != CR_KEYS_NOBODY && __popc(__ballot_sync(CR_EVERYONE, keys[0] == first)) >= HOT) turn_to(first);
#pragma unroll
        for (int j = 0; j < U; j++) {
            if (keys[j] == CR_KEYS_NOBODY) continue;
            long long digit[WORDS];
            digits_of(keys[j], bits[j], at + lane + j * CR_WARP, digit);
            if (!SHARED && keys[j] == run_key) {
                join(run, digit);
                run_count++;
                run_nonzero += T::is_nonzero(bits[j]);
            } else {
                add(keys[j], digit, 1, T::is_nonzero(bits[j]));
            }
        }
    }

    /* ---- Shared memory ---- */

    CR_DEVICE void begin() const {
        const uint32_t words = (uint32_t)(limb(T::LIMBS) - shared);
        for (uint32_t i = threadIdx.x; i < words; i += CR_KEYS_THREADS) shared[i] = 0;
        __syncthreads();
    }
    CR_DEVICE unsigned long long total(uint32_t number, uint32_t group) const {
        unsigned long long sum = 0;
        for (uint32_t i = 0; i < args.copies; i++) sum += shared[number * stride + group * args.copies + i];
        return sum;
    }
    CR_DEVICE unsigned long long greatest(int number, uint32_t group) const {
        const uint32_t *own = shared + 2 * number * stride;
        unsigned long long found = 0;
        for (uint32_t i = group * args.copies; i < (group + 1) * args.copies; i++)
            found = max(found, T::SIZE <= 4 ? (unsigned long long)own[i] : reinterpret_cast<const unsigned long long *>(own)[i]);
        return found;
    }
    CR_DEVICE void put_joined(uint32_t group) const {
        long long digit[WORDS];
#pragma unroll
        for (int i = 0; i < WORDS; i++) digit[i] = 0;
        for (uint32_t copies = 0; copies < args.copies; copies++) T::join_shared(digit, shared + group * args.copies + copies, stride);
        T::put(args, group, digit);
    }
    CR_DEVICE void settle() const {
        __syncthreads();
        for (uint32_t group = threadIdx.x; group < args.groups; group += CR_KEYS_THREADS) {
            if constexpr (T::JOINED) put_joined(group);
#pragma unroll
            for (int i = 0; i < (T::JOINED ? 0 : T::DIGITS); i++) {
                const unsigned long long word = T::GREATEST ? greatest(i, group) : total(2 * i, group) + (total(2 * i + 1, group) << 32);
                if (word == 0) continue;
                if (T::GREATEST) atomicMax(plane(args.at.window + i, group), word);
                else cr_keys_add(plane(args.at.window + i, group), (long long)word);
            }
            for (int number = 0; number < args.at.counts; number++) {
                const unsigned long long count = total(place_of(number), group);
                if (count != 0) cr_keys_add(plane(number, group), (long long)count);
            }
        }
        const uint32_t copies = args.limb_copies, far = args.groups * copies, all = copies != 0 ? T::LIMBS * args.groups : 0;
        for (uint32_t at = threadIdx.x; at < all; at += CR_KEYS_THREADS) {
            const uint32_t number = at / args.groups, group = at % args.groups;
            const uint32_t *low = limb((int)number) + group * copies;
            unsigned long long word = 0;
            for (uint32_t i = 0; i < copies; i++) word += low[i] + ((unsigned long long)low[far + i] << 32);
            if (word != 0) cr_keys_add(plane(args.at.limbs + (int)number, group), (long long)word);
        }
    }
};

template <class T, bool SHARED>
__global__ void __launch_bounds__(CR_KEYS_THREADS, CR_KEYS_BLOCKS) cr_keys_fold_kernel(const __grid_constant__ cr_keys_args args) {
    CR_SHARED_BYTES(memory, CR_KEYS_SHARED);
    cr_keys_fold<T, SHARED> fold(args, reinterpret_cast<uint32_t *>(memory));
    if constexpr (SHARED) fold.begin();
    const uint64_t low = blockIdx.x * args.per_block, high = min(args.n, low + args.per_block);
    for (uint64_t at = low + threadIdx.x / CR_WARP * fold.TILE; at < high; at += CR_KEYS_THREADS / CR_WARP * fold.TILE) fold.tile(at, high);
    fold.flush();
    if constexpr (SHARED) fold.settle();
}

#endif
