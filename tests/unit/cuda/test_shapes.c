/* test_shapes: every element is in the head, the body or the tail, once; loads stay inside the array; the grid fits.
 *
 * Thread: one. Owner: this file. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/plan/burst_float.h"
#include "tests/unit/check_main.h"

/* What the walk relies on, for one plan. */
static void check_plan(uintptr_t address, uint64_t n, uint32_t size, uint32_t sms) {
    cr_fold_plan p = cr_fold_plan_make(address, n, size, sms);
    uint64_t lanes = CR_GPU_VECTOR / size;
    ck_assert_uint_eq(p.head + p.vectors * lanes + p.tail, n);
    if (n == 0) {
        ck_assert_uint_eq(p.blocks, 0);
        return;
    }
    ck_assert_uint_le(p.head + p.tail, 32);
    ck_assert_uint_ge(p.blocks, 1);
    ck_assert_uint_le(p.blocks, CR_GPU_MAX_BLOCKS);
    /* The blocks' runs cover the body, and the last one is not empty. */
    ck_assert_uint_ge(p.blocks * p.per_block, p.vectors);
    if (p.vectors != 0) ck_assert_uint_lt((p.blocks - 1) * p.per_block, p.vectors);
    if (p.vectors == 0) return;
    uintptr_t body = address + (uintptr_t)p.head * size;
    ck_assert_uint_eq(p.shift, body % CR_GPU_VECTOR);
    if (address % size == 0) ck_assert_uint_eq(p.shift, 0);
    uintptr_t first = body - p.shift, beyond = body - p.shift + p.vectors * CR_GPU_VECTOR;
    if (p.shift != 0) beyond += CR_GPU_VECTOR;
    ck_assert_uint_ge(first, address);
    ck_assert_uint_le(beyond, address + n * size);
}

START_TEST(short_arrays) {
    for (uint32_t size = 1; size <= 8; size *= 2)
        for (uintptr_t off = 0; off < 32; off++)
            for (uint64_t n = 0; n < 200; n++) check_plan(4096 + off, n, size, 132);
}
END_TEST

START_TEST(long_arrays) {
    static const uint32_t sms[] = {0, 1, 16, 108, 132, 200, 5000};
    for (uint32_t size = 1; size <= 8; size *= 2)
        for (uintptr_t off = 0; off < 16; off += 3)
            for (unsigned bits = 8; bits < 48; bits++)
                for (int delta = -2; delta <= 2; delta++)
                    for (size_t s = 0; s < sizeof sms / sizeof sms[0]; s++)
                        check_plan(65536 + off, ((uint64_t)1 << bits) + (uint64_t)(int64_t)delta, size, sms[s]);
}
END_TEST

/* A kernel with fewer blocks on a multiprocessor gets longer runs that still cover everything, and short arrays as they were. */
START_TEST(fits_what_is_resident) {
    for (unsigned bits = 10; bits < 40; bits++) {
        for (uint32_t resident = 1; resident <= 5; resident++) {
            cr_fold_plan wide = cr_fold_plan_make(0, (uint64_t)1 << bits, 4, 132), p = wide;
            cr_fold_plan_fit(&p, resident);
            ck_assert_uint_ge(p.blocks * p.per_block, p.vectors);
            ck_assert_uint_lt((p.blocks - 1) * p.per_block, p.vectors);
            ck_assert_uint_le(p.blocks, wide.blocks);
            if (resident >= CR_GPU_BLOCKS_PER_SM || bits < 20) ck_assert_uint_eq(p.per_block, wide.per_block);
            if (bits == 28) ck_assert_uint_le(p.blocks, 132 * resident);
        }
    }
}
END_TEST

/* Chunks cover everything, and each block has one, or two of its own. */
START_TEST(chunks) {
    for (unsigned bits = 0; bits < 48; bits++) {
        for (uint32_t resident = 1; resident <= 5; resident++) {
            for (uint32_t sms = 0; sms <= 132; sms += 12) {
                cr_fold_plan p = cr_fold_plan_make(0, ((uint64_t)1 << bits) + bits % 7, 4, sms);
                cr_fold_plan_chunks(&p, sms, resident);
                ck_assert_uint_ge(p.chunks * p.per_block, p.vectors);
                if (p.vectors != 0) ck_assert_uint_lt((p.chunks - 1) * p.per_block, p.vectors);
                ck_assert(p.chunks == p.blocks || (p.chunks / 2 >= p.blocks && p.per_block % CR_GPU_THREADS == 0));
                ck_assert_uint_ge(p.blocks, 1);
                ck_assert_uint_le(p.blocks, sms == 0 ? resident : sms * resident);
                if (bits >= 27 && sms != 0) ck_assert_uint_eq(p.blocks, sms * resident);
            }
        }
    }
}
END_TEST

/* Short sums cover everything with blocks that are resident at once, as few as their words count; else the plan stays. */
START_TEST(short_sums) {
    static const uint32_t sms[] = {0, 1, 16, 132, 5000};
    for (size_t s = 0; s < sizeof sms / sizeof sms[0]; s++) {
        uint64_t most = (sms[s] ? sms[s] : 1) * (uint64_t)CR_GPU_BLOCKS_PER_SM;
        if (most > CR_BURST_FLOAT_BLOCKS) most = CR_BURST_FLOAT_BLOCKS;
        for (uint64_t n = 1; n < (uint64_t)1 << 30; n += n / 3 + 1) {
            const cr_fold_plan before = cr_fold_plan_make(0, n, 4, sms[s]);
            cr_fold_plan p = before;
            const uint32_t each = cr_fold_plan_burst_float(&p, sms[s]);
            if (each == 0) {
                ck_assert_mem_eq(&p, &before, sizeof p);
                ck_assert(p.vectors == 0 || p.vectors > most * CR_BURST_FLOAT_MOST * CR_GPU_THREADS);
                continue;
            }
            ck_assert(each == 1 || (each >= 4 && each <= CR_BURST_FLOAT_MOST));
            ck_assert_uint_eq(p.per_block, CR_GPU_THREADS * each);
            ck_assert_uint_ge(p.blocks * p.per_block, p.vectors);
            ck_assert_uint_lt((p.blocks - 1) * p.per_block, p.vectors);
            ck_assert_uint_le(p.blocks, most);
            if (p.vectors <= CR_BURST_FLOAT_ALONE) ck_assert_uint_eq(p.blocks, 1);
        }
    }
    cr_fold_plan odd = cr_fold_plan_make(1, 100000, 4, 132);
    ck_assert_uint_ne(odd.shift, 0);
    ck_assert_uint_eq(cr_fold_plan_burst_float(&odd, 132), 0);
}
END_TEST

/* Bursts cover everything that they take: all blocks have room at once, no thread more vectors than it can have in flight. */
START_TEST(bursts) {
    static const uint32_t threads[] = {128, 256, 1024};
    for (size_t t = 0; t < 3; t++) {
        for (uint64_t n = 1; n < (uint64_t)1 << 26; n += n / 3 + 1) {
            const cr_fold_plan whole = cr_fold_plan_make(4, n, 4, 132), odd = cr_fold_plan_make(3, n, 4, 132);
            cr_fold_plan p = whole, q = odd;
            const bool taken = cr_fold_plan_burst(&p, 132, threads[t]);
            ck_assert(taken == (whole.vectors != 0 && whole.vectors <= 132 * 1024 * CR_GPU_UNROLL));
            ck_assert(!cr_fold_plan_burst(&q, 132, threads[t]) || odd.shift == 0);
            if (!taken) {
                ck_assert(memcmp(&p, &whole, sizeof p) == 0);
                continue;
            }
            const uint64_t loads = p.per_block / threads[t];
            ck_assert_uint_eq(p.per_block % threads[t], 0);
            ck_assert(loads == 1 || loads == 2 || loads == 4 || loads == 8);
            ck_assert_uint_le(p.blocks, 132 * (1024 / threads[t]));
            ck_assert_uint_ge(p.blocks * p.per_block, p.vectors);
            ck_assert_uint_lt((p.blocks - 1) * p.per_block, p.vectors);
        }
    }
}
END_TEST

static void without(cr_fast way) { cr_fast_switch_off(UINT64_C(1) << way); }

/* What each fast way of short arrays decides, and that it no longer does when it is off. */
START_TEST(ways_that_are_off) {
    cr_fold_plan p = cr_fold_plan_make(0, 1000, 4, 132);
    ck_assert(cr_fold_takes_few_threads(&p, 256));
    ck_assert_int_eq(cr_burst_float_kernel_of(1), CR_BURST_FLOAT_ONE);
    ck_assert_int_eq(cr_burst_float_kernel_of(4), CR_BURST_FLOAT_FOUR);
    ck_assert_int_eq(cr_burst_float_kernel_of(5), CR_BURST_FLOAT_LOOP);
    ck_assert_int_eq(cr_burst_float_kernel_of(CR_BURST_FLOAT_AGAIN + 1), CR_BURST_FLOAT_ONCE);
    without(CR_FAST_GPU_FEW_THREADS);
    ck_assert(!cr_fold_takes_few_threads(&p, 256));
    without(CR_FAST_GPU_UNLOOPED);
    ck_assert_int_eq(cr_burst_float_kernel_of(1), CR_BURST_FLOAT_LOOP);
    ck_assert_int_eq(cr_burst_float_kernel_of(4), CR_BURST_FLOAT_LOOP);
    without(CR_FAST_GPU_AGAIN);
    ck_assert_int_eq(cr_burst_float_kernel_of(1), CR_BURST_FLOAT_ONCE);
    without(CR_FAST_GPU_BURSTS);
    ck_assert(!cr_fold_plan_burst(&p, 132, 256));
    without(CR_FAST_GPU_FLOAT_BURSTS);
    ck_assert_uint_eq(cr_fold_plan_burst_float(&p, 132), 0);
    cr_fast_switch_off(0);
}
END_TEST

/* Runs cover everything, and are no more than their words can count. */
START_TEST(runs) {
    for (unsigned bits = 0; bits < 48; bits++) {
        for (uint32_t sms = 0; sms <= 132; sms += 12) {
            const cr_fold_plan whole = cr_fold_plan_make(0, ((uint64_t)1 << bits) + bits % 7, 4, sms);
            cr_fold_plan p = whole;
            cr_fold_plan_runs(&p, sms, 5, 8192);
            ck_assert_uint_ge(p.blocks * p.per_block, p.vectors);
            if (p.vectors != 0) ck_assert_uint_lt((p.blocks - 1) * p.per_block, p.vectors);
            ck_assert_uint_le(p.blocks, CR_GPU_MAX_RUNS);
            if (bits < 12) ck_assert(memcmp(&p, &whole, sizeof p) == 0);
            if (bits == 30 && sms != 0) ck_assert_uint_eq(p.per_block, 8192);
        }
    }
}
END_TEST

/* Blocks that fill the chip once, as soon as there is work for them. */
START_TEST(grid_follows_the_chip) {
    cr_fold_plan p = cr_fold_plan_make(0, (uint64_t)1 << 28, 4, 132); /* 1 GiB: one run for each */
    ck_assert_uint_ge(p.blocks, 132 * CR_GPU_BLOCKS_PER_SM - 1);
    ck_assert_uint_le(p.blocks, 132 * CR_GPU_BLOCKS_PER_SM);
    p = cr_fold_plan_make(0, (uint64_t)1 << 30, 4, 132); /* 4 GiB: several waves */
    ck_assert_uint_gt(p.blocks, 132 * CR_GPU_BLOCKS_PER_SM * 3);
    ck_assert_uint_le(p.per_block, CR_GPU_RUN);
    p = cr_fold_plan_make(0, 1024, 4, 132);
    ck_assert_uint_eq(p.blocks, 1);
    p = cr_fold_plan_make(0, 8192, 4, 132); /* 32 KiB: still alone */
    ck_assert_uint_eq(p.blocks, 1);
    p = cr_fold_plan_make(0, (uint64_t)1 << 18, 4, 132); /* 1 MiB */
    ck_assert_uint_eq(p.blocks, 128);
    p = cr_fold_plan_make(0, (uint64_t)1 << 20, 4, 132); /* 4 MiB */
    ck_assert_uint_eq(p.blocks, 256);
}
END_TEST

CR_CHECK_MAIN("plan") {
    tcase_add_test(tc, short_arrays);
    tcase_add_test(tc, long_arrays);
    tcase_add_test(tc, fits_what_is_resident);
    tcase_add_test(tc, chunks);
    tcase_add_test(tc, short_sums);
    tcase_add_test(tc, bursts);
    tcase_add_test(tc, ways_that_are_off);
    tcase_add_test(tc, runs);
    tcase_add_test(tc, grid_follows_the_chip);
}
