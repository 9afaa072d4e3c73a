/* hpc_counts: more numbers than an int counts, through one call of cured_sum_allreduce. By hand (test_mpich.sh's programs are small):
 * 17.2 GB a rank, and what the MPI copies.
 *
 *     scripts/sum-file sum
 *     mpicc -O2 -Isum tests/integration/hpc_counts.c sum/cured_sum.c -lm -o hpc_counts
 *     mpirun -n 2 ./hpc_counts
 *
 * Field f of rank r is the sum of one element, (f mod 1,000) * 2^r, so every rank knows all answers. The last line counts faults.
 *
 * Thread: one a rank. Owner: this file. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "cured_sum.h"
#include "cured_sum_mpi.h"

enum { NUMBERS = CURED_SUM_F64_NUMBERS, KINDS = 1000 };
static const uint64_t FIELDS = ((uint64_t)1 << 31) / NUMBERS + 1; /* numbers: 2^31 and a few */

static void fill(int64_t *packs, int rank) {
    static int64_t kinds[KINDS][NUMBERS];
    for (int k = 0; k < KINDS; k++) {
        const double value = ldexp(k, rank);
        cured_sum s;
        cured_sum_begin(&s, CURED_SUM_VALUES, CURED_SUM_F64);
        cured_sum_add_f64(&s, 1, &value, 1);
        cured_sum_pack(&s, kinds[k]);
    }
    for (uint64_t f = 0; f < FIELDS; f++)
        for (int i = 0; i < NUMBERS; i++) packs[f * NUMBERS + (uint64_t)i] = kinds[f % KINDS][i];
}

int main(int argc, char **argv) {
    int rank, ranks;
    uint64_t faults = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int64_t *packs = malloc(FIELDS * NUMBERS * sizeof *packs);
    if (packs == NULL) {
        fprintf(stderr, "hpc_counts: no memory for %llu numbers\n", (unsigned long long)(FIELDS * NUMBERS));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    fill(packs, rank);
    const double from = MPI_Wtime();
    const int status = cured_sum_allreduce(packs, FIELDS * NUMBERS, MPI_COMM_WORLD);
    const double took = MPI_Wtime() - from;
    for (uint64_t f = 0; f < FIELDS; f++) {
        const int64_t *pack = packs + f * NUMBERS;
        double value = NAN;
        cured_sum_finish(CURED_SUM_VALUES, CURED_SUM_F64, pack, &value);
        faults += value != (double)(f % KINDS) * (ldexp(1, ranks) - 1) || pack[0] != ranks;
    }
    free(packs);
    MPI_Allreduce(MPI_IN_PLACE, &faults, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks, %llu numbers in %llu pieces, %.1f s: status %d, %llu faults\n", ranks,
               (unsigned long long)(FIELDS * NUMBERS), (unsigned long long)cured_sum_requests(FIELDS * NUMBERS), took,
               status, (unsigned long long)faults);
    MPI_Finalize();
    return status != MPI_SUCCESS || faults != 0;
}
