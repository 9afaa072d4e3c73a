/* neighbours: `cured-bench neighbours`: what one client's small jobs take beside another client that asks for as much as it
 * can, and what that one gets meanwhile. With --before each round measures two daemons, in turn.
 *
 * The greedy client is a process of its own. It keeps 256 calls in flight on each of its connections; each is of 4 MiB. The
 * probes have one call in flight. Every answer of either is checked.
 *
 * Thread: main, and the greedy process. Owner: everything here. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/floors.h"
#include "bench/options.h"

enum {
    JOB_BYTES = 4 * 1024 * 1024,
    WINDOW = 256, /* calls in flight on one connection */
    CONNS_MOST = 64,
    SMALL_BYTES = 4 * 1024,
    STREAM_BYTES = 64 * 1024,
    REGION = 7,
    SAMPLES_MOST = 1 << 18,
    WARM_US = 500 * 1000,
};

typedef enum way { INLINE, DESCRIPTOR, KEPT, STREAM } way;

typedef struct greed {
    const char *name;
    int conns; /* 0: nobody is greedy */
    way way;
    bool sealed, on_disk;
} greed;

static const greed greeds[] = {{"nobody", 0, KEPT, false, false},
                               {"15 x 256 memfd", 15, DESCRIPTOR, false, false},
                               {"15 x 256 sealed region", 15, KEPT, true, false},
                               {"15 x 256 regular file", 15, DESCRIPTOR, false, true},
                               {"1 x 256 memfd", 1, DESCRIPTOR, false, false}};
enum { GREEDS = sizeof greeds / sizeof greeds[0], PROBES = 4 };

static const char *const probe_names[PROBES] = {"4 KiB inline", "4 KiB descriptor", "4 KiB region", "64 KiB stream"};
static const way probe_ways[PROBES] = {INLINE, DESCRIPTOR, KEPT, STREAM};

typedef struct samples {
    double *seconds;
    size_t count;
} samples;

typedef struct neighbours {
    floors_options load;
    const char *daemons[2]; /* before (or NULL), now */
    int rounds;
    double seconds; /* of the greedy client alone, and again beside the probes */
    int user;       /* of the greedy client; negative: this one */
    samples took[2][GREEDS][PROBES];
    int entries[2 * GREEDS];    /* contestants: 2 · greed + daemon */
    _Atomic uint64_t *answered; /* jobs of the greedy client; shared with it. UINT64_MAX: it has failed */
} neighbours;

/* One connection of either client, which asks for the same again and again. */
typedef struct asker {
    int socket, fd; /* fd: the descriptor to pass; -1: none */
    uint32_t stream;
    uint8_t request[CR_FRAME_HEADER_BYTES * 2 + 256 + STREAM_BYTES];
    size_t request_bytes, data_at; /* data_at: of the DATA frame; 0: none */
    double sum;
    uint8_t in[64 * 1024];
    size_t held;
} asker;

static bool failed(const char *what) {
    fprintf(stderr, "cured-bench: %s\n", what);
    return false;
}

static void fill(float *data, size_t n, double *sum) {
    *sum = 0;
    for (size_t i = 0; i < n; i++) *sum += (double)(data[i] = (float)(i % 251) * 0.5f - 40);
}

/* A file of bytes; its sum. -1: failed. */
static int make_file(const char *dir, bool on_disk, bool sealed, size_t bytes, double *sum) {
    int fd = on_disk ? open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)
                     : memfd_create("neighbours", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    float *data = malloc(bytes);
    bool good = fd >= 0 && data;
    if (good) fill(data, bytes / sizeof *data, sum);
    good = good && floors_write(fd, data, bytes) && (!sealed || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    free(data);
    if (good) return fd;
    failed("cannot make a file");
    close(fd);
    return -1;
}

static bool register_region(asker *a, int fd) {
    cr_wire_call call = {.kind = CR_CALL_REGISTER, .region = {.id = REGION, .kind = CR_SHARED_DESCRIPTOR}};
    uint8_t bytes[CR_FRAME_HEADER_BYTES + 64];
    uint32_t length;
    const size_t n = floors_call(bytes, sizeof bytes, ++a->stream, &call);
    if (!floors_send(a->socket, bytes, n, fd)) return failed("cannot register");
    return floors_receive(a->socket, CR_FRAME_RESULT, bytes, sizeof bytes, &length) ||
           failed("no region was registered");
}

/* The request, but for its stream's number. */
static void make_request(asker *a, way how, size_t bytes) {
    const bool streams = how == INLINE || how == STREAM;
    cr_wire_call call = {.kind = CR_CALL_REDUCE,
                         .reduce = {.source = streams       ? CR_SOURCE_STREAM
                                              : how == KEPT ? CR_SOURCE_REGION
                                                            : CR_SOURCE_DESCRIPTOR,
                                    .region = how == KEPT ? REGION : 0,
                                    .length_known = true,
                                    .length = streams ? bytes : bytes / sizeof(float)}};
    a->request_bytes = floors_call(a->request, CR_FRAME_HEADER_BYTES + 256, 1, &call);
    a->data_at = 0;
    if (!streams) return;
    cr_frame data = {.type = CR_FRAME_DATA, .flags = CR_FLAG_END, .length = (uint32_t)bytes, .stream = 1};
    float numbers[STREAM_BYTES / sizeof(float)];
    a->data_at = a->request_bytes;
    cr_frame_put(a->request + a->data_at, &data);
    fill(numbers, bytes / sizeof(float), &a->sum);
    memcpy(a->request + a->data_at + CR_FRAME_HEADER_BYTES, numbers, bytes);
    a->request_bytes = a->data_at + CR_FRAME_HEADER_BYTES + bytes;
}

/* Connects, and registers the file where the way needs that. The sum is of the file. */
static bool open_asker(asker *a, const floors_options *o, way how, int fd, size_t bytes, double sum) {
    *a = (asker){.socket = floors_connect(o, false), .fd = how == DESCRIPTOR ? fd : -1, .sum = sum};
    if (a->socket < 0 || (how == KEPT && !register_region(a, fd))) return false;
    make_request(a, how, bytes);
    return true;
}

static bool ask(asker *a) {
    const uint32_t stream = ++a->stream;
    memcpy(a->request + 8, &stream, sizeof stream);
    if (a->data_at) memcpy(a->request + a->data_at + 8, &stream, sizeof stream);
    return floors_send(a->socket, a->request, a->request_bytes, a->fd) || failed("the connection ended");
}

static bool is_right(const asker *a, const uint8_t *payload, uint32_t length) {
    static cr_wire_result result;
    cr_error error;
    double sum;
    if (cr_wire_unpack_result(payload, length, &result, &error) != CR_OK) return failed(error.text);
    memcpy(&sum, result.results[0].value, sizeof sum);
    return (result.results[0].status == 0 && sum == a->sum) || failed("a sum is wrong");
}

/* One read. The right answers in it; -1: something is wrong. */
static int take_answers(asker *a) {
    ssize_t n = read(a->socket, a->in + a->held, sizeof a->in - a->held);
    int count = 0;
    size_t at = 0;
    if (n <= 0) return failed("the connection ended") - 1;
    a->held += (size_t)n;
    while (a->held - at >= CR_FRAME_HEADER_BYTES) {
        const uint8_t *p = a->in + at, *payload = p + CR_FRAME_HEADER_BYTES;
        uint32_t length;
        memcpy(&length, p + 12, sizeof length);
        if (a->held - at < CR_FRAME_HEADER_BYTES + length) break;
        if (p[3] == CR_FRAME_STATUS) return failed("a call was answered with a status") - 1;
        if (p[3] == CR_FRAME_RESULT && !is_right(a, payload, length)) return -1;
        count += p[3] == CR_FRAME_RESULT;
        at += CR_FRAME_HEADER_BYTES + length;
    }
    memmove(a->in, a->in + at, a->held - at);
    a->held -= at;
    return count;
}

/* The greedy client: each answer is followed by a request. Only its end is a mistake. */
static void be_greedy(const neighbours *b, const greed *g) {
    static asker askers[CONNS_MOST];
    struct epoll_event events[CONNS_MOST];
    double sum = 0;
    int poller = epoll_create1(EPOLL_CLOEXEC), fd = make_file(b->load.dir, g->on_disk, g->sealed, JOB_BYTES, &sum);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fd < 0 || (b->user >= 0 && setuid((uid_t)b->user) != 0)) return;
    for (int i = 0; i < g->conns; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &askers[i]};
        if (!open_asker(&askers[i], &b->load, g->way, fd, JOB_BYTES, sum)) return;
        if (epoll_ctl(poller, EPOLL_CTL_ADD, askers[i].socket, &event) != 0) return;
        for (int k = 0; k < WINDOW; k++)
            if (!ask(&askers[i])) return;
    }
    for (;;) {
        int ready = epoll_wait(poller, events, CONNS_MOST, -1);
        for (int i = 0; i < ready; i++) {
            int count = take_answers(events[i].data.ptr);
            if (count < 0) return;
            atomic_fetch_add(b->answered, (uint64_t)count);
            for (; count; count--)
                if (!ask(events[i].data.ptr)) return;
        }
    }
}

/* Bytes that the daemon has folded. Jobs may all be over at once, so they tell too little. False: it does not say. */
static bool folded_bytes(const floors_options *o, double *bytes) {
    static cr_wire_info info;
    static uint8_t in[CR_HEAD_MAX_BYTES];
    cr_wire_call call = {.kind = CR_CALL_INFO};
    uint8_t out[CR_FRAME_HEADER_BYTES + 64];
    uint32_t length = 0;
    cr_error error;
    int fd = floors_connect(o, false);
    bool good = fd >= 0 && floors_write(fd, out, floors_call(out, sizeof out, 1, &call)) &&
                floors_receive(fd, CR_FRAME_RESULT, in, sizeof in, &length) &&
                cr_wire_unpack_info(in, length, &info, &error) == CR_OK;
    if (fd >= 0) close(fd);
    for (uint32_t i = 0; good && i < info.counter_count; i++)
        if (strcmp(info.counters[i].name, "input_bytes_total") == 0) *bytes = (double)info.counters[i].value;
    return good || failed("the daemon does not say what it has folded");
}

static pid_t start_greedy(neighbours *b, const greed *g) {
    atomic_store(b->answered, 0);
    if (!g->conns) return 0;
    pid_t pid = fork();
    if (pid == 0) {
        be_greedy(b, g);
        atomic_store(b->answered, UINT64_MAX);
        _exit(1);
    }
    for (int i = 0; i < 1000 && !atomic_load(b->answered); i++) usleep(10000);
    usleep(WARM_US);
    return pid;
}

/* Each probe in turn, until the time is over. */
static bool probe(neighbours *b, int which, int number) {
    static asker askers[PROBES];
    double sum = 0, until = bench_now() + b->seconds;
    int fd = make_file(b->load.dir, false, true, SMALL_BYTES, &sum);
    bool good = fd >= 0;
    for (int i = 0; i < PROBES && good; i++)
        good = open_asker(&askers[i], &b->load, probe_ways[i], fd, probe_ways[i] == STREAM ? STREAM_BYTES : SMALL_BYTES,
                          sum);
    while (good && bench_now() < until) {
        for (int i = 0; i < PROBES && good; i++) {
            samples *took = &b->took[which][number][i];
            double start = bench_now();
            int got = 0;
            good = ask(&askers[i]);
            while (good && !got) good = (got = take_answers(&askers[i])) >= 0;
            if (took->count < SAMPLES_MOST) took->seconds[took->count++] = bench_now() - start;
        }
        usleep(200);
    }
    for (int i = 0; i < PROBES; i++) close(askers[i].socket);
    close(fd);
    return good;
}

/* GB/s of the greedy client alone: the better a daemon serves the probes, the more time these take from it. */
static bool measure_rate(const neighbours *b, double *rate) {
    double before = 0, after = 0, start = bench_now();
    if (!folded_bytes(&b->load, &before)) return false;
    usleep((useconds_t)(b->seconds * 1e6));
    if (!folded_bytes(&b->load, &after)) return false;
    *rate = (after - before) / (bench_now() - start) / 1e9;
    return true;
}

/* GB/s of the greedy client, or 0 where there is none. */
static double measure(void *context, int contestant) {
    neighbours *b = context;
    const int which = b->entries[contestant] % 2, number = b->entries[contestant] / 2;
    double rate = 0;
    b->load.daemon = b->daemons[which];
    pid_t daemon = floors_daemon_start(&b->load, -1), greedy = daemon > 0 ? start_greedy(b, &greeds[number]) : -1;
    bool good = daemon > 0 && greedy >= 0 && (!greedy || measure_rate(b, &rate)) && probe(b, which, number);
    if (atomic_load(b->answered) == UINT64_MAX) good = failed("the greedy client failed");
    if (greedy > 0) {
        kill(greedy, SIGKILL);
        waitpid(greedy, NULL, 0);
    }
    floors_stop(daemon);
    return good ? rate : -1;
}

static void print_samples(samples *s) {
    if (s->count == 0) return;
    const double median = bench_median(s->seconds, s->count); /* sorts */
    printf("   %9.3f %9.3f %9.3f %7zu", median * 1e3, s->seconds[s->count * 99 / 100] * 1e3,
           s->seconds[s->count - 1] * 1e3, s->count);
}

/* The probes beside one greedy client, whose contestants begin at `first`. */
static void print_greed(neighbours *b, const bench_race *race, int first) {
    const int g = b->entries[first] / 2, daemons = b->daemons[0] ? 2 : 1;
    for (int p = 0; p < PROBES; p++) {
        printf("%-24s %-18s", greeds[g].name, probe_names[p]);
        for (int which = 2 - daemons; which < 2; which++) print_samples(&b->took[which][g][p]);
        printf("\n");
    }
    if (!greeds[g].conns) return;
    printf("%-24s %-18s   now %.2f GB/s", greeds[g].name, "greedy client",
           bench_race_of(race, first + daemons - 1).median);
    if (daemons == 2) {
        const bench_spread ratio = bench_race_ratio(race, first + 1, first);
        printf(", before %.2f; ratio of a round %.3f [%.3f-%.3f]", bench_race_of(race, first).median, ratio.median,
               ratio.least, ratio.most);
    }
    printf("\n");
}

static bool run(neighbours *b) {
    const int daemons = b->daemons[0] ? 2 : 1;
    bench_race race = {.rounds = b->rounds, .swap = true, .measure = measure, .context = b};
    for (int i = 0; i < 2 * GREEDS; i++)
        if (b->daemons[i % 2] && bench_wanted(b->load.only, greeds[i / 2].name)) b->entries[race.count++] = i;
    bool good = true;
    for (int i = 0; i < 2 * GREEDS * PROBES && good; i++) {
        samples *s = &b->took[i / GREEDS / PROBES][i / PROBES % GREEDS][i % PROBES];
        good = (s->seconds = malloc(SAMPLES_MOST * sizeof *s->seconds)) != NULL;
    }
    good = good && bench_race_run(&race);
    if (good)
        printf("%-24s %-18s   %s\n", "beside", "probe",
               daemons == 2 ? "ms before: p50, p99, most, calls; now: the same" : "ms: p50, p99, most, calls");
    for (int first = 0; good && first < race.count; first += daemons) print_greed(b, &race, first);
    bench_race_end(&race);
    return good;
}

int bench_neighbours(int argc, char **argv) {
    static neighbours b = {.rounds = 3, .seconds = 2, .user = -1};
    floors_defaults(&b.load);
    b.load.workers = "0";
    b.daemons[1] = b.load.daemon;
    const bench_option options[] = {
        {"daemon", BENCH_TEXT, &b.daemons[1], "PATH", .what = "the daemon (cured beside this program)"},
        {"before", BENCH_TEXT, &b.daemons[0], "PATH", .what = "another daemon, measured in turn with it"},
        {"rounds", BENCH_NUMBER, &b.rounds, "N", .what = "rounds (3)", .least = 1, .most = 64},
        {"seconds", BENCH_REAL, &b.seconds, "S", .what = "of the greedy client alone, and again beside the probes (2)",
         .least = 0.1, .most = 600},
        {"only", BENCH_TEXT, &b.load.only, "TEXT", .what = "loads whose name contains TEXT"},
        {"user", BENCH_NUMBER, &b.user, "UID", .what = "who the greedy client is (this user)", .least = 0,
         .most = 1 << 30},
        {"workers", BENCH_TEXT, &b.load.workers, "N", .what = "of each daemon; 0: as many as it takes by itself (0)"},
        {"dir", BENCH_TEXT, &b.load.dir, "DIR", .what = "for files and sockets; on a disk (TMPDIR, else /var/tmp)"},
    };
    const int code = bench_options(options, sizeof options / sizeof options[0],
                                   "Exit status: 0 when every answer was right, whatever the speed.", argc, argv);
    if (code >= 0) return code;
    floors_begin(&b.load);
    setenv("CURED_MAX_JOBS", "16384", 1); /* of 4,096 the rule leaves one user fewer than 15 · 256 */
    b.answered = mmap(NULL, sizeof *b.answered, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b.answered == MAP_FAILED) return 1;
    double loads[3] = {0};
    bench_table table = {0};
    getloadavg(loads, 3);
    bench_table_open(&table, argc, argv, NULL, NULL, 0);
    printf("%d rounds of %.1f s, load %.1f at the start\n", b.rounds, b.seconds, loads[0]);
    return run(&b) ? 0 : 1;
}
