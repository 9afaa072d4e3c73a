/* block: --within and --start: each file is a block of a larger array.
 *
 * Thread: one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/input.h"

typedef unsigned long long ull;

bool cli_numbers(const char **text, uint64_t *numbers, uint32_t most, uint32_t *count) {
    const char *at = *text;
    for (*count = 0; *count < most; at++) {
        char *end;
        at += strspn(at, " ");
        if (*at < '0' || *at > '9') break;
        errno = 0;
        numbers[(*count)++] = strtoull(at, &end, 10);
        if (errno != 0) break;
        at = end + strspn(end, " ");
        *text = at;
        if (*at != ',') return true;
    }
    *text = at;
    return false;
}

/* Where the block with this number begins; without --start at the first element. */
static bool start_of(const cli_options *o, size_t block, uint64_t *start, uint32_t *count) {
    const char *at = o->start;
    for (size_t i = 0;; i++, at++) {
        if (!cli_numbers(&at, start, CURED_BLOCK_MAX_DIMS, count)) return false;
        if (i == block) return *at == ':' || *at == '\0';
        if (*at != ':') return false;
    }
}

int cli_take_within(cli_options *o, const char *value) {
    const char *at = value;
    o->within_given = cli_numbers(&at, o->within, CURED_BLOCK_MAX_DIMS, &o->within_dims) && *at == '\0';
    if (o->within_given) return EXIT_OK;
    return cli_fail(EXIT_USAGE,
                    "--within is '%s', must be the lengths of up to %d dimensions, with commas between them", value,
                    CURED_BLOCK_MAX_DIMS);
}

/* As many places as files, all of them read once. */
static int check_places(const cli_options *o) {
    uint64_t start[CURED_BLOCK_MAX_DIMS];
    uint32_t count;
    const char *at = o->start != NULL ? o->start : "";
    for (size_t i = 0; i < o->file_count; i++) {
        bool place = i == 0 || *at == ':';
        if (place && i != 0) at++;
        place = place && cli_numbers(&at, start, CURED_BLOCK_MAX_DIMS, &count);
        if (place && (*at == ':' || *at == '\0')) continue;
        return cli_fail(EXIT_USAGE,
                        "--start is '%s', must be a place for each of %zu files, such as 0,0:0,512: number %zu is "
                        "missing or none",
                        o->start != NULL ? o->start : "", o->file_count, i + 1);
    }
    if (*at == '\0') return EXIT_OK;
    return cli_fail(EXIT_USAGE, "--start is '%s', which has more places than there are files, %zu", o->start,
                    o->file_count);
}

int cli_block_check(const cli_options *o, bool reduces, bool merge) {
    static const char *const not [] = {"axis",  "offsets", "keys",  "where", "second",
                                       "first", "offset",  "count", "text",  "total"};
    if (!o->within_given && o->start == NULL) return EXIT_OK;
    if (!reduces || merge) return cli_fail(EXIT_USAGE, "--within and --start are for reductions of files");
    if (!o->within_given) return cli_fail(EXIT_USAGE, "--start wants --within, the shape of the whole array");
    for (size_t i = 0; i < sizeof not / sizeof not [0]; i++)
        if (cli_given(o, not [i])) return cli_fail(EXIT_USAGE, "--within goes without --%s", not [i]);
    if (!o->call.partial && !cli_program_here.whole)
        return cli_fail(EXIT_USAGE, "--within wants --partial: cured-client merge finishes the partials of all blocks");
    if (cli_goes_by_rank(o))
        return cli_fail(EXIT_USAGE, "--within: medians and quantiles have no partials; give the files without it");
    return o->start == NULL && o->file_count == 1 ? EXIT_OK : check_places(o);
}

int cli_block_place(const cli_options *o, const cli_input *in, cli_block *block, cured_options *options) {
    uint64_t one = in->count;
    const uint64_t *const extent = in->shape != NULL || in->dims != 0 ? in->shape : &one;
    uint32_t dims = in->shape != NULL ? in->dims : 1, starts = dims;
    if (!o->within_given) return EXIT_OK;
    if (in->shape == NULL && (o->within_dims != 1 || in->count == CURED_TO_END))
        return cli_fail(EXIT_USAGE, "--within wants --shape for raw bytes from %s", in->name);
    memset(block->start, 0, sizeof block->start);
    if (o->start != NULL) start_of(o, o->block, block->start, &starts); /* which cli_block_check has read */
    if (dims != o->within_dims || starts != dims)
        return cli_fail(EXIT_DATA, "%s has %u dimension%s, --within %u and its --start %u", in->name, dims,
                        dims == 1 ? "" : "s", o->within_dims, starts);
    for (uint32_t i = 0; i < dims; i++) {
        block->extent[i] = extent[i];
        if (block->start[i] <= o->within[i] && extent[i] <= o->within[i] - block->start[i]) continue;
        return cli_fail(EXIT_DATA,
                        "%s lies outside --within: along dimension %u it has %llu elements from %llu on, of %llu",
                        in->name, i, (ull)extent[i], (ull)block->start[i], (ull)o->within[i]);
    }
    block->of = (cured_block){dims, o->within, block->start, block->extent};
    options->layout = &block->of;
    return EXIT_OK;
}
