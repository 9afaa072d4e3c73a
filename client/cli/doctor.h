/* doctor: what `cured-client doctor` finds. Thread: one. Owner: the command owns the list. */
#ifndef CURED_CLIENT_CLI_DOCTOR_H
#define CURED_CLIENT_CLI_DOCTOR_H

#include <sys/types.h>

#include "client/cli/cli.h"

/* NOTE: nothing is wrong, but something is not there. WARN: works, and could be better. FAIL: does not work. */
typedef enum doctor_level { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_WARN, DOCTOR_FAIL } doctor_level;

typedef struct doctor_finding {
    const char *name; /* of the check */
    doctor_level level;
    char detail[256], fix[256]; /* fix: "" when there is nothing to do */
} doctor_finding;

enum { DOCTOR_MAX = 16 };

typedef struct doctor_report {
    bool without_gpu; /* the daemon has none: what device memory would want is no fault */
    size_t count;
    doctor_finding findings[DOCTOR_MAX];
} doctor_report;

/* Adds one finding; its fix is added by doctor_fix. */
void doctor_add(doctor_report *r, const char *name, doctor_level level, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* What to do about the last finding. */
void doctor_fix(doctor_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* doctor_host.c: this machine, as far as it concerns sharing memory with the daemon. daemon: its process here; 0: it is not
 * visible, or not on this machine. */
void doctor_check_shm(doctor_report *r);
void doctor_check_memlock(doctor_report *r, pid_t daemon);
void doctor_check_namespaces(doctor_report *r, pid_t daemon, bool same_machine);
void doctor_check_gpus(doctor_report *r);

#endif
