/* cured-client doctor: whether this program can reach the daemon and share memory with it, and what to do where it cannot.
 *
 * Thread: one. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/doctor.h"

void doctor_add(doctor_report *r, const char *name, doctor_level level, const char *format, ...) {
    if (r->count == DOCTOR_MAX) return;
    doctor_finding *f = &r->findings[r->count++];
    va_list args;
    f->name = name;
    f->level = level;
    f->fix[0] = '\0';
    va_start(args, format);
    vsnprintf(f->detail, sizeof f->detail, format, args);
    va_end(args);
}

void doctor_fix(doctor_report *r, const char *format, ...) {
    doctor_finding *f = &r->findings[r->count - 1];
    va_list args;
    va_start(args, format);
    vsnprintf(f->fix, sizeof f->fix, format, args);
    va_end(args);
}

/* Why a Unix socket cannot be used, from what lies at its path. */
static void explain_socket(doctor_report *r, const char *path, const char *why) {
    struct stat st;
    if (stat(path, &st) != 0) {
        bool denied = errno == EACCES;
        doctor_add(r, "socket", DOCTOR_FAIL, "%.150s: %s", path, strerror(errno));
        doctor_fix(r, "%s",
                   denied ? "chmod o+x the folders above it, or run this as the daemon's user"
                          : "start cured (systemctl start cured where it is installed, else cured &), or say where it "
                            "listens: --connect, CURED_CONNECT");
    } else if (!S_ISSOCK(st.st_mode)) {
        doctor_add(r, "socket", DOCTOR_FAIL, "%.150s is no socket", path);
        doctor_fix(r, "say where cured listens: --connect, CURED_CONNECT");
    } else if (access(path, W_OK) != 0) {
        doctor_add(r, "socket", DOCTOR_FAIL, "%.150s (mode %04o): this user may not connect", path,
                   (unsigned)st.st_mode & 07777);
        doctor_fix(r,
                   "join its group (getent group %u names it; usermod -aG cured USER), or let everyone in: cured "
                   "--socket-mode "
                   "0666",
                   (unsigned)st.st_gid);
    } else {
        doctor_add(r, "socket", DOCTOR_FAIL, "%.150s: %.90s", path, why);
        doctor_fix(r, "start cured: nobody listens there, or it does not answer");
    }
}

static cured_conn *check_socket(doctor_report *r, const cli_options *o, char address[CURED_ADDRESS_BYTES]) {
    cured_error error;
    cured_conn *conn = NULL;
    cured_call *call = NULL;
    if (o->connect != NULL) {
        snprintf(address, CURED_ADDRESS_BYTES, "%s", o->connect);
    } else if (cured_default_address(address, CURED_ADDRESS_BYTES, &error) != CURED_OK) {
        doctor_add(r, "socket", DOCTOR_FAIL, "%s", error.text);
        doctor_fix(r, "--connect unix:PATH, or the variable CURED_CONNECT");
        return NULL;
    }
    bool unix_socket = strncmp(address, "tcp:", 4) != 0;
    const char *path = strncmp(address, "unix:", 5) == 0 ? address + 5 : address;
    cured_options options = o->call;
    if (options.timeout_ms == 0) options.timeout_ms = 5000;
    bool good = cured_connect(address, NULL, &conn, &error) == CURED_OK &&
                cured_ping(conn, &options, &call, &error) == CURED_OK && cured_wait(call, &error) == CURED_OK;
    if (good) {
        doctor_add(r, "socket", DOCTOR_OK, "%.120s: %s answers in %.3f ms", address, cured_server(conn),
                   (double)cured_call_elapsed_ns(call) / 1e6);
    } else if (unix_socket) {
        explain_socket(r, path, error.text);
    } else {
        doctor_add(r, "socket", DOCTOR_FAIL, "%s", error.text);
        doctor_fix(r, "start cured --listen tcp:HOST:PORT, and let the port through");
    }
    cured_call_free(call);
    if (good) return conn;
    cured_close(conn);
    return NULL;
}

/* How the daemon maps memory of its clients; an older one does not say. */
static void check_watch(doctor_report *r, const cured_server_info *info) {
    for (size_t i = 0; i < info->counter_count; i++) {
        if (strcmp(info->counters[i].name, "memory_watched") != 0) continue;
        if (info->counters[i].value != 0) {
            doctor_add(r, "userfaultfd", DOCTOR_OK, "shared memory is read and written where it lies");
            return;
        }
        doctor_add(
            r, "userfaultfd", DOCTOR_NOTE,
            "Linux refuses it to the daemon: shared memory is copied, unless sealed against writing, and answers "
            "are sent");
        doctor_fix(r,
                   "docker run --device /dev/userfaultfd, or a seccomp profile that allows userfaultfd (INSTALL.md)");
    }
}

/* What no daemon on the GPU of a program spares it. */
static void note_switch(doctor_report *r) {
    if (r->without_gpu) return;
    doctor_add(r, "gpu_switch", DOCTOR_NOTE,
               "the daemon's call behind a kernel of this program's own takes some 350 us more, because the GPU goes "
               "from one process to the other");
    doctor_fix(r, "answer in the program (cured/cuda.h, Python without client=), or share the GPU by CUDA MPS");
}

static void check_daemon(doctor_report *r, cured_conn *conn, const cli_options *o) {
    cured_error error;
    cured_call *call = NULL;
    if (cured_info(conn, &o->call, &call, &error) != CURED_OK || cured_wait(call, &error) != CURED_OK) {
        doctor_add(r, "daemon", DOCTOR_FAIL, "%s", error.text);
        doctor_fix(r, "see the daemon's log");
    } else {
        const cured_server_info *info = cured_call_info(call);
        r->without_gpu = strcmp(info->backend, "cpu") == 0;
        doctor_add(r, "daemon", r->without_gpu ? DOCTOR_NOTE : DOCTOR_OK, "version %s, backend %s: %s", info->version,
                   info->backend, info->backend_reason);
        if (cured_passes_fd(conn)) {
            check_watch(r, info);
            note_switch(r);
        }
    }
    cured_call_free(call);
}

/* The real thing: an array that the daemon reads where it lies. */
static void check_sharing(doctor_report *r, cured_conn *conn, const cli_options *o) {
    enum { COUNT = 4096 };
    cured_error error = {0};
    cured_array *array = NULL;
    cured_region *region = NULL;
    cured_call *call = NULL;
    cured_op sum = CURED_OP_SUM;
    int64_t value = 0;
    if (!cured_passes_fd(conn)) {
        doctor_add(r, "sharing", DOCTOR_NOTE, "over TCP arrays are sent, not shared");
        doctor_fix(r, "on the daemon's own machine connect to its Unix socket");
        return;
    }
    bool good = cured_array_alloc(CURED_I32, COUNT, &array, &error) == CURED_OK;
    for (int i = 0; good && i < COUNT; i++) ((int32_t *)cured_array_data(array))[i] = i;
    good = good && cured_region_fd(conn, cured_array_fd(array), &region, &error) == CURED_OK &&
           cured_region_reduce(region, CURED_I32, &sum, 1, 0, COUNT, &o->call, &call, &error) == CURED_OK &&
           cured_wait(call, &error) == CURED_OK;
    if (good && cured_value_int64(cured_call_value(call, 0), &value) == CURED_OK && value == COUNT * (COUNT - 1) / 2) {
        doctor_add(r, "sharing", DOCTOR_OK, "the daemon reads a sealed memfd of this program where it lies");
    } else {
        doctor_add(r, "sharing", DOCTOR_FAIL, "%.200s", error.text[0] != '\0' ? error.text : "the sum is wrong");
        doctor_fix(r, "the sentence says what is in the way; max_regions of the daemon, or memory of this machine");
    }
    cured_call_free(call);
    cured_region_free(region);
    cured_array_free(array);
}

/* The daemon's process; 0: it is in a namespace that this one does not see. */
static pid_t daemon_process(const cured_conn *conn) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(cured_fd(conn), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return 0;
    return peer.pid;
}

static const char *const level_names[] = {"ok", "note", "warn", "fail"};

static void print_text(const doctor_report *r) {
    for (size_t i = 0; i < r->count; i++) {
        const doctor_finding *f = &r->findings[i];
        printf("%-4s  %-14s %s\n", level_names[f->level], f->name, f->detail);
        if (f->fix[0] != '\0') printf("%22s%s\n", "fix: ", f->fix);
    }
}

static int print_json(const doctor_report *r) {
    cJSON *root = cJSON_CreateArray();
    for (size_t i = 0; i < r->count; i++) {
        const doctor_finding *f = &r->findings[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "check", f->name);
        cJSON_AddStringToObject(item, "level", level_names[f->level]);
        cli_json_add_text(item, "detail", f->detail);
        if (f->fix[0] != '\0') cli_json_add_text(item, "fix", f->fix);
        cJSON_AddItemToArray(root, item);
    }
    char *line = cJSON_PrintUnformatted(root);
    if (line != NULL) puts(line);
    cJSON_free(line);
    cJSON_Delete(root);
    return line != NULL ? EXIT_OK : cli_fail(EXIT_IO, "cannot print the findings");
}

int cmd_doctor(const cli_options *o) {
    doctor_report r = {0};
    char address[CURED_ADDRESS_BYTES] = "";
    cured_conn *conn = check_socket(&r, o, address);
    if (conn != NULL) {
        pid_t daemon = cured_passes_fd(conn) ? daemon_process(conn) : 0;
        check_daemon(&r, conn, o);
        check_sharing(&r, conn, o);
        doctor_check_memlock(&r, daemon);
        doctor_check_namespaces(&r, daemon, cured_passes_fd(conn));
        cured_close(conn);
    }
    doctor_check_shm(&r);
    doctor_check_gpus(&r);
    int code = EXIT_OK;
    if (o->json)
        code = print_json(&r);
    else
        print_text(&r);
    if (code == EXIT_OK) code = cli_flush();
    size_t failed = 0;
    for (size_t i = 0; i < r.count; i++) failed += r.findings[i].level == DOCTOR_FAIL;
    if (code != EXIT_OK || failed == 0) return code;
    cli_warn("%zu of %zu checks failed", failed, r.count);
    return conn == NULL ? EXIT_CONNECT : EXIT_PROTOCOL;
}
