/* process: getrusage and /proc/self. Thread: any. Owner: see process.h. */
#include "server/stats/process.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { COUNT_MOST = 2000 }; /* entries of /proc/self/fd that are read, at some 0.2 us each */

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

double cr_process_cpu_s(void) {
    struct rusage used;
    return getrusage(RUSAGE_SELF, &used) == 0 ? seconds(used.ru_utime) + seconds(used.ru_stime) : 0;
}

double cr_process_clock_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

cr_process_bytes cr_process_memory(void) {
    unsigned long long pages = 0, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (!statm) return (cr_process_bytes){0};
    if (fscanf(statm, "%llu %llu", &pages, &resident) != 2) pages = resident = 0;
    fclose(statm);
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return (cr_process_bytes){.resident = resident * page, .virtual = pages * page};
}

uint64_t cr_process_open_files(uint64_t expected) {
    struct stat status;
    uint64_t count = 0;
    if (stat("/proc/self/fd", &status) == 0 && status.st_size > 0) return (uint64_t)status.st_size;
    if (expected > COUNT_MOST) return 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) return 0;
    for (const struct dirent *entry; count <= COUNT_MOST && (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count <= COUNT_MOST ? count - 1 : 0; /* without the folder itself */
}

uint64_t cr_process_most_files(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}
