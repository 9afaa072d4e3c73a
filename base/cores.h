/* cores: how many cores this process may use at once. Beside its affinity that is the quota of its control groups: what
 * `docker run --cpus`, a limit of Kubernetes or CPUQuota= of systemd set. More threads than that are stopped for the rest of each
 * 100 ms, all of them together.
 *
 * Source: cgroups(7) and Linux' Documentation/admin-guide/cgroup-v2.rst, cpu.max. Thread: any. Owner: nobody. */
#ifndef CURED_BASE_CORES_H
#define CURED_BASE_CORES_H

#include <stdint.h>

/* At least 1. Reads a few files of /proc and /sys. */
uint32_t cr_cores(void);
/* The quota in cores, rounded up, by the files below root ("": the host's). 0: there is none. */
uint32_t cr_cores_quota(const char *root);

#endif
