/* format: the first bytes of files that are no arrays.
 *
 * Raw floats may begin with any bytes. A mark of four bytes is met by one random element in 2^32, the three bytes of gzip by
 * one in 2^24. Text is printable to the last byte, which more than a few raw floats hardly ever are.
 *
 * Thread: any; nothing here holds state. */
#include "client/cli/format.h"

#include <string.h>

#define SAVE "save its arrays as .npy"
#define NAME_ONE "name an array of a .npz behind a colon, a.npz:x, or " SAVE
#define UNPACK "unpack it first"

static const struct mark {
    format f;
    uint8_t len, at;
    const char *bytes;
} marks[] = {
    {{"a ZIP archive", ".zip.npz.pt.pth.xlsx.", NAME_ONE}, 4, 0, "PK\3\4"},
    {{"an empty ZIP archive", ".zip.npz.", SAVE}, 4, 0, "PK\5\6"},
    {{"a gzip file", ".gz.tgz.", UNPACK}, 3, 0, "\x1f\x8b\x08"},
    {{"a Zstandard file", ".zst.", UNPACK}, 4, 0, "\x28\xb5\x2f\xfd"},
    {{"an xz file", ".xz.", UNPACK},
     6,
     0,
     "\xfd"
     "7zXZ\0"},
    {{"a bzip2 file", ".bz2.", UNPACK}, 6, 4, "\x31\x41\x59\x26\x53\x59"},
    {{"an LZ4 file", ".lz4.", UNPACK}, 4, 0, "\x04\x22\x4d\x18"},
    {{"a Parquet file", ".parquet.pq.", SAVE}, 4, 0, "PAR1"},
    {{"an HDF5 file", ".h5.hdf5.hdf.nc.mat.", SAVE}, 8, 0, "\x89HDF\r\n\x1a\n"},
    {{"an Arrow file", ".arrow.feather.", SAVE}, 6, 0, "ARROW1"},
    {{"a NetCDF file", ".nc.cdf.", SAVE}, 4, 0, "CDF\1"},
    {{"a NetCDF file", ".nc.cdf.", SAVE}, 4, 0, "CDF\2"},
    {{"a NetCDF file", ".nc.cdf.", SAVE}, 4, 0, "CDF\5"},
    {{"a FITS file", ".fits.fit.fts.", "give --offset, --dtype and --shape of its array, or " SAVE}, 9, 0, "SIMPLE  ="},
    {{"a MATLAB file", ".mat.", SAVE}, 10, 0, "MATLAB 5.0"},
    {{"a TIFF image", ".tif.tiff.", SAVE}, 4, 0, "II*\0"},
    {{"a RIFF file", ".wav.avi.webp.", SAVE}, 4, 0, "RIFF"},
    {{"an SQLite database", ".db.sqlite.sqlite3.", SAVE}, 16, 0, "SQLite format 3"},
    {{"a partial", ".crp.", "see cured-client merge"}, 3, 0, "CP\1"},
    {{"a partial", ".crp.", "see cured-client merge"}, 3, 0, "CK\1"},
};
static const format text = {"text", ".txt.csv.tsv.json.dat.log.", "give --text, and cured-client reads a column of it"};

enum {
    FEWEST_PRINTED = 24, /* bytes of text, spaces among them: six floats hardly ever look so */
    FEWEST_DIGITS = 8,   /* bytes of numbers and what stands between them: nor do two like this */
};

/* Whether the name ends as one of the format does, whatever the case. */
static bool promises(const format *f, const char *name) {
    const char *dot = name != NULL ? strrchr(name, '.') : NULL;
    size_t len = dot != NULL ? strlen(dot) : 0;
    char ending[12];
    if (len < 2 || len + 2 > sizeof ending) return false;
    for (size_t i = 0; i < len; i++) ending[i] = (char)(dot[i] >= 'A' && dot[i] <= 'Z' ? dot[i] + ('a' - 'A') : dot[i]);
    ending[len] = '.';
    ending[len + 1] = '\0';
    return strstr(f->endings, ending) != NULL;
}

static bool is_text(const uint8_t *in, size_t len, bool named) {
    bool digits = true, spaces = false;
    for (size_t i = 0; i < len; i++) {
        bool space = in[i] == ' ' || (in[i] >= '\t' && in[i] <= '\r');
        if (!space && (in[i] < ' ' || in[i] > '~')) return false;
        digits = digits && (space || strchr("0123456789+-.,;eE", in[i]) != NULL);
        spaces = spaces || space;
    }
    if (named) return len > 0;
    return spaces && len >= (digits ? FEWEST_DIGITS : FEWEST_PRINTED); /* memory filled with '@' has no space */
}

bool format_numbers(const uint8_t *in, size_t len, bool whole) {
    bool line = false, digit = false;
    if (len > NUMBERS_BYTES) len = NUMBERS_BYTES;
    for (size_t i = 0; i < len; i++) {
        const bool is_digit = in[i] >= '0' && in[i] <= '9';
        if (!is_digit && (in[i] == '\0' || strchr("+-.eE,; \t\n\v\f\r", in[i]) == NULL)) return false;
        line = line || in[i] == '\n';
        digit = digit || is_digit;
    }
    return !whole || (line && digit);
}

const format *format_text(void) { return &text; }

const format *format_find(const uint8_t *in, size_t len, const char *name, bool by_name) {
    if (len > FORMAT_BYTES) len = FORMAT_BYTES;
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        const struct mark *m = &marks[i];
        if (len < (size_t)m->at + m->len || memcmp(in + m->at, m->bytes, m->len) != 0) continue;
        if (!by_name || promises(&m->f, name)) return &m->f;
    }
    bool named = promises(&text, name);
    return (named || !by_name) && is_text(in, len, named) ? &text : NULL;
}

bool format_ends_with(const char *name, const char *tail) {
    size_t len = strlen(name), n = strlen(tail);
    return len >= n && strcmp(name + len - n, tail) == 0;
}
