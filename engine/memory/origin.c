/* origin: a cached table of mounts, re-read when Linux says that it changed. Thread: any; one mutex. */
#include "engine/memory/origin.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

/* Name in mountinfo and magic of statfs(2), together: file systems whose calls end without anybody else's help. */
static const struct {
    const char *name;
    long magic;
} local_types[] = {
    {"tmpfs", 0x01021994},
    {"ramfs", (long)0x858458f6},
    {"ext2", 0xEF53},
    {"ext3", 0xEF53},
    {"ext4", 0xEF53},
    {"xfs", 0x58465342},
    {"btrfs", (long)0x9123683E},
    {"f2fs", (long)0xF2F52010},
    {"overlay", 0x794c7630},
    {"zfs", 0x2fc12fc1},
    {"hugetlbfs", (long)0x958458f6},
    {"squashfs", 0x73717368},
    {"erofs", (long)0xE0F5E1E2},
    {"devtmpfs", 0x01021994},
};

enum { LOCAL_TYPES = sizeof local_types / sizeof local_types[0] };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *table_path = "/proc/self/mountinfo", *root_path = "/";
static int mountinfo = -1;
static int *local_mounts;
static size_t local_count;
static int local_root = -1; /* mount of this process's root, where that is local */

bool cr_origin_type_is_local(long type) {
    for (size_t i = 0; i < LOCAL_TYPES; i++)
        if (local_types[i].magic == type) return true;
    return false;
}

static bool name_is_local(const char *name, size_t length) {
    for (size_t i = 0; i < LOCAL_TYPES; i++)
        if (strlen(local_types[i].name) == length && memcmp(local_types[i].name, name, length) == 0) return true;
    return false;
}

/* "36 35 98:0 / /mnt rw - ext4 /dev/root rw": the id comes first, the type after " - ". */
static void read_line(char *line) {
    char *type = strstr(line, " - ");
    if (!type) return;
    type += 3;
    if (!name_is_local(type, strcspn(type, " "))) return;
    int *more = realloc(local_mounts, (local_count + 1) * sizeof *more);
    if (!more) return; /* not in the table: foreign, which is slower and safe */
    local_mounts = more;
    local_mounts[local_count++] = (int)strtol(line, NULL, 10);
}

static void read_table(void) {
    FILE *table = fopen(table_path, "re");
    local_count = 0; /* an id of before may be another mount's by now */
    if (!table) {
        if (mountinfo >= 0) close(mountinfo); /* so that the next query tries again */
        mountinfo = -1;
        return;
    }
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, table) > 0) read_line(line);
    free(line);
    fclose(table);
}

/* Linux reports POLLPRI on an open mountinfo after a mount or unmount. */
static bool table_changed(void) {
    if (mountinfo < 0) {
        mountinfo = open(table_path, O_RDONLY | O_CLOEXEC);
        return true;
    }
    struct pollfd p = {.fd = mountinfo, .events = POLLPRI};
    return poll(&p, 1, 0) > 0;
}

static int mount_id(int descriptor) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", descriptor);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return -1;
    text[n] = 0;
    const char *line = strstr(text, "mnt_id:");
    return line ? (int)strtol(line + 7, NULL, 10) : -1;
}

/* A plain chroot's root is a folder of some mount, and such a mount is in no table that is seen from inside. No client
 * can make the daemon's own root hang, so that one is asked. It stays mounted for as long as this process lives, so its
 * id becomes nobody else's. */
static void look_at_root(void) {
    struct statfs fs;
    int root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) return;
    if (fstatfs(root, &fs) == 0 && cr_origin_type_is_local((long)fs.f_type)) local_root = mount_id(root);
    close(root);
}

/* With the mutex held. */
static void update(void) {
    if (mountinfo < 0) look_at_root();
    if (table_changed()) read_table();
}

void cr_origin_open(void) {
    pthread_mutex_lock(&mutex);
    update();
    pthread_mutex_unlock(&mutex);
}

void cr_origin_open_at(const char *table, const char *root) {
    pthread_mutex_lock(&mutex);
    table_path = table;
    root_path = root;
    if (mountinfo >= 0) close(mountinfo);
    mountinfo = local_root = -1;
    update();
    pthread_mutex_unlock(&mutex);
}

bool cr_origin_is_local(int descriptor) {
    if (fcntl(descriptor, F_GET_SEALS) >= 0) return true; /* shared memory of this Linux */
    int id = mount_id(descriptor);
    if (id < 0) return false;
    pthread_mutex_lock(&mutex);
    update();
    bool local = id == local_root;
    for (size_t i = 0; i < local_count && !local; i++) local = local_mounts[i] == id;
    pthread_mutex_unlock(&mutex);
    return local;
}
