/* kernels: what the files of cured-bench kernels share: the device and its buffers, one measured candidate, the exact answers.
 *
 * Thread: main. Owner: kernels.c owns the bench; a candidate is one row at one size. */
#ifndef CURED_BENCH_KERNELS_H
#define CURED_BENCH_KERNELS_H

#include "kernels/core/partial.h"
#include "kernels/cuda/plan/fold.h"
#include "kernels/ladder/ladder.h"

enum { BENCH_MAX_ROUNDS = 51, BENCH_MAX_SIZES = 24, BENCH_MAX_OPS = 8, BENCH_MAX_CANDIDATES = 48 };

/* What is measured: one op, or several that one pass answers. */
typedef struct bench_ops {
    const char *name;
    cr_op ops[BENCH_MAX_OPS]; /* CR_OP_NONE ends them */
} bench_ops;

typedef struct bench_gpu {
    char name[256];
    unsigned multiprocessors;
    int cccl;    /* version of CUB's headers, as CCCL_VERSION */
    bool follow; /* folds may begin while the one before them ends */
    uint64_t l2_bytes;
    void *stream, *begin, *end; /* cudaStream_t, cudaEvent_t */
    uint8_t *arena;             /* rotating buffers: the sizes' arrays lie side by side in it */
    uint64_t arena_bytes;
    uint8_t *flush; /* read to drive everything else out of the L2 */
    uint64_t flush_bytes;
    cr_ladder_space *ladder;
    cr_gpu_state *state; /* of the production folds */
    cr_fold_slot *slot;  /* pinned */
    void *temp;          /* CUB's */
    size_t temp_bytes;
    void *out;         /* 16 bytes of device memory */
    uint8_t *piece[2]; /* pinned, for exact answers */
} bench_gpu;

typedef enum bench_group { GROUP_READ, GROUP_FOLD, GROUP_CUB, GROUP_THRUST, GROUP_LADDER, GROUP_COUNT } bench_group;
extern const char *const bench_group_names[GROUP_COUNT];

/* VARIES: within the bound, with other bits from run to run; of a peer that promises none. WRAPS: the lower bits
 * of a peer's integer sum, whose type holds no more. */
typedef enum bench_answer {
    ANSWER_NONE,
    ANSWER_EXACT,
    ANSWER_BOUND,
    ANSWER_VARIES,
    ANSWER_WRAPS,
    ANSWER_WRONG
} bench_answer;
extern const char *const bench_answer_names[];

typedef struct bench_candidate {
    bench_group group;
    const char *name;
    unsigned variant; /* of a read loop or a row of the ladder; of CUB a bench_promise */
    const char *none; /* why this build has none; NULL: it has, or there is none of that kind at all */
    bool by_clock;    /* the host takes part: timed call by call, not inside a graph */
    void *graph;      /* cudaGraphExec_t */
    bench_answer answer;
    double error; /* relative, of the answer */
} bench_candidate;

/* One array: the same for all candidates. */
typedef struct bench_array {
    cr_dtype dtype;
    const bench_ops *ops;
    uint64_t bytes, n;
    uint32_t buffers; /* that many arrays, one after the other in the arena */
} bench_array;

/* kernels_run.c */
/* 0; otherwise a message was printed. */
int bench_gpu_open(bench_gpu *gpu, uint64_t largest);
void bench_gpu_close(bench_gpu *gpu);
int bench_gpu_fill(bench_gpu *gpu, cr_dtype dtype, bool bits);
/* Whether there is such a kernel for array at all; c is as new. */
bool bench_exists(const bench_array *array, bench_candidate *c);
/* Runs c once over the first buffer and judges what it says; makes the room that it needs. */
int bench_judge(bench_gpu *gpu, const bench_array *array, bench_candidate *c, const cr_partial *exact);
/* Makes c's graph, when every candidate was judged: room that is made later would take it away. */
int bench_prepare(bench_gpu *gpu, const bench_array *array, bench_candidate *c);
void bench_release(bench_candidate *c);
/* Runs c once over each buffer, cold; gives seconds for one array, or < 0. */
double bench_time(bench_gpu *gpu, const bench_array *array, bench_candidate *c);

/* kernels_exact.c */
/* Adds elements [from, to) of the arena to the partial. 0; otherwise the device failed. */
int bench_exact(bench_gpu *gpu, cr_dtype dtype, uint64_t from, uint64_t to, cr_partial *exact);
uint32_t bench_families(const bench_ops *ops, cr_dtype dtype);
uint32_t bench_wants(const bench_ops *ops);
/* Judges c by an answer: a finished value, or the bytes of a peer's, of type dtype. */
void bench_compare_value(const cr_partial *exact, const cr_value *got, bench_candidate *c);
void bench_compare(const cr_partial *exact, cr_op op, const void *bytes, cr_dtype dtype, bench_candidate *c);

#endif
