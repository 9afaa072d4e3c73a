/* doctor_host: /dev/shm, memlock, namespaces, GPUs and their driver, as this process sees them. No CUDA is linked: what the driver says
 * of itself under /proc is enough. CURED_DOCTOR_ROOT, for tests, is put before the paths of shared memory, driver and devices.
 *
 * Thread: one. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "client/cli/doctor.h"

enum { TMPFS = 0x01021994, PATH_BYTES = 512 };

static const char *under_root(char out[PATH_BYTES], const char *path) {
    const char *root = getenv("CURED_DOCTOR_ROOT");
    snprintf(out, PATH_BYTES, "%s%s", root != NULL ? root : "", path);
    return out;
}

void doctor_check_shm(doctor_report *r) {
    char path[PATH_BYTES];
    struct statfs fs;
    under_root(path, "/dev/shm");
    if (statfs(path, &fs) != 0) {
        doctor_add(r, "dev_shm", DOCTOR_WARN, "%s: %s", path, strerror(errno));
        doctor_fix(r, "mount -t tmpfs tmpfs /dev/shm; memfds (cured_array_alloc) need none of it");
        return;
    }
    unsigned long long size = (unsigned long long)fs.f_blocks * (unsigned long long)fs.f_bsize >> 20;
    unsigned long long room = (unsigned long long)fs.f_bavail * (unsigned long long)fs.f_bsize >> 20;
    if (access(path, W_OK) != 0) {
        doctor_add(r, "dev_shm", DOCTOR_WARN, "%s: %s", path, strerror(errno));
        doctor_fix(r, "chmod 1777 /dev/shm");
    } else if (fs.f_type != TMPFS) {
        doctor_add(r, "dev_shm", DOCTOR_WARN, "%s is not a tmpfs: arrays in it lie on a disk", path);
        doctor_fix(r, "mount -t tmpfs tmpfs /dev/shm");
    } else if (room < 64) {
        doctor_add(r, "dev_shm", DOCTOR_WARN, "%s has %llu MiB left of %llu", path, room, size);
        doctor_fix(
            r,
            "make it larger: mount -o remount,size=8G /dev/shm, or docker run --shm-size=8g; or remove what is in it");
    } else {
        doctor_add(r, "dev_shm", DOCTOR_OK, "%s has %llu MiB left of %llu", path, room, size);
    }
}

/* The soft limit of a process, in bytes; false: it cannot be seen. */
static bool memlock_of(pid_t process, unsigned long long *bytes) {
    char path[64], line[256], value[64];
    snprintf(path, sizeof path, "/proc/%d/limits", (int)process);
    FILE *f = fopen(path, "re");
    bool found = false;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL)
        found = sscanf(line, "Max locked memory %63s", value) == 1;
    if (f != NULL) fclose(f);
    if (found) *bytes = strcmp(value, "unlimited") == 0 ? UINT64_MAX : strtoull(value, NULL, 10);
    return found;
}

/* Of what only device memory needs. */
static doctor_level warning(const doctor_report *r) { return r->without_gpu ? DOCTOR_NOTE : DOCTOR_WARN; }

void doctor_check_memlock(doctor_report *r, pid_t daemon) {
    unsigned long long bytes;
    if (r->without_gpu) {
        doctor_add(r, "memlock", DOCTOR_NOTE, "the daemon has no GPU, so it locks no memory");
    } else if (daemon == 0 || !memlock_of(daemon, &bytes)) {
        doctor_add(r, "memlock", DOCTOR_NOTE, "the daemon's limit of locked memory cannot be seen from here");
    } else if (bytes == UINT64_MAX) {
        doctor_add(r, "memlock", DOCTOR_OK, "the daemon may lock as much memory as it wants");
    } else {
        doctor_add(r, "memlock", DOCTOR_WARN, "the daemon may lock %llu KiB: a GPU cannot pin what clients register",
                   bytes >> 10);
        doctor_fix(r,
                   "LimitMEMLOCK=infinity in its systemd unit, docker run --ulimit memlock=-1, or ulimit -l unlimited "
                   "before it");
    }
}

/* 1: the same, 0: another, -1: not to be seen. */
static int same_namespace(pid_t daemon, const char *kind) {
    char path[64];
    struct stat mine, its;
    snprintf(path, sizeof path, "/proc/self/ns/%s", kind);
    if (stat(path, &mine) != 0) return -1;
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)daemon, kind);
    if (stat(path, &its) != 0) return -1;
    return mine.st_dev == its.st_dev && mine.st_ino == its.st_ino;
}

static void check_namespace(doctor_report *r, pid_t daemon, const char *name, const char *kind, const char *option) {
    int same = daemon != 0 ? same_namespace(daemon, kind) : 0;
    if (r->without_gpu && same <= 0) {
        doctor_add(r, name, DOCTOR_NOTE, "%s; it has no GPU, so there is no device memory to share",
                   same < 0 ? "the daemon's cannot be seen by this user" : "the daemon is in another one");
    } else if (same > 0) {
        doctor_add(r, name, DOCTOR_OK, "the daemon is in this one");
    } else if (same < 0) {
        doctor_add(r, name, DOCTOR_NOTE, "the daemon's cannot be seen by this user");
        doctor_fix(r, "run this as root, or as the daemon's user, to know");
    } else {
        doctor_add(r, name, DOCTOR_WARN,
                   "the daemon is in another one: device memory (CUDA IPC) cannot be shared with it");
        doctor_fix(r, "start both in the same: docker run --%s=host for both, or --%s=container:NAME for one", option,
                   option);
    }
}

void doctor_check_namespaces(doctor_report *r, pid_t daemon, bool same_machine) {
    if (!same_machine) return;
    check_namespace(r, daemon, "pid_namespace", "pid", "pid");
    check_namespace(r, daemon, "ipc_namespace", "ipc", "ipc");
}

/* What stands behind "key:" in a file of the driver; false: nothing. */
static bool read_value(const char *path, const char *key, char *out, size_t cap) {
    char line[256];
    FILE *f = fopen(path, "re");
    bool found = false;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL) {
        size_t len = strlen(key);
        if (strncmp(line, key, len) != 0) continue;
        const char *value = line + len;
        value += strspn(value, ": \t");
        snprintf(out, cap, "%.*s", (int)strcspn(value, "\n"), value);
        found = out[0] != '\0';
    }
    if (f != NULL) fclose(f);
    return found;
}

/* The UUIDs, one after the other; how many. */
static int list_gpus(char *out, size_t cap) {
    char folder[PATH_BYTES], path[PATH_BYTES + 300], uuid[80];
    int count = 0;
    out[0] = '\0';
    DIR *dir = opendir(under_root(folder, "/proc/driver/nvidia/gpus"));
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s/information", folder, entry->d_name);
        if (!read_value(path, "GPU UUID", uuid, sizeof uuid)) continue;
        size_t used = strlen(out);
        snprintf(out + used, cap - used, "%s%s", count != 0 ? ", " : "", uuid);
        count++;
    }
    if (dir != NULL) closedir(dir);
    return count;
}

static void check_devices(doctor_report *r) {
    static const char *const devices[] = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        if (access(under_root(path, devices[i]), R_OK | W_OK) == 0) continue;
        bool missing = errno == ENOENT;
        doctor_add(r, "gpu_devices", warning(r), "%s: %s: this user cannot use the GPU", devices[i], strerror(errno));
        if (missing)
            doctor_fix(r, "docker run --gpus all for a container; nvidia-modprobe -u -c 0 on a host");
        else
            doctor_fix(r, "join the group that owns it: %s", devices[i]);
        return;
    }
    doctor_add(r, "gpu_devices", DOCTOR_OK, "/dev/nvidiactl and /dev/nvidia-uvm can be opened");
}

void doctor_check_gpus(doctor_report *r) {
    char path[PATH_BYTES], version[160], uuids[200];
    if (!read_value(under_root(path, "/proc/driver/nvidia/version"), "NVRM version", version, sizeof version)) {
        doctor_add(r, "driver", DOCTOR_NOTE, "no NVIDIA driver is loaded here: there is no device memory to share");
        doctor_fix(r, "for a GPU: install its driver, and in a container docker run --gpus all");
        return;
    }
    doctor_add(r, "driver", DOCTOR_OK, "%.150s", version);
    int count = list_gpus(uuids, sizeof uuids);
    if (count > 0) {
        doctor_add(r, "gpus", DOCTOR_OK, "%d: %.190s", count, uuids);
    } else {
        doctor_add(r, "gpus", warning(r), "the driver is loaded and shows no GPU");
        doctor_fix(r, "dmesg says why (NVRM); in a container docker run --gpus all");
    }
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible != NULL) {
        doctor_add(r, "visible", visible[0] != '\0' ? DOCTOR_NOTE : warning(r),
                   "CUDA_VISIBLE_DEVICES=%.64s: this program's numbers of GPUs may be others than the daemon's",
                   visible);
        doctor_fix(r, "nothing, where GPUs are named by UUID, as regions do");
    }
    check_devices(r);
}
