/* npz: reads the end of a ZIP archive and its central directory, and there the entry of one member. The directory alone is
 * believed; every offset and length is held against the file's size before it is used.
 *
 * Thread: any. Owner: the caller owns the descriptor, which is read by position. */
#include "client/cli/npz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/npy.h"

enum {
    END_BYTES = 22,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    MOST_COMMENT = 65535,
    MOST_NAME = 255, /* longer ones are never found */
    MOST_MEMBERS = 1 << 20,
    NAMES_BYTES = 160, /* of the names that an error lists */
    STORED = 0,
    DEFLATED = 8,
    ENCRYPTED = 1, /* flag */
};

struct archive {
    int fd;
    uint64_t size;
    uint64_t directory, directory_bytes, members;
    cured_error *error;
};

struct names {
    char text[NAMES_BYTES];
    size_t used, left_out;
};

const char *npz_member_name(const char *path) {
    const char *at = strstr(path, ".npz:");
    return at != NULL && at[5] != '\0' ? at + 5 : NULL;
}

bool npz_may_be(int why) { return why == ENOENT || why == ENOTDIR || why == ENAMETOOLONG; }

static uint64_t number(const uint8_t *in, unsigned bytes) {
    uint64_t n = 0;
    for (unsigned i = bytes; i-- > 0;) n = n << 8 | in[i];
    return n;
}

static bool is(const uint8_t *in, const char *signature) { return memcmp(in, signature, 4) == 0; }

static cured_status bad(const struct archive *a, const char *what) {
    return npy_fail(a->error, CURED_INVALID_ARGUMENT, "the archive is damaged: %s", what);
}

static cured_status read_at(const struct archive *a, uint64_t at, uint8_t *out, size_t bytes) {
    if (at > a->size || bytes > a->size - at) return bad(a, "a part of it would lie behind its end");
    while (bytes != 0) {
        ssize_t n = pread(a->fd, out, bytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return npy_fail(a->error, CURED_DATA_LOSS, "cannot read the archive: %s", strerror(errno));
        if (n == 0) return npy_fail(a->error, CURED_DATA_LOSS, "the archive was cut while it was read");
        out += n;
        at += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return CURED_OK;
}

/* ---- The directory ---- */

/* ZIP64 keeps the numbers that do not fit the end record, which lies at `end`, in one of its own. */
static cured_status read_end64(struct archive *a, uint64_t end) {
    uint8_t locator[LOCATOR_BYTES], record[END64_BYTES];
    if (end < LOCATOR_BYTES) return bad(a, "its ZIP64 record is missing");
    cured_status status = read_at(a, end - LOCATOR_BYTES, locator, sizeof locator);
    if (status != CURED_OK) return status;
    if (!is(locator, "PK\6\7")) return bad(a, "its ZIP64 record is missing");
    status = read_at(a, number(locator + 8, 8), record, sizeof record);
    if (status != CURED_OK) return status;
    if (!is(record, "PK\6\6")) return bad(a, "its ZIP64 record is missing");
    a->members = number(record + 32, 8);
    a->directory_bytes = number(record + 40, 8);
    a->directory = number(record + 48, 8);
    return CURED_OK;
}

/* The end record is the last thing in the file but for a comment of as many bytes as it says. */
static cured_status find_end(struct archive *a, uint8_t *tail, uint8_t record[END_BYTES], uint64_t *at) {
    size_t bytes = a->size < END_BYTES + MOST_COMMENT ? (size_t)a->size : END_BYTES + MOST_COMMENT;
    cured_status status = read_at(a, a->size - bytes, tail, bytes);
    for (size_t i = bytes; status == CURED_OK && i >= END_BYTES; i--) {
        const uint8_t *p = tail + i - END_BYTES;
        if (!is(p, "PK\5\6") || number(p + 20, 2) != bytes - i) continue;
        memcpy(record, p, END_BYTES);
        *at = a->size - bytes + i - END_BYTES;
        return CURED_OK;
    }
    return status == CURED_OK ? bad(a, "its end record is missing") : status;
}

static cured_status find_directory(struct archive *a) {
    uint8_t record[END_BYTES], *tail = malloc(END_BYTES + MOST_COMMENT);
    uint64_t end = 0;
    if (tail == NULL) return npy_fail(a->error, CURED_RESOURCE_EXHAUSTED, "no memory to read the archive's end");
    cured_status status = find_end(a, tail, record, &end);
    free(tail);
    if (status != CURED_OK) return status;
    a->members = number(record + 10, 2);
    a->directory_bytes = number(record + 12, 4);
    a->directory = number(record + 16, 4);
    if (a->members == UINT16_MAX || a->directory_bytes == UINT32_MAX || a->directory == UINT32_MAX) {
        status = read_end64(a, end);
        if (status != CURED_OK) return status;
    }
    if (a->directory > end || a->directory_bytes > end - a->directory)
        return bad(a, "its directory would not lie before its end record");
    if (a->members > MOST_MEMBERS)
        return npy_fail(a->error, CURED_INVALID_ARGUMENT, "the archive has %llu members, the limit is %d",
                        (unsigned long long)a->members, MOST_MEMBERS);
    return CURED_OK;
}

/* ---- A member ---- */

/* ZIP64 keeps the numbers that do not fit an entry behind it, in the field 1, in this order. */
static cured_status read_extra(const struct archive *a, uint64_t at, size_t bytes, uint64_t *const wanted[3]) {
    uint8_t extra[65536];
    cured_status status = read_at(a, at, extra, bytes);
    if (status != CURED_OK) return status;
    for (size_t i = 0; bytes - i >= 4;) {
        size_t id = (size_t)number(extra + i, 2), len = (size_t)number(extra + i + 2, 2);
        i += 4;
        if (len > bytes - i) return bad(a, "an extra field is longer than its entry");
        for (size_t k = 0; id == 1 && k < 3; k++) {
            if (*wanted[k] != UINT32_MAX) continue;
            if (len < 8) return bad(a, "its ZIP64 field is too short");
            *wanted[k] = number(extra + i, 8);
            i += 8;
            len -= 8;
        }
        if (id == 1) return CURED_OK;
        i += len;
    }
    return CURED_OK;
}

static cured_status take_entry(const struct archive *a, const uint8_t *entry, uint64_t at, npz_member *out) {
    uint8_t local[LOCAL_BYTES];
    unsigned method = (unsigned)number(entry + 10, 2);
    uint64_t offset = number(entry + 42, 4);
    out->crc = (uint32_t)number(entry + 16, 4);
    out->stored = number(entry + 20, 4);
    out->bytes = number(entry + 24, 4);
    out->deflated = method == DEFLATED;
    if ((entry[8] & ENCRYPTED) != 0)
        return npy_fail(a->error, CURED_UNIMPLEMENTED, "the array is encrypted, which is not read");
    if (method != STORED && method != DEFLATED)
        return npy_fail(a->error, CURED_UNIMPLEMENTED,
                        "the array is packed by method %u, read are 0 (stored) and 8 (deflated)", method);
    uint64_t *const wanted[] = {&out->bytes, &out->stored, &offset};
    cured_status status =
        read_extra(a, at + ENTRY_BYTES + number(entry + 28, 2), (size_t)number(entry + 30, 2), wanted);
    if (status == CURED_OK) status = read_at(a, offset, local, sizeof local);
    if (status != CURED_OK) return status;
    if (!is(local, "PK\3\4")) return bad(a, "a member does not begin where its directory says");
    out->offset = offset + LOCAL_BYTES + number(local + 26, 2) + number(local + 28, 2);
    if (out->offset > a->directory || out->stored > a->directory - out->offset)
        return bad(a, "a member would not lie before the directory");
    if (method == STORED && out->stored != out->bytes) return bad(a, "a stored member has two sizes");
    return out->bytes <= INT64_MAX ? CURED_OK : bad(a, "a member has more than 2^63 bytes");
}

/* Adds a name without its .npy to the list, if it is plain text and there is room. */
static void add_name(struct names *names, const uint8_t *name, size_t len) {
    if (len > 4 && memcmp(name + len - 4, ".npy", 4) == 0) len -= 4;
    bool plain = len != 0 && names->used + len + 3 <= sizeof names->text;
    for (size_t i = 0; i < len && plain; i++) plain = name[i] > ' ' && name[i] <= '~';
    if (!plain) {
        names->left_out++;
        return;
    }
    if (names->used != 0) names->used += (size_t)sprintf(names->text + names->used, ", ");
    memcpy(names->text + names->used, name, len);
    names->used += len;
    names->text[names->used] = '\0';
}

static bool matches(const uint8_t *name, size_t len, const char *wanted) {
    size_t n = strlen(wanted);
    return len >= n && memcmp(name, wanted, n) == 0 && (len == n || (len == n + 4 && memcmp(name + n, ".npy", 4) == 0));
}

typedef cured_status (*take_name)(const struct archive *a, void *user, const uint8_t *entry, size_t len, uint64_t at);

/* Every entry of the directory, with its name's bytes; 0 for a name that is too long. */
static cured_status walk(const struct archive *a, take_name take, void *user) {
    uint8_t entry[ENTRY_BYTES + MOST_NAME];
    uint64_t at = a->directory, end = a->directory + a->directory_bytes;
    for (uint64_t i = 0; i < a->members; i++) {
        size_t have = end - at < sizeof entry ? (size_t)(end - at) : sizeof entry;
        cured_status status = read_at(a, at, entry, have);
        if (status != CURED_OK) return status;
        if (have < ENTRY_BYTES || !is(entry, "PK\1\2")) return bad(a, "its directory is malformed");
        size_t len = (size_t)number(entry + 28, 2);
        uint64_t bytes = ENTRY_BYTES + len + number(entry + 30, 2) + number(entry + 32, 2);
        if (bytes > end - at) return bad(a, "an entry is longer than its directory");
        status = take(a, user, entry, len <= MOST_NAME ? len : 0, at);
        if (status != CURED_OK) return status;
        at += bytes;
    }
    return CURED_OK;
}

struct search {
    const char *wanted; /* NULL: the names alone */
    npz_member *out;
    struct names names;
    bool found;
};

/* Looks at every entry, because a second of that name would make it unclear which is meant. */
static cured_status look(const struct archive *a, void *user, const uint8_t *entry, size_t len, uint64_t at) {
    struct search *s = user;
    add_name(&s->names, entry + ENTRY_BYTES, len);
    if (s->wanted == NULL || len == 0 || !matches(entry + ENTRY_BYTES, len, s->wanted)) return CURED_OK;
    if (s->found)
        return npy_fail(a->error, CURED_INVALID_ARGUMENT, "two arrays of the archive are called '%.80s'", s->wanted);
    s->found = true;
    return take_entry(a, entry, at, s->out);
}

cured_status npz_find(int fd, uint64_t size, const char *name, npz_member *out, cured_error *error) {
    struct archive a = {.fd = fd, .size = size, .error = error};
    struct search s = {.wanted = name, .out = out};
    cured_status status = find_directory(&a);
    if (status == CURED_OK) status = walk(&a, look, &s);
    if (status != CURED_OK || s.found) return status;
    char more[48] = "";
    if (s.names.left_out != 0) snprintf(more, sizeof more, " and %zu more", s.names.left_out);
    const char *list = a.members == 0 ? "nothing" : s.names.used != 0 ? s.names.text : "names that are no plain text";
    if (name == NULL)
        return npy_fail(error, CURED_NOT_FOUND, "name one of its arrays behind a colon (it holds %s%s)", list, more);
    return npy_fail(error, CURED_NOT_FOUND, "there is no array '%.80s' in it: it holds %s%s", name, list, more);
}

struct visit {
    npz_each_member each;
    void *user;
};

/* "member 'x': " and why it cannot be taken. */
static cured_status name_member(const struct archive *a, const uint8_t *name, size_t len, cured_status status) {
    char shown[84];
    if (a->error == NULL) return status;
    const cured_error why = *a->error;
    const size_t most = len < sizeof shown - 4 ? len : sizeof shown - 4;
    for (size_t i = 0; i < most; i++) shown[i] = name[i] >= ' ' && name[i] <= '~' ? (char)name[i] : '?';
    strcpy(shown + most, most < len ? "..." : "");
    return npy_fail(a->error, status, "member '%s': %s", shown, why.text);
}

static cured_status visit(const struct archive *a, void *user, const uint8_t *entry, size_t len, uint64_t at) {
    const struct visit *v = user;
    npz_member m;
    const cured_status status = take_entry(a, entry, at, &m);
    if (status != CURED_OK) return name_member(a, entry + ENTRY_BYTES, len, status);
    return v->each(v->user, (const char *)entry + ENTRY_BYTES, len, &m, a->error);
}

cured_status npz_each(int fd, uint64_t size, npz_each_member each, void *user, cured_error *error) {
    struct archive a = {.fd = fd, .size = size, .error = error};
    struct visit v = {each, user};
    const cured_status status = find_directory(&a);
    return status == CURED_OK ? walk(&a, visit, &v) : status;
}

int npz_open(const char *path, bool *archive) {
    const char *member = npz_member_name(path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    *archive = fd < 0 && npz_may_be(errno) && member != NULL;
    if (!*archive) return fd;
    char *whole = strndup(path, (size_t)(member - 1 - path));
    if (whole == NULL) return -1;
    fd = open(whole, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    const int why = errno;
    free(whole);
    errno = why;
    return fd;
}
