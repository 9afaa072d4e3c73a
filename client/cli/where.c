/* where: --where: which elements of the input count: a bool .npy file, or raw bytes or bits.
 *
 * Thread: one. Owner: cli_run has the mask until its call is freed. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/npy.h"

typedef unsigned long long ull;

static bool begins(const char **text, const char *word) {
    const size_t n = strlen(word);
    if (strncmp(*text, word, n) != 0) return false;
    *text += n;
    return true;
}

int cli_where_read(const char *given, cli_where *where) {
    npy_header h = {.dims = 0};
    size_t bytes;
    int code;
    *where = (cli_where){.path = given};
    where->bits = begins(&where->path, "bits:");
    const bool raw = where->bits || begins(&where->path, "bytes:");
    where->file = cli_read_all(where->path, &bytes, &code);
    if (code != EXIT_OK) return code;
    where->mask =
        (cured_mask){.data = where->file, .count = bytes, .kind = where->bits ? CURED_MASK_BITS : CURED_MASK_BYTES};
    if (raw) return EXIT_OK;
    code = cli_npy_take("where", " (bytes:FILE and bits:FILE are raw)", where->path, where->file, bytes, &h);
    if (code != EXIT_OK) return code;
    if (h.dtype != CURED_BOOL)
        return cli_fail(EXIT_DATA, "--where: %s holds %s, not bool", where->path, cured_dtype_name(h.dtype));
    where->mask.data = where->file + h.data_offset;
    where->mask.count = h.count;
    where->dims = h.dims;
    where->fortran = h.fortran_order && h.dims > 1;
    memcpy(where->shape, h.shape, h.dims * sizeof h.shape[0]);
    return EXIT_OK;
}

/* --where-first: the mask of a part of an array is a part of that of the whole. */
static int cut(const cli_options *o, cli_where *where, const char *name, uint64_t count) {
    const uint64_t all = where->bits ? 8 * where->mask.count : where->mask.count, first = o->where_first;
    if (count == CURED_TO_END) count = first <= all ? all - first : all;
    if (first > all || count > all - first)
        return cli_fail(EXIT_DATA, "--where-first: %s speaks of %llu elements, and %llu are wanted from %llu on for %s",
                        where->path, (ull)all, (ull)count, (ull)first, name);
    where->mask.count = count;
    where->mask.first = first;
    where->dims = 0;
    return EXIT_OK;
}

/* What to do about a mask that is that of the whole, where a part is taken. */
static const char *of_part(const cli_options *o) {
    return o->offset_given || o->count_given ? "; of a part --where-first says where in the mask it begins" : "";
}

int cli_where_check(const cli_options *o, const char *name, uint32_t dims, const uint64_t *shape, bool fortran,
                    uint64_t count) {
    cli_where *where = o->mask;
    if (where == NULL) return EXIT_OK;
    if (shape == NULL) dims = 0;
    if (where->fortran || fortran)
        return cli_fail(EXIT_DATA,
                        "--where wants C order, and %s is in Fortran order: numpy.ascontiguousarray turns it",
                        where->fortran ? where->path : name);
    if (o->where_first_given && (count != CURED_TO_END || !where->bits)) return cut(o, where, name, count);
    if (where->bits) {
        if (count == CURED_TO_END)
            return cli_fail(EXIT_USAGE, "--where bits: wants --count (or --shape) for raw bytes from %s", name);
        if (where->mask.count != count / 8 + (count % 8 != 0))
            return cli_fail(EXIT_DATA, "--where: %s has %llu bytes, the bits of %llu elements take %llu%s", where->path,
                            (ull)where->mask.count, (ull)count, (ull)(count / 8 + (count % 8 != 0)), of_part(o));
        where->mask.count = count;
    }
    if (where->mask.count != count && count != CURED_TO_END && (o->offset_given || o->count_given))
        return cli_fail(EXIT_DATA, "--where: %s speaks of %llu elements, and %llu of %s are taken%s", where->path,
                        (ull)where->mask.count, (ull)count, name, of_part(o));
    const bool alike = where->dims == dims && (dims == 0 || memcmp(where->shape, shape, dims * sizeof shape[0]) == 0);
    if (where->dims != 0 && dims != 0 && !alike && where->mask.count == count)
        return cli_fail(EXIT_DATA, "--where: the shape of %s is not that of %s", where->path, name);
    return EXIT_OK;
}
