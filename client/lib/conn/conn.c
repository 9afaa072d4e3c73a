/* conn: see conn.h. The life of a connection. Thread, owner: see there. */
#include "client/lib/conn/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/lib/conn/address.h"
#include "client/lib/conn/look.h"
#include "client/lib/conn/tls.h"
#include "client/lib/conn/token.h"
#include "client/lib/embedded/open.h"
#include "client/lib/error.h"
#include "proto/wire.h"

_Static_assert(offsetof(cured_conn, calls) == 0, "cr_cl_calls_of");

#define NS_PER_MS UINT64_C(1000000)

enum { CIRCUIT_FIRST_MS = 100, CIRCUIT_SHIFTS = 20, FEATURE_BYTES = 16 /* of HELLO, with what stands before it */ };

/* Makes the connection as new: nothing known of the daemon, HELLO first in line. */
static void reset(cured_conn *conn) {
    cr_cl_tls_reset(conn);
    if (conn->calls.fd >= 0) close(conn->calls.fd);
    conn->calls.fd = -1;
    conn->calls.welcomed = conn->send_failed = false;
    conn->calls.last_stream = 0;
    conn->calls.credit = CR_CREDIT_INITIAL_BYTES;
    conn->control_len = conn->control_pos = conn->in_len = 0;
    conn->skip = 0;
    conn->full = false;
    cr_wire_hello hello;
    uint8_t payload[CR_WIRE_FEATURES * FEATURE_BYTES + CR_NAME_MAX_BYTES + CR_TOKEN_MAX_BYTES + 32];
    hello.version_min = CR_WIRE_VERSION_MIN;
    hello.version_max = CR_WIRE_VERSION_MAX;
    hello.feature_count = CR_WIRE_FEATURES;
    for (int i = 0; i < CR_WIRE_FEATURES; i++) strcpy(hello.features[i], cr_wire_features[i]);
    memcpy(hello.client, conn->client, sizeof hello.client);
    memcpy(hello.token, conn->token, sizeof hello.token);
    size_t len = cr_wire_pack_hello(&hello, payload, sizeof payload);
    cr_cl_send_control(conn, CR_FRAME_HELLO, payload, (uint32_t)len);
}

uint32_t cr_cl_conn_away_ms(const cr_cl_calls *calls, cr_error *why) {
    const cured_conn *conn = cr_cl_conn_of(calls);
    if (conn->circuit_ns == 0 || conn->state != CONN_WAITING) return 0;
    uint64_t now = cr_now_ns();
    if (now >= conn->circuit_ns) return 0;
    cr_fail(why, CR_UNAVAILABLE, "no daemon at the last %u attempts: %.150s", conn->failures, conn->error.text);
    return (uint32_t)((conn->circuit_ns - now) / NS_PER_MS) + 1;
}

/* Another attempt brought no WELCOME: after some, the next one waits. */
static void count_failure(cured_conn *conn) {
    if (conn->circuit_failures == 0) return;
    if (conn->failures < UINT32_MAX) conn->failures++;
    if (conn->failures < conn->circuit_failures) return;
    uint32_t shift = conn->failures - conn->circuit_failures;
    uint64_t ms = (uint64_t)CIRCUIT_FIRST_MS << (shift < CIRCUIT_SHIFTS ? shift : CIRCUIT_SHIFTS);
    if (ms > conn->circuit_max_ms) ms = conn->circuit_max_ms;
    uint64_t half = ms * NS_PER_MS / 2;
    conn->circuit_ns = cr_now_ns() + half + cr_cl_calls_random(&conn->calls) % (half + 1);
}

void cr_cl_conn_watch(cr_cl_calls *calls, uint64_t now) {
    cured_conn *conn = cr_cl_conn_of(calls);
    conn->moved = conn->asked = false;
    conn->keepalive_ns = conn->keepalive_ms != 0 ? now + conn->keepalive_ms * NS_PER_MS : 0;
}

bool cr_cl_conn_waits(const cured_conn *conn) {
    return conn->state == CONN_OPEN && conn->calls.welcomed && cr_cl_calls_waiting(&conn->calls);
}

void cr_cl_conn_keep(cured_conn *conn) {
    if (conn->keepalive_ns == 0 || !cr_cl_conn_waits(conn)) return;
    uint64_t now = cr_now_ns();
    if (now < conn->keepalive_ns) return;
    bool moved = conn->moved;
    if (!moved && conn->asked) {
        char text[CR_ERROR_TEXT];
        snprintf(text, sizeof text, "the daemon did not answer a PING within %u ms", conn->keepalive_ms);
        cr_cl_conn_lost(conn, CR_UNAVAILABLE, 0, text);
        return;
    }
    uint64_t id = conn->calls.last_ping + 1;
    conn->asked = !moved; /* also where PONGs that it does not read leave no room for a PING */
    if (conn->asked && cr_cl_send_control(conn, CR_FRAME_PING, &id, sizeof id)) conn->calls.last_ping = id;
    conn->moved = false;
    conn->keepalive_ns = now + conn->keepalive_ms * NS_PER_MS;
}

void cr_cl_conn_lost(cured_conn *conn, cr_status code, uint32_t retry_after_ms, const char *text) {
    if (!conn->calls.welcomed) count_failure(conn);
    conn->state = CONN_WAITING;
    conn->attempt_ns = conn->attempt_deadline_ns = 0;
    cr_fail(&conn->error, code, "%s", text);
    conn->retry_after_ms = retry_after_ms;
    cr_cl_calls_lost(&conn->calls, &conn->error, retry_after_ms);
    reset(conn);
}

void cr_cl_conn_broken(cured_conn *conn, const cr_error *error) {
    conn->error = *error;
    conn->retry_after_ms = 0;
    conn->state = CONN_DEAD;
    cr_cl_calls_die(&conn->calls, &conn->error);
    reset(conn);
    conn->attempt_deadline_ns = 0;
    conn->control_len = 0;
}

void cr_cl_conn_inherited(cr_cl_calls *calls) {
    cured_conn *conn = cr_cl_conn_of(calls);
    if (conn->state != CONN_DEAD) {
        conn->state = CONN_WAITING;
        cr_fail(&conn->error, CR_UNAVAILABLE,
                "the connection is the parent process's: this one connects with its next call");
    }
    conn->attempt_ns = conn->attempt_deadline_ns = 0;
    conn->failures = 0;
    conn->circuit_ns = 0;
    reset(conn);
}

void cr_cl_conn_want(cured_conn *conn) {
    if (conn->state == CONN_WAITING && conn->attempt_ns == 0) conn->attempt_ns = conn->circuit_ns + 1;
}

/* One connect() for the host's next address, or more while they fail at once. */
void cr_cl_conn_attempt(cured_conn *conn, uint64_t now) {
    bool connecting, again;
    cr_error error;
    cr_status status;
    if (conn->attempt_deadline_ns == 0 && conn->connect_timeout_ms != 0)
        conn->attempt_deadline_ns = now + conn->connect_timeout_ms * NS_PER_MS;
    conn->attempt_ns = 0;
    do status = cr_cl_address_open(conn->address, &conn->lookup, &conn->calls.fd, &connecting, &again, &error);
    while (status != CR_OK && conn->calls.tcp && again);
    if (status == CR_OK) {
        conn->more_addresses = again;
        conn->state = connecting ? CONN_CONNECTING : CONN_OPEN;
        if (!connecting) conn->error = (cr_error){CR_OK, ""};
    } else if (again) {
        uint32_t shift = conn->attempts < 6 ? conn->attempts : 6;
        conn->attempts++;
        conn->attempt_ns = now + (UINT64_C(1000000) << shift);
        conn->state = CONN_WAITING;
    } else {
        cr_cl_conn_lost(conn, status, 0, error.text);
    }
}

void cr_cl_conn_connected(cured_conn *conn, uint64_t now) {
    int e = 0;
    socklen_t len = sizeof e;
    if (getsockopt(conn->calls.fd, SOL_SOCKET, SO_ERROR, &e, &len) != 0) e = errno;
    if (e == 0) {
        conn->state = CONN_OPEN;
        conn->lookup = 0;
        conn->error = (cr_error){CR_OK, ""};
        return;
    }
    if (conn->more_addresses) {
        cr_cl_tls_reset(conn);
        close(conn->calls.fd);
        conn->calls.fd = -1;
        cr_cl_conn_attempt(conn, now);
        return;
    }
    char text[CR_ERROR_TEXT];
    snprintf(text, sizeof text, "cannot connect to %.150s: %s", conn->address, strerror(e));
    cr_cl_conn_lost(conn, CR_UNAVAILABLE, 0, text);
}

static cr_status prepare(cured_conn *conn, const char *address, const cured_connect_options *o, cr_error *error) {
    cr_cl_calls_init(&conn->calls);
    size_t len = strlen(address);
    if (len >= sizeof conn->address)
        return cr_fail(error, CR_INVALID_ARGUMENT, "address has %zu bytes, limit is %zu", len,
                       sizeof conn->address - 1);
    memcpy(conn->address, address, len + 1);
    const bool embedded = strcmp(address, CR_CL_EMBEDDED) == 0;
    bool tls = false;
    cr_status status = embedded ? CR_OK : cr_cl_address_parse(address, &conn->calls.tcp, &tls, error);
    if (status != CR_OK) return status;
    const char *name = o->client != NULL ? o->client : "libcured/" CURED_VERSION;
    if (strlen(name) > CR_NAME_MAX_BYTES)
        return cr_fail(error, CR_INVALID_ARGUMENT, "client name has %zu bytes, limit is %d", strlen(name),
                       CR_NAME_MAX_BYTES);
    memcpy(conn->client, name, strlen(name) + 1);
    conn->connect_timeout_ms = o->connect_timeout_ms;
    if (embedded) {
        conn->state = CONN_OPEN;
        snprintf(conn->server, sizeof conn->server, "embedded/%s", CURED_VERSION);
        return cr_cl_embedded_open(&conn->calls, o->threads, error);
    }
    cr_cl_look_init(conn, o->spin_us);
    conn->keepalive_ms = o->keepalive_ms;
    conn->circuit_failures = o->circuit_failures;
    conn->circuit_max_ms = o->circuit_max_ms;
    conn->calls.way = &cr_cl_socket;
    status = cr_cl_token_take(conn, o, tls, error);
    if (status != CR_OK) return status;
    return tls ? cr_cl_tls_prepare(conn, o, error) : CR_OK;
}

/* The first attempt, which says at once that nobody listens on a Unix socket. */
static cr_status start_socket(cured_conn *conn, cr_error *error) {
    reset(conn);
    cr_cl_conn_attempt(conn, cr_now_ns());
    /* WAITING with an attempt to come is a listener whose backlog is full; without one it is a refusal. */
    if (conn->state != CONN_WAITING || conn->attempt_ns != 0) return CR_OK;
    *error = conn->error;
    return error->code;
}

/* A connection to one address; NULL with *error set. */
static cured_conn *connect_to(const char *address, const cured_connect_options *o, cr_error *error) {
    cured_conn *conn = malloc(sizeof *conn);
    if (conn == NULL) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a connection (%zu bytes)", sizeof *conn);
        return NULL;
    }
    memset(conn, 0, offsetof(cured_conn, control)); /* the buffers need no zeros */
    conn->in = conn->small;
    conn->in_bytes = sizeof conn->small;
    cr_status status = prepare(conn, address, o, error);
    if (status == CR_OK && conn->calls.way == &cr_cl_socket) status = start_socket(conn, error);
    if (status == CR_OK) {
        cr_cl_fork_mark(&conn->calls);
        return conn;
    }
    cr_cl_tls_free(conn);
    free(conn);
    return NULL;
}

/* The first of the default addresses that can be connected to. Where none can: PERMISSION_DENIED if one only lacks the right. */
static cured_conn *connect_to_default(const cured_connect_options *o, cr_error *error) {
    char all[CR_CL_ADDRESSES][CURED_ADDRESS_BYTES];
    size_t count = cr_cl_address_defaults(all);
    cured_conn *conn = NULL;
    for (size_t i = 0; conn == NULL && i < count; i++) {
        cr_error before = *error;
        conn = connect_to(all[i], o, error);
        if (conn != NULL || i == 0) continue;
        bool denied = before.code == CR_PERMISSION_DENIED || error->code == CR_PERMISSION_DENIED;
        char second[CR_ERROR_TEXT];
        memcpy(second, error->text, sizeof second);
        cr_fail(error, denied ? CR_PERMISSION_DENIED : error->code, "%s; %s", before.text, second);
    }
    return conn;
}

/* A daemon at a default address, or this process where nobody listens there or this user may not connect. */
static cured_conn *connect_auto(const cured_connect_options *o, cr_error *error) {
    cr_error without;
    cured_conn *conn = connect_to_default(o, error);
    if (conn != NULL || (error->code != CR_UNAVAILABLE && error->code != CR_PERMISSION_DENIED)) return conn;
    conn = connect_to(CR_CL_EMBEDDED, o, &without);
    if (conn != NULL)
        conn->auto_reason = *error;
    else if (without.code != CR_UNIMPLEMENTED) /* of a library without kernels only the daemon is worth a word */
        *error = without;
    return conn;
}

cured_status cured_connect(const char *address, const cured_connect_options *options, cured_conn **out,
                           cured_error *error) {
    static const char automatic[] = "auto:";
    const char *given = getenv("CURED_CONNECT");
    cr_error e = {CR_OK, ""};
    cured_connect_options o = CURED_CONNECT_OPTIONS_INIT;
    if (options != NULL) memcpy(&o, options, options->struct_bytes < sizeof o ? options->struct_bytes : sizeof o);
    bool choose = address != NULL && strcmp(address, automatic) == 0;
    if ((address == NULL || choose) && given != NULL && given[0] != '\0') {
        address = given;
        choose = strcmp(given, automatic) == 0;
    }
    if (choose)
        *out = connect_auto(&o, &e);
    else
        *out = address != NULL ? connect_to(address, &o, &e) : connect_to_default(&o, &e);
    if (*out != NULL) e = (cr_error){CR_OK, ""};
    return cr_cl_give(error, &e, 0);
}

cured_status cured_auto_reason(const cured_conn *conn, cured_error *error) {
    return cr_cl_give(error, &conn->auto_reason, 0);
}

void cured_close(cured_conn *conn) {
    if (conn == NULL) return;
    cr_cl_calls_close(&conn->calls);
    cr_cl_tls_free(conn);
    if (conn->calls.fd >= 0) close(conn->calls.fd);
    if (conn->in != conn->small) free(conn->in);
    free(conn);
}

bool cured_passes_fd(const cured_conn *conn) { return !conn->calls.tcp; }

cured_status cured_conn_status(const cured_conn *conn, cured_error *error) {
    return cr_cl_give(error, &conn->error, conn->retry_after_ms);
}

const char *cured_server(const cured_conn *conn) { return conn->server; }
