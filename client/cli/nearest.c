/* nearest: what somebody meant who wrote a name that is not there.
 *
 * Thread: one. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "client/cli/cli.h"

const char *cli_nearest(const char *word, const char *(*name)(size_t index)) {
    cr_guess guess = cr_guess_begin(word);
    for (size_t i = 0; name(i) != NULL; i++) cr_guess_consider(&guess, word, name(i), name(i));
    return guess.name;
}

/* Other programs' names of our ops. */
static const char *const synonyms[][2] = {
    {"avg", "mean"},          {"stddev", "std"}, {"stdev", "std"},    {"variance", "var"},
    {"product", "prod"},      {"amin", "min"},   {"amax", "max"},     {"minimum", "min"},
    {"maximum", "max"},       {"total", "sum"},  {"len", "count"},    {"size", "count"},
    {"nnz", "count_nonzero"}, {"norm", "norm2"}, {"range", "ptp"},    {"percentile", "quantile"},
    {"l1", "norm1"},          {"l2", "norm2"},   {"linf", "norminf"}, {"and", "bit_and"},
    {"or", "bit_or"},
};

static const char *command_or_op(size_t index) {
    size_t commands = 0;
    while (cli_command_list(commands) != NULL) commands++;
    return index < commands ? cli_command_list(index)->name : cured_op_list(index - commands);
}

int cli_unknown(const char *what, const char *word, bool command) {
    const char *(*name)(size_t index) = command ? command_or_op : cured_op_list;
    cr_guess guess = cr_guess_begin(word);
    char names[512] = "";
    size_t n = 0;
    for (size_t i = 0; name(i) != NULL; i++) {
        cr_guess_consider(&guess, word, name(i), name(i));
        n += (size_t)snprintf(names + n, sizeof names - n, " %s", name(i));
    }
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++)
        cr_guess_consider(&guess, word, synonyms[i][0], synonyms[i][1]);
    return cli_fail(EXIT_USAGE, "%s '%.40s'%s%s%s; there are%s", what, word,
                    guess.name != NULL ? " (did you mean " : "", guess.name != NULL ? guess.name : "",
                    guess.name != NULL ? "?)" : "", names);
}
