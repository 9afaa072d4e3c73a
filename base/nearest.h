/* nearest: what somebody meant who wrote a name that is not there: the nearest of those that are considered.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_BASE_NEAREST_H
#define CURED_BASE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { CR_GUESS_LONGEST = 32 };

/* Letters to change, add, leave out or swap with their neighbour to come from a to b. */
static inline size_t cr_guess_distance(const char *a, const char *b) {
    size_t rows[3][CR_GUESS_LONGEST + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > CR_GUESS_LONGEST || m > CR_GUESS_LONGEST) return CR_GUESS_LONGEST;
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

typedef struct cr_guess {
    const char *name;       /* NULL: none yet */
    size_t distance, alike; /* letters that both begin with */
} cr_guess;

/* One letter in three may be wrong. */
static inline cr_guess cr_guess_begin(const char *word) { return (cr_guess){NULL, strlen(word) / 3 + 1, 0}; }

/* name is meant by who writes `spelled`; it must outlive the guess. */
static inline void cr_guess_consider(cr_guess *guess, const char *word, const char *spelled, const char *name) {
    const size_t d = cr_guess_distance(word, spelled);
    size_t alike = 0;
    while (word[alike] != '\0' && word[alike] == spelled[alike]) alike++;
    /* Of names that are as near, that with the same beginning: medan is median, and not mean. */
    const bool nearer = d < guess->distance || (guess->name != NULL && d == guess->distance && alike > guess->alike);
    if (nearer) *guess = (cr_guess){name, d, alike};
}

#endif
