/* Quotas of control groups, of both versions, from trees of files like those of /proc and /sys. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cores.h"
#include "tests/unit/check_main.h"

static char root[64];
static size_t kernel_cores, own_cores; /* of the machine that sched_getaffinity makes believe */

/* As Linux': a set that is too small for all cores of the machine is turned away. */
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set) {
    ck_assert_int_eq(pid, 0);
    if (bytes * 8 < kernel_cores) {
        errno = EINVAL;
        return -1;
    }
    CPU_ZERO_S(bytes, set);
    for (size_t i = 0; i < own_cores; i++) CPU_SET_S(kernel_cores - 1 - i, bytes, set);
    return 0;
}

/* The file below root, and the folders on its way. */
static void put(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(full, 0700);
        *at = '/';
    }
    FILE *f = fopen(full, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static void setup(void) {
    snprintf(root, sizeof root, "/tmp/cured-cores-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void teardown(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(no_files_mean_no_quota) { ck_assert_uint_eq(cr_cores_quota(root), 0); }
END_TEST

START_TEST(version_2) {
    static const struct {
        const char *max;
        uint32_t cores;
    } cases[] = {{"max 100000\n", 0},
                 {"200000 100000\n", 2},
                 {"150000 100000\n", 2},
                 {"1000 100000\n", 1},
                 {"400000 50000\n", 8},
                 {"-1 100000\n", 0},
                 {"100000 0\n", 0},
                 {"", 0},
                 {"5\n", 0},
                 {"what 7\n", 0},
                 {"9223372036854775807 1\n", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("/proc/self/cgroup", "0::/\n");
        put("/sys/fs/cgroup/cpu.max", cases[i].max);
        ck_assert_msg(cr_cores_quota(root) == cases[i].cores, "%s: %u", cases[i].max, cr_cores_quota(root));
    }
}
END_TEST

/* The least of a group and of all that it lies in. */
START_TEST(the_groups_around_it_count) {
    put("/proc/self/cgroup", "0::/a.slice/b.service\n");
    put("/sys/fs/cgroup/a.slice/b.service/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/a.slice/cpu.max", "300000 100000\n");
    ck_assert_uint_eq(cr_cores_quota(root), 3);
    put("/sys/fs/cgroup/a.slice/b.service/cpu.max", "800000 100000\n");
    ck_assert_uint_eq(cr_cores_quota(root), 3);
    put("/sys/fs/cgroup/a.slice/b.service/cpu.max", "100000 100000\n");
    ck_assert_uint_eq(cr_cores_quota(root), 1);
}
END_TEST

/* In a container the path may be the host's, while the tree shows the container's group as its root. */
START_TEST(a_container_sees_its_own_root) {
    put("/proc/self/cgroup", "0::/docker/0123\n");
    put("/sys/fs/cgroup/cpu.max", "250000 100000\n");
    ck_assert_uint_eq(cr_cores_quota(root), 3);
}
END_TEST

START_TEST(version_1) {
    put("/proc/self/cgroup", "4:memory:/m\n3:cpuset,cpuacct:/s\n2:cpu,cpuacct:/kubepods/pod1\n1:name=systemd:/\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    ck_assert_uint_eq(cr_cores_quota(root), 0);
    put("/sys/fs/cgroup/cpu/kubepods/pod1/cpu.cfs_quota_us", "50000\n");
    put("/sys/fs/cgroup/cpu/kubepods/pod1/cpu.cfs_period_us", "100000\n");
    ck_assert_uint_eq(cr_cores_quota(root), 1);
    put("/sys/fs/cgroup/cpu/m/cpu.cfs_quota_us", "10\n");
    ck_assert_uint_eq(cr_cores_quota(root), 1);
}
END_TEST

START_TEST(broken_lines_are_passed_over) {
    char *line = malloc(20000);
    memset(line, 'x', 19999);
    line[19999] = '\0';
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    put("/proc/self/cgroup", line);
    ck_assert_uint_eq(cr_cores_quota(root), 0);
    put("/proc/self/cgroup", "\n:\n::\n0::/\n");
    ck_assert_uint_eq(cr_cores_quota(root), 2);
    free(line);
}
END_TEST

START_TEST(machines_of_any_size) {
    static const size_t sizes[][2] = {{1, 1}, {64, 2}, {1024, 1024}, {1025, 5}, {8192, 2000}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        kernel_cores = sizes[i][0];
        own_cores = sizes[i][1];
        const uint32_t quota = cr_cores_quota("");
        ck_assert_uint_eq(cr_cores(), quota && quota < own_cores ? quota : own_cores);
    }
}
END_TEST

START_TEST(there_is_a_core) {
    kernel_cores = SIZE_MAX;
    ck_assert_uint_eq(cr_cores(), 1);
}
END_TEST

CR_CHECK_MAIN("base/cores") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, no_files_mean_no_quota);
    tcase_add_test(tc, version_2);
    tcase_add_test(tc, the_groups_around_it_count);
    tcase_add_test(tc, a_container_sees_its_own_root);
    tcase_add_test(tc, version_1);
    tcase_add_test(tc, broken_lines_are_passed_over);
    tcase_add_test(tc, machines_of_any_size);
    tcase_add_test(tc, there_is_a_core);
}
