/* shared_array: an array that the daemon reduces where it lies, again and again, while the program goes on writing into it.
 *
 *     cc shared_array.c $(pkg-config --cflags --libs cured) -o shared_array
 *     ./shared_array [ADDRESS]
 *
 * It keeps the last 4,096 samples of 256 channels, writes a new row at a time, and asks for the standard deviation of
 * everything and the largest value of each channel. Nothing is copied, and nothing but the questions and the answers goes through the socket. */
#include <cured/cured.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 4096, CHANNELS = 256, TURNS = 4 };

static int failed(const char *what, const cured_error *error) {
    fprintf(stderr, "%s: %s (%s)\n", what, error->text, cured_status_name(error->code));
    return 1;
}

/* Some signal: channel c swings by c + 1 around 0. */
static void write_row(float *row, uint32_t *state, int scale) {
    for (int c = 0; c < CHANNELS; c++) {
        *state = *state * 1664525u + 1013904223u;
        row[c] = ((float)(*state >> 8) / 8388608.0f - 1.0f) * (float)((c + 1) * scale);
    }
}

static int ask(cured_region *region, cured_error *error) {
    static const cured_op whole[] = {CURED_OP_STD, CURED_OP_COUNT_NAN}, columns[] = {CURED_OP_MAX};
    const cured_axis axis = {.outer = 1, .n = ROWS, .inner = CHANNELS};
    cured_options along = CURED_OPTIONS_INIT;
    cured_call *all = NULL, *each = NULL;
    char text[CURED_TEXT_BYTES];
    along.axis = &axis;
    /* Both are under way at once; each is waited for when its answer is needed. */
    int code = 1;
    if (cured_region_reduce(region, CURED_F32, whole, 2, 0, CURED_TO_END, NULL, &all, error) == CURED_OK &&
        cured_region_reduce(region, CURED_F32, columns, 1, 0, CURED_TO_END, &along, &each, error) == CURED_OK &&
        cured_wait(all, error) == CURED_OK && cured_wait(each, error) == CURED_OK) {
        uint64_t count;
        const float *most = cured_call_array(each, 0, NULL, &count);
        cured_value_text(cured_call_value(all, 0), text, sizeof text);
        printf("std %s, largest of channel 1: %g, of channel %" PRIu64 ": %g\n", text, most[0], count, most[count - 1]);
        code = 0;
    }
    cured_call_free(all);
    cured_call_free(each);
    return code;
}

int main(int argc, char **argv) {
    cured_conn *conn;
    cured_array *array;
    cured_region *region;
    cured_call *gone;
    cured_error error;
    uint32_t state = 1;
    int code = 0;
    if (cured_connect(argc > 1 ? argv[1] : NULL, NULL, &conn, &error) != CURED_OK) return failed("connect", &error);
    if (cured_array_alloc(CURED_F32, (uint64_t)ROWS * CHANNELS, &array, &error) != CURED_OK)
        return failed("allocate", &error);
    if (cured_region_fd(conn, cured_array_fd(array), &region, &error) != CURED_OK) return failed("register", &error);
    float *samples = cured_array_data(array);
    for (int turn = 0; turn < TURNS && code == 0; turn++) {
        for (int row = 0; row < ROWS; row++) write_row(samples + (size_t)row * CHANNELS, &state, turn + 1);
        code = ask(region, &error);
    }
    if (code != 0) failed("reduce", &error);
    /* When this is done the daemon has let go of the memory. Leaving without it would do, too. */
    if (cured_region_unregister(region, NULL, &gone, &error) != CURED_OK || cured_wait(gone, &error) != CURED_OK)
        code = failed("unregister", &error);
    cured_call_free(gone);
    cured_region_free(region);
    cured_array_free(array);
    cured_close(conn);
    return code;
}
