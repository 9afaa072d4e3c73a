/* options: reads a subcommand's options by its table. Thread: main. Owner: nothing. */
#include "bench/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "base/wrap.h"
#include "bench/bench.h"

enum { WORD_BYTES = 256 };

static void help(const bench_option *options, size_t count, const char *last, const char *command) {
    printf("usage: cured-bench %s [OPTION]…\n", command);
    for (size_t i = 0; i < count; i++) {
        char left[64];
        const bool bare = options[i].kind == BENCH_SWITCH;
        snprintf(left, sizeof left, "--%s%s%s", options[i].name, bare ? "" : " ", bare ? "" : options[i].value);
        printf("  %-22s ", left);
        cr_wrap(stdout, options[i].what, 25, 25);
    }
    char line[512];
    for (size_t n; last && *last; last += n + (last[n] == '\n')) {
        n = strcspn(last, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, last);
        cr_wrap(stdout, line, 0, 0);
    }
}

static int wrong(const char *command, const char *name, const char *text, const char *why) {
    fprintf(stderr, "cured-bench %s: --%s %s: %s; --help lists the options\n", command, name, text ? text : "", why);
    return 64;
}

/* A number with its unit; negative: it is none. */
static double scaled(const char *text, bool units) {
    char *end;
    double x = strtod(text, &end);
    if (end == text || !(x >= 0) || x > 0x1p60) return -1;
    if (units && *end && strchr("KMG", *end)) x *= *end == 'K' ? 0x1p10 : *end == 'M' ? 0x1p20 : 0x1p30, end++;
    return *end ? -1 : x;
}

uint64_t bench_bytes(const char *text) {
    const double bytes = scaled(text, true);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

static bool words(const bench_option *option, const char *list) {
    char word[WORD_BYTES];
    for (;; list++) {
        const size_t length = strcspn(list, ",");
        if (length == 0 || length >= sizeof word) return false;
        memcpy(word, list, length);
        word[length] = '\0';
        if (!option->each(option->to, word)) return false;
        list += length;
        if (!*list) return true;
    }
}

static int set(const bench_option *option, const char *command, const char *text) {
    if (option->kind == BENCH_TEXT) {
        *(const char **)option->to = text;
        return -1;
    }
    if (option->kind == BENCH_WORDS)
        return words(option, text) ? -1 : wrong(command, option->name, text, "a word is not known here");
    const double x = scaled(text, option->kind == BENCH_BYTES);
    if (x < 0) return wrong(command, option->name, text, "that is no number");
    char bounds[80];
    snprintf(bounds, sizeof bounds, "it must be at least %.0f and at most %.0f", option->least, option->most);
    if (option->most > 0 && (x < option->least || x > option->most)) return wrong(command, option->name, text, bounds);
    if (option->kind == BENCH_BYTES) {
        const uint64_t step = option->step ? option->step : 1;
        *(uint64_t *)option->to = (uint64_t)x / step * step;
    } else if (option->kind == BENCH_REAL) {
        *(double *)option->to = x;
    } else {
        if (x > INT32_MAX || x != (double)(int)x) return wrong(command, option->name, text, "that is no whole number");
        *(int *)option->to = (int)x;
    }
    return -1;
}

int bench_options(const bench_option *options, size_t count, const char *last, int argc, char **argv) {
    const char *command = argv[0];
    cr_words all = {argc, argv, 1};
    for (cr_word word; cr_words_next(&all, &word);) {
        if (word.value == NULL && cr_word_is(&word, "help")) {
            help(options, count, last, command);
            return 0;
        }
        size_t k = 0;
        while (k < count && !cr_word_is(&word, options[k].name)) k++;
        if (k == count) {
            fprintf(stderr, "cured-bench %s: '%s' is no option; --help lists them\n", command, word.text);
            return 64;
        }
        const bench_option *option = &options[k];
        if (option->kind == BENCH_SWITCH) {
            if (word.value) return wrong(command, option->name, word.value, "it takes no value");
            *(bool *)option->to = true;
            continue;
        }
        const char *text = cr_words_value(&all, &word);
        if (!text) return wrong(command, option->name, NULL, "its value is missing");
        const int status = set(option, command, text);
        if (status >= 0) return status;
    }
    return -1;
}
