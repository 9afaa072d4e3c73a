/* linger: a block of the pack kernel that stays for a while and looks for the next small pack by itself: who asks then needs no launch,
 * which takes longer than everything else about a small job. The host posts a pack in pinned memory, the block leaves its answers as any
 * pack does. It holds one multiprocessor, for linger_ns after the last post at most, for CR_LINGER_LIFE_NS in all, and leaves at once when it
 * is told to: before anything else that wants the whole GPU, or that waits for it.
 *
 *   gone ──► started, behind a small pack that followed another closely ──► posts … ──► told to quit, or nobody came ──► gone
 *
 * What is posted lies in words that carry the post's number in their upper bits, so nothing depends on the order in which the bus brings them. A
 * post that the block left without having seen is still there when `gone` is, and is launched as usual then: no post is lost, and
 * none is answered twice.
 * Thread: one at a time for a device. Owner: the device. */
#ifndef CURED_KERNELS_CUDA_PACK_LINGER_H
#define CURED_KERNELS_CUDA_PACK_LINGER_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/cuda/pack/pack.h"

enum {
    CR_LINGER_UNITS = 4, /* of a post: a warp each */
    CR_LINGER_UNIT_WORDS = 3,
    CR_LINGER_FOUND = CR_LINGER_UNITS * CR_LINGER_UNIT_WORDS,
    CR_LINGER_MORE,
    CR_LINGER_COUNT,
    CR_LINGER_QUIT,  /* not 0: leave */
    CR_LINGER_WORDS, /* so many to a line of the bus */
    CR_LINGER_SHIFT = 56,
};
#define CR_LINGER_LIFE_NS UINT64_C(10000000)

/* Pinned memory, in lines of 128 bytes: one for each direction. */
typedef struct cr_linger_box {
    uint64_t word[CR_LINGER_WORDS];
    uint64_t gone, pad[15];
} cr_linger_box;

typedef struct cr_linger_args {
    cr_linger_box *box;
    uint64_t linger_ns;
    uint64_t number; /* of the last post that is not to be answered */
} cr_linger_args;
/* Enqueues on a cudaStream_t; gives a cudaError_t. */
int cr_linger_launch(const cr_linger_args *args, void *stream);

typedef struct cr_linger {
    cr_linger_box *box; /* NULL: nothing ever stays */
    void *stream;
    uint64_t linger_ns, number;
    uint64_t last_ns; /* of the last small pack */
    bool running;
    const cr_pack *posted; /* whose post is out; NULL: none */
    uint32_t from, count;  /* its units */
} cr_linger;

/* box: zero. */
void cr_linger_init(cr_linger *linger, cr_linger_box *box, void *stream, uint64_t linger_ns);
/* Posts what was added since the last launch, if there is somebody to see it and it is small: true. */
bool cr_linger_post(cr_linger *linger, cr_pack *pack);
/* A small pack was launched: lets one stay when they follow each other closely. Gives a cudaError_t. */
int cr_linger_follow(cr_linger *linger, const cr_pack *pack);
/* Whether it has left. Then what is posted and not there will not come. */
bool cr_linger_gone(cr_linger *linger);
/* Tells it to leave. */
void cr_linger_quit(cr_linger *linger);
/* What pack had posted is there, or is given up. */
void cr_linger_forget(cr_linger *linger, const cr_pack *pack);

#ifdef __cplusplus
}
#endif
#endif
