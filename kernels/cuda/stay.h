/* stay: a block of the batch kernel that stays for a while and looks for the next small batch by itself: who asks then needs no launch,
 * which takes longer than everything else about a small job. The host posts a batch in pinned memory, the block leaves its answers as any
 * batch does. It holds one multiprocessor, for linger_ns after the last post at most, for CR_STAY_LIFE_NS in all, and leaves at once when it
 * is told to: before anything else that wants the whole GPU, or that waits for it.
 *
 *   gone ──► started, behind a small batch that followed another closely ──► posts … ──► told to quit, or nobody came ──► gone
 *
 * What is posted lies in words that carry the post's number in their upper bits, so nothing depends on the order in which the bus brings them. A
 * post that the block left without having seen is still there when `gone` is, and is launched as usual then: no post is lost, and
 * none is answered twice.
 * Thread: one at a time for a device. Owner: the device. */
#ifndef CURED_KERNELS_CUDA_STAY_H
#define CURED_KERNELS_CUDA_STAY_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/cuda/batch.h"

enum {
    CR_STAY_UNITS = 4, /* of a post: a warp each */
    CR_STAY_UNIT_WORDS = 3,
    CR_STAY_FOUND = CR_STAY_UNITS * CR_STAY_UNIT_WORDS,
    CR_STAY_MORE,
    CR_STAY_COUNT,
    CR_STAY_QUIT,  /* not 0: leave */
    CR_STAY_WORDS, /* so many to a line of the bus */
    CR_STAY_SHIFT = 56,
};
#define CR_STAY_LIFE_NS UINT64_C(10000000)

/* Pinned memory, in lines of 128 bytes: one for each direction. */
typedef struct cr_stay_box {
    uint64_t word[CR_STAY_WORDS];
    uint64_t gone, pad[15];
} cr_stay_box;

typedef struct cr_stay_args {
    cr_stay_box *box;
    uint64_t linger_ns;
    uint64_t number; /* of the last post that is not to be answered */
} cr_stay_args;
/* Enqueues on a cudaStream_t; gives a cudaError_t. */
int cr_stay_launch(const cr_stay_args *args, void *stream);

typedef struct cr_stay {
    cr_stay_box *box; /* NULL: nothing ever stays */
    void *stream;
    uint64_t linger_ns, number;
    uint64_t last_ns; /* of the last small batch */
    bool running;
    const cr_batch *posted; /* whose post is out; NULL: none */
    uint32_t from, count;   /* its units */
} cr_stay;

/* box: zero. */
void cr_stay_init(cr_stay *stay, cr_stay_box *box, void *stream, uint64_t linger_ns);
/* Posts what was added since the last launch, if there is somebody to see it and it is small: true. */
bool cr_stay_post(cr_stay *stay, cr_batch *batch);
/* A small batch was launched: lets one stay when they follow each other closely. Gives a cudaError_t. */
int cr_stay_follow(cr_stay *stay, const cr_batch *batch);
/* Whether it has left. Then what is posted and not there will not come. */
bool cr_stay_gone(cr_stay *stay);
/* Tells it to leave. */
void cr_stay_quit(cr_stay *stay);
/* What batch had posted is there, or is given up. */
void cr_stay_forget(cr_stay *stay, const cr_batch *batch);

#ifdef __cplusplus
}
#endif
#endif
