/* nearest: what somebody meant who wrote a name that is not there.
 *
 * Thread: one. */
#include <stdio.h>
#include <string.h>

#include "client/cli/cli.h"

enum { LONGEST = 32 };

/* Letters to change, add, leave out or swap with their neighbour to come from a to b. */
static size_t distance(const char *a, const char *b) {
    size_t rows[3][LONGEST + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > LONGEST || m > LONGEST) return LONGEST;
    for (size_t k = 0; k <= m; k++) rows[0][k] = k;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3];
        const size_t *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= m; k++) {
            size_t best = before[k - 1] + (a[i - 1] != b[k - 1]);
            if (before[k] + 1 < best) best = before[k] + 1;
            if (row[k - 1] + 1 < best) best = row[k - 1] + 1;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && two_before[k - 2] + 1 < best)
                best = two_before[k - 2] + 1;
            row[k] = best;
        }
    }
    return rows[n % 3][m];
}

struct guess {
    const char *name;
    size_t distance, alike; /* letters that both begin with */
};

/* One letter in three may be wrong. */
static struct guess no_guess(const char *word) { return (struct guess){NULL, strlen(word) / 3 + 1, 0}; }

static void consider(struct guess *guess, const char *word, const char *spelled, const char *name) {
    const size_t d = distance(word, spelled);
    size_t alike = 0;
    while (word[alike] != '\0' && word[alike] == spelled[alike]) alike++;
    /* Of names that are as near, that with the same beginning: medan is median, and not mean. */
    const bool nearer = d < guess->distance || (guess->name != NULL && d == guess->distance && alike > guess->alike);
    if (nearer) *guess = (struct guess){name, d, alike};
}

const char *cli_nearest(const char *word, const char *(*name)(size_t index)) {
    struct guess guess = no_guess(word);
    for (size_t i = 0; name(i) != NULL; i++) consider(&guess, word, name(i), name(i));
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
    struct guess guess = no_guess(word);
    char names[512] = "";
    size_t n = 0;
    for (size_t i = 0; name(i) != NULL; i++) {
        consider(&guess, word, name(i), name(i));
        n += (size_t)snprintf(names + n, sizeof names - n, " %s", name(i));
    }
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++)
        consider(&guess, word, synonyms[i][0], synonyms[i][1]);
    return cli_fail(EXIT_USAGE, "%s '%.40s'%s%s%s; there are%s", what, word,
                    guess.name != NULL ? " (did you mean " : "", guess.name != NULL ? guess.name : "",
                    guess.name != NULL ? "?)" : "", names);
}
