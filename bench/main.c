/* cured-bench: measurements, one subcommand each. A subcommand prints its machine, its command and its spread, and ends
 * with 0 only when every answer it measured was right.
 *
 * Thread: main. */
#include <stdio.h>
#include <string.h>

#include "base/wrap.h"
#include "bench/bench.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand */
    const char *what;
} commands[] = {
#define BENCH_COMMAND(name, function, what) {name, function, what},
#include "bench/commands.def"
#undef BENCH_COMMAND
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
    for (int i = 0; i < COMMANDS; i++) {
        fprintf(out, "  %-12s ", commands[i].name);
        cr_wrap(out, commands[i].what, 15, 15);
    }
    return out == stdout ? 0 : 64;
}
