/* emulate: runs a kernel's blocks on the host, one after the other, a fibre a thread. A fibre gives way only where the device's
 * threads would wait for each other: at barriers and votes. A warp goes on for as long as it can, while others may not have begun, and the
 * next to go on is drawn by CURED_TEST_SEED: so a barrier that is missing is missed.
 *
 * Thread: one. Owner: the launch; fibres' stacks live as long as the program. */
#include "cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

enum { STACK = 32 << 10, WARP = 32, SELDOM = 4096 }; /* one vote in so many lets another warp go on */

struct fibre {
    void *stack_pointer = nullptr; /* where it left off */
    char *stack = nullptr;
    cr_emulated_place place;
    bool done = true;
    uint64_t lanes[WARP];
};

struct warp_vote {
    unsigned arrived = 0, round = 0;
    uint64_t values[2][WARP];
};

std::vector<fibre> fibres;
std::vector<warp_vote> votes;
unsigned current, running, at_barrier, barrier_round;
uint64_t drawn; /* what chance is made of */
void *scheduler;
const std::function<void()> *job;

}  // namespace

cr_emulated_place *cr_emulated_here;
uint3 cr_emulated_grid = {1, 1, 1}, cr_emulated_block = {1, 1, 1};

static int run_at_once(void *, unsigned blocks, unsigned threads, std::function<void()> kernel) {
    cr_emulated_launch(blocks, threads, kernel);
    return 0;
}
cr_emulated_taker *cr_emulated_take = run_at_once;

int cr_emulated_device;
cudaError_t (*cr_emulated_attribute)(int *value, int attribute, int device);
cudaError_t cr_emulated_code(cudaFuncAttributes *found) {
    *found = {80, 80};
    return cudaSuccess;
}

/* Saves what a call preserves, swaps stacks, and returns on the other one. */
extern "C" void cr_emulated_switch(void **from, void *to);
__asm__(
    ".text\n.globl cr_emulated_switch\n.type cr_emulated_switch,@function\ncr_emulated_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size cr_emulated_switch, .-cr_emulated_switch\n");

static void enter(unsigned number) {
    current = number;
    cr_emulated_here = &fibres[number].place;
}

static unsigned chance(unsigned below) {
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(drawn >> 33) % below;
}

/* The next fibre of `count` from `first` on, after `next`, that is not done; or this one. */
static void give_way(unsigned first, unsigned count, unsigned next) {
    unsigned mine = current, tries = 0;
    do next = next + 1 >= first + count ? first : next + 1;
    while (fibres[next].done && ++tries < count);
    if (next == mine || fibres[next].done) return;
    enter(next);
    cr_emulated_switch(&fibres[mine].stack_pointer, fibres[next].stack_pointer);
}

static void body() {
    (*job)();
    fibre &me = fibres[current];
    me.done = true;
    if (--running == 0) {
        void *ignored;
        cr_emulated_switch(&ignored, scheduler);
    }
    if (at_barrier == running) { /* the others wait for no one but this */
        at_barrier = 0;
        barrier_round++;
    }
    give_way(0, (unsigned)fibres.size(), current);
    abort(); /* a fibre that is done does not come back */
}

void __syncthreads() {
    unsigned round = barrier_round;
    if (++at_barrier == running) {
        at_barrier = 0;
        barrier_round++;
        return;
    }
    const unsigned all = (unsigned)fibres.size();
    for (unsigned from = chance(all); barrier_round == round; from = current) give_way(0, all, from);
}

const uint64_t *cr_emulated_vote(uint64_t value) {
    unsigned lane = threadIdx.x % WARP;
    warp_vote &vote = votes[threadIdx.x / WARP];
    unsigned round = vote.round;
    vote.values[round % 2][lane] = value;
    if (++vote.arrived == WARP) {
        vote.arrived = 0;
        vote.round++;
    }
    const unsigned first = threadIdx.x / WARP * WARP, all = (unsigned)fibres.size();
    while (vote.round == round) {
        if (chance(SELDOM) == 0) give_way(0, all, chance(all));
        else give_way(first, WARP, current);
    }
    return vote.values[round % 2];
}

void cr_emulated_launch(unsigned blocks, unsigned threads, const std::function<void()> &kernel) {
    if (fibres.size() != threads) {
        for (fibre &f : fibres) free(f.stack);
        fibres.assign(threads, fibre());
        const char *seed = getenv("CURED_TEST_SEED");
        drawn = seed ? strtoull(seed, nullptr, 0) : 1;
        for (fibre &f : fibres) f.stack = (char *)aligned_alloc(64, STACK);
    }
    votes.assign(threads / WARP, warp_vote());
    cr_emulated_grid = {blocks, 1, 1};
    cr_emulated_block = {threads, 1, 1};
    job = &kernel;
    for (unsigned block = 0; block < blocks; block++) {
        running = threads;
        at_barrier = 0;
        for (unsigned t = 0; t < threads; t++) {
            fibre &f = fibres[t];
            f.done = false;
            f.place.thread = {t, 0, 0};
            f.place.block = {block, 0, 0};
            /* A first switch pops six registers and returns into body, whose stack is then as after a call. */
            void **top = (void **)(f.stack + STACK - 64);
            *--top = nullptr;
            *--top = (void *)body;
            for (int i = 0; i < 6; i++) *--top = nullptr;
            f.stack_pointer = top;
        }
        unsigned one = chance(threads);
        enter(one);
        cr_emulated_switch(&scheduler, fibres[one].stack_pointer);
    }
}
