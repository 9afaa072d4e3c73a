/* heat: a rod that cools, on the ranks of an MPI job and the threads of OpenMP. The energy of the whole rod is summed twice each hundred
 * steps: as programs do, by additions of doubles and MPI_SUM, and exactly. The last line has the exact energy and its bits: the same
 * for every number of ranks and threads. With other ranks the plain sum has other bits.
 *
 *     mpicc -O2 -c cured_sum.c            (scripts/sum-file FOLDER writes it)
 *     mpicc -O2 -fopenmp heat.c cured_sum.o -o heat
 *     OMP_NUM_THREADS=2 mpirun -n 3 ./heat [cells] [steps]
 *
 * Each rank has a range of the cells and one cell of each neighbour. A cell's temperature is computed from the same numbers in the same
 * order whoever has it, so temperatures have the same bits, too; only sums over ranks would not.
 *
 * Thread: MPI is called by the main thread alone. Owner: main owns the rod. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cured_sum.h"
#include "cured_sum_mpi.h"

typedef struct rod {
    int rank, ranks;
    long cells, first, own; /* of all ranks; of this one: where its cells begin, and how many */
    double *now, *next;     /* own cells from index 1 on, and a neighbour's at each end */
} rod;

/* A warm middle, and noise that a plain sum rounds away or not, as the additions fall. */
static double at_first(long cell, long cells) {
    const unsigned long noise = ((unsigned long)cell * 2654435761u + 12345u) % 1000003u;
    const double x = (double)cell / (double)cells;
    return 300.0 + 1e6 * x * (1 - x) + (double)noise * 1e-7;
}

/* The cells at both ends of each rank go to its neighbours. The rod's ends touch nothing: their own cells stand for neighbours. */
static void exchange(rod *r) {
    const int left = r->rank > 0 ? r->rank - 1 : MPI_PROC_NULL,
              right = r->rank + 1 < r->ranks ? r->rank + 1 : MPI_PROC_NULL;
    r->now[0] = r->now[1];
    r->now[r->own + 1] = r->now[r->own];
    MPI_Sendrecv(&r->now[1], 1, MPI_DOUBLE, left, 0, &r->now[r->own + 1], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(&r->now[r->own], 1, MPI_DOUBLE, right, 1, &r->now[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void step(rod *r) {
    exchange(r);
#pragma omp parallel for schedule(static)
    for (long i = 1; i <= r->own; i++) {
        r->next[i] = r->now[i] + 0.2 * (r->now[i - 1] - 2 * r->now[i] + r->now[i + 1]);
    }
    double *last = r->now;
    r->now = r->next;
    r->next = last;
}

static double plain_energy(const rod *r) {
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = 1; i <= r->own; i++) sum += r->now[i];
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void check(int status) {
    if (status == CURED_SUM_OK) return;
    fprintf(stderr, "heat: %s\n", cured_sum_text(status));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The sum of the temperatures, and of their squares, in one Allreduce. Each thread adds to sums of its own. */
static void exact_energy(const rod *r, double *energy, double *squares) {
    cured_sum sum, square;
    int64_t packs[CURED_SUM_F64_NUMBERS + CURED_SUM_F64_PRODUCT_NUMBERS];
    check(cured_sum_begin(&sum, CURED_SUM_VALUES, CURED_SUM_F64));
    check(cured_sum_begin(&square, CURED_SUM_SQUARES, CURED_SUM_F64));
#pragma omp parallel
    {
        cured_sum mine, my_square;
        cured_sum_begin(&mine, CURED_SUM_VALUES, CURED_SUM_F64);
        cured_sum_begin(&my_square, CURED_SUM_SQUARES, CURED_SUM_F64);
#pragma omp for schedule(static)
        for (long block = 0; block < (r->own + 1023) / 1024; block++) {
            const long at = block * 1024, n = r->own - at < 1024 ? r->own - at : 1024;
            cured_sum_add_f64(&mine, (uint64_t)n, &r->now[1 + at], 1);
            cured_sum_add_f64(&my_square, (uint64_t)n, &r->now[1 + at], 1);
        }
#pragma omp critical
        {
            check(cured_sum_merge(&sum, &mine));
            check(cured_sum_merge(&square, &my_square));
        }
    }
    check(cured_sum_pack(&sum, packs));
    check(cured_sum_pack(&square, packs + CURED_SUM_F64_NUMBERS));
    cured_sum_allreduce(packs, CURED_SUM_F64_NUMBERS + CURED_SUM_F64_PRODUCT_NUMBERS, MPI_COMM_WORLD);
    check(cured_sum_finish(CURED_SUM_VALUES, CURED_SUM_F64, packs, energy));
    check(cured_sum_finish(CURED_SUM_SQUARES, CURED_SUM_F64, packs + CURED_SUM_F64_NUMBERS, squares));
}

static unsigned long long bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

int main(int argc, char **argv) {
    rod r = {.cells = argc > 1 ? atol(argv[1]) : 100000};
    const long steps = argc > 2 ? atol(argv[2]) : 300;
    int threads;
    double energy = 0, squares = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r.ranks);
    r.first = r.cells * r.rank / r.ranks;
    r.own = r.cells * (r.rank + 1) / r.ranks - r.first;
    r.now = malloc((size_t)(r.own + 2) * sizeof(double));
    r.next = malloc((size_t)(r.own + 2) * sizeof(double));
    if (r.own < 1 || r.now == NULL || r.next == NULL) {
        fprintf(stderr, "heat: rank %d has no cells: take more cells than ranks\n", r.rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (long i = 0; i < r.own; i++) r.now[1 + i] = at_first(r.first + i, r.cells);
    for (long t = 0; t <= steps; t++) {
        if (t % 100 == 0) {
            const double plain = plain_energy(&r);
            exact_energy(&r, &energy, &squares);
            if (r.rank == 0) printf("step %ld plain %.17g %016llx\n", t, plain, bits_of(plain));
        }
        if (t < steps) step(&r);
    }
    if (r.rank == 0) printf("exact %.17g %016llx squares %016llx\n", energy, bits_of(energy), bits_of(squares));
    free(r.now);
    free(r.next);
    MPI_Finalize();
    return 0;
}
