/* Registered regions: which way each kind is read, names and their owners, the device hook (a fake one), pinning, faults
 * that lose a region, and nothing held when the last user is gone. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/memory/guard.h"
#include "engine/memory/holes.h"
#include "engine/memory/kept.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_SEAL_SHRINK 2
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16
#endif

enum { SIZE = 100000 };

static cr_files *files;
static cr_kept kept;
static gate opened = GATE_INIT, closed = GATE_INIT;
static cr_error error;

static void tell(cr_kept *who, cr_kept_news news) {
    (void)who;
    gate_add(news == CR_KEPT_OPENED ? &opened : &closed);
}

/* Whether Linux watches memory for holes here. Otherwise memory is mapped only if it is sealed for good. */
static bool watched(void) {
    const char *why;
    if (cr_holes_open(&why)) return true;
    printf("skipped in part: Linux refuses userfaultfd here: %s\n", why);
    return false;
}

static void setup(void) {
    watched(); /* what it holds is there from the start */
    assert_ok(cr_guard_install(&error), error);
    assert_ok(cr_files_new(2, 2, &files, &error), error);
}

static void teardown(void) {
    ck_assert(cr_files_stop(files, 60000));
    ck_assert_uint_eq(metric_now(CR_M_regions), 0);
    ck_assert_uint_eq(metric_now(CR_M_windows), 0);
}

static void open_source(cr_kept_source source, const cr_device_hook *hook) {
    unsigned before = gate_count(&opened);
    memset(&kept, 0, sizeof kept);
    kept.files = files;
    kept.hook = hook;
    kept.publish = tell;
    kept.source = source;
    cr_kept_open(&kept);
    gate_wait(&opened, before + 1);
}

static void open_file(int fd, const cr_device_hook *hook) {
    open_source((cr_kept_source){.kind = CR_KEPT_FILE, .descriptor = fcntl(fd, F_DUPFD_CLOEXEC, 0)}, hook);
}

static void let_go(void) {
    unsigned before = gate_count(&closed);
    cr_kept_release(&kept);
    gate_wait(&closed, before + 1);
}

static int filled(int fd) {
    static uint8_t bytes[SIZE];
    memset(bytes, 7, sizeof bytes);
    fill_file(fd, bytes, sizeof bytes);
    return fd;
}

static cr_region_way way_of(uint64_t offset, uint64_t bytes) {
    cr_region_way way;
    assert_ok(cr_kept_check(&kept, offset, bytes, &way, &error), error);
    return way;
}

START_TEST(the_way_follows_the_file) {
    size_t before = open_descriptors();
    const cr_region_way memory = watched() ? CR_REGION_MAP : CR_REGION_READ;
    int steady = filled(memory_file()), plain = filled(memory_file()), holes = filled(memory_file());
    int disk = filled(disk_file()), sparse = filled(disk_file()), foreign = foreign_file();
    ck_assert_int_eq(fcntl(steady, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE), 0);
    ck_assert_int_eq(ftruncate(holes, 10 << 20), 0);
    ck_assert_int_eq(ftruncate(sparse, 10 << 20), 0);
    const struct {
        int fd;
        cr_region_way way;
        bool steady;
    } cases[] = {{steady, CR_REGION_MAP, true}, {plain, memory, false},          {holes, CR_REGION_READ, false},
                 {disk, CR_REGION_MAP, false},  {sparse, CR_REGION_READ, false}, {foreign, CR_REGION_SLOW, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].fd < 0) continue;
        open_file(cases[i].fd, NULL);
        ck_assert_int_eq(kept.error.code, CR_OK);
        ck_assert_int_eq(kept.region.way, cases[i].way);
        ck_assert_int_eq(way_of(0, 0), cases[i].way);
        ck_assert_int_eq(cr_kept_is_steady(&kept), cases[i].steady);
        ck_assert_int_eq(kept.map.base != NULL, cases[i].way == CR_REGION_MAP);
        if (kept.map.base) ck_assert_uint_eq(kept.map.data[SIZE - 1], 7);
        let_go();
        close(cases[i].fd);
    }
    ck_assert_uint_le(open_descriptors(), before + 1); /* the mount table */
}
END_TEST

START_TEST(holes_and_cuts_after_registering) {
    int fd = filled(memory_file());
    cr_region_way way;
    if (!watched()) return;
    open_file(fd, NULL);
    ck_assert_int_eq(way_of(0, SIZE), CR_REGION_MAP);
    ck_assert_int_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 65536), 0);
    ck_assert_int_eq(way_of(0, SIZE), CR_REGION_READ);
    ck_assert_int_eq(ftruncate(fd, 50000), 0);
    assert_ok(cr_kept_check(&kept, 0, 50000, &way, &error), error);
    assert_fails(cr_kept_check(&kept, 0, 50001, &way, &error), CR_DATA_LOSS, error, "cut to 50000");
    assert_fails(cr_kept_check(&kept, UINT64_MAX, 2, &way, &error), CR_DATA_LOSS, error, "cut");
    assert_fails(cr_kept_still(&kept, 50001, &error), CR_DATA_LOSS, error, "cut");
    let_go();
    close(fd);
}
END_TEST

/* The first to read where nothing is loses the region for all, those included that read the zeros without a fault. */
START_TEST(a_fault_loses_the_region) {
    int fd = filled(memory_file());
    cr_region_way way;
    if (!watched()) return;
    open_file(fd, NULL);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    cr_guard_enter_shared(kept.map.data, SIZE, &kept.lost);
    ck_assert_uint_eq(((const volatile uint8_t *)kept.map.data)[SIZE / 2], 0);
    ck_assert(cr_guard_leave());
    ck_assert_int_eq(ftruncate(fd, SIZE), 0);
    cr_guard_enter_shared(kept.map.data, SIZE, &kept.lost);
    ck_assert_uint_eq(((const volatile uint8_t *)kept.map.data)[SIZE - 1], 0);
    ck_assert(!cr_guard_leave());
    assert_fails(cr_kept_still(&kept, SIZE, &error), CR_DATA_LOSS, error, "register it anew");
    assert_fails(cr_kept_check(&kept, 0, 1, &way, &error), CR_DATA_LOSS, error, "register it anew");
    let_go();
    close(fd);
}
END_TEST

static uint64_t blocks_of(int fd) {
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    return (uint64_t)st.st_blocks;
}

/* A hole that nobody knew of: neither a read, a write nor Linux itself fills it. */
START_TEST(a_hole_is_not_filled) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = filled(memory_file());
    if (!watched()) return;
    open_source((cr_kept_source){.kind = CR_KEPT_FILE, .descriptor = fcntl(fd, F_DUPFD_CLOEXEC, 0), .writable = true},
                NULL);
    ck_assert_msg(kept.error.code == CR_OK, "%s", kept.error.text);
    ck_assert_int_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)(8 * page)), 0);
    const uint64_t left = blocks_of(fd);
    volatile uint8_t *memory = cr_kept_memory(&kept);
    ck_assert_int_ne(madvise(cr_kept_memory(&kept), page, 22 /* MADV_POPULATE_READ */), 0);
    ck_assert_int_ne(madvise(cr_kept_memory(&kept), page, 23 /* MADV_POPULATE_WRITE */), 0);
    cr_guard_enter_writing(cr_kept_memory(&kept), page, &kept.lost);
    memory[5] = 1;
    ck_assert(cr_guard_leave_writing());
    cr_guard_enter_shared(kept.map.data + page, page, &kept.lost);
    ck_assert_uint_eq(memory[page], 0);
    ck_assert(cr_guard_leave());
    assert_fails(cr_kept_still(&kept, SIZE, &error), CR_DATA_LOSS, error, "holes");
    assert_fails(cr_kept_can_write(&kept, SIZE, &error), CR_DATA_LOSS, error, "holes");
    ck_assert_uint_eq(blocks_of(fd), left);
    let_go();
    close(fd);
}
END_TEST

/* Linux watches only what may be written, so a descriptor that may not is mapped only where no hole can come. */
START_TEST(a_descriptor_that_is_read_only) {
    const int seals[] = {0, F_SEAL_SHRINK, F_SEAL_FUTURE_WRITE, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE};
    for (int i = 0; i < 4; i++) {
        char path[64];
        int fd = filled(memory_file());
        ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals[i]), 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        int own = open(path, O_RDONLY | O_CLOEXEC);
        ck_assert_int_ge(own, 0);
        open_file(own, NULL);
        ck_assert_int_eq(kept.region.way, i == 3 ? CR_REGION_MAP : CR_REGION_READ);
        let_go();
        close(own);
        close(fd);
    }
}
END_TEST

START_TEST(what_cannot_be_kept_is_refused) {
    int fds[] = {open("/tmp", O_RDONLY | O_DIRECTORY), sizeless_file()};
    for (int i = 0; i < 2; i++) {
        open_file(fds[i], NULL);
        ck_assert_int_eq(kept.error.code, CR_INVALID_ARGUMENT);
        let_go();
        close(fds[i]);
    }
}
END_TEST

static void open_name(const char *name, uid_t peer) {
    cr_kept_source source = {.kind = CR_KEPT_NAME, .descriptor = -1, .peer = peer};
    snprintf(source.name, sizeof source.name, "%s", name);
    open_source(source, NULL);
}

static void assert_name_fails(const char *name, uid_t peer, cr_status status, const char *word) {
    open_name(name, peer);
    ck_assert_int_eq(kept.error.code, status);
    ck_assert_msg(strstr(kept.error.text, word) != NULL, "\"%s\" without \"%s\"", kept.error.text, word);
    let_go();
}

START_TEST(names_belong_to_their_user) {
    char name[64], path[80], other[64], link_path[80];
    snprintf(name, sizeof name, "/cured-unit-%d", (int)getpid());
    snprintf(path, sizeof path, "/dev/shm%s", name);
    snprintf(other, sizeof other, "/cured-unit-other-%d", (int)getpid());
    snprintf(link_path, sizeof link_path, "/dev/shm%s", other);
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0) return; /* no /dev/shm here: test_regions says so */
    filled(fd);
    open_name(name, geteuid());
    ck_assert_msg(kept.error.code == CR_OK, "%s", kept.error.text);
    ck_assert_uint_eq(kept.region.size, SIZE);
    ck_assert_int_eq(kept.region.way, watched() ? CR_REGION_MAP : CR_REGION_READ);
    let_go();
    assert_name_fails(name, geteuid() + 1, CR_PERMISSION_DENIED, "belong");
    assert_name_fails("/cured-unit-is-not-there", geteuid(), CR_NOT_FOUND, "name");
    ck_assert_int_eq(symlink(path, link_path), 0);
    assert_name_fails(other, geteuid(), CR_INVALID_ARGUMENT, "no shared memory");
    unlink(link_path);
    ck_assert_int_eq(mkfifo(link_path, 0600), 0);
    assert_name_fails(other, geteuid(), CR_INVALID_ARGUMENT, "no shared memory"); /* and does not wait for a writer */
    unlink(link_path);
    fchmod(fd, 0);
    assert_name_fails(name, geteuid(), CR_PERMISSION_DENIED, "readable");
    shm_unlink(name);
    close(fd);
}
END_TEST

/* ---- a device that is none ---- */

static uint8_t device_memory[4096];
static unsigned device_opened, device_closed, pins, unpins;
static uint64_t pinned_bytes;
static gate pinnings = GATE_INIT;

static cr_status fake_open(void *context, const cr_device_memory *memory, cr_device_region *region, cr_error *e) {
    ck_assert_ptr_eq(context, &device_opened);
    if (memory->device[0] != 1) return cr_fail(e, CR_NOT_FOUND, "device: no such GPU here");
    if (memory->handle[0] != 42) return cr_fail(e, CR_INVALID_ARGUMENT, "handle: it opens nothing");
    if (memory->offset > sizeof device_memory || memory->bytes > sizeof device_memory - memory->offset)
        return cr_fail(e, CR_INVALID_ARGUMENT, "bytes: the allocation is shorter");
    device_opened++;
    *region = (cr_device_region){.device = 3, .address = (uint64_t)(uintptr_t)(device_memory + memory->offset)};
    return CR_OK;
}

static void fake_close(void *context, cr_device_region *region) {
    (void)context;
    ck_assert_int_eq(region->device, 3);
    device_closed++;
}

static cr_status fake_pin(void *context, const void *start, size_t bytes, cr_error *e) {
    (void)context;
    gate_add(&pinnings);
    if (pins == 2) return cr_fail(e, CR_RESOURCE_EXHAUSTED, "no more");
    ck_assert_uint_eq(*(const uint8_t *)start, 7);
    pinned_bytes += bytes;
    pins++;
    return CR_OK;
}

static void fake_unpin(void *context, const void *start, size_t bytes) {
    (void)context;
    ck_assert_uint_eq(*(const uint8_t *)start, 7); /* still mapped */
    pinned_bytes -= bytes;
    unpins++;
}

static const cr_device_hook fake = {&device_opened, fake_open, fake_close, NULL, NULL};
static const cr_device_hook pinning = {&device_opened, NULL, NULL, fake_pin, fake_unpin};

static cr_kept_source device_source(uint8_t device, uint8_t handle, uint64_t offset, uint64_t bytes) {
    cr_kept_source source = {.kind = CR_KEPT_DEVICE, .descriptor = -1};
    source.memory = (cr_device_memory){.has_handle = true, .offset = offset, .bytes = bytes};
    source.memory.device[0] = device;
    source.memory.handle[0] = handle;
    return source;
}

START_TEST(device_memory_goes_by_the_hook) {
    open_source(device_source(1, 42, 96, 4000), &fake);
    ck_assert_msg(kept.error.code == CR_OK, "%s", kept.error.text);
    ck_assert_int_eq(kept.region.way, CR_REGION_DEVICE);
    ck_assert_uint_eq(kept.region.size, 4000);
    ck_assert_uint_eq(kept.device.address, (uint64_t)(uintptr_t)(device_memory + 96));
    let_go();
    ck_assert_uint_eq(device_opened, 1);
    ck_assert_uint_eq(device_closed, 1);
    const struct {
        cr_kept_source source;
        const cr_device_hook *hook;
        cr_status status;
    } wrong[] = {{device_source(2, 42, 0, 1), &fake, CR_NOT_FOUND},
                 {device_source(1, 41, 0, 1), &fake, CR_INVALID_ARGUMENT},
                 {device_source(1, 42, 97, 4000), &fake, CR_INVALID_ARGUMENT},
                 {device_source(1, 42, 0, 1), NULL, CR_FAILED_PRECONDITION},
                 {device_source(1, 42, 0, 1), &pinning, CR_FAILED_PRECONDITION}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        open_source(wrong[i].source, wrong[i].hook);
        ck_assert_int_eq(kept.error.code, wrong[i].status);
        let_go();
    }
    ck_assert_uint_eq(device_opened, 1);
    ck_assert_uint_eq(device_closed, 1);
}
END_TEST

START_TEST(mappings_are_pinned_and_let_go) {
    int fd = filled(memory_file());
    if (!watched()) return;
    for (unsigned round = 1; round <= 3; round++) {
        open_file(fd, &pinning);
        ck_assert_int_eq(kept.error.code, CR_OK);
        gate_wait(&pinnings, round);
        let_go(); /* waits for the pinning */
        ck_assert_uint_eq(pinned_bytes, 0);
        ck_assert_uint_eq(unpins,
                          round < 2 ? round : 2); /* the third could not be pinned, and is a region all the same */
    }
    close(fd);
}
END_TEST

START_TEST(users_keep_it) {
    int fd = filled(disk_file());
    unsigned before = gate_count(&closed);
    open_file(fd, NULL);
    cr_kept_use(&kept);
    cr_kept_use(&kept);
    cr_kept_release(&kept);
    cr_kept_release(&kept);
    ck_assert_uint_eq(kept.map.data[0], 7);
    ck_assert_uint_eq(gate_count(&closed), before);
    let_go();
    close(fd);
}
END_TEST

CR_CHECK_MAIN("engine/kept") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_way_follows_the_file);
    tcase_add_test(tc, holes_and_cuts_after_registering);
    tcase_add_test(tc, a_fault_loses_the_region);
    tcase_add_test(tc, a_hole_is_not_filled);
    tcase_add_test(tc, a_descriptor_that_is_read_only);
    tcase_add_test(tc, what_cannot_be_kept_is_refused);
    tcase_add_test(tc, names_belong_to_their_user);
    tcase_add_test(tc, device_memory_goes_by_the_hook);
    tcase_add_test(tc, mappings_are_pinned_and_let_go);
    tcase_add_test(tc, users_keep_it);
}
