/* killed_client: makes calls of every kind, many in flight, at a daemon that is killed and started again meanwhile
 * (test_killed.py). Each call must end, with the right bits or with a status that a lost daemon explains.
 *
 *   killed_client ADDRESS CALLS SEED
 *
 * It prints "done N" now and then, and at the end how many calls were right, and how many had a status.
 * Thread: one. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cured/cured.h"
#include "tests/fault/daemon.h"

enum { COUNT = 60000, WINDOW = 24, REPORT = 250, TIMEOUT_MS = 60000 };

static uint32_t numbers[COUNT];
static uint64_t sums[COUNT + 1]; /* of the first so many */
static uint64_t state;

static const cured_op sum = CURED_OP_SUM;

struct slot {
    cured_call *call;
    uint64_t right; /* the sum; of rows: that of each */
    size_t rows, from, each;
};

static uint64_t next(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static cured_status start(cured_conn *conn, cured_region *region, int memory, struct slot *s) {
    cured_options o = CURED_OPTIONS_INIT;
    size_t small = next(8) != 0 ? 500 : COUNT, count = 4 * (1 + next(small / 4)), from = next(COUNT - count + 1);
    const cured_axis axis = {4, count / 4, 1};
    cured_status status;
    o.timeout_ms = TIMEOUT_MS;
    *s = (struct slot){.right = sums[from + count] - sums[from]};
    switch (next(8)) {
        case 0:
            return cured_ping(conn, &o, &s->call, NULL);
        case 1:
            status = cured_reduce_stream_begin(conn, CURED_U32, &sum, 1, CURED_UNKNOWN_LENGTH, &o, &s->call, NULL);
            if (status == CURED_OK && !cured_call_done(s->call)) {
                cured_stream_write(s->call, numbers + from, count * 4, NULL);
                cured_stream_end(s->call, NULL);
            }
            return status;
        case 2:
            return cured_reduce_fd(conn, CURED_U32, &sum, 1, memory, from * 4, count, &o, &s->call, NULL);
        case 3:
        case 4:
            return cured_region_reduce(region, CURED_U32, &sum, 1, from * 4, count, &o, &s->call, NULL);
        case 5:
            o.axis = &axis;
            s->rows = 4;
            s->from = from;
            s->each = count / 4;
            break;
        default:
            break;
    }
    return cured_reduce_buffer(conn, CURED_U32, &sum, 1, numbers + from, count, &o, &s->call, NULL);
}

static bool is_right(const struct slot *s) {
    uint64_t got;
    const uint64_t *rows = cured_call_array(s->call, 0, NULL, NULL);
    for (size_t i = 0; i < s->rows; i++) {
        size_t from = s->from + i * s->each;
        if (rows == NULL || rows[i] != sums[from + s->each] - sums[from]) return false;
    }
    const cured_value *value = cured_call_value(s->call, 0);
    return value == NULL || (cured_value_uint64(value, &got) == CURED_OK && got == s->right);
}

int main(int argc, char **argv) {
    unsigned long right = 0, statuses[17] = {0}, done = 0, started = 0;
    struct slot window[WINDOW];
    cured_conn *conn;
    cured_region *region;
    cured_error error;
    NEED(argc == 4);
    unsigned long wanted = strtoul(argv[2], NULL, 10);
    state = strtoul(argv[3], NULL, 10) | 1;
    for (size_t i = 0; i < COUNT; i++) sums[i + 1] = sums[i] + (numbers[i] = (uint32_t)(i * 2654435761u));
    int memory = memfd_create("numbers", MFD_CLOEXEC);
    NEED(write(memory, numbers, sizeof numbers) == sizeof numbers);
    NEED(cured_connect(argv[1], NULL, &conn, &error) == CURED_OK);
    NEED(cured_region_fd(conn, memory, &region, &error) == CURED_OK);
    while (done < wanted) {
        while (started < wanted && started - done < WINDOW)
            NEED(start(conn, region, memory, &window[started++ % WINDOW]) == CURED_OK);
        struct slot *s = &window[done % WINDOW];
        cured_status status = cured_wait(s->call, &error);
        if (status == CURED_OK && !is_right(s)) fail("call %lu: a wrong answer", done);
        if (status == CURED_OK) right++;
        if (status != CURED_OK && status != CURED_UNAVAILABLE && status != CURED_DEADLINE_EXCEEDED &&
            status != CURED_RESOURCE_EXHAUSTED)
            fail("call %lu: %s: %s", done, cured_status_name(status), error.text);
        statuses[status]++;
        cured_call_free(s->call);
        if (status == CURED_UNAVAILABLE) poll(NULL, 0, (int)error.retry_after_ms); /* as it is advised */
        if (++done % REPORT == 0) printf("done %lu\n", done), fflush(stdout);
    }
    cured_region_free(region);
    cured_close(conn);
    close(memory);
    printf("right %lu unavailable %lu late %lu exhausted %lu\n", right, statuses[CURED_UNAVAILABLE],
           statuses[CURED_DEADLINE_EXCEEDED], statuses[CURED_RESOURCE_EXHAUSTED]);
    return 0;
}
