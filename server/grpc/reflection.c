/* reflection: answers from the descriptors that protoc-c wrote (a FileDescriptorSet, see descriptor.proto), as they are.
 *
 * Thread: the loop's. Owner: the stream. */
#include "server/grpc/reflection.h"

#include <string.h>

enum { MOST_REQUEST = 1024, ANSWER_BYTES = 64 * 1024 };

/* Numbers of fields. */
enum { FILE_NAME = 1, FILE_PACKAGE = 2, FILE_MESSAGE = 4, FILE_ENUM = 5, FILE_SERVICE = 6, INNER_NAME = 1, METHOD = 2 };
enum { ASK_HOST = 1, ASK_FILE = 3, ASK_SYMBOL = 4, ASK_EXTENSION = 5, ASK_EXTENSIONS = 6, ASK_SERVICES = 7 };
enum { TELL_HOST = 1, TELL_ASKED = 2, TELL_FILE = 4, TELL_SERVICES = 6, TELL_ERROR = 7 };

/* protos.c, made from cured.proto, health.proto and reflection.proto. */
extern const uint8_t cr_grpc_protos[];
extern const size_t cr_grpc_protos_bytes;

typedef struct text {
    const uint8_t *at;
    size_t len;
} text;

static bool same(text a, text b) { return a.len == b.len && memcmp(a.at, b.at, a.len) == 0; }

/* The first field of that number. */
static bool find(text in, uint64_t number, text *found) {
    cr_wire_field field;
    for (size_t at = 0; cr_wire_next_field(in.at, in.len, &at, &field);)
        if (field.number == number && field.bytes) {
            *found = (text){field.bytes, (size_t)field.value};
            return true;
        }
    return false;
}

/* The next field of bytes at *at; *number says which. */
static bool next(text in, size_t *at, uint64_t *number, text *found) {
    cr_wire_field field;
    while (cr_wire_next_field(in.at, in.len, at, &field)) {
        if (!field.bytes) continue;
        *number = field.number;
        *found = (text){field.bytes, (size_t)field.value};
        return true;
    }
    return false;
}

/* Takes what is up to the first dot off the beginning of name. */
static text first_part(text *name) {
    const uint8_t *dot = memchr(name->at, '.', name->len);
    text first = {name->at, dot ? (size_t)(dot - name->at) : name->len};
    name->at += first.len + (dot != NULL);
    name->len -= first.len + (dot != NULL);
    return first;
}

/* Whether the file defines a message, an enum, a service of that name, or a method or something inner of one. */
static bool defines(text file, text name) {
    text package, found, own;
    size_t at = 0;
    uint64_t number;
    if (!find(file, FILE_PACKAGE, &package) || name.len <= package.len + 1 || name.at[package.len] != '.') return false;
    if (memcmp(name.at, package.at, package.len) != 0) return false;
    text rest = {name.at + package.len + 1, name.len - package.len - 1};
    const text first = first_part(&rest);
    while (next(file, &at, &number, &found)) {
        const bool names = number == FILE_MESSAGE || number == FILE_ENUM || number == FILE_SERVICE;
        if (!names || !find(found, INNER_NAME, &own) || !same(own, first)) continue;
        if (!rest.len) return true;
        size_t within = 0;
        text inner;
        while (next(found, &within, &number, &inner))
            if (number >= METHOD && find(inner, INNER_NAME, &own) && same(own, rest)) return true;
    }
    return false;
}

/* The file of that name, or the one that defines that symbol. */
static bool find_file(uint64_t asked, text name, text *file) {
    const text all = {cr_grpc_protos, cr_grpc_protos_bytes};
    size_t at = 0;
    uint64_t number;
    text own;
    while (next(all, &at, &number, file))
        if (asked == ASK_SYMBOL ? defines(*file, name) : find(*file, FILE_NAME, &own) && same(own, name)) return true;
    return false;
}

typedef struct answer {
    uint8_t at[ANSWER_BYTES];
    size_t len;
} answer;

/* Puts a field of bytes. A field that does not fit is left out; every file that is served fits. */
static void put(answer *to, uint32_t number, text bytes) {
    if (bytes.len + 12 > sizeof to->at - to->len) return;
    to->len += cr_wire_pack_field_head(number, bytes.len, to->at + to->len);
    if (bytes.len) memcpy(to->at + to->len, bytes.at, bytes.len);
    to->len += bytes.len;
}

static void put_services(answer *to) {
    static answer list, one; /* the loop's */
    const text all = {cr_grpc_protos, cr_grpc_protos_bytes};
    size_t at = 0;
    uint64_t number;
    text file, package, service, name;
    list.len = 0;
    while (next(all, &at, &number, &file)) {
        if (!find(file, FILE_PACKAGE, &package) || !find(file, FILE_SERVICE, &service)) continue;
        if (!find(service, INNER_NAME, &name)) continue;
        uint8_t full[256];
        if (package.len + 1 + name.len > sizeof full) continue;
        memcpy(full, package.at, package.len);
        full[package.len] = '.';
        memcpy(full + package.len + 1, name.at, name.len);
        one.len = 0;
        put(&one, 1, (text){full, package.len + 1 + name.len});
        put(&list, 1, (text){one.at, one.len});
    }
    put(to, TELL_SERVICES, (text){list.at, list.len});
}

static void put_error(answer *to, const char *why) {
    uint8_t error[128];
    size_t n = 0;
    error[n++] = 1 << 3; /* ErrorResponse.error_code */
    error[n++] = CR_NOT_FOUND;
    n += cr_wire_pack_field_head(2, strlen(why), error + n);
    memcpy(error + n, why, strlen(why));
    put(to, TELL_ERROR, (text){error, n + strlen(why)});
}

bool cr_reflection_message(cr_grpc_stream *stream, const uint8_t *in, size_t len, bool whole) {
    static answer to, inner; /* the loop's */
    const text request = {in, len};
    text host, asked = {0}, file;
    uint64_t number = 0;
    size_t at = 0;
    cr_error error;
    (void)whole;
    if (len > MOST_REQUEST || stream->conn->backlog > CR_GRPC_BACKLOG_BYTES) {
        if (len > MOST_REQUEST)
            cr_fail(&error, CR_INVALID_ARGUMENT, "reflection: a request has at most %d bytes", MOST_REQUEST);
        else
            cr_fail(&error, CR_RESOURCE_EXHAUSTED, "reflection: 1 MiB of answers waits to be read");
        return cr_grpc_stream_fail(stream, &error);
    }
    to.len = inner.len = 0;
    if (find(request, ASK_HOST, &host)) put(&to, TELL_HOST, host);
    put(&to, TELL_ASKED, request);
    text found;
    for (uint64_t n; next(request, &at, &n, &found);)
        if (n != ASK_HOST) number = n, asked = found;
    if (number == ASK_SERVICES) {
        put_services(&to);
    } else if ((number == ASK_FILE || number == ASK_SYMBOL) && find_file(number, asked, &file)) {
        put(&inner, 1, file);
        put(&to, TELL_FILE, (text){inner.at, inner.len});
    } else {
        put_error(&to, number == ASK_EXTENSION || number == ASK_EXTENSIONS ? "there are no extensions in proto3"
                                                                           : "no file or symbol of that name");
    }
    uint8_t *room = cr_grpc_reply_room(stream, to.len);
    if (!room) return false;
    memcpy(room, to.at, to.len);
    cr_grpc_reply_message(stream, to.len);
    return true;
}

void cr_reflection_end(cr_grpc_stream *stream) { cr_grpc_reply_end(stream, NULL); }
