/* http: llhttp's callbacks, and what makes a request a bad one. Thread: the loop's. Owner: see http.h. */
#include "server/admin/http.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/list.h"

static cr_http *of(llhttp_t *parser) { return cr_container(parser, cr_http, parser); }

/* The request is over, and bad. */
static int bad(cr_http *http, uint16_t status, const char *why) {
    cr_http_request *r = &http->request;
    if (!r->status) {
        r->status = status;
        r->why = why;
    }
    return HPE_USER;
}

static int on_url(llhttp_t *parser, const char *at, size_t n) {
    cr_http *http = of(parser);
    char *path = http->request.path;
    const size_t had = strlen(path);
    if (n > CR_HTTP_TARGET_BYTES - had) return bad(http, 414, "the target is longer than 1024 bytes");
    for (size_t i = 0; i < n; i++)
        if (at[i] <= ' ' || at[i] > '~') return bad(http, 400, "the target holds a byte that belongs in none");
    memcpy(path + had, at, n);
    path[had + n] = '\0';
    return HPE_OK;
}

/* What RFC 9110 lets a name be made of (5.6.2): with a space in it another program may take the header for another one. */
static bool is_name(const char *at, size_t n) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < n; i++)
        if (!at[i] || !strchr(letters, at[i])) return false;
    return true;
}

/* The name and the value of a header come in any pieces. */
static int on_header_field(llhttp_t *parser, const char *at, size_t n) {
    cr_http *http = of(parser);
    if (!is_name(at, n)) return bad(http, 400, "a header's name is no word");
    for (size_t i = 0; i < n; i++, http->name_len++)
        if (http->name_len < sizeof http->name) http->name[http->name_len] = at[i];
    return HPE_OK;
}

static bool is_named(const cr_http *http, const char *name) {
    const size_t n = strlen(name);
    return http->name_len == n && strncasecmp(http->name, name, n) == 0;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t n) {
    cr_http *http = of(parser);
    const bool wanted = is_named(http, "host") || is_named(http, "authorization");
    if (wanted && n > sizeof http->value - 1 - http->value_len)
        return bad(http, 431, "a header is longer than 512 bytes");
    if (wanted) memcpy(http->value + http->value_len, at, n);
    http->value_len += wanted ? n : 0;
    return HPE_OK;
}

static int on_header_value_complete(llhttp_t *parser) {
    static const char bearer[] = "Bearer ";
    const size_t skip = sizeof bearer - 1;
    cr_http *http = of(parser);
    cr_http_request *r = &http->request;
    http->value[http->value_len] = '\0';
    if (!http->name_len) return bad(http, 400, "a header has no name");
    if (is_named(http, "host")) {
        if (r->has_host) return bad(http, 400, "Host is given twice");
        if (http->value_len > CR_HTTP_HOST_BYTES) return bad(http, 400, "Host is longer than 256 bytes");
        memcpy(r->host, http->value, http->value_len + 1);
        r->has_host = true;
    } else if (is_named(http, "transfer-encoding")) {
        http->encoded = true; /* llhttp makes nothing of one that is empty */
    } else if (is_named(http, "authorization")) {
        if (http->authorized) return bad(http, 400, "Authorization is given twice");
        http->authorized = true;
        if (strncasecmp(http->value, bearer, skip) == 0) {
            if (http->value_len - skip > CR_HTTP_TOKEN_BYTES)
                return bad(http, 431, "the token is longer than 512 bytes");
            memcpy(r->token, http->value + skip, http->value_len - skip + 1);
        }
    }
    http->name_len = http->value_len = 0;
    return HPE_OK;
}

/* "http://HOST/PATH" is what a proxy is sent: it means the same. False: the target is no path. */
static bool settle_target(cr_http_request *r) {
    static const char scheme[] = "http://";
    if (strncasecmp(r->path, scheme, sizeof scheme - 1) == 0) {
        const char *host = r->path + sizeof scheme - 1;
        const size_t n = strcspn(host, "/?");
        if (!n || n > CR_HTTP_HOST_BYTES) return false;
        memcpy(r->host, host, n);
        r->host[n] = '\0';
        r->has_host = true;
        const char *rest = host + n;
        if (*rest == '/')
            memmove(r->path, rest, strlen(rest) + 1);
        else
            memcpy(r->path, "/", 2);
    }
    r->path[strcspn(r->path, "?#")] = '\0';
    return r->path[0] == '/';
}

static int on_headers_complete(llhttp_t *parser) {
    cr_http *http = of(parser);
    cr_http_request *r = &http->request;
    const bool is_one = parser->http_major == 1 && parser->http_minor <= 1;
    r->head = parser->method == HTTP_HEAD;
    if (!is_one) return bad(http, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    if (!r->head && parser->method != HTTP_GET) return bad(http, 405, "only GET and HEAD are answered here");
    if (!settle_target(r)) return bad(http, 400, "the target is no path");
    if (parser->http_minor == 1 && !r->has_host) return bad(http, 400, "Host is missing");
    if (http->encoded || parser->content_length) return bad(http, 413, "requests have no body here");
    r->keep = llhttp_should_keep_alive(parser) != 0;
    parser->upgrade = 0; /* HTTP/2 and WebSockets may be asked for, and are not given */
    return HPE_OK;
}

static int on_message_complete(llhttp_t *parser) {
    of(parser)->whole = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_message_complete = on_message_complete,
};

static void begin(cr_http *http) {
    http->request = (cr_http_request){0};
    http->bytes = http->name_len = http->value_len = 0;
    http->whole = http->encoded = http->authorized = false;
    http->last = '\0';
}

void cr_http_init(cr_http *http) {
    llhttp_init(&http->parser, HTTP_REQUEST, &settings);
    begin(http);
}

void cr_http_next(cr_http *http) {
    llhttp_reset(&http->parser);
    begin(http);
}

/* Where a line begins with a space, or n. Such a line goes on with the header before it, which not every program reads so. */
static size_t fold_in(const cr_http *http, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((text[i] == ' ' || text[i] == '\t') && (i ? text[i - 1] : http->last) == '\n') return i;
    return n;
}

bool cr_http_read(cr_http *http, const uint8_t *bytes, size_t n, size_t *used) {
    const size_t room = CR_HTTP_HEAD_BYTES - http->bytes, here = n < room ? n : room;
    const char *text = (const char *)bytes;
    const size_t most = fold_in(http, text, here);
    *used = 0;
    if (!here && !n) return false;
    const llhttp_errno_t e = llhttp_execute(&http->parser, text, most);
    const char *stop = e == HPE_OK ? text + most : llhttp_get_error_pos(&http->parser);
    *used = stop >= text && stop <= text + most ? (size_t)(stop - text) : most;
    http->bytes += *used;
    if (*used) http->last = text[*used - 1];
    if (http->whole) return true;
    if (e == HPE_OK && most < here) {
        bad(http, 400, "a line begins with a space: a header is one line here");
    } else if (e == HPE_OK) {
        if (http->bytes < CR_HTTP_HEAD_BYTES) return false;
        bad(http, 431, "the head is longer than 8192 bytes");
    } else if (e == HPE_PAUSED_H2_UPGRADE || e == HPE_INVALID_VERSION) {
        bad(http, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    } else if (e == HPE_UNEXPECTED_CONTENT_LENGTH) {
        bad(http, 400, "Content-Length beside Transfer-Encoding, or given twice");
    } else {
        bad(http, 400, "this is no request of HTTP");
    }
    http->request.keep = false;
    return true;
}

bool cr_http_host_is_number(const char *host) {
    char name[CR_HTTP_HOST_BYTES + 1];
    struct in_addr four;
    struct in6_addr six;
    const bool bracketed = host[0] == '[';
    const size_t n = strcspn(host + bracketed, bracketed ? "]" : ":");
    if (n >= sizeof name) return false;
    memcpy(name, host + bracketed, n);
    name[n] = '\0';
    const char *rest = host + bracketed + n;
    if (bracketed && *rest++ != ']') return false;
    if (*rest && (*rest != ':' || rest[1 + strspn(rest + 1, "0123456789")])) return false;
    if (bracketed) return inet_pton(AF_INET6, name, &six) == 1;
    return inet_pton(AF_INET, name, &four) == 1 || strcasecmp(name, "localhost") == 0;
}
