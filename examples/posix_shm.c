/* posix_shm: sums what another program keeps in POSIX shared memory, without copying it.
 *
 *     cc posix_shm.c $(pkg-config --cflags --libs cured) -o posix_shm
 *     ./posix_shm /NAME DTYPE [ADDRESS]
 *
 * The memory is opened here and its descriptor passed on, so the daemon needs no right to it and no option. (With the
 * daemon's option shm_names, cured_region_shm() takes the name alone.) A program that may cut the memory while it is read gets
 * DATA_LOSS for an answer; sealing a memfd rules that out, see shared_array.c. */
#include <cured/cured.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int failed(const char *what, const cured_error *error) {
    fprintf(stderr, "%s: %s (%s)\n", what, error->text, cured_status_name(error->code));
    return 1;
}

int main(int argc, char **argv) {
    cured_conn *conn;
    cured_region *region;
    cured_call *call;
    cured_dtype dtype;
    cured_error error;
    const cured_op ops[] = {CURED_OP_SUM, CURED_OP_ARGMAX};
    char text[CURED_TEXT_BYTES];
    if (argc < 3) {
        fprintf(stderr, "usage: posix_shm /NAME DTYPE [ADDRESS]\n");
        return 64;
    }
    if (cured_dtype_parse(argv[2], &dtype, &error) != CURED_OK) return failed(argv[2], &error);
    int fd = shm_open(argv[1], O_RDONLY, 0);
    if (fd < 0) {
        perror(argv[1]);
        return 1;
    }
    if (cured_connect(argc > 3 ? argv[3] : NULL, NULL, &conn, &error) != CURED_OK) return failed("connect", &error);
    if (cured_region_fd(conn, fd, &region, &error) != CURED_OK || cured_region_wait(region, &error) != CURED_OK)
        return failed("register", &error);
    close(fd); /* the library and the daemon have their own */
    printf("%" PRIu64 " bytes\n", cured_region_bytes(region));
    if (cured_region_reduce(region, dtype, ops, 2, 0, CURED_TO_END, NULL, &call, &error) != CURED_OK ||
        cured_wait(call, &error) != CURED_OK)
        return failed("reduce", &error);
    for (size_t i = 0; i < 2; i++) {
        const cured_value *value = cured_call_value(call, i);
        if (cured_value_status(value, &error) != CURED_OK) return failed(cured_op_name(ops[i]), &error);
        cured_value_text(value, text, sizeof text);
        printf("%s %s\n", cured_op_name(ops[i]), text);
    }
    cured_call_free(call);
    cured_region_free(region);
    cured_close(conn);
    return 0;
}
