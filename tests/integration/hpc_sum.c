/* hpc_sum: cured_sum_mpi.h on the ranks of a job, for test_hpc.py: in place, with ranks that have nothing, in subcommunicators, begun and
 * waited for, in pieces (CURED_SUM_MPI_MOST is 100 here, as if an int ended there), and kept over many steps. Every rank knows all
 * elements, and compares its answers with those of the whole. Prints one line, from rank 0; exit status 1 where a rank found a fault.
 *
 * Thread: one. Owner: this file. */
#define CURED_SUM_MPI_MOST ((uint64_t)100)
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cured_sum.h"
#include "cured_sum_mpi.h"

enum { CELLS = 5000, FIELDS = 7, NUMBERS = CURED_SUM_F64_NUMBERS, ALL = FIELDS * NUMBERS };

static double x[FIELDS][CELLS];
static int rank, ranks, faults;

static void fault(const char *what) {
    fprintf(stderr, "hpc_sum: rank %d: %s\n", rank, what);
    faults++;
}

static void must(int status, const char *what) {
    if (status != 0) fault(what);
}

/* Of n elements of each field, the packs. */
static void pack_all(const int fields, long from, long n, int64_t *packs) {
    for (int f = 0; f < fields; f++) {
        cured_sum s;
        must(cured_sum_begin(&s, CURED_SUM_VALUES, CURED_SUM_F64), "begin");
        must(cured_sum_add_f64(&s, (uint64_t)n, n ? &x[f][from] : NULL, 1), "add");
        must(cured_sum_pack(&s, packs + f * NUMBERS), "pack");
    }
}

/* Whether packs that were added up have the bits of the same elements added in one place. */
static void compare(const int64_t *packs, long from, long n, const char *what) {
    static int64_t whole[ALL];
    double got, want;
    pack_all(FIELDS, from, n, whole);
    for (int f = 0; f < FIELDS; f++) {
        must(cured_sum_finish(CURED_SUM_VALUES, CURED_SUM_F64, packs + f * NUMBERS, &got), what);
        must(cured_sum_finish(CURED_SUM_VALUES, CURED_SUM_F64, whole + f * NUMBERS, &want), what);
        if (memcmp(&got, &want, sizeof got) != 0) fault(what);
        if (packs[f * NUMBERS] != n) fault("the count of elements");
    }
}

static long cut(long cells, int of, int parts) { return cells * of / parts; }

static void in_place(void) {
    static int64_t packs[ALL];
    pack_all(FIELDS, cut(CELLS, rank, ranks), cut(CELLS, rank + 1, ranks) - cut(CELLS, rank, ranks), packs);
    must(MPI_Allreduce(MPI_IN_PLACE, packs, ALL, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
    compare(packs, 0, CELLS, "one Allreduce, in place");
}

/* Only the last rank has elements. */
static void empty_ranks_in_pieces(void) {
    static int64_t packs[ALL];
    pack_all(FIELDS, 0, rank + 1 == ranks ? CELLS : 0, packs);
    must(cured_sum_allreduce(packs, ALL, MPI_COMM_WORLD), "cured_sum_allreduce");
    compare(packs, 0, CELLS, "ranks with nothing, in pieces");
    if (cured_sum_requests(ALL) != (ALL + 99) / 100 || cured_sum_requests(0) != 0 || cured_sum_requests(100) != 1)
        fault("cured_sum_requests");
}

static void subcommunicators(void) {
    static int64_t packs[ALL];
    MPI_Comm half;
    int my, size;
    const long middle = CELLS / 3, from = rank % 2 ? middle : 0, n = rank % 2 ? CELLS - middle : middle;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half); /* in the other order */
    MPI_Comm_rank(half, &my);
    MPI_Comm_size(half, &size);
    pack_all(FIELDS, from + cut(n, my, size), cut(n, my + 1, size) - cut(n, my, size), packs);
    must(cured_sum_allreduce(packs, ALL, half), "cured_sum_allreduce of a subcommunicator");
    compare(packs, from, n, "a subcommunicator");
    MPI_Comm_free(&half);
}

static void begun(void) {
    static int64_t packs[ALL];
    MPI_Request requests[(ALL + 99) / 100];
    pack_all(FIELDS, cut(CELLS, rank, ranks), cut(CELLS, rank + 1, ranks) - cut(CELLS, rank, ranks), packs);
    must(cured_sum_iallreduce(packs, ALL, MPI_COMM_WORLD, requests), "cured_sum_iallreduce");
    must(MPI_Waitall((int)cured_sum_requests(ALL), requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
    compare(packs, 0, CELLS, "MPI_Iallreduce, in pieces");
}

/* Packs are kept for 1,000 steps before they meet, and stay packs. */
static void kept_over_steps(void) {
    static int64_t kept[NUMBERS], pack[NUMBERS];
    double got = 0, one = 0;
    memset(kept, 0, sizeof kept);
    pack_all(1, cut(CELLS, rank, ranks), cut(CELLS, rank + 1, ranks) - cut(CELLS, rank, ranks), pack);
    for (int step = 0; step < 1024; step++) {
        for (int i = 0; i < NUMBERS; i++) kept[i] += pack[i];
        if (step % 100 == 99) must(cured_sum_renormalise(CURED_SUM_VALUES, CURED_SUM_F64, kept), "renormalise");
    }
    must(cured_sum_allreduce(kept, NUMBERS, MPI_COMM_WORLD), "cured_sum_allreduce of kept sums");
    must(cured_sum_finish(CURED_SUM_VALUES, CURED_SUM_F64, kept, &got), "finish");
    pack_all(1, 0, CELLS, pack);
    must(cured_sum_finish(CURED_SUM_VALUES, CURED_SUM_F64, pack, &one), "finish");
    if (got != ldexp(one, 10)) fault("a sum kept over 1024 steps");
}

int main(int argc, char **argv) {
    int all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    srand(20260105);
    for (int f = 0; f < FIELDS; f++)
        for (int i = 0; i < CELLS; i++)
            x[f][i] = ldexp(rand() / (double)RAND_MAX - 0.5, f == 0 ? 0 : rand() % (f * 100));
    in_place();
    empty_ranks_in_pieces();
    subcommunicators();
    begun();
    kept_over_steps();
    MPI_Allreduce(&faults, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("hpc_sum: %d ranks, %d faults\n", ranks, all);
    MPI_Finalize();
    return all != 0;
}
