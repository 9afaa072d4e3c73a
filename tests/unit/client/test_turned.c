/* turned: arrays of several shapes, with room for one row, some and all, are read in pieces in C order; a file that ends early is
 * noticed. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/turned.h"
#include "tests/unit/check_main.h"

enum { BASE = 24 };

static const struct sample {
    uint32_t dims;
    uint64_t shape[4];
} samples[] = {
    {2, {3, 5}},    {2, {1, 7}},       {2, {7, 1}},    {3, {4, 3, 5}},
    {3, {5, 1, 6}}, {4, {3, 4, 2, 5}}, {2, {2000, 3}}, {2, {3, 2000}},
};

static uint64_t count(const struct sample *s) {
    uint64_t n = 1;
    for (uint32_t d = 0; d < s->dims; d++) n *= s->shape[d];
    return n;
}

/* A file whose element at C index i has the value i, in Fortran order. */
static int make(const struct sample *s, size_t size, uint64_t leave_out) {
    const uint64_t n = count(s);
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < BASE; i++) fputc(0xee, file);
    for (uint64_t at = 0; at < n - leave_out; at++) {
        uint64_t place = at, index = 0, stride = n;
        for (uint32_t d = 0; d < s->dims; d++) {
            stride /= s->shape[d];
            index += place % s->shape[d] * stride;
            place /= s->shape[d];
        }
        ck_assert_uint_eq(fwrite(&index, size, 1, file), 1);
    }
    fflush(file);
    const int fd = dup(fileno(file));
    fclose(file);
    return fd;
}

START_TEST(every_shape_and_room) {
    static const uint64_t rooms[] = {1, 100, 1000, 20000, 1 << 20};
    static const size_t pieces[] = {1, 7, 64, 4096, 1 << 20};
    const struct sample *s = &samples[_i];
    const uint64_t n = count(s);
    for (size_t size = 1; size <= 8; size *= 2) {
        const int fd = make(s, size, 0);
        uint8_t *all = malloc(n * size);
        for (size_t r = 0; r < sizeof rooms / sizeof rooms[0]; r++) {
            turned *t = turned_begin(fd, BASE, size, s->dims, s->shape, rooms[r]);
            ck_assert_ptr_nonnull(t);
            size_t got;
            for (uint64_t at = 0; at < n * size; at += got) {
                ck_assert(turned_read(t, at, all + at, pieces[r] < n * size - at ? pieces[r] : n * size - at, &got));
                ck_assert_uint_ne(got, 0);
            }
            for (uint64_t i = 0; i < n; i++)
                ck_assert_msg(memcmp(all + i * size, &i, size) == 0, "element %llu of %zu bytes, room %llu",
                              (unsigned long long)i, size, (unsigned long long)rooms[r]);
            ck_assert(turned_read(t, n * size, all, 1, &got) && got == 0);
            ck_assert(turned_read(t, 0, all, 1, &got) && got == 1); /* back to the start */
            turned_free(t);
        }
        free(all);
        close(fd);
    }
}
END_TEST

START_TEST(a_file_that_ends_early) {
    uint8_t byte;
    size_t got;
    const int fd = make(&samples[3], 4, 1);
    turned *t = turned_begin(fd, BASE, 4, samples[3].dims, samples[3].shape, 1 << 20);
    ck_assert(turned_read(t, 0, &byte, 1, &got));
    ck_assert_uint_eq(got, 0);
    turned_free(t);
    close(fd);
    t = turned_begin(-1, BASE, 4, samples[3].dims, samples[3].shape, 1 << 20);
    ck_assert(!turned_read(t, 0, &byte, 1, &got));
    turned_free(t);
}
END_TEST

CR_CHECK_MAIN("turned") {
    tcase_add_loop_test(tc, every_shape_and_room, 0, (int)(sizeof samples / sizeof samples[0]));
    tcase_add_test(tc, a_file_that_ends_early);
}
