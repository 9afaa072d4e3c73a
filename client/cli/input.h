/* input: what is known of the file that a reduction reads, and its bytes.
 *
 * Thread: one. Owner: cli_reduce owns the descriptor and the buffer. */
#ifndef CURED_CLIENT_CLI_INPUT_H
#define CURED_CLIENT_CLI_INPUT_H

#include "client/cli/cli.h"
#include "client/cli/turned.h"
#include "client/cli/unpack.h"

enum {
    CLI_CHUNK_BYTES = 256 * 1024, /* read and sent at a time: stays in the cache between the two */
    CLI_LARGEST_ELEMENT = 8,
    CLI_BUFFER_BYTES = 2 * (CLI_CHUNK_BYTES + CLI_LARGEST_ELEMENT),
};

typedef struct cli_input {
    const char *name; /* for sentences */
    int fd;
    bool regular, sized; /* read by position; its size is known */
    bool plain, member;  /* a regular file, also where its size of 0 is not believed; of an archive */
    uint64_t base;       /* regular: where it begins in the descriptor's file */
    uint64_t size;       /* where it is known */
    unpacker *unpacker;  /* NULL: bytes are as they are */
    cured_dtype dtype;
    bool swap, fortran;     /* big-endian; the first index is the fastest */
    uint64_t offset;        /* bytes from where the descriptor stands (streams) or the start of the file (regular) */
    uint64_t count;         /* elements; CURED_TO_END: unknown (never for a regular file) */
    uint8_t *buffer;        /* CLI_CHUNK_BYTES, and behind them room for as many that are turned and a cut element */
    size_t have, unread;    /* streams: bytes in the buffer, and where those not looked at yet begin */
    bool exact_end;         /* stream of a known shape: nothing may follow the array */
    bool part;              /* of the array of a .npy file: --offset or --count was given */
    uint64_t width, stride; /* of a slice of columns: its bytes in a row, and a row's; 0: the bytes lie together */
    uint64_t turned_base;
    turned *turned; /* the array at turned_base in C order; NULL: in the file's order */
    uint32_t dims;  /* 0: not known, or none */
    const uint64_t *shape;
    uint8_t *array; /* all of it, where a call reads memory; NULL: not read */
} cli_input;

/* All answer an exit code, after its sentence. */

/* feed.c: reads until the buffer holds at least `want` bytes or the file ends. Regular files are read at `at`. */
int cli_input_fill(cli_input *in, size_t want, uint64_t at);
/* Streams: reads past the bytes before the array. */
int cli_input_start(cli_input *in);
/* Hands the array over piece by piece; stops early when the daemon has answered. The call is done or ended after EXIT_OK. */
int cli_input_pump(cli_input *in, cured_call *call, uint64_t bytes);
/* Reads all of the array, whose count is known, to in->array, as it lies in the file; end_input frees it. */
int cli_input_all(cli_input *in);

/* block.c: what of the array of --within the input is, if that is given. block is to live as long as options. */
int cli_block_place(const cli_options *o, const cli_input *in, cli_block *block, cured_options *options);

#endif
