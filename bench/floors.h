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
#include <sys/types.h>

#include "bench/rows.h"
#include "proto/frame.h"
#include "proto/wire.h"

typedef struct floors_options {
    int rounds;
    double seconds; /* of one side of one round of the small rows */
    uint64_t stream_bytes, file_bytes, device_bytes, shared_bytes;
    const char *daemon, *client, *dir, *only, *isa;
    const char *spin_us; /* of the daemon; NULL: as it is by default */
    const char *backend; /* of the daemon; NULL: as it is by default */
    const char *workers; /* the daemon's; "0": as many as it takes by itself; NULL: one */
    int server_core, client_core;
    bench_table *table;
    char socket[96]; /* the daemon's; floors use the same name with ".floor" */
} floors_options;

/* One row: the daemon is the first contestant, and its floor the second. */
typedef struct floors_row {
    const char *name, *unit, *floor_name; /* floor_name: NULL: there is none */
    bool less_is_better;
    double target;  /* of ours against floor (the other way round where less is better), or, without a floor, a limit */
    int rounds;     /* 0: as the options say */
    uint64_t bytes; /* not 0: measure gives the seconds for so many, of which GB/s are made */
    bench_measure measure;
    void *context;
} floors_row;

/* Measures the row, the order changing every round, and prints it. False: a wrong answer or an error, already reported. */
bool floors_run(const floors_options *options, const floors_row *row);
/* The same, if it is asked for, of a daemon on that core (negative: any) that this row alone has. open: what the context wants of it first;
 * close: also after a failure. */
bool floors_run_alone(const floors_options *options, const floors_row *row, int core, bool (*open)(void *context),
                      void (*close)(void *context));

/* floors_server.c: what stands in the options before they are read; and what is done afterwards: the socket gets its name. */
void floors_defaults(floors_options *options);
void floors_begin(floors_options *options);
/* The daemon, on core (negative: any); answers connections when this returns. */
pid_t floors_daemon_start(const floors_options *options, int core);
/* Floors, each a process of its own on core, ready when this returns. */
pid_t floors_echo_start(const floors_options *options, int core);
pid_t floors_sink_start(const floors_options *options, int core);
void floors_stop(pid_t pid);
/* Keeps this process on its core from now on, but not the servers that it starts. */
void floors_pin_client(const floors_options *options);
/* A connection to the daemon that has said HELLO and read WELCOME, or to the floor; -1 on failure (reported). */
int floors_connect(const floors_options *options, bool floor);
/* Whole reads and writes on a blocking socket. */
bool floors_write(int fd, const void *bytes, size_t n);
bool floors_read(int fd, void *bytes, size_t n);
/* Sends bytes, with a descriptor where there is one. */
bool floors_send(int fd, const void *bytes, size_t n, int passed);
/* The frame of a call, which fits; its bytes. A reduction is the sum of f32. */
size_t floors_call(uint8_t *out, size_t cap, uint32_t stream, cr_wire_call *call);
/* The next frame's payload. False: it is of another type or longer, or the connection ended. */
bool floors_receive(int fd, cr_frame_type type, void *payload, size_t cap, uint32_t *length);

/* Rows. Each returns false after a wrong answer or an error, which it has reported. */
bool floors_small_rows(const floors_options *options);
bool floors_stream_rows(const floors_options *options);
bool floors_file_rows(const floors_options *options);
bool floors_region_rows(const floors_options *options);
bool floors_shared_rows(const floors_options *options);
bool floors_devices_rows(const floors_options *options);
bool floors_device_rows(const floors_options *options); /* says so where there is no GPU */
bool floors_axis_rows(const floors_options *options);   /* the same */

#endif
