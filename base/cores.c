/* cores: affinity and quotas. Thread: any. Owner: nobody. */
#include "base/cores.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, MOST_CORES = 1024 * 1024 };

static uint32_t smaller(uint32_t quota, uint32_t other) { return quota && (!other || quota < other) ? quota : other; }

/* quota microseconds of each period; rounded up. */
static uint32_t in_cores(long long quota, long long period) {
    if (quota <= 0 || period <= 0) return 0;
    const long long cores = (quota - 1) / period + 1;
    return cores < UINT32_MAX ? (uint32_t)cores : 0;
}

/* The numbers of the file base/group/name; "max" and what cannot be read are no numbers. */
static int read_numbers(const char *base, const char *group, const char *name, long long *a, long long *b) {
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s%s/%s", base, group, name) >= (int)sizeof path) return 0;
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    char line[64] = "", *end = line;
    if (!fgets(line, sizeof line, f)) line[0] = '\0';
    fclose(f);
    *a = strtoll(line, &end, 10);
    if (end == line) return 0;
    char *second = end;
    *b = strtoll(second, &end, 10);
    return end == second ? 1 : 2;
}

static uint32_t quota_of(const char *base, const char *group) {
    long long quota, period, ignored;
    if (read_numbers(base, group, "cpu.max", &quota, &period) == 2) return in_cores(quota, period);
    if (read_numbers(base, group, "cpu.cfs_quota_us", &quota, &ignored) &&
        read_numbers(base, group, "cpu.cfs_period_us", &period, &ignored))
        return in_cores(quota, period);
    return 0;
}

/* The least of a group and of those that it lies in. In a container its path may be the host's, and then only the root is there. */
static uint32_t least_quota(const char *base, char *group) {
    uint32_t least = 0;
    for (char *slash = group; slash; *slash = '\0') {
        least = smaller(quota_of(base, group), least);
        slash = strrchr(group, '/');
        if (!slash) break;
    }
    return least;
}

/* Whether a list of version 1's controllers, as "cpu,cpuacct", has the one that bounds time. */
static bool bounds_time(const char *controllers) {
    for (const char *at = controllers; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || at[3] == '\0')) return true;
    return false;
}

uint32_t cr_cores_quota(const char *root) {
    char base[256], line[PATH_BYTES];
    uint32_t least = 0;
    snprintf(base, sizeof base, "%s/proc/self/cgroup", root);
    FILE *f = fopen(base, "re");
    if (!f) return 0;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        controllers++;
        if (strcmp(group, "/") == 0) *group = '\0';
        if (*controllers && !bounds_time(controllers)) continue;
        snprintf(base, sizeof base, "%s/sys/fs/cgroup%s", root, *controllers ? "/cpu" : "");
        least = smaller(least_quota(base, group), least);
    }
    fclose(f);
    return least;
}

/* Linux turns a set away that has no room for every core there could be, and does not say how many that are. */
static uint32_t affinity(void) {
    uint32_t count = 0;
    bool too_small = true;
    for (size_t cores = CPU_SETSIZE; too_small && cores <= MOST_CORES; cores *= 2) {
        cpu_set_t *set = CPU_ALLOC(cores);
        if (!set) break;
        const int failed = sched_getaffinity(0, CPU_ALLOC_SIZE(cores), set);
        too_small = failed && errno == EINVAL;
        if (!failed) count = (uint32_t)CPU_COUNT_S(CPU_ALLOC_SIZE(cores), set);
        CPU_FREE(set);
    }
    return count ? count : 1;
}

uint32_t cr_cores(void) {
    const uint32_t own = affinity();
    const uint32_t quota = cr_cores_quota("");
    return quota && quota < own ? quota : own;
}
