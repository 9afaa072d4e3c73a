/* floors: what the files of `cured-bench floors` share: options, the table, the daemon under test, and floor servers.
 *
 * Every row measures the daemon and its floor in turn, round by round, with the same client code.
 *
 * Thread: main. Owner: floors.c owns options and rows. */
#ifndef CURED_BENCH_FLOORS_H
#define CURED_BENCH_FLOORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { FLOORS_ROUNDS_MAX = 64 };

typedef struct floors_options {
    int rounds;
    double seconds; /* of one side of one round of the small rows */
    uint64_t stream_bytes, file_bytes, device_bytes, shared_bytes;
    const char *daemon, *client, *dir, *only, *json, *isa;
    const char *spin_us; /* of the daemon; NULL: as it is by default */
    const char *backend; /* of the daemon; NULL: as it is by default */
    const char *workers; /* the daemon's; "0": as many as it takes by itself; NULL: one */
    int server_core, client_core;
    char socket[96]; /* the daemon's; floors use the same name with ".floor" */
} floors_options;

/* One line of the table. */
typedef struct floors_row {
    const char *name, *unit, *floor_name;
    bool less_is_better;
    double target; /* of ours against floor (the other way round where less is better), or, without a floor, a limit */
    bool has_floor;
    size_t rounds;
    double ours[FLOORS_ROUNDS_MAX], floor[FLOORS_ROUNDS_MAX];
} floors_row;

/* Runs measure once for the floor and once for the daemon per round, the order changing every round. False: a wrong answer
 * or an error, already reported. */
typedef double (*floors_measure)(void *context, bool floor); /* < 0: failed */
bool floors_rounds(floors_row *row, int rounds, floors_measure measure, void *context);

/* floors_server.c: the daemon, on core (negative: any); answers connections when this returns. */
pid_t floors_daemon_start(const floors_options *options, int core);
/* Floors, each a process of its own on core, ready when this returns. */
pid_t floors_echo_start(const floors_options *options, int core);
pid_t floors_sink_start(const floors_options *options, int core);
void floors_stop(pid_t pid);
/* A connection to the daemon that has said HELLO and read WELCOME, or to the floor; -1 on failure (reported). */
int floors_connect(const floors_options *options, bool floor);
/* Whole reads and writes on a blocking socket. */
bool floors_write(int fd, const void *bytes, size_t n);
bool floors_read(int fd, void *bytes, size_t n);

/* Rows. Each returns false after a wrong answer or an error, which it has reported. */
bool floors_small_rows(const floors_options *options, FILE *json);
bool floors_stream_rows(const floors_options *options, FILE *json);
bool floors_file_rows(const floors_options *options, FILE *json);
bool floors_region_rows(const floors_options *options, FILE *json);
bool floors_shared_rows(const floors_options *options, FILE *json);
bool floors_devices_rows(const floors_options *options, FILE *json);
bool floors_device_rows(const floors_options *options, FILE *json); /* says so where there is no GPU */
bool floors_axis_rows(const floors_options *options, FILE *json);   /* the same */
/* True when the row is asked for (--only). */
bool floors_wanted(const floors_options *options, const char *name);
void floors_print(floors_row *row, FILE *json);

#endif
