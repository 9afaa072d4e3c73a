/* sum_mpi: what exact sums cost in a program of MPI (client/sum), beside plain loops and MPI_SUM of doubles. Prints a table for
 * docs/MPI.md: medians, the least and the most, and the ratio of the medians. Contestants take turns; the time of a turn is that of the
 * slowest rank. Answers are checked first: the arrays are made so that their sums are known.
 *
 *     mpirun -n 2 build/release/tests/bench_sum_mpi [turns]
 *
 * A third contestant takes part where it is linked in: bench_peer() sums fields over MPI_COMM_WORLD by another method. It is brought for
 * a comparison, and is no part of this tree.
 *
 * Thread: one a rank. Owner: this file. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cured_sum.h"
#include "cured_sum_mpi.h"

enum { FIELDS = 8, MOST = 1000000, MOST_TURNS = 1001, NUMBERS = CURED_SUM_F64_NUMBERS };

/* Sums of `fields` arrays of n elements each, which lie one behind the other, over all ranks. */
void bench_peer(const double *x, double *sums, int n, int fields) __attribute__((weak));

typedef double vector __attribute__((vector_size(32)));

static int rank, ranks;
static double *x; /* FIELDS arrays of MOST elements */

#if defined(__x86_64__)
#define BY_AVX2 __attribute__((target("avx2")))
#else
#define BY_AVX2
#endif

/* A plain loop, as programs have it: the compiler makes vectors of it. */
BY_AVX2 static double plain_sum(const double *p, long n) {
    double total = 0;
#pragma omp simd reduction(+ : total)
    for (long i = 0; i < n; i++) total += p[i];
    return total;
}

/* As fast as a loop of additions can be made by hand: eight sums at once, of four lanes. */
BY_AVX2 static double hand_sum(const double *p, long n) {
    vector sums[8] = {{0}};
    double total = 0;
    long i = 0;
    for (; i + 32 <= n; i += 32) {
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) {
            vector v;
            memcpy(&v, p + i + 4 * k, sizeof v);
            sums[k] += v;
        }
    }
    for (; i < n; i++) total += p[i];
    for (int k = 0; k < 8; k++) total += sums[k][0] + sums[k][1] + sums[k][2] + sums[k][3];
    return total;
}

static double exact_sum(const double *p, long n) {
    cured_sum s;
    double value = NAN;
    cured_sum_begin(&s, CURED_SUM_VALUES, CURED_SUM_F64);
    cured_sum_add_f64(&s, (uint64_t)n, p, 1);
    cured_sum_value(&s, &value);
    return value;
}

static void plain_fields(const double *p, double *sums, int n, int fields) {
    for (int f = 0; f < fields; f++) sums[f] = hand_sum(p + (long)f * n, n);
    MPI_Allreduce(MPI_IN_PLACE, sums, fields, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void exact_fields(const double *p, double *sums, int n, int fields) {
    int64_t packs[FIELDS * NUMBERS];
    for (int f = 0; f < fields; f++) {
        cured_sum s;
        cured_sum_begin(&s, CURED_SUM_VALUES, CURED_SUM_F64);
        cured_sum_add_f64(&s, (uint64_t)n, p + (long)f * n, 1);
        cured_sum_pack(&s, packs + f * NUMBERS);
    }
    cured_sum_allreduce(packs, (uint64_t)fields * NUMBERS, MPI_COMM_WORLD);
    for (int f = 0; f < fields; f++) cured_sum_finish(CURED_SUM_VALUES, CURED_SUM_F64, packs + f * NUMBERS, &sums[f]);
}

/* xorshift64* (Vigna 2016). */
static uint64_t next_random(void) {
    static uint64_t state = 0;
    if (state == 0) state = 88172645463325252u + (uint64_t)rank;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717u;
}

/* n elements, an even number, which add up to 1.5: each but two has its negative. Exponents: within 2^10 of 1, or any. */
static void fill(double *p, long n, int any) {
    for (long i = 0; i < n / 2; i++) {
        const double significand = 1 + (double)(next_random() >> 12) * 0x1p-52;
        const double v = ldexp(significand, any ? (int)(next_random() % 1900) - 950 : (int)(next_random() % 10));
        const int up = next_random() & 1;
        p[i] = up ? v : -v;
        p[n - 1 - i] = -p[i];
    }
    p[0] = 1;
    p[n - 1] = 0.5;
}

static int by_size(const void *a, const void *b) {
    const double d = *(const double *)a - *(const double *)b;
    return d < 0 ? -1 : d > 0;
}

static double middle(double *times, int turns) {
    qsort(times, (size_t)turns, sizeof *times, by_size);
    return times[turns / 2];
}

typedef void fields_way(const double *p, double *sums, int n, int fields);

/* One turn: of the slowest rank, in seconds a call. */
static double turn(fields_way *way, int n, int fields, int calls) {
    double sums[FIELDS], took;
    MPI_Barrier(MPI_COMM_WORLD);
    const double from = MPI_Wtime();
    for (int i = 0; i < calls; i++) way(x, sums, n, fields);
    took = (MPI_Wtime() - from) / calls;
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return took;
}

static void check_fields(fields_way *way, int n, const char *name) {
    double sums[FIELDS];
    way(x, sums, n, FIELDS);
    for (int f = 0; f < FIELDS; f++) {
        if (sums[f] == 1.5 * ranks) continue;
        fprintf(stderr, "sum_mpi: %s: field %d is %.17g, not %g\n", name, f, sums[f], 1.5 * ranks);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void report(const char *row, const char *name, double *times, int turns, double beside) {
    const double mid = middle(times, turns);
    if (rank == 0)
        printf("%-34s %-12s %10.1f us  %10.1f .. %10.1f  x %.2f\n", row, name, mid * 1e6, times[0] * 1e6,
               times[turns - 1] * 1e6, mid / beside);
}

/* A whole reduction: 8 fields of n elements a rank. */
static void whole(const char *row, int n, int calls, int turns) {
    static double plain[MOST_TURNS], exact[MOST_TURNS], peer[MOST_TURNS];
    for (int f = 0; f < FIELDS; f++) fill(x + (long)f * n, n, 0);
    check_fields(exact_fields, n, "cured_sum");
    for (int t = 0; t < turns; t++) {
        plain[t] = turn(plain_fields, n, FIELDS, calls);
        exact[t] = turn(exact_fields, n, FIELDS, calls);
        if (bench_peer) peer[t] = turn(bench_peer, n, FIELDS, calls);
    }
    const double beside = middle(plain, turns);
    report(row, "plain", plain, turns, beside);
    report(row, "cured_sum", exact, turns, beside);
    if (bench_peer) report(row, "the peer", peer, turns, beside);
    if (rank == 0) printf("%-34s cured_sum - plain = %.1f us\n", row, (middle(exact, turns) - beside) * 1e6);
}

/* Where answers go, so that no compiler leaves a loop out. */
static volatile double answer;

typedef double local_way(const double *p, long n);

static void local(const char *row, int any, long n, int calls, int turns) {
    enum { WAYS = 3 };
    static double times[WAYS][MOST_TURNS];
    static const char *const names[WAYS] = {"plain", "by hand", "cured_sum"};
    local_way *const ways[WAYS] = {plain_sum, hand_sum, exact_sum};
    fill(x, n, any);
    if (exact_sum(x, n) != 1.5) {
        fprintf(stderr, "sum_mpi: %s: not 1.5\n", row);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int t = 0; t < turns; t++) {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int k = 0; k < WAYS; k++) { /* another begins each time: who reads first finds other caches */
            const int w = (t + k) % WAYS;
            const double from = MPI_Wtime();
            for (int i = 0; i < calls; i++) answer = ways[w](x, n);
            times[w][t] = (MPI_Wtime() - from) / calls;
        }
    }
    const double beside = middle(times[0], turns);
    for (int w = 0; w < WAYS; w++) report(row, names[w], times[w], turns, beside);
    if (rank == 0) printf("%-34s cured_sum is %.2f times as fast\n", row, beside / middle(times[2], turns));
}

static void about(int turns) {
    char line[256], model[256] = "unknown";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "model name : %255[^\n]", model) == 1) break;
    if (f) fclose(f);
    line[0] = '\0';
    f = fopen("/proc/loadavg", "r");
    if (f && fgets(line, sizeof line, f)) line[strcspn(line, "\n")] = '\0';
    if (f) fclose(f);
    printf("%s, by %s; %d ranks, %d turns; load %s\n", model, cured_sum_isa(), ranks, turns, line);
    printf("%-34s %-12s %13s  %24s  %s\n", "", "", "median", "least .. most", "of plain");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int turns = argc > 1 ? atoi(argv[1]) : 21;
    x = malloc((size_t)FIELDS * MOST * sizeof *x);
    if (x == NULL || turns < 5 || turns > MOST_TURNS) {
        fprintf(stderr, "sum_mpi: turns: from 5 to %d\n", MOST_TURNS);
        MPI_Abort(MPI_COMM_WORLD, 64);
    }
    if (rank == 0) about(turns);
    local("local, 1 M f64, like exponents", 0, MOST, 1, turns);
    local("local, 1 M f64, any exponents", 1, MOST, 1, turns);
    local("local, 64 KiB, like exponents", 0, 8192, 100, turns);
    local("local, 64 KiB, any exponents", 1, 8192, 100, turns);
    whole("8 x 1 M f64 a rank", MOST, 1, turns);
    whole("8 x 1,000 f64 a rank", 1000, 50, turns);
    free(x);
    MPI_Finalize();
    return 0;
}
