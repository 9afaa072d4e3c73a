/* Origin: which descriptors' calls can be trusted to come back. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/memory/origin.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

START_TEST(memory_and_disk_files_are_local) {
    int memory = memory_file(), disk = disk_file(), root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert(cr_origin_is_local(memory));
    ck_assert(cr_origin_is_local(disk));
    ck_assert(cr_origin_is_local(root));
    close(memory);
    close(disk);
    close(root);
}
END_TEST

START_TEST(everything_else_is_foreign) {
    int ends[2], proc = open("/proc/self/status", O_RDONLY | O_CLOEXEC), sock = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert(!cr_origin_is_local(proc));
    ck_assert(!cr_origin_is_local(ends[0]));
    ck_assert(!cr_origin_is_local(sock));
    close(sock);
    ck_assert(!cr_origin_is_local(sock)); /* not open */
    ck_assert(!cr_origin_is_local(-1));
    close(proc);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(types_as_statfs_names_them) {
    static const long local[] = {0x01021994, 0xEF53, 0x58465342, 0x9123683E, 0x794c7630, 0x958458f6};
    static const long foreign[] = {0x65735546 /* fuse */, 0x6969 /* nfs */, 0xFF534D42 /* cifs */, 0x9fa0 /* proc */,
                                   0};
    for (size_t i = 0; i < sizeof local / sizeof *local; i++) ck_assert(cr_origin_type_is_local(local[i]));
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) ck_assert(!cr_origin_type_is_local(foreign[i]));
}
END_TEST

enum { THREADS = 4 };

static void *ask(void *argument) {
    for (int i = 0; i < 200; i++) ck_assert(cr_origin_is_local(*(int *)argument));
    return NULL;
}

START_TEST(many_threads_may_ask) {
    int disk = disk_file();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, ask, &disk);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    close(disk);
}
END_TEST

static char table_name[] = "/tmp/unit-mountinfo-XXXXXX";

static void write_table(const char *text) {
    int fd = mkostemp(table_name, O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    fill_file(fd, text, strlen(text));
    close(fd);
}

/* As it is seen in a plain chroot: the table lacks the mount that the root is a folder of. */
START_TEST(the_mount_of_the_root_is_known) {
    static const char *const tables[] = {"2147483646 1 0:5 / /proc rw - proc proc rw\n", "", "no table\n"};
    const char *folder = getenv("CURED_TEST_DIR");
    int disk = disk_file(), proc = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    write_table(tables[_i]);
    cr_origin_open_at(table_name, folder && *folder ? folder : "/var/tmp"); /* where disk_file() makes them */
    ck_assert(cr_origin_is_local(disk));
    ck_assert(!cr_origin_is_local(proc));
    cr_origin_open_at(table_name, "/proc"); /* a root that may hang */
    ck_assert(!cr_origin_is_local(disk));
    ck_assert(!cr_origin_is_local(proc));
    cr_origin_open_at(table_name, "/nonexistent");
    ck_assert(!cr_origin_is_local(disk));
    ck_assert(cr_origin_is_local(memory_file()));
    unlink(table_name);
    close(proc);
    close(disk);
}
END_TEST

/* A folder as the root, with nothing mounted there but /proc. Needs root; elsewhere there is nothing to test. */
START_TEST(a_plain_chroot) {
    const char *folder = getenv("CURED_TEST_DIR");
    char root[4096], inside[4200];
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        puts("skipped in part: no right to mount here");
        return;
    }
    int disk = disk_file();
    snprintf(root, sizeof root, "%s/root-XXXXXX", folder && *folder ? folder : "/var/tmp");
    ck_assert_ptr_nonnull(mkdtemp(root));
    int outside = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(inside, sizeof inside, "%s/proc", root);
    ck_assert_int_eq(mkdir(inside, 0755), 0);
    if (mount("proc", inside, "proc", 0, NULL) == 0) {
        ck_assert_int_eq(chroot(root), 0);
        ck_assert_int_eq(chdir("/"), 0);
        int file = open("/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600), proc = open("/proc/uptime", O_RDONLY | O_CLOEXEC);
        cr_origin_open();
        ck_assert(cr_origin_is_local(file));
        ck_assert(cr_origin_is_local(disk)); /* of the same mount, though outside */
        ck_assert(!cr_origin_is_local(proc));
        unlink("/file");
        close(file);
        close(proc);
        ck_assert_int_eq(fchdir(outside), 0); /* back: what looks on as a test ends wants a /proc */
        ck_assert_int_eq(chroot("."), 0);
        umount2(inside, MNT_DETACH); /* the table is open still */
    }
    ck_assert_int_eq(rmdir(inside), 0);
    ck_assert_int_eq(rmdir(root), 0);
    close(outside);
    close(disk);
}
END_TEST

/* Needs the right to mount in a namespace of its own; elsewhere there is nothing to test. */
START_TEST(a_new_mount_is_seen) {
    char path[] = "/tmp/unit-mount-XXXXXX", file[64];
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return;
    int disk = disk_file();
    ck_assert(cr_origin_is_local(disk)); /* the table is read */
    ck_assert_ptr_nonnull(mkdtemp(path));
    if (mount("unit", path, "ramfs", 0, NULL) == 0) {
        snprintf(file, sizeof file, "%s/f", path);
        int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        ck_assert(cr_origin_is_local(fd));
        close(fd);
        umount(path);
    }
    rmdir(path);
    close(disk);
}
END_TEST

CR_CHECK_MAIN("engine/origin") {
    tcase_add_test(tc, memory_and_disk_files_are_local);
    tcase_add_test(tc, everything_else_is_foreign);
    tcase_add_test(tc, types_as_statfs_names_them);
    tcase_add_test(tc, many_threads_may_ask);
    tcase_add_loop_test(tc, the_mount_of_the_root_is_known, 0, 3);
    tcase_add_test(tc, a_plain_chroot);
    tcase_add_test(tc, a_new_mount_is_seen);
}
