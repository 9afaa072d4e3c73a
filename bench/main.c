/* cured-bench: measurements, one subcommand each. A subcommand prints its machine, its command and its spread, and ends
 * with 0 only when every answer it measured was right.
 *
 * Thread: main. */
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand */
    const char *what;
} commands[] = {
    {"axis", bench_axis, "reductions along an axis beside the best read loop of the same run"},
    {"batch", bench_batch, "many small arrays in one launch on a GPU, beside CUB's segmented sum"},
    {"call", bench_call, "a call that is answered in this process, beside the bare fold of the same array"},
    {"cpu", bench_cpu, "the CPU's folds beside the best read loop of the same run"},
    {"gpu-axis", bench_gpu_axis, "reductions along an axis on a GPU beside the sum of the whole array"},
    {"kernels", bench_kernels, "everything that reduces on a GPU: the ladder, cured's folds, CUB, Thrust"},
    {"lane", bench_lane, "the daemon's lanes on host memory: CPU alone, GPU alone, both"},
    {"load", bench_load, "the daemon under requests, uploads and files, each beside its floor"},
    {"neighbours", bench_neighbours, "small jobs of one client beside another that asks for as much as it can"},
    {"peer", bench_peer, "folds on demand, for scripts/bench-numpy"},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

int main(int argc, char **argv) {
    if (argc >= 2) {
        for (int i = 0; i < COMMANDS; i++) {
            if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
        }
    }
    FILE *out = argc >= 2 && strcmp(argv[1], "--help") == 0 ? stdout : stderr;
    fprintf(out, "usage: cured-bench COMMAND [OPTION]…   (COMMAND --help lists the options)\n");
    for (int i = 0; i < COMMANDS; i++) fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].what);
    return out == stdout ? 0 : 64;
}
