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

/* What of other programs is an op with an option, or several. */
static const char *const phrases[][2] = {
    {"minmax", "reduce FILE --ops min,max"},
    {"bincount", "count FILE --keys FILE"},
    {"histogram", "count FILE --keys FILE, with the number of each element's bin"},
    {"percentile", "quantile FILE --q 0.95"},
    {"nanpercentile", "quantile FILE --q 0.95 --nan skip"},
    {"vecdot", "dot FILE --second FILE --axis -1"},
};

/* Whether the word has such a phrase, which it writes. */
static bool phrase_of(const char *word, char text[96]) {
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
        if (strcmp(word, phrases[i][0]) == 0) return snprintf(text, 96, "%s", phrases[i][1]), true;
    cured_op op;
    if (strncmp(word, "nan", 3) != 0 || cured_op_parse(word + 3, &op, NULL) != CURED_OK) return false;
    return snprintf(text, 96, "%s FILE --nan skip", word + 3), true;
}

static const char *command_or_op(size_t index) {
    size_t commands = 0;
    while (cli_command_list(commands) != NULL) commands++;
    return index < commands ? cli_command_list(index)->name : cured_op_list(index - commands);
}

int cli_unknown(const char *what, const char *word, bool command) {
    const char *(*name)(size_t index) = command ? command_or_op : cured_op_list;
    cr_guess guess = cr_guess_begin(word);
    char names[512] = "", phrase[96];
    if (command && phrase_of(word, phrase))
        return cli_fail(EXIT_USAGE, "%s '%.40s' (did you mean %s?)", what, word, phrase);
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
