/* arrow: what an array of Arrow's C data interface holds. A producer may say anything: what can be wrong without being read beyond is
 * checked here, and the sentence names the struct's field.
 *
 * Thread: with the GIL. Owner: nothing is kept. */
#include "client/python/arrow.h"

#include <string.h>

enum { SHOWN_BYTES = 24 }; /* of a format that is not known */
static const uint64_t most_elements = (uint64_t)1 << 60;

/* Format strings of one letter whose elements cured reduces, and their size in bits. */
static const struct {
    char format;
    uint8_t bits;
    const char *type;
} types[] = {{'b', 1, "bits"}, {'c', 8, "i8"},   {'C', 8, "u8"},   {'s', 16, "i16"},
             {'S', 16, "u16"}, {'i', 32, "i32"}, {'I', 32, "u32"}, {'l', 64, "i64"},
             {'L', 64, "u64"}, {'e', 16, "f16"}, {'f', 32, "f32"}, {'g', 64, "f64"}};

static bool wrong(const char *field, long long value, const char *rule) {
    PyErr_Format(PyExc_ValueError, "Arrow array: %s is %lld, %s", field, value, rule);
    return false;
}

/* What to do with a type that is not reduced, by the first letter of its format. */
static const char *advice(char letter) {
    return letter == '+'
               ? "it is nested: name a column of a batch with cured.column(table, name), or reduce a list's elements"
           : letter == 't' ? "it counts units of time: cast it to int64 (or, of 32 bits, to int32)"
           : letter == 'd' ? "it is decimal: cast it to float64"
           : letter == 'n' ? "it has nulls alone"
           : letter != 0 && strchr("uUzZvw", letter) != NULL ? "text and bytes are no numbers: cast it to float64"
                                                             : "cast it to a type of numbers";
}

static bool known_type(const struct ArrowSchema *s, size_t *at) {
    if (s->format == NULL) {
        PyErr_SetString(PyExc_ValueError, "Arrow schema: format is NULL, it must be a text");
        return false;
    }
    if (s->dictionary != NULL) {
        PyErr_SetString(PyExc_TypeError,
                        "Arrow type dictionary is not reduced: its codes are no values: decode it, such as by "
                        "a.dictionary_decode(), or reduce a.indices");
        return false;
    }
    for (*at = 0; *at < sizeof types / sizeof types[0]; ++*at)
        if (s->format[0] == types[*at].format && s->format[1] == '\0') return true;
    char shown[SHOWN_BYTES + 1];
    const size_t bytes = strnlen(s->format, SHOWN_BYTES);
    memcpy(shown, s->format, bytes);
    shown[bytes] = '\0';
    PyErr_Format(PyExc_TypeError, "Arrow type '%s' is not reduced: %s", shown, advice(*shown));
    return false;
}

/* The counts of any array, and its place for buffers. */
static bool sizes_fit(const struct ArrowArray *a) {
    if (a->length < 0 || (uint64_t)a->length > most_elements) return wrong("length", a->length, "must be 0 to 2^60");
    if (a->offset < 0 || (uint64_t)a->offset > most_elements) return wrong("offset", a->offset, "must be 0 to 2^60");
    if (a->null_count < -1 || a->null_count > a->length)
        return wrong("null_count", a->null_count, "must be -1 to the length");
    if (a->n_buffers > 0 && a->buffers == NULL) return wrong("n_buffers", a->n_buffers, "but buffers is NULL");
    return true;
}

/* How many of these bits are 0. */
static uint64_t zeros(const uint8_t *bits, uint64_t first, uint64_t count) {
    uint64_t ones = 0, i = 0;
    for (; i < count && (first + i) % 8 != 0; i++) ones += bits[(first + i) / 8] >> (first + i) % 8 & 1;
    for (; i + 64 <= count; i += 64) {
        uint64_t word;
        memcpy(&word, bits + (first + i) / 8, sizeof word);
        ones += (uint64_t)__builtin_popcountll(word);
    }
    for (; i < count; i++) ones += bits[(first + i) / 8] >> (first + i) % 8 & 1;
    return count - ones;
}

/* The bitmap of elements that are there, of an array whose `count` elements from `first` on are looked at: all of its elements, or
 * those of a batch. */
static bool take_mask(const struct ArrowArray *a, uint64_t first, uint64_t count, bool here, cr_py_column *c) {
    const void *bits = a->buffers[0];
    if (bits == NULL && a->null_count > 0)
        return wrong("null_count", a->null_count, "but there is no bitmap (buffers[0] is NULL)");
    if (bits == NULL || count == 0 || (!here && a->null_count == 0)) return true;
    const bool all = first == (uint64_t)a->offset && count == (uint64_t)a->length;
    const uint64_t nulls = here ? zeros(bits, first, count) : count;
    if (here && all && a->null_count >= 0 && nulls != (uint64_t)a->null_count) {
        PyErr_Format(PyExc_ValueError, "Arrow array: null_count is %lld, but the bitmap (buffers[0]) has %llu nulls",
                     (long long)a->null_count, (unsigned long long)nulls);
        return false;
    }
    if (nulls == 0) return true;
    c->mask[c->masks].bits = bits;
    c->mask[c->masks++].first = first;
    return true;
}

/* An array of one type, `count` elements of it from number `from` on. */
static bool take_elements(const struct ArrowSchema *s, const struct ArrowArray *a, uint64_t from, uint64_t count,
                          bool here, cr_py_column *c) {
    size_t at;
    if (!known_type(s, &at) || !sizes_fit(a)) return false;
    if (a->n_buffers != 2)
        return wrong("n_buffers", a->n_buffers, "must be 2 for this type: a bitmap and the elements");
    if (a->n_children != 0 || s->n_children != 0) return wrong("n_children", a->n_children, "must be 0 for this type");
    if (from + count > (uint64_t)a->length) return wrong("length", a->length, "less than its batch has rows");
    const uint64_t first = (uint64_t)a->offset + from;
    if (a->buffers[1] == NULL && count != 0)
        return wrong("length", a->length, "but there are no elements (buffers[1] is NULL)");
    if ((first + count) > (uint64_t)PY_SSIZE_T_MAX / 8)
        return wrong("length", a->length, "with the offset more than memory holds");
    c->type = types[at].type;
    c->length = count;
    c->data = count != 0 ? a->buffers[1] : NULL;
    c->bytes = types[at].bits == 1 ? (first + count + 7) / 8 : (first + count) * (types[at].bits / 8);
    c->first = first;
    return take_mask(a, first, count, here, c);
}

/* The number of the column that is wanted. -1 with an exception. */
static int64_t find(const struct ArrowSchema *s, PyObject *wanted) {
    int64_t found = -1;
    if (!PyUnicode_Check(wanted)) {
        const Py_ssize_t number = PyNumber_AsSsize_t(wanted, PyExc_IndexError);
        if (number == -1 && PyErr_Occurred()) return -1;
        found = number < 0 ? number + s->n_children : number;
        if (found >= 0 && found < s->n_children) return found;
        PyErr_Format(PyExc_IndexError, "column: %zd, the batch has %lld", number, (long long)s->n_children);
        return -1;
    }
    const char *name = PyUnicode_AsUTF8AndSize(wanted, NULL);
    for (int64_t i = 0; name != NULL && i < s->n_children; i++) {
        const struct ArrowSchema *child = s->children[i];
        if (child == NULL || child->name == NULL || strcmp(child->name, name) != 0) continue;
        if (found >= 0) {
            PyErr_Format(PyExc_ValueError, "column: two are called %R: give the number", wanted);
            return -1;
        }
        found = i;
    }
    if (found < 0 && !PyErr_Occurred()) PyErr_Format(PyExc_LookupError, "column: the batch has none called %R", wanted);
    return found;
}

/* The number of the column of a batch's schema. -1 with an exception. */
static int64_t column_number(const struct ArrowSchema *s, PyObject *wanted) {
    if (s->format == NULL || strcmp(s->format, "+s") != 0) {
        PyErr_SetString(PyExc_TypeError, "column: the array is no batch: it has no columns");
        return -1;
    }
    if (s->n_children < 0 || s->n_children > INT32_MAX || (s->n_children != 0 && s->children == NULL)) {
        wrong("n_children of the schema", s->n_children, "must be 0 to 2^31 - 1, with children that are there");
        return -1;
    }
    const int64_t at = find(s, wanted);
    if (at < 0 || s->children[at] != NULL) return at;
    wrong("children of the schema", at, "a column that is NULL");
    return -1;
}

const char *cr_py_arrow_type(const struct ArrowSchema *s, PyObject *wanted) {
    size_t type;
    const int64_t at = wanted != NULL ? column_number(s, wanted) : 0;
    if (at < 0 || !known_type(wanted != NULL ? s->children[at] : s, &type)) return NULL;
    return types[type].type;
}

bool cr_py_arrow_column(const struct ArrowSchema *s, const struct ArrowArray *a, PyObject *wanted, bool here,
                        cr_py_column *c) {
    memset(c, 0, sizeof *c);
    if (wanted == NULL) return sizes_fit(a) && take_elements(s, a, 0, (uint64_t)a->length, here, c);
    const int64_t at = column_number(s, wanted);
    if (at < 0 || !sizes_fit(a)) return false;
    if (a->n_buffers != 1) return wrong("n_buffers", a->n_buffers, "must be 1 for a batch: a bitmap");
    if (a->n_children != s->n_children) return wrong("n_children", a->n_children, "not that of the schema");
    if (a->children == NULL || a->children[at] == NULL) return wrong("children", at, "a column that is NULL");
    /* First the column, which must be as long as the batch says before that one's bitmap is read. */
    return take_elements(s->children[at], a->children[at], (uint64_t)a->offset, (uint64_t)a->length, here, c) &&
           take_mask(a, (uint64_t)a->offset, (uint64_t)a->length, here, c);
}
