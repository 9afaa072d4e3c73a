/* text: lines to numbers. A machine takes byte by byte what may come: names, quotes, cut lines, fields that are no number. Whole lines
 * that are as most lines are go by quick_lines, which leaves every other one to the machine and finds the same values.
 *
 * Thread: one at a time. Owner: the reader owns its buffer and its values. */
#include "client/cli/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/decimal.h"
#include "client/cli/npy.h"

typedef unsigned long long ull;

enum {
    BEHIND_BYTES = 16, /* read beyond a line's end by decimal_quick */
    MOST_VALUES = TEXT_BLOCK_BYTES / 2 + 2,
    QUOTED_BYTES = 40, /* of a field in a sentence */
};

/* What a byte is between fields. */
enum { OTHER, BLANK, BORDER /* the delimiter */, NEWLINE };

/* Where in a row the machine is. */
typedef enum place {
    BETWEEN,   /* white space parts fields: none has begun */
    START,     /* a delimiter does: a field has begun, with blanks at most */
    PLAIN,     /* within a field */
    QUOTED,    /* behind a quote */
    QUOTE_SEEN /* behind one more: the field's end, or the first half of a quote in it */
} place;

struct text {
    text_format format;
    uint64_t line, row_line; /* the line that is read, from 1; where its row begins */
    uint64_t column;         /* that is wanted; 0: the only one, or not known */
    uint64_t fields;         /* of this row, begun */
    place place;
    bool begun, names;      /* a byte was looked at; the next row is the header */
    bool fresh, blank;      /* of this row no byte was looked at; it had blanks at most */
    bool found, long_field; /* the wanted field has ended; it does not fit into `field` */
    bool whole;
    uint64_t wide_line; /* of the first integer beyond int64_t; 0: none */
    size_t held;        /* bytes of `field` */
    size_t have, count; /* bytes of the buffer, values */
    cured_error *error;
    uint8_t of[256]; /* OTHER, BLANK, … */
    uint8_t field[DECIMAL_MOST_BYTES];
    int64_t integers[MOST_VALUES];
    double reals[MOST_VALUES];
    uint8_t buffer[TEXT_BLOCK_BYTES + BEHIND_BYTES];
};

static void begin_row(text *t) {
    const bool delimited = t->format.delimiter != 0;
    t->row_line = t->line;
    t->fields = delimited;
    t->place = delimited ? START : BETWEEN;
    t->fresh = t->blank = true;
    t->found = t->long_field = false;
    t->held = 0;
}

text *text_begin(const text_format *format) {
    text *t = calloc(1, sizeof *t);
    if (t == NULL) return NULL;
    t->format = *format;
    t->line = 1;
    t->column = format->name != NULL ? 0 : format->column;
    t->names = format->header;
    t->whole = format->kind != TEXT_REALS;
    t->of[' '] = t->of['\t'] = t->of['\r'] = BLANK;
    if (format->delimiter != 0)
        t->of[format->delimiter] = BORDER;
    else
        t->of['\v'] = t->of['\f'] = BLANK;
    t->of['\n'] = NEWLINE;
    begin_row(t);
    return t;
}

void text_end(text *t) { free(t); }

uint8_t *text_room(text *t, size_t *most) {
    *most = TEXT_BLOCK_BYTES - t->have;
    return t->buffer + t->have;
}

/* ---- Values ---- */

static cured_status wide(const text *t, uint64_t line) {
    return npy_fail(t->error, CURED_INVALID_ARGUMENT,
                    "line %llu: the integer does not fit into i64, and the column has integers alone: --dtype f64 "
                    "rounds each",
                    (ull)line);
}

/* Of an integer that a column of integers cannot hold. A decimal may follow, and then every number is rounded. */
static cured_status put_wide(text *t, double real) {
    if (t->format.kind == TEXT_INTEGERS) return wide(t, t->row_line);
    if (t->whole && t->wide_line == 0) t->wide_line = t->row_line;
    t->reals[t->count++] = real;
    return CURED_OK;
}

/* The held field as it stands in a sentence. */
static const char *shown(const text *t, char out[QUOTED_BYTES + 8]) {
    size_t n = 0;
    for (; n < t->held && n < QUOTED_BYTES; n++)
        out[n] = t->field[n] >= ' ' && t->field[n] <= '~' ? (char)t->field[n] : '?';
    snprintf(out + n, 8, "%s", t->held > QUOTED_BYTES ? "..." : "");
    return out;
}

static cured_status no_number(const text *t, const char *what) {
    char out[QUOTED_BYTES + 8];
    const char *advice = "";
    if (t->format.delimiter == 0 && memchr(t->field, '"', t->held) != NULL)
        advice = " (quotes count with --delimiter)";
    else if (t->format.delimiter == 0 && memchr(t->field, ',', t->held) != NULL)
        advice = " (--delimiter , parts fields at commas)";
    else if (t->row_line == 1 && !t->format.header)
        advice = " (--header passes over a line of names)";
    return npy_fail(t->error, CURED_INVALID_ARGUMENT, "line %llu: '%s' is %s%s", (ull)t->row_line, shown(t, out), what,
                    advice);
}

/* Ends the row of the wanted field, which is held: it becomes a value. */
static cured_status put_field(text *t) {
    if (t->long_field)
        return npy_fail(t->error, CURED_INVALID_ARGUMENT, "line %llu: a number has more than %d bytes",
                        (ull)t->row_line, DECIMAL_MOST_BYTES);
    decimal d = decimal_parse(t->field, t->held);
    if (t->held == 0) d = (decimal){DECIMAL_REAL, decimal_of_bits(UINT64_C(0x7ff8000000000000)), 0}; /* is missing */
    switch (d.kind) {
        case DECIMAL_NONE:
            return no_number(t, "no number");
        case DECIMAL_WIDE:
            return put_wide(t, d.real);
        case DECIMAL_REAL:
            if (t->format.kind == TEXT_INTEGERS) return no_number(t, "no integer");
            t->whole = false;
            break;
        case DECIMAL_INTEGER:
            t->integers[t->count] = d.integer;
            break;
    }
    t->reals[t->count++] = d.real;
    return CURED_OK;
}

/* ---- The machine ---- */

/* Whether the bytes of the field that is read are wanted. */
static bool is_wanted(const text *t) {
    if (t->names) return t->format.name != NULL;
    return t->fields == (t->column != 0 ? t->column : 1);
}

static void hold(text *t, uint8_t c) {
    t->blank = false;
    if (!is_wanted(t)) return;
    if (t->held == sizeof t->field)
        t->long_field = true;
    else
        t->field[t->held++] = c;
}

static void begin_field(text *t, place at) {
    t->fields++;
    t->place = at;
    if (!is_wanted(t)) return;
    t->held = 0;
    t->long_field = false;
}

/* Blanks around a field are not of it. */
static void trim(text *t) {
    size_t first = 0;
    while (t->held > 0 && t->of[t->field[t->held - 1]] == BLANK) t->held--;
    while (first < t->held && t->of[t->field[first]] == BLANK) first++;
    t->held -= first;
    memmove(t->field, t->field + first, t->held);
}

static cured_status end_field(text *t) {
    if (!is_wanted(t)) return CURED_OK;
    trim(t);
    t->found = true;
    if (!t->names || t->long_field) return CURED_OK;
    if (strlen(t->format.name) != t->held || memcmp(t->format.name, t->field, t->held) != 0) return CURED_OK;
    if (t->column != 0)
        return npy_fail(t->error, CURED_INVALID_ARGUMENT,
                        "line %llu: columns %llu and %llu have this name: give --column a number", (ull)t->row_line,
                        (ull)t->column, (ull)t->fields);
    t->column = t->fields;
    return CURED_OK;
}

static cured_status end_header(text *t) {
    char out[QUOTED_BYTES + 8];
    t->names = false;
    if (t->format.name == NULL || t->column != 0) return CURED_OK;
    const size_t length = strlen(t->format.name);
    t->held = length < sizeof t->field ? length : sizeof t->field;
    memcpy(t->field, t->format.name, t->held);
    return npy_fail(t->error, CURED_INVALID_ARGUMENT, "line %llu: no column is named '%s'%s", (ull)t->row_line,
                    shown(t, out), t->fields == 1 ? " (--delimiter says what parts the fields)" : "");
}

/* Ends the row and begins the next one. */
static cured_status end_row(text *t) {
    cured_status status = t->place != BETWEEN ? end_field(t) : CURED_OK;
    if (status != CURED_OK) return status;
    if (!t->blank) {
        if (t->column == 0 && t->format.name == NULL && t->fields > 1)
            return npy_fail(t->error, CURED_INVALID_ARGUMENT,
                            "line %llu: there are %llu fields: --column says which one counts", (ull)t->row_line,
                            (ull)t->fields);
        if (t->names)
            status = end_header(t);
        else if (!t->found)
            status =
                npy_fail(t->error, CURED_INVALID_ARGUMENT, "line %llu: there are %llu fields, and column %llu counts",
                         (ull)t->row_line, (ull)t->fields, (ull)t->column);
        else
            status = put_field(t);
    }
    begin_row(t);
    return status;
}

/* A byte of a row whose fields a delimiter parts. */
static cured_status take_delimited(text *t, uint8_t c) {
    const bool second = t->place == QUOTE_SEEN && c == '"';
    if (t->place == QUOTE_SEEN) t->place = second ? QUOTED : PLAIN;
    if (second || (t->place == QUOTED && c != '"')) {
        hold(t, c);
    } else if (t->place == QUOTED) {
        t->place = QUOTE_SEEN;
    } else if (t->of[c] == BORDER) {
        const cured_status status = end_field(t);
        t->blank = false;
        begin_field(t, START);
        return status;
    } else if (t->place == START && c == '"') {
        t->blank = false;
        t->place = QUOTED;
    } else if (t->of[c] != BLANK) {
        hold(t, c);
        t->place = PLAIN;
    } else if (t->place == PLAIN) {
        hold(t, c); /* perhaps within the field */
    }
    return CURED_OK;
}

/* A byte of a row whose fields white space parts. */
static cured_status take_spaced(text *t, uint8_t c) {
    if (t->of[c] == BLANK) {
        const cured_status status = t->place == PLAIN ? end_field(t) : CURED_OK;
        t->place = BETWEEN;
        return status;
    }
    if (t->place == BETWEEN) begin_field(t, PLAIN);
    hold(t, c);
    return CURED_OK;
}

static cured_status take_byte(text *t, uint8_t c) {
    t->fresh = false;
    t->line += c == '\n';
    if (c == '\n' && t->place != QUOTED) return end_row(t);
    return t->format.delimiter != 0 ? take_delimited(t, c) : take_spaced(t, c);
}

/* ---- Lines as most are ---- */

/* Where the wanted field of a line begins; NULL: the machine finds out. */
static inline const uint8_t *find_field(const text *t, const uint8_t *p, uint64_t column, const bool delimited) {
    while (t->of[*p] == BLANK) p++;
    for (; column > 1; column--) {
        if (delimited && *p == '"') return NULL;
        while (t->of[*p] == OTHER || (delimited && t->of[*p] == BLANK)) p++;
        if (*p == '\n') return NULL;
        p += delimited;
        while (t->of[*p] == BLANK) p++;
    }
    return p;
}

/* The newline of the line whose number ends at p; NULL: the machine finds out. */
static inline const uint8_t *find_end(const text *t, const uint8_t *p, const uint8_t *last, const bool delimited) {
    const uint8_t *number = p;
    while (t->of[*p] == BLANK) p++;
    if (*p == '\n') return p;
    if (t->column == 0 || (delimited ? t->of[*p] != BORDER : p == number)) return NULL;
    const uint8_t *end = memchr(p, '\n', (size_t)(last - p));
    return delimited && memchr(p, '"', (size_t)(end - p)) != NULL ? NULL : end;
}

/* Takes lines from p on up to `last`, which is behind a newline; where the first begins that is not so simple. */
static inline const uint8_t *quick_lines(text *t, const uint8_t *p, const uint8_t *last, const bool delimited) {
    const uint64_t column = t->column != 0 ? t->column : 1;
    const bool integers = t->format.kind == TEXT_INTEGERS;
    size_t count = t->count;
    bool whole = t->whole;
    uint64_t lines = 0;
    for (; p < last; lines++) {
        decimal d;
        const uint8_t *q = find_field(t, p, column, delimited);
        if (q == NULL || (q = decimal_quick(q, &d)) == NULL) break;
        q = *q == '\n' ? q : find_end(t, q, last, delimited);
        if (q == NULL || (integers && d.kind != DECIMAL_INTEGER)) break;
        whole = whole && d.kind == DECIMAL_INTEGER;
        if (whole) t->integers[count] = d.integer;
        t->reals[count++] = d.real;
        p = q + 1;
    }
    t->count = count;
    t->whole = whole;
    t->line += lines;
    t->row_line = t->line;
    return p;
}

/* Passes over the mark of UTF-8; *first: its bytes. */
static cured_status begin(text *t, size_t *first) {
    static const uint8_t utf8[] = {0xef, 0xbb, 0xbf};
    const uint8_t *b = t->buffer;
    t->begun = true;
    *first = t->have >= sizeof utf8 && memcmp(b, utf8, sizeof utf8) == 0 ? sizeof utf8 : 0;
    if (t->have >= 2 && ((b[0] == 0xff && b[1] == 0xfe) || (b[0] == 0xfe && b[1] == 0xff)))
        return npy_fail(t->error, CURED_INVALID_ARGUMENT,
                        "line 1: the text is UTF-16: iconv -f utf-16 -t utf-8 turns it");
    return CURED_OK;
}

/* Behind the last byte. */
static cured_status finish(text *t) {
    if (t->place == QUOTED)
        return npy_fail(t->error, CURED_INVALID_ARGUMENT, "line %llu: a quote of this row is never closed",
                        (ull)t->row_line);
    const cured_status status = t->fresh ? CURED_OK : end_row(t);
    if (status != CURED_OK) return status;
    if (t->names && t->format.name != NULL) return end_header(t);
    return t->whole && t->wide_line != 0 ? wide(t, t->wide_line) : CURED_OK;
}

static cured_status take_all(text *t, const uint8_t **from, const uint8_t *end, bool more) {
    const uint8_t *p = *from, *newline = memrchr(p, '\n', (size_t)(end - p)), *last = newline != NULL ? newline + 1 : p;
    cured_status status = CURED_OK;
    while (status == CURED_OK && p < end) {
        if (t->fresh && !t->names && !t->format.slowly) {
            p = t->format.delimiter != 0 ? quick_lines(t, p, last, true) : quick_lines(t, p, last, false);
            if (p == end || (p >= last && more && end - p <= TEXT_BLOCK_BYTES / 2)) break; /* a cut line waits */
        }
        do status = take_byte(t, *p++);
        while (status == CURED_OK && p < end && !t->fresh);
    }
    *from = p;
    return status;
}

cured_status text_take(text *t, size_t bytes, text_values *values, cured_error *error) {
    enum { MARK_BYTES = 3 };
    const uint8_t *p = t->buffer, *end = p + t->have + bytes;
    size_t first = 0;
    cured_status status = CURED_OK;
    *values = (text_values){0, false, t->reals, t->integers};
    t->error = error;
    t->count = 0;
    t->have += bytes;
    memset(t->buffer + t->have, 0, BEHIND_BYTES);
    if (!t->begun && t->have < MARK_BYTES && bytes != 0) return CURED_OK;
    if (!t->begun) status = begin(t, &first);
    p += first;
    if (status == CURED_OK) status = take_all(t, &p, end, bytes != 0);
    if (status == CURED_OK && bytes == 0) status = finish(t);
    t->have = (size_t)(end - p);
    memmove(t->buffer, p, t->have);
    values->count = t->count;
    values->whole = t->whole && t->wide_line == 0;
    return status;
}
