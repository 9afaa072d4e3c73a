/* words: the words of a command line, as every program here reads them: an option is "--name", "--name VALUE" or "--name=VALUE", and -h is
 * --help.
 *
 * What options there are stands in three tables, because each says more than a parser needs: the daemon's are members of a struct that a
 * file and the environment set, too (options.def), the client's belong to commands and make its manual (client/cli/options.def), and a
 * bench's point to its own variables (bench/options.h).
 *
 * Thread: any. Owner: the caller owns the words. */
#ifndef CURED_BASE_WORDS_H
#define CURED_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct cr_words {
    int argc;
    char *const *argv;
    int next;
} cr_words;

typedef struct cr_word {
    const char *text;  /* as it stands there */
    const char *name;  /* of an option, length bytes; NULL: it is none */
    const char *value; /* behind the "="; NULL: there is none */
    size_t length;
} cr_word;

/* False: there are no more. */
static inline bool cr_words_next(cr_words *words, cr_word *word) {
    if (words->next >= words->argc) return false;
    const char *text = words->argv[words->next++];
    *word = (cr_word){.text = text};
    if (strcmp(text, "-h") == 0) text = "--help";
    if (strncmp(text, "--", 2) != 0 || text[2] == '\0') return true;
    word->name = text + 2;
    word->length = strcspn(word->name, "=");
    if (word->name[word->length] == '=') word->value = word->name + word->length + 1;
    return true;
}

static inline bool cr_word_is(const cr_word *word, const char *name) {
    return word->name != NULL && strlen(name) == word->length && memcmp(word->name, name, word->length) == 0;
}

/* The option's value, which may be the next word. NULL: it is missing. */
static inline const char *cr_words_value(cr_words *words, const cr_word *word) {
    if (word->value != NULL) return word->value;
    return words->next < words->argc ? words->argv[words->next++] : NULL;
}

#endif
