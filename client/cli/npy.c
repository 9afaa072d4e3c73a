/* npy: parses the header of a .npy file: magic, version, length, and a Python dictionary literal of which only what NumPy
 * writes is understood ('descr', 'fortran_order', 'shape', each once, in any order).
 *
 * Thread: any. Owner: the caller owns the bytes; a cursor never leaves them. */
#include "client/cli/npy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/core/dtype.h"

static const uint8_t magic[NPY_MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

struct cursor {
    const char *p, *end;
    cured_error *error;
};

cured_status npy_fail(cured_error *error, cured_status code, const char *format, ...) {
    if (error != NULL) {
        va_list args;
        va_start(args, format);
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
        error->code = code;
        error->retry_after_ms = 0;
    }
    return code;
}

bool npy_is(const uint8_t *in, size_t len) { return len >= sizeof magic && memcmp(in, magic, sizeof magic) == 0; }

static void skip_space(struct cursor *c) {
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r')) c->p++;
}

/* Takes ch, after white space, if it comes next. */
static bool take(struct cursor *c, char ch) {
    skip_space(c);
    if (c->p == c->end || *c->p != ch) return false;
    c->p++;
    return true;
}

static bool take_word(struct cursor *c, const char *word) {
    size_t len = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->p) < len || memcmp(c->p, word, len) != 0) return false;
    c->p += len;
    return true;
}

/* A quoted string without escapes, printable ASCII only: it is quoted back in errors. */
static bool take_string(struct cursor *c, char *out, size_t cap) {
    skip_space(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"')) return false;
    char quote = *c->p++;
    size_t n = 0;
    for (; c->p < c->end && *c->p != quote; c->p++) {
        if (*c->p < 0x20 || *c->p > 0x7e || *c->p == '\\' || n + 1 >= cap) return false;
        out[n++] = *c->p;
    }
    if (c->p == c->end) return false;
    c->p++;
    out[n] = '\0';
    return true;
}

static cured_status bad(const struct cursor *c, const char *what) {
    return npy_fail(c->error, CURED_INVALID_ARGUMENT, "the .npy header is malformed: %s", what);
}

/* How .npy files hold elements that NumPy has no type for, such as bfloat16; of ml_dtypes' float8 types one is "f1". */
static const char raw_pairs[] = "V2", raw_bytes[] = "V1", small_floats[] = "f1";

/* What NumPy can store and cured cannot reduce, by the first letter of its code. */
static const char *refused(char letter) {
    switch (letter) {
        case 'c':
            return "complex numbers";
        case 'O':
            return "Python objects";
        case 'S':
        case 'a':
            return "byte strings";
        case 'U':
            return "strings";
        case 'V':
            return "structures or raw bytes";
        case 'M':
            return "dates";
        case 'm':
            return "time differences";
        case 'f':
            return "floats of another width";
        default:
            return NULL;
    }
}

static const char advice[] = " from files: in Python cured.sum(numpy.load(path, mmap_mode='r')) does";

static cured_status refuse_objects(const struct cursor *c) {
    return npy_fail(c->error, CURED_UNIMPLEMENTED,
                    "it holds Python objects, a pickle, which runs code where it is read: save it without them");
}

/* The unit of a date behind its 8 bytes: "[ns]", "[25s]", or none. */
static bool is_unit(const char *text) {
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const size_t inside = *text == '[' ? strspn(text + 1, letters) : 0;
    return *text == '\0' || (inside != 0 && strcmp(text + 1 + inside, "]") == 0);
}

/* Takes the code of elements whose bytes alone count: complex numbers, floats, strings, dates, raw bytes. */
static bool take_any(npy_header *h, const char *code) {
    const size_t digits = *code != '\0' ? strspn(code + 1, "0123456789") : 0;
    const bool date = *code == 'M' || *code == 'm';
    if (digits == 0 || digits > 7 || strchr("cfVSaUMm", *code) == NULL || strlen(code) >= sizeof h->code) return false;
    if (date ? digits != 1 || code[1] != '8' || !is_unit(code + 2) : code[1 + digits] != '\0') return false;
    uint32_t size = 0;
    for (size_t i = 1; i <= digits; i++) size = size * 10 + (uint32_t)(code[i] - '0');
    h->size = *code == 'U' ? 4 * size : size;
    h->turn = *code == 'c' ? size / 2 : *code == 'U' ? 4 : *code == 'f' || date ? size : 1;
    strcpy(h->code, code);
    if (*code == 'c' || *code == 'f') /* as safetensors and NumPy call them: C64, f128 */
        snprintf(h->code, sizeof h->code, "%c%u", *code == 'c' ? 'C' : 'f', 8 * size);
    return h->size != 0 && (*code != 'c' || h->size % 2 == 0);
}

/* ---- Structures: [('name', '<f4'), (('title', 'name'), [...], (2, 3))] ---- */

enum { MOST_DEPTH = 16, MOST_STRUCTURE = INT32_MAX };

static bool skip_string(struct cursor *c) {
    skip_space(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"')) return false;
    const char quote = *c->p++;
    while (c->p < c->end && *c->p != quote) c->p += *c->p == '\\' && c->end - c->p > 1 ? 2 : 1;
    return c->p < c->end && *c->p++ == quote;
}

static bool skip_name(struct cursor *c) {
    if (!take(c, '(')) return skip_string(c);
    return skip_string(c) && take(c, ',') && skip_string(c) && take(c, ')');
}

/* A field's own shape: "(2, 3)" or "2". */
static bool multiply_shape(struct cursor *c, uint64_t *bytes) {
    const bool tuple = take(c, '(');
    for (bool first = true; !tuple || !take(c, ')'); first = false) {
        if (!first && !take(c, ',')) return false;
        if (!first && take(c, ')')) return true;
        uint64_t n = 0;
        bool digits = false;
        skip_space(c);
        for (; c->p < c->end && *c->p >= '0' && *c->p <= '9' && n <= MOST_STRUCTURE; c->p++, digits = true)
            n = n * 10 + (unsigned)(*c->p - '0');
        if (!digits || n > MOST_STRUCTURE || *bytes > MOST_STRUCTURE) return false;
        *bytes *= n;
        if (!tuple) return true;
    }
    return true;
}

static cured_status take_fields(struct cursor *c, unsigned depth, uint64_t *bytes);

/* The type of a field: its bytes. */
static cured_status take_field_type(struct cursor *c, unsigned depth, uint64_t *bytes) {
    char text[32];
    npy_header h = {.count = 0};
    skip_space(c);
    if (c->p < c->end && *c->p == '[') return take_fields(c, depth + 1, bytes);
    if (!take_string(c, text, sizeof text)) return bad(c, "a field's type is not a short string");
    const char *code = text;
    const char order = strchr("<>=|", *code) != NULL && *code != '\0' ? *code++ : '=';
    if (*code == 'O') return refuse_objects(c);
    h.size = h.turn = (uint32_t)cured_dtype_size((cured_dtype)cr_dtype_of_code(code));
    if (h.size == 0 && !take_any(&h, code)) return bad(c, "a field's type is unknown");
    if (order == '>' && h.turn > 1)
        return npy_fail(c->error, CURED_UNIMPLEMENTED, "its structure has big-endian fields, which are not turned");
    *bytes = h.size;
    return CURED_OK;
}

/* The fields of a structure, of which the bytes alone count. */
static cured_status take_fields(struct cursor *c, unsigned depth, uint64_t *bytes) {
    uint64_t all = 0, one;
    if (depth > MOST_DEPTH) return bad(c, "'descr' is more than 16 structures deep");
    if (!take(c, '[')) return bad(c, "'descr' is no list of fields");
    for (bool first = true; !take(c, ']'); first = false) {
        if (!first && !take(c, ',')) return bad(c, "'descr' lacks a comma");
        if (!take(c, '(') || !skip_name(c) || !take(c, ',')) return bad(c, "a field of 'descr' has no name");
        const cured_status status = take_field_type(c, depth, &one);
        if (status != CURED_OK) return status;
        if (take(c, ',') && !multiply_shape(c, &one)) return bad(c, "a field's shape is malformed, or too large");
        if (!take(c, ')')) return bad(c, "a field of 'descr' does not end");
        all += one;
        if (one > MOST_STRUCTURE || all > MOST_STRUCTURE) return bad(c, "a structure has more than 2^31 - 1 bytes");
    }
    *bytes = all;
    return all != 0 ? CURED_OK : bad(c, "a structure has no bytes");
}

static cured_status parse_structure(struct cursor *c, npy_header *h) {
    uint64_t bytes = 0;
    if (!h->any)
        return npy_fail(c->error, CURED_UNIMPLEMENTED,
                        "the .npy file holds structures (a structured dtype), which cured "
                        "does not reduce");
    const cured_status status = take_fields(c, 1, &bytes);
    if (status != CURED_OK) return status;
    h->size = (uint32_t)bytes;
    h->turn = 1;
    snprintf(h->code, sizeof h->code, "struct-%u", h->size);
    return CURED_OK;
}

static cured_status parse_descr(struct cursor *c, npy_header *h) {
    char text[32];
    skip_space(c);
    if (c->p < c->end && *c->p == '[') return parse_structure(c, h);
    if (!take_string(c, text, sizeof text)) return bad(c, "'descr' is not a short string");
    const char *code = text;
    char order = '=';
    if (*code == '<' || *code == '>' || *code == '=' || *code == '|') order = *code++;
    h->dtype = (cured_dtype)cr_dtype_of_code(code);
    if (strcmp(code, small_floats) == 0) h->dtype = CURED_F8_E5M2;
    h->size = h->turn = (uint32_t)cured_dtype_size(h->dtype);
    if (h->any && *code == 'O') return refuse_objects(c);
    if (h->any && h->dtype == CURED_DTYPE_DEFAULT && take_any(h, code)) {
        h->big_endian = order == '>' && h->turn > 1;
        return CURED_OK;
    }
    if (strcmp(code, raw_pairs) == 0 || strcmp(code, raw_bytes) == 0) h->size = h->turn = (uint32_t)(code[1] - '0');
    if (h->size == 0) {
        const char *what = refused(*code);
        const bool taken = strcmp(code, "c8") == 0 || strcmp(code, "c16") == 0; /* by Python, wider ones by nobody */
        if (what == NULL)
            return npy_fail(c->error, CURED_INVALID_ARGUMENT, "the .npy file has the unknown dtype '%s'", text);
        return npy_fail(c->error, CURED_UNIMPLEMENTED,
                        "the .npy file holds %s (dtype '%s'), which cured does not reduce%s", what, text,
                        taken ? advice : "");
    }
    h->big_endian = order == '>' && code[1] != '1';
    return CURED_OK;
}

/* "(2, 3)", "(2,)", "()"; Python 2 wrote "2L". */
static cured_status parse_shape(struct cursor *c, npy_header *h) {
    h->dims = 0;
    if (!take(c, '(')) return bad(c, "'shape' is not a tuple");
    while (!take(c, ')')) {
        if (h->dims > 0 && !take(c, ',')) return bad(c, "'shape' lacks a comma");
        if (h->dims > 0 && take(c, ')')) break;
        uint64_t n = 0;
        bool digits = false;
        skip_space(c);
        for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++, digits = true) {
            unsigned digit = (unsigned)(*c->p - '0');
            if (n > ((uint64_t)INT64_MAX - digit) / 10) return bad(c, "a dimension of 'shape' is above 2^63 - 1");
            n = n * 10 + digit;
        }
        if (!digits) return bad(c, "a dimension of 'shape' is not a non-negative integer");
        if (c->p < c->end && *c->p == 'L') c->p++;
        if (h->dims == NPY_MAX_DIMS) return bad(c, "'shape' has more than 64 dimensions");
        h->shape[h->dims++] = n;
    }
    return CURED_OK;
}

static cured_status parse_dictionary(struct cursor *c, npy_header *h) {
    enum { DESCR = 1, ORDER = 2, SHAPE = 4, EVERYTHING = 7 };
    unsigned seen = 0;
    char key[32];
    if (!take(c, '{')) return bad(c, "it is not a dictionary");
    while (!take(c, '}')) {
        if (seen != 0 && !take(c, ',')) return bad(c, "a comma is missing");
        if (seen != 0 && take(c, '}')) break;
        if (!take_string(c, key, sizeof key) || !take(c, ':')) return bad(c, "a key is missing");
        cured_status status = CURED_OK;
        unsigned which = strcmp(key, "descr") == 0           ? DESCR
                         : strcmp(key, "fortran_order") == 0 ? ORDER
                         : strcmp(key, "shape") == 0         ? SHAPE
                                                             : 0;
        if (which == 0) return bad(c, "it has a key other than descr, fortran_order and shape");
        if ((seen & which) != 0) return bad(c, "a key comes twice");
        seen |= which;
        if (which == DESCR)
            status = parse_descr(c, h);
        else if (which == SHAPE)
            status = parse_shape(c, h);
        else if (take_word(c, "True"))
            h->fortran_order = true;
        else if (!take_word(c, "False"))
            return bad(c, "'fortran_order' is neither True nor False");
        if (status != CURED_OK) return status;
    }
    if (seen != EVERYTHING) return bad(c, "one of descr, fortran_order and shape is missing");
    skip_space(c);
    return c->p == c->end ? CURED_OK : bad(c, "something follows the dictionary");
}

/* The product of the shape, checked by division before each multiplication. */
static cured_status multiply(npy_header *h, cured_error *error) {
    uint64_t limit = ((uint64_t)INT64_MAX - NPY_MAX_HEADER) / h->size;
    h->count = 1;
    for (uint32_t i = 0; i < h->dims; i++)
        if (h->shape[i] == 0) h->count = 0;
    for (uint32_t i = 0; i < h->dims && h->count != 0; i++) {
        if (h->count > limit / h->shape[i])
            return npy_fail(error, CURED_INVALID_ARGUMENT, "the .npy header's shape has more than %llu elements",
                            (unsigned long long)limit);
        h->count *= h->shape[i];
    }
    return CURED_OK;
}

static cured_status parse(const uint8_t *in, size_t len, bool any, npy_header *out, size_t *need, cured_error *error) {
    *need = sizeof magic + 4;
    if (len < *need) return CURED_OK;
    if (!npy_is(in, len)) return npy_fail(error, CURED_INVALID_ARGUMENT, "the file does not begin as a .npy file does");
    if (in[6] < 1 || in[6] > 3 || in[7] != 0)
        return npy_fail(error, CURED_UNIMPLEMENTED, "the .npy file has version %u.%u, read are 1.0 to 3.0", in[6],
                        in[7]);
    size_t prefix = in[6] == 1 ? 10 : 12;
    *need = prefix;
    if (len < prefix) return CURED_OK;
    uint64_t text = (uint64_t)in[8] | (uint64_t)in[9] << 8;
    if (in[6] != 1) text |= (uint64_t)in[10] << 16 | (uint64_t)in[11] << 24;
    if (text > NPY_MAX_HEADER - prefix)
        return npy_fail(error, CURED_INVALID_ARGUMENT, "the .npy header has %llu bytes, limit is %zu",
                        (unsigned long long)text, NPY_MAX_HEADER - prefix);
    *need = prefix + (size_t)text;
    if (len < *need) return CURED_OK;
    npy_header h;
    memset(&h, 0, sizeof h);
    h.data_offset = *need;
    h.any = any;
    struct cursor c = {(const char *)in + prefix, (const char *)in + *need, error};
    cured_status status = parse_dictionary(&c, &h);
    if (status == CURED_OK) status = multiply(&h, error);
    if (status == CURED_OK) *out = h;
    return status;
}

cured_status npy_parse(const uint8_t *in, size_t len, npy_header *out, size_t *need, cured_error *error) {
    return parse(in, len, false, out, need, error);
}

cured_status npy_parse_any(const uint8_t *in, size_t len, npy_header *out, size_t *need, cured_error *error) {
    return parse(in, len, true, out, need, error);
}

size_t npy_write(uint8_t out[NPY_MAX_WRITTEN], cured_dtype dtype, bool fortran_order, uint32_t dims,
                 const uint64_t *shape) {
    enum { PREFIX = 10, ALIGN = 64 };
    const char *code = dtype == CURED_BF16      ? raw_pairs
                       : dtype == CURED_F8_E4M3 ? raw_bytes
                       : dtype == CURED_F8_E5M2 ? small_floats
                                                : cr_dtype_code((cr_dtype)dtype);
    const bool digest = dtype == CURED_DIGEST; /* a structure, as in Python's answers */
    char descr[64] = "[('h1', '<u8'), ('h2', '<u8'), ('bytes', '<u8')]";
    if ((code == NULL && !digest) || dims > NPY_MAX_DIMS) return 0;
    if (!digest) snprintf(descr, sizeof descr, "'%c%s'", code[1] == '1' ? '|' : '<', code);
    char *text = (char *)out + PREFIX;
    size_t cap = NPY_MAX_WRITTEN - PREFIX;
    size_t n = (size_t)snprintf(text, cap, "{'descr': %s, 'fortran_order': %s, 'shape': (", descr,
                                fortran_order ? "True" : "False");
    for (uint32_t i = 0; i < dims; i++)
        n += (size_t)snprintf(text + n, cap - n, "%s%llu%s", i != 0 ? " " : "", (unsigned long long)shape[i],
                              i + 1 < dims || dims == 1 ? "," : "");
    n += (size_t)snprintf(text + n, cap - n, "), }");
    while ((PREFIX + n + 1) % ALIGN != 0) text[n++] = ' ';
    text[n++] = '\n';
    memcpy(out, magic, sizeof magic);
    out[6] = 1;
    out[7] = 0;
    out[8] = (uint8_t)n;
    out[9] = (uint8_t)(n >> 8);
    return PREFIX + n;
}

#define TURN(type, swap)                       \
    for (; data < end; data += sizeof(type)) { \
        type x;                                \
        memcpy(&x, data, sizeof x);            \
        x = swap(x);                           \
        memcpy(data, &x, sizeof x);            \
    }
void npy_little(uint8_t *data, size_t bytes, size_t size) {
    const uint8_t *end = data + bytes;
    if (size == 2) TURN(uint16_t, __builtin_bswap16)
    if (size == 4) TURN(uint32_t, __builtin_bswap32)
    if (size == 8) TURN(uint64_t, __builtin_bswap64)
}
