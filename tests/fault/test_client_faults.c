/* Every allocation, mapping, new descriptor and piece of room that libcured takes fails once, in every way to use it, against a
 * daemon: what comes back is right or a status, nothing is left open, and the next use is good. Storms: every third call of the
 * kernel ends with EINTR or EAGAIN, or moves a byte.
 *
 * Thread: one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cured/by_key.h"
#include "cured/cured.h"
#include "tests/fault/daemon.h"
#include "tests/fault/fault.h"

enum { COUNT = 300000, ROWS = 300, MOST_SITES = 5000 };

static const cured_op sum = CURED_OP_SUM;
static daemon_process served;
static uint32_t *numbers;
static int memory; /* holds numbers */
static cured_options once = CURED_OPTIONS_INIT;

static uint64_t sum_of(size_t from, size_t count) {
    uint64_t all = 0;
    for (size_t i = from; i < from + count; i++) all += numbers[i];
    return all;
}

/* Takes over the call: its status; the one value must be `right`. */
static cured_status finish(cured_call *call, uint64_t right) {
    uint64_t got = 0;
    cured_status status = cured_wait(call, NULL);
    if (status == CURED_OK) NEED(cured_value_uint64(cured_call_value(call, 0), &got) == CURED_OK && got == right);
    cured_call_free(call);
    return status;
}

static cured_status ping(cured_conn *conn) {
    cured_call *call;
    cured_status status = cured_ping(conn, &once, &call, NULL);
    if (status == CURED_OK) status = cured_wait(call, NULL);
    cured_call_free(call);
    return status;
}

static cured_status info(cured_conn *conn) {
    cured_call *call;
    cured_status status = cured_info(conn, &once, &call, NULL);
    if (status == CURED_OK) status = cured_wait(call, NULL);
    if (status == CURED_OK) NEED(cured_call_info(call)->counter_count > 10);
    cured_call_free(call);
    return status;
}

static cured_status stats(cured_conn *conn) {
    cured_call *call;
    cured_status status = cured_stats(conn, &once, &call, NULL);
    if (status == CURED_OK) status = cured_wait(call, NULL);
    if (status == CURED_OK) NEED(strstr(cured_call_json(call), "\"requests_total\":") != NULL);
    cured_call_free(call);
    return status;
}

static cured_status slow_log(cured_conn *conn) {
    cured_call *call;
    cured_status status = cured_slow_log(conn, &once, &call, NULL);
    if (status == CURED_OK) status = cured_wait(call, NULL);
    if (status == CURED_OK) NEED(strncmp(cured_call_json(call), "{\"slow\":[", 9) == 0);
    cured_call_free(call);
    return status;
}

static cured_status config(cured_conn *conn) {
    cured_call *call;
    cured_status status = cured_config(conn, &once, &call, NULL);
    if (status == CURED_OK) status = cured_wait(call, NULL);
    if (status == CURED_OK) NEED(strstr(cured_call_json(call), "\"key\":\"max_jobs\"") != NULL);
    cured_call_free(call);
    return status;
}

static cured_status small(cured_conn *conn) {
    cured_call *call;
    cured_status status = cured_reduce_buffer(conn, CURED_U32, &sum, 1, numbers, 100, &once, &call, NULL);
    return status == CURED_OK ? finish(call, sum_of(0, 100)) : status;
}

static cured_status large(cured_conn *conn) {
    cured_call *call;
    cured_status status = cured_reduce_buffer(conn, CURED_U32, &sum, 1, numbers, COUNT, &once, &call, NULL);
    return status == CURED_OK ? finish(call, sum_of(0, COUNT)) : status;
}

/* A value that has a status, and a sentence that is copied. */
static cured_status without_value(cured_conn *conn) {
    static const int64_t two[] = {INT64_MAX, INT64_MAX};
    static const cured_op product = CURED_OP_PROD;
    cured_call *call;
    cured_error error;
    cured_status status = cured_reduce_buffer(conn, CURED_I64, &product, 1, two, 2, &once, &call, NULL);
    if (status == CURED_OK) status = cured_wait(call, NULL);
    if (status == CURED_OK) NEED(cured_value_status(cured_call_value(call, 0), &error) == CURED_OUT_OF_RANGE);
    cured_call_free(call);
    return status;
}

static cured_status stream(cured_conn *conn) {
    const uint8_t *bytes = (const uint8_t *)numbers;
    const size_t all = COUNT * sizeof *numbers, step = all / 7;
    cured_call *call;
    cured_status status = cured_reduce_stream_begin(conn, CURED_U32, &sum, 1, CURED_UNKNOWN_LENGTH, &once, &call, NULL);
    if (status != CURED_OK) return status;
    for (size_t at = 0; status == CURED_OK && at < all; at += step) {
        status = cured_stream_write(call, bytes + at, all - at < step ? all - at : step, NULL);
        if (status == CURED_OK) status = cured_stream_drain(call, NULL);
    }
    if (status == CURED_OK) status = cured_stream_end(call, NULL);
    if (status == CURED_OK) return finish(call, sum_of(0, COUNT));
    cured_call_free(call);
    return status;
}

static cured_status descriptor(cured_conn *conn) {
    cured_call *call;
    cured_status status = cured_reduce_fd(conn, CURED_U32, &sum, 1, memory, 400, CURED_TO_END, &once, &call, NULL);
    return status == CURED_OK ? finish(call, sum_of(100, COUNT - 100)) : status;
}

static cured_status region(cured_conn *conn) {
    cured_region *region;
    cured_call *call;
    cured_status status = cured_region_fd(conn, memory, &region, NULL);
    if (status != CURED_OK) return status;
    status = cured_region_reduce(region, CURED_U32, &sum, 1, 40, 1000, &once, &call, NULL);
    if (status == CURED_OK) status = finish(call, sum_of(10, 1000));
    if (status == CURED_OK) status = cured_region_wait(region, NULL);
    if (status == CURED_OK) {
        status = cured_region_unregister(region, &once, &call, NULL);
        if (status == CURED_OK) status = cured_wait(call, NULL);
        cured_call_free(call);
    }
    cured_region_free(region);
    return status;
}

/* Three pieces of two regions, as one array. */
static cured_status pieces(cured_conn *conn) {
    cured_region *one, *two = NULL;
    cured_call *call;
    cured_status status = cured_region_fd(conn, memory, &one, NULL);
    if (status != CURED_OK) return status;
    status = cured_region_fd(conn, memory, &two, NULL);
    const cured_piece parts[] = {{one, 40, 500}, {two, 2040, 400}, {one, 3640, 100}};
    if (status == CURED_OK) status = cured_reduce_regions(parts, 3, CURED_U32, &sum, 1, &once, &call, NULL);
    if (status == CURED_OK) status = finish(call, sum_of(10, 1000));
    cured_region_free(one);
    cured_region_free(two);
    return status;
}

static cured_status array(cured_conn *conn) {
    cured_array *array;
    cured_region *region = NULL;
    cured_call *call;
    cured_status status = cured_array_alloc(CURED_U32, 5000, &array, NULL);
    if (status != CURED_OK) return status;
    memcpy(cured_array_data(array), numbers, 20000);
    status = cured_region_fd(conn, cured_array_fd(array), &region, NULL);
    if (status == CURED_OK) status = cured_region_reduce(region, CURED_U32, &sum, 1, 0, 5000, &once, &call, NULL);
    if (status == CURED_OK) status = finish(call, sum_of(0, 5000));
    cured_region_free(region);
    cured_array_free(array);
    return status;
}

static cured_status rows(cured_conn *conn) {
    const cured_axis axis = {ROWS, COUNT / ROWS, 1};
    cured_options o = once;
    cured_call *call;
    o.axis = &axis;
    cured_status status = cured_reduce_buffer(conn, CURED_U32, &sum, 1, numbers, COUNT, &o, &call, NULL);
    if (status == CURED_OK) status = cured_wait(call, NULL);
    if (status == CURED_OK) {
        uint64_t count;
        const uint64_t *sums = cured_call_array(call, 0, NULL, &count);
        NEED(count == ROWS);
        for (size_t i = 0; i < ROWS; i++) NEED(sums[i] == sum_of(i * (COUNT / ROWS), COUNT / ROWS));
    }
    cured_call_free(call);
    return status;
}

/* Answers that the daemon writes. */
static cured_status written(cured_conn *conn) {
    const cured_axis axis = {ROWS, COUNT / ROWS, 1};
    cured_options o = once;
    cured_array *target;
    cured_output output = {NULL, 8};
    cured_call *call = NULL;
    cured_status status = cured_array_alloc(CURED_U64, ROWS + 2, &target, NULL);
    if (status != CURED_OK) return status;
    o.axis = &axis;
    o.outputs = &output;
    status = cured_region_fd_writable(conn, cured_array_fd(target), &output.region, NULL);
    if (status == CURED_OK) status = cured_reduce_buffer(conn, CURED_U32, &sum, 1, numbers, COUNT, &o, &call, NULL);
    if (status == CURED_OK) status = cured_wait(call, NULL);
    if (status == CURED_OK) {
        const uint64_t *sums = (const uint64_t *)cured_array_data(target) + 1;
        for (size_t i = 0; i < ROWS; i++) NEED(sums[i] == sum_of(i * (COUNT / ROWS), COUNT / ROWS));
        NEED(sums[-1] == 0 && sums[ROWS] == 0);
    }
    cured_call_free(call);
    cured_region_free(output.region);
    cured_array_free(target);
    return status;
}

/* Answers that are longer than the connection's first buffer. */
static cured_status elements(cured_conn *conn) {
    const cured_axis axis = {COUNT / 2, 2, 1};
    static const cured_op most = CURED_OP_MAX;
    cured_options o = once;
    cured_call *call;
    o.axis = &axis;
    cured_status status = cured_reduce_buffer(conn, CURED_U32, &most, 1, numbers, COUNT, &o, &call, NULL);
    if (status == CURED_OK) status = cured_wait(call, NULL);
    if (status == CURED_OK) {
        const uint32_t *all = cured_call_array(call, 0, NULL, NULL);
        for (size_t i = 0; i < COUNT / 2; i++)
            NEED(all[i] == (numbers[2 * i] > numbers[2 * i + 1] ? numbers[2 * i] : numbers[2 * i + 1]));
    }
    cured_call_free(call);
    return status;
}

static cured_status partials(cured_conn *conn) {
    cured_options o = once;
    cured_call *calls[2] = {NULL, NULL}, *merged;
    cured_bytes parts[2];
    cured_status status = CURED_OK;
    o.partial = true;
    for (size_t i = 0; status == CURED_OK && i < 2; i++) {
        o.first = i * 1000;
        status = cured_reduce_buffer(conn, CURED_U32, &sum, 1, numbers + i * 1000, 1000, &o, &calls[i], NULL);
        if (status == CURED_OK) status = cured_wait(calls[i], NULL);
        if (status == CURED_OK) parts[i].data = cured_call_partial(calls[i], &parts[i].bytes);
    }
    if (status == CURED_OK) status = cured_merge(conn, parts, 2, &sum, 1, &once, &merged, NULL);
    if (status == CURED_OK) status = finish(merged, sum_of(0, 2000));
    for (size_t i = 0; i < 2; i++) cured_call_free(calls[i]);
    return status;
}

/* The same here, without the daemon. */
static cured_status finish_here(cured_conn *conn) {
    cured_options o = once;
    cured_call *call;
    cured_values *values;
    size_t bytes, merged_bytes = CURED_PARTIAL_BYTES;
    uint64_t got;
    static uint8_t merged[CURED_PARTIAL_BYTES];
    o.partial = true;
    cured_status status = cured_reduce_buffer(conn, CURED_U32, &sum, 1, numbers, 1000, &o, &call, NULL);
    if (status == CURED_OK) status = cured_wait(call, NULL);
    if (status == CURED_OK) {
        const void *data = cured_call_partial(call, &bytes);
        const cured_bytes part = {data, bytes};
        status = cured_partial_merge(&part, 1, merged, &merged_bytes, NULL);
    }
    cured_call_free(call);
    if (status == CURED_OK) status = cured_partial_finish(merged, merged_bytes, &sum, 1, NULL, &values, NULL);
    if (status != CURED_OK) return status;
    NEED(cured_value_uint64(cured_values_get(values, 0), &got) == CURED_OK && got == sum_of(0, 1000));
    cured_values_free(values);
    return CURED_OK;
}

/* Two parts by key, here: made, merged and finished. */
static cured_status by_key(cured_conn *conn) {
    static const uint8_t key[1000] = {2, 0, 2};
    const cured_keys keys = {key, 1000, CURED_U8, 3, 1, false};
    cured_options o = once;
    cured_conn *here;
    cured_call *calls[2] = {NULL, NULL};
    cured_bytes parts[2];
    void *merged = NULL;
    size_t bytes = 0;
    uint64_t sums[3];
    void *const results[] = {sums};
    (void)conn;
    cured_status status = cured_connect("embedded:", NULL, &here, NULL);
    if (status != CURED_OK) return status;
    o.partial = true;
    o.keys = &keys;
    for (size_t i = 0; status == CURED_OK && i < 2; i++) {
        status = cured_reduce_buffer(here, CURED_U32, &sum, 1, numbers + i * 1000, 1000, &o, &calls[i], NULL);
        if (status == CURED_OK) status = cured_wait(calls[i], NULL);
        if (status == CURED_OK) parts[i].data = cured_call_partial(calls[i], &parts[i].bytes);
    }
    if (status == CURED_OK) status = cured_by_key_merge(parts, 2, &merged, &bytes, NULL);
    if (status == CURED_OK) status = cured_by_key_check(merged, bytes, NULL, NULL);
    if (status == CURED_OK) status = cured_by_key_finish(merged, bytes, &sum, 1, NULL, results, NULL, NULL);
    if (status == CURED_OK) {
        const uint64_t twos = sum_of(0, 1) + sum_of(2, 1) + sum_of(1000, 1) + sum_of(1002, 1);
        NEED(sums[1] == 0 && sums[2] == twos && sums[0] == sum_of(0, 2000) - twos);
    }
    cured_by_key_free(merged);
    for (size_t i = 0; i < 2; i++) cured_call_free(calls[i]);
    cured_close(here);
    return status;
}

static cured_status without_a_call(cured_conn *conn) {
    cured_values *values = NULL;
    uint64_t got = 0;
    (void)conn;
    cured_status status = cured_reduce_here(CURED_U32, &sum, 1, numbers, 1000, NULL, &values, NULL);
    if (status != CURED_OK) return status;
    NEED(cured_value_uint64(cured_values_get(values, 0), &got) == CURED_OK && got == sum_of(0, 1000));
    cured_values_free(values);
    return CURED_OK;
}

static const struct use {
    const char *name;
    cured_status (*run)(cured_conn *conn);
} uses[] = {{"ping", ping},
            {"small", small},
            {"without a value", without_value},
            {"info", info},
            {"stats", stats},
            {"slow log", slow_log},
            {"config", config},
            {"large", large},
            {"stream", stream},
            {"region", region},
            {"pieces", pieces},
            {"array", array},
            {"descriptor", descriptor},
            {"rows", rows},
            {"written", written},
            {"elements", elements},
            {"partials", partials},
            {"finish here", finish_here},
            {"by key", by_key},
            {"without a call", without_a_call}};
enum { USES = sizeof uses / sizeof uses[0], BRIEF = 3 /* the first few: a byte at a time, they still end soon */ };

static cured_status use_once(const struct use *use) {
    cured_conn *conn;
    cured_status status = cured_connect(served.address, NULL, &conn, NULL);
    if (status == CURED_OK) status = use->run(conn);
    cured_close(conn);
    return status;
}

static void check_status(const struct use *use, cured_status status, const char *what, uint64_t n) {
    if (status != CURED_OK && status != CURED_RESOURCE_EXHAUSTED && status != CURED_UNAVAILABLE)
        fail("%s, %s %llu: %s", use->name, what, (unsigned long long)n, cured_status_name(status));
}

static void every_site(fault_kind kind, const char *what) {
    unsigned total = 0, refused = 0, open_before = descriptors_open();
    for (size_t i = 0; i < USES; i++) {
        NEED(use_once(&uses[i]) == CURED_OK);
        for (uint64_t n = 1;; n++) {
            NEED(n < MOST_SITES);
            fault_arm(kind, n);
            cured_status status = use_once(&uses[i]);
            uint64_t fired = fault_fired(kind);
            fault_arm(kind, 0);
            check_status(&uses[i], status, what, n);
            if (fired == 0) break;
            total++;
            refused += status != CURED_OK;
            NEED(descriptors_open() == open_before);
            NEED(use_once(&uses[i]) == CURED_OK);
        }
    }
    printf("%u sites of %s failed, %u uses were refused\n", total, what, refused);
    NEED(total > 0);
}

/* Whatever a call of the kernel leaves undone is done by the next: nothing fails. */
static void storms(void) {
    fault_page *page = fault_orders();
    static const uint64_t storms[][3] = {{2, 0, 0}, {3, 2, 0}, {0, 3, 0}, {0, 0, 1000}, {3, 2, 7}};
    for (size_t i = 0; i < sizeof storms / sizeof storms[0]; i++) {
        page->eintr_every = storms[i][0];
        page->eagain_every = storms[i][1];
        page->most_bytes = storms[i][2];
        for (size_t use = 0; use < USES; use++) {
            if (storms[i][2] == 7 && use >= BRIEF) continue;
            if (use_once(&uses[use]) != CURED_OK) fail("%s in storm %zu", uses[use].name, i);
        }
    }
    page->eintr_every = page->eagain_every = page->most_bytes = 0;
    printf("%llu calls: %llu ended with EINTR, %llu with EAGAIN, %llu were cut short\n",
           (unsigned long long)page->calls, (unsigned long long)page->eintrs, (unsigned long long)page->eagains,
           (unsigned long long)page->shorts);
    NEED(page->eintrs > 100 && page->eagains > 100 && page->shorts > 100);
}

int main(void) {
    once.retries = 0;
    once.timeout_ms = 60000;
    numbers = malloc(COUNT * sizeof *numbers);
    NEED(numbers != NULL);
    for (uint32_t i = 0; i < COUNT; i++) numbers[i] = i * 2654435761u;
    memory = memfd_create("numbers", MFD_CLOEXEC);
    NEED(write(memory, numbers, COUNT * sizeof *numbers) == (ssize_t)(COUNT * sizeof *numbers));
    daemon_start(&served);
    every_site(FAULT_ALLOCATION, "allocation");
    every_site(FAULT_MAPPING, "mapping");
    every_site(FAULT_DESCRIPTOR, "descriptor");
    every_site(FAULT_SPACE, "space");
    storms();
    daemon_stop(&served);
    close(memory);
    free(numbers);
    return 0;
}
