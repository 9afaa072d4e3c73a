/* cured.h: reductions of arrays by the cured daemon, from C. The only header of libcured.
 *
 *     cured_conn *conn;
 *     cured_call *call;
 *     cured_error error;
 *     cured_op op = CURED_OP_SUM;
 *     char text[CURED_TEXT_BYTES];
 *     if (cured_connect(NULL, NULL, &conn, &error) != CURED_OK) …
 *     if (cured_reduce_buffer(conn, CURED_F32, &op, 1, array, count, NULL, &call, &error) != CURED_OK) …
 *     if (cured_wait(call, &error) != CURED_OK) …
 *     cured_value_text(cured_call_value(call, 0), text, sizeof text);
 *     cured_call_free(call);
 *     cured_close(conn);
 *
 * A connection leads to a daemon, or stays in this process ("embedded:"): the same functions, the same bits. Memory of this program is
 * folded fastest where it lies; a daemon earns its place for regions, CUDA memory and one budget of cores for all.
 *
 * The library starts no thread unless it is asked to (cured_connect_options.threads), handles no signal (sends never
 * raise SIGPIPE) and has no global state but the instruction set that folds in this process, how many threads look for answers
 * (spin_us), and the thread pool. A connection and its calls are used by one thread at a time; different connections are independent.
 *
 * Everything is asynchronous underneath: the functions that start a call only queue it. cured_process() sends, receives
 * and completes whatever can be done without blocking, so an event loop polls cured_fd() for cured_events() for at most
 * cured_timeout_ms(), and calls cured_process(). cured_wait() does the same for those who would rather block. Many
 * calls may be in flight on one connection; they complete in any order.
 *
 * In this process cured_process(), and each round of a wait, does one bounded piece of work: it reads at most 1 MiB and folds one claim
 * (4 MiB, along an axis 16 MiB; 64 MiB for each thread of a pool, 1 GiB at most; of a file it reads what it folds). Deadlines, cancelling and progress come through in
 * between. While there is work cured_timeout_ms() is 0.
 *
 * After fork() both processes may go on with the same objects. The parent notices nothing. The child's first call on a
 * connection is sent over a connection of its own, and regions are registered anew there. Calls that the parent had in
 * flight are the parent's: in the child each ends with CANCELLED, without a callback; calls that were done keep their
 * answers. An event loop of the child asks cured_fd() after its first cured_process(). The child must not use a connection
 * that another thread was using when the process forked. Where threads fold the child starts its own.
 *
 * Functions return CURED_OK or a status, and fill *error, which may be NULL, with the same status and a sentence.
 * Strings are UTF-8; sizes are bytes, counts are elements, as the names say. */
#ifndef CURED_CURED_H
#define CURED_CURED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CURED_API __attribute__((visibility("default")))
#else
#define CURED_API
#endif

typedef enum cured_status { /* gRPC's */
                            CURED_OK = 0,
                            CURED_CANCELLED = 1,
                            CURED_UNKNOWN = 2,
                            CURED_INVALID_ARGUMENT = 3,
                            CURED_DEADLINE_EXCEEDED = 4,
                            CURED_NOT_FOUND = 5,
                            CURED_ALREADY_EXISTS = 6,
                            CURED_PERMISSION_DENIED = 7,
                            CURED_RESOURCE_EXHAUSTED = 8,
                            CURED_FAILED_PRECONDITION = 9,
                            CURED_ABORTED = 10,
                            CURED_OUT_OF_RANGE = 11,
                            CURED_UNIMPLEMENTED = 12,
                            CURED_INTERNAL = 13,
                            CURED_UNAVAILABLE = 14,
                            CURED_DATA_LOSS = 15,
                            CURED_UNAUTHENTICATED = 16
} cured_status;

typedef enum cured_dtype {                          /* of elements, which are packed, little-endian */
                           CURED_DTYPE_DEFAULT = 0, /* as a result type: each op's own default */
                           CURED_BOOL = 1,
                           CURED_U8 = 2,
                           CURED_I8 = 3,
                           CURED_U16 = 4,
                           CURED_I16 = 5,
                           CURED_U32 = 6,
                           CURED_I32 = 7,
                           CURED_U64 = 8,
                           CURED_I64 = 9,
                           CURED_F16 = 10,
                           CURED_BF16 = 11,
                           CURED_F32 = 12,
                           CURED_F64 = 13,
                           CURED_I128 = 14,    /* of results only: 16 bytes */
                           CURED_BIGINT = 15,  /* of results only: 9 to 32 bytes of two's complement */
                           CURED_F8_E4M3 = 16, /* OCP's E4M3, ml_dtypes' float8_e4m3fn: no infinities */
                           CURED_F8_E5M2 = 17,
                           CURED_DIGEST =
                               20 /* of results only: 24 bytes: two residues and the number of bytes, 8 bytes each */
} cured_dtype;

typedef enum cured_op {
    CURED_OP_SUM = 1,
    CURED_OP_MEAN = 2,
    CURED_OP_MIN = 3,
    CURED_OP_MAX = 4,
    CURED_OP_ARGMIN = 5,
    CURED_OP_ARGMAX = 6,
    CURED_OP_COUNT = 7,
    CURED_OP_COUNT_NONZERO = 8,
    CURED_OP_COUNT_NAN = 9,
    CURED_OP_ANY = 10,
    CURED_OP_ALL = 11,
    CURED_OP_SUMSQ = 12,
    CURED_OP_NORM1 = 13,
    CURED_OP_NORM2 = 14,
    CURED_OP_NORMINF = 15,
    CURED_OP_VAR = 16,
    CURED_OP_STD = 17,
    CURED_OP_PROD = 18,
    CURED_OP_BIT_AND = 19,
    CURED_OP_BIT_OR = 20,
    CURED_OP_BIT_XOR = 21,
    CURED_OP_QUANTILE = 22,
    CURED_OP_DOT = 23,
    CURED_OP_COUNT_INF = 24,
    CURED_OP_DIGEST = 25,
    CURED_OP_SQDIST = 26,
    CURED_OP_AVERAGE = 27,
    CURED_OP_MEDIAN = 28,
    CURED_OP_PTP = 29
} cured_op;

/* What a NaN in the input means. PROPAGATE: sums, means and extrema are NaN, and argmin and argmax name the first NaN. SKIP: NaNs
 * are left out of everything but count_nan. A NaN that is an answer is always the positive quiet NaN without a payload. In
 * extrema -0 is below +0. docs/NUMERICS.md has every rule, and says which op takes which result type. */
typedef enum cured_nan { CURED_NAN_PROPAGATE = 0, CURED_NAN_SKIP = 1 } cured_nan;
/* How a quantile whose place lies between two elements is made of them, as NumPy names it: in proportion, the lower, the higher, the
 * nearer (halfway that of even rank), their mean. */
typedef enum cured_method {
    CURED_METHOD_LINEAR = 0,
    CURED_METHOD_LOWER = 1,
    CURED_METHOD_HIGHER = 2,
    CURED_METHOD_NEAREST = 3,
    CURED_METHOD_MIDPOINT = 4
} cured_method;
typedef enum cured_overflow { CURED_OVERFLOW_ERROR = 0, CURED_OVERFLOW_WRAP = 1 } cured_overflow;

enum {
    CURED_MAX_OPS = 32,         /* ops in one call */
    CURED_ERROR_BYTES = 240,    /* of a sentence, with its NUL */
    CURED_TEXT_BYTES = 96,      /* enough for any value as text, with its NUL */
    CURED_ADDRESS_BYTES = 512,  /* enough for any address, with its NUL */
    CURED_PARTIAL_BYTES = 65536 /* enough for any partial */
};

#define CURED_TO_END UINT64_MAX         /* cured_reduce_fd: as many elements as the file holds */
#define CURED_UNKNOWN_LENGTH UINT64_MAX /* cured_reduce_stream_begin */

typedef struct cured_error {
    cured_status code;
    uint32_t retry_after_ms; /* the daemon's advice with RESOURCE_EXHAUSTED and UNAVAILABLE; 0: none */
    char text[CURED_ERROR_BYTES];
} cured_error;

typedef struct cured_conn cured_conn;
typedef struct cured_call cured_call;
typedef struct cured_value cured_value;
typedef struct cured_region cured_region;
typedef struct cured_array cured_array;

/* ---- Names. NULL or 0 for what is not in the lists. Any thread. ---- */

CURED_API const char *cured_version(void);                    /* the library's, "0.2.0" */
CURED_API const char *cured_status_name(cured_status status); /* "INVALID_ARGUMENT" */
CURED_API const char *cured_dtype_name(cured_dtype dtype);    /* "f32" */
CURED_API const char *cured_op_name(cured_op op);             /* "count_nonzero" */
CURED_API size_t cured_dtype_size(cured_dtype dtype);         /* 0 for CURED_BIGINT and numbers outside the list */
/* Parse "f32", NumPy's "float32" and "<f4", C's "double"; "sum". "i8" has 8 bits, as everywhere here; NumPy's is "<i8". UNIMPLEMENTED
 * for types that are known and not offered (complex64, big-endian ">f4"). */
CURED_API cured_status cured_dtype_parse(const char *name, cured_dtype *dtype, cured_error *error);
CURED_API cured_status cured_op_parse(const char *name, cured_op *op, cured_error *error);
CURED_API const char *cured_op_list(size_t index); /* in the order of their numbers, from 0 until NULL */

/* ---- Connections ---- */

typedef struct cured_connect_options {
    size_t struct_bytes;         /* sizeof(cured_connect_options): set by the initialiser */
    const char *client;          /* name for the daemon's log, at most 64 bytes; NULL: "libcured/VERSION" */
    uint32_t connect_timeout_ms; /* until the daemon has answered HELLO; 0: none */
    /* How long, at most, cured_wait() and its kin look for an answer before they sleep: as long as the waits before were worth it, and
     * only while a core is free. They sleep until shortly before an answer that they foresee, because two calls of the same kind
     * took as long. 0: 200 where there are four cores and more, never below. CURED_NEVER_LOOK: never. */
    uint32_t spin_us;
    /* While a call waits and nothing moves for keepalive_ms, the library asks by PING. When nothing came for as long again, the
     * connection is lost. 0: never. */
    uint32_t keepalive_ms;
    /* After so many attempts to connect that failed in a row, calls that are started end at once with UNAVAILABLE, and nothing is
     * attempted, for 100 ms, then twice as long with each further failure, up to circuit_max_ms. Half of each time is random.
     * Calls that wait for another try go on waiting. circuit_failures 0: never. */
    uint32_t circuit_failures, circuit_max_ms;
    /* "embedded:": how many threads fold, 1,024 at most. 1: the caller's own alone; 0: one for each core it may use. CURED_THREAD_POOL: the
     * caller's own, and for arrays in memory of 1 MiB and more a pool that all such connections of the process share. */
    uint32_t threads;
    /* "tls:HOST:PORT": PEM files of the CAs that are trusted (NULL: $CURED_TLS_CA, else the system's), and of a certificate and its key
     * for daemons that want one (NULL: $CURED_CLIENT_CERTIFICATE and $CURED_CLIENT_KEY, else none). They are read by cured_connect(). */
    const char *tls_ca, *tls_certificate, *tls_key;
    /* Who asks, for daemons that want it, and a file of mode 0600 with that (both NULL: $CURED_CLIENT_TOKEN, else the file
     * $CURED_CLIENT_TOKEN_FILE, else none). It is sent over TLS, to loopback addresses and Unix sockets only; INVALID_ARGUMENT for
     * others. Copied. */
    const char *token, *token_file;
} cured_connect_options;

#define CURED_NEVER_LOOK UINT32_MAX
#define CURED_THREAD_POOL UINT32_MAX

#define CURED_CONNECT_OPTIONS_INIT \
    { sizeof(cured_connect_options), NULL, 5000, 0, 20000, 5, 5000, 1, NULL, NULL, NULL, NULL, NULL }

/* Starts a connection to "unix:PATH", a path, "tcp:HOST:PORT" or "tls:HOST:PORT", or one within this process: "embedded:". NULL:
 * $CURED_CONNECT if set, else the first of the two default sockets that somebody listens on: $XDG_RUNTIME_DIR/cured.sock, then
 * /run/cured/cured.sock; root looks at them the other way round. XDG_RUNTIME_DIR counts when it names a folder of this user's or of
 * root's. A Unix socket nobody listens on fails here, with UNAVAILABLE, and one that this user may not use with PERMISSION_DENIED; TCP
 * connects in the background and its failure ends the calls. A host name is looked up here, and again whenever a lost connection is made
 * anew, then by the thread that waits or processes. The system's resolver decides how long that takes: neither connect_timeout_ms nor a
 * call's timeout_ms ends it. A numeric address is not looked up. options may be NULL. On success *conn belongs to the caller until
 * cured_close().
 *
 * "auto:" is $CURED_CONNECT if set; else a daemon at a default socket if one listens, and otherwise "embedded:". It chooses once,
 * here: a daemon that goes later is not replaced.
 *
 * "tls:HOST:PORT" is TCP under TLS 1.3. The daemon's certificate must be signed by a trusted CA and name HOST; otherwise calls end
 * UNAUTHENTICATED, with what is wrong. OpenSSL is loaded for it (libssl.so.3; UNIMPLEMENTED where there is none).
 *
 * "embedded:" asks nobody and needs no daemon. The thread that waits or processes folds. With options.threads above 1 it is
 * helped, in calls of more than 8 MiB, by threads that the first such call starts; they block all signals and are kept until
 * cured_close(). The pool of CURED_THREAD_POOL has a thread for each core that the process may use, and as many as $CURED_NUM_THREADS, or
 * else $OMP_NUM_THREADS, say at most. Its first call starts it, and it stays; one call at a time has it, and others fold alone.
 * The thread that waits reads files, too, so a file system that hangs holds it; whole ones the others read with it, from 8 MiB on (of the
 * pool from what pays). A daemon's limits do not apply. CUDA
 * memory (UNIMPLEMENTED) and kernels by name (FAILED_PRECONDITION) need a daemon. $CURED_CPU_ISA chooses the instruction set of
 * all such connections of the process: "auto", "portable", "avx2" or "avx512" (FAILED_PRECONDITION where the machine lacks it);
 * the bits are the same. UNIMPLEMENTED where the library was built without it (CURED_EMBEDDED=OFF). */
CURED_API cured_status cured_connect(const char *address, const cured_connect_options *options, cured_conn **conn,
                                     cured_error *error);
/* The address that cured_connect(NULL, …) takes now: it tries to connect where there are two. Where nobody listens: one
 * that this user may not use, or the first. */
CURED_API cured_status cured_default_address(char *address, size_t bytes, cured_error *error);
/* Blocks until the connection stands (not: until the daemon has said anything) or has failed. */
CURED_API cured_status cured_connected(cured_conn *conn, cured_error *error);
/* Ends the connection and frees it; conn may be NULL. Calls in flight are done with CANCELLED, without a callback; they
 * still want cured_call_free(). Not from inside a callback. */
CURED_API void cured_close(cured_conn *conn);
/* True when descriptors can be passed: Unix sockets, and in this process. */
CURED_API bool cured_passes_fd(const cured_conn *conn);
/* CURED_OK, or why the connection ended. One that was lost (UNAVAILABLE, RESOURCE_EXHAUSTED) is made anew by the next
 * call that is started or tried again; one that broke the protocol is not. */
CURED_API cured_status cured_conn_status(const cured_conn *conn, cured_error *error);
/* Who answers: the daemon's name and version as of WELCOME ("cured/0.2.0"), "" before; "embedded/0.2.0" in this process. Valid
 * until cured_close(). */
CURED_API const char *cured_server(const cured_conn *conn);
/* Why "auto:" answers in this process: UNAVAILABLE (nobody listens) or PERMISSION_DENIED (a daemon that this user may not use;
 * it is for its group, cured as installed). CURED_OK where it has found a daemon, and for all other addresses. */
CURED_API cured_status cured_auto_reason(const cured_conn *conn, cured_error *error);

/* For event loops. The descriptor is -1 while there is none to wait for, and changes when a connection is made anew, or threads
 * are started: ask after each cured_process(). Events are POLLIN and POLLOUT of poll(2); the timeout is as for poll(2), -1: none. */
CURED_API int cured_fd(const cured_conn *conn);
CURED_API short cured_events(const cured_conn *conn);
CURED_API int cured_timeout_ms(const cured_conn *conn);
/* Does what can be done now, without blocking, and calls the callbacks of what is done. Returns the connection's
 * status. FAILED_PRECONDITION from inside a callback. */
CURED_API cured_status cured_process(cured_conn *conn, cured_error *error);

/* ---- Calls ---- */
/* The array is (outer, n, inner) elements in C order and is reduced along the middle: answer o·inner + i is that of the n
 * elements (o, k, i). For any other shape outer is the product of the dimensions before the axis and inner that of
 * those behind it; for an array in Fortran order the other way round. */
typedef struct cured_axis {
    uint64_t outer, n, inner;
} cured_axis;

/* Which elements of the input count. What a mask leaves out is for no op there; indices stay those of the whole input, and along an
 * axis a slice of which nothing counts is answered as an empty one. A daemon is sent it before the input, and keeps all of it: so it
 * counts against the daemon's max_state_bytes_per_connection (RESOURCE_EXHAUSTED). One that is too old takes none (UNIMPLEMENTED). It
 * does not go with cured_reduce_regions. A partial under a mask has no position (unplaced). */
typedef enum cured_mask_kind {
    CURED_MASK_BYTES = 1, /* a byte an element, true unless it is 0, as NumPy's bool */
    CURED_MASK_BITS = 2,  /* a bit an element, bit i of byte j for number 8·j + i, as Arrow's validity */
} cured_mask_kind;
typedef struct cured_mask {
    const void *data; /* the caller's; it stays valid and unchanged until the call is done */
    uint64_t count;   /* elements that it speaks of: those of the input (INVALID_ARGUMENT) */
    uint64_t first;   /* number of the first element's byte or bit in data */
    cured_mask_kind kind;
    bool leaves_out; /* elements where it is true do not count, as in numpy.ma; otherwise those where it is false */
} cured_mask;

/* Segments of the input: segment i has the elements from offset i up to, but without, offset i + 1, and an answer of each op. Elements
 * before the first offset and from the last on are ignored. Offsets do not fall, are not negative and lie within the input: otherwise the
 * call is INVALID_ARGUMENT, which names the first that is wrong. An empty segment is answered as an empty array; extrema and their indices
 * have no value there (see "Arrays of answers"). Indices count from the segment's first element. An older daemon refuses
 * offsets, or medians and quantiles by them (UNIMPLEMENTED). Device memory goes by cured/cuda.h. */
typedef struct cured_offsets {
    const void *data;  /* the caller's, at any alignment; it stays valid and unchanged until the call is done */
    uint64_t count;    /* segments + 1 */
    cured_dtype dtype; /* CURED_I32, CURED_I64, CURED_U32 or CURED_U64 */
} cured_offsets;

/* A key for each row of the input, and an answer of each op for each group and column: element (i, c) of the input, in rows of `columns`
 * elements, belongs to answer key[i]·columns + c. The order of rows changes no bit. A key outside 0 to groups - 1 is INVALID_ARGUMENT, which
 * names the first, unless drop leaves such rows out. A group of no rows is answered as an empty array; extrema and their indices have no
 * value there (see "Arrays of answers"). Indices are the numbers of rows. No digest, and no prod of floats (INVALID_ARGUMENT). What is
 * known of all groups takes 1 GiB at most (RESOURCE_EXHAUSTED); docs/NUMERICS.md says how much a group takes. For medians and quantiles the
 * elements are copied, in one thread. A daemon keeps to its max_state_bytes_per_connection, too; an older one refuses keys, or medians and
 * quantiles by them (UNIMPLEMENTED). */
typedef struct cured_keys {
    const void *data;  /* the caller's, at any alignment; it stays valid and unchanged until the call is done */
    uint64_t count;    /* of rows */
    cured_dtype dtype; /* CURED_U8 to CURED_I64 */
    uint64_t groups;
    uint64_t columns; /* of a row; an array of values has 1 */
    bool drop;
} cured_keys;

/* The second array of ops of two (dot, sqdist, average): as many elements as the input, in its order. */
typedef struct cured_second {
    const void *data;
    uint64_t count;
    cured_dtype dtype; /* the input's */
} cured_second;

typedef struct cured_options {
    size_t struct_bytes;     /* sizeof(cured_options): set by the initialiser */
    uint32_t timeout_ms;     /* the whole call, tries included; 0: none; at most 86,400,000 */
    uint32_t retries;        /* see below; 0: never */
    cured_nan nan;           /* what a NaN in the input means */
    cured_overflow overflow; /* for prod of integers; these three count for the ops that take them, one at least must */
    cured_dtype result_dtype; /* CURED_DTYPE_DEFAULT: each op's own */
    uint64_t ddof;            /* for var and std: n - ddof divides, where n counts what nan left; n <= ddof gives NaN */
    /* Called by cured_process() and blocking waits, on the thread that runs them; any may be NULL. They may start,
     * cancel and free calls (this one too), but not process, wait or close. */
    void (*on_done)(cured_call *call, void *user);
    void (*on_progress)(cured_call *call, uint64_t bytes_done, uint64_t bytes_total, void *user); /* total 0: unknown */
    uint32_t progress_ms; /* how often; 0: never */
    void *user;
    /* For reductions; see "Arrays of answers" and "Partials" below. */
    const cured_axis *axis; /* NULL: the whole array is one answer. Copied */
    void *const
        *results; /* one array for each op, to be filled; NULL: the library's own. Only the pointers are copied */
    uint64_t max_result_bytes; /* memory that the library may take for the answers of one call; 0: 1 GiB */
    void (*on_part)(cured_call *call, size_t index, uint64_t first, const void *values, uint64_t count, void *user);
    uint64_t first; /* index of the input's first element in a larger array, below 2^63 */
    bool partial;   /* answer with the partial instead of values */
    /* One CUDA kernel of the daemon's ladder, by name (docs/KERNELS.md), which alone folds the whole input; NULL: whatever is best.
     * Copied. With none of axis, partial, first, nan, overflow, result_dtype, ddof. NOT_FOUND for a name the daemon does not know,
     * FAILED_PRECONDITION where it has no CUDA device, UNIMPLEMENTED for an op or type that these kernels lack. */
    const char *kernel;
    uint32_t max_retry_wait_ms; /* a daemon that asks for a longer wait is taken to ask for this; 0: 10 s */
    bool unplaced;              /* with partial: one without a position. No first, argmin, argmax, prod of floats */
    bool statuses; /* with axis or offsets: an answer without a value fails no call; see "Arrays of answers" */
    const struct cured_output
        *outputs;           /* with axis or offsets: where the daemon writes each op's answers; see there. Copied */
    const cured_mask *mask; /* NULL: every element counts. Copied, but not its data */
    const struct cured_block *layout; /* with partial: the input is a block of a larger array; see "Partials". Copied */
    const cured_offsets
        *offsets; /* an answer for each segment, as along an axis. NULL: none. Copied, but not its data */
    const cured_keys
        *keys; /* an answer for each group and column, as along an axis. NULL: none. Copied, but not its data */
    /* For quantile, which may come several times: the share of each op, 0 to 1 (of others it is ignored; NULL: 0.5). Copied */
    const double *parameters;
    cured_method method;             /* for quantile: what lies between two elements */
    const struct cured_bytes *asked; /* with median alone: count what a search asks; see "Searches". Copied */
    const cured_second *second; /* for ops of two arrays, which take it and no others do. Copied, but not its data */
} cured_options;

#define CURED_OPTIONS_INIT                                                                                             \
    {                                                                                                                  \
        sizeof(cured_options), 0, 8, CURED_NAN_PROPAGATE, CURED_OVERFLOW_ERROR, CURED_DTYPE_DEFAULT, 0, NULL, NULL, 0, \
            NULL, NULL, NULL, 0, NULL, 0, false, NULL, 0, false, false, NULL, NULL, NULL, NULL, NULL, NULL,            \
            CURED_METHOD_LINEAR, NULL, NULL                                                                            \
    }

/* A call that ends with UNAVAILABLE (a lost connection is that too) or RESOURCE_EXHAUSTED is tried again, after the
 * time the daemon asks for (max_retry_wait_ms at most) or 10 ms doubling up to 1 s, up to `retries` times and while the
 * deadline allows. Up to half of the wait is added at random, so that clients turned away together do not come back
 * together. Reductions change nothing, so that is safe. Streams are never tried again: their bytes are gone.
 *
 * Each function below queues a call; what goes wrong with the arguments is told at once (INVALID_ARGUMENT, NULL *call),
 * everything else when the call is done. ops: 1 to CURED_MAX_OPS, each once, copied. options may be NULL. *call belongs
 * to the caller until cured_call_free(). */

/* Reduces count elements at data, which must stay valid and unchanged until the call is done. */
CURED_API cured_status cured_reduce_buffer(cured_conn *conn, cured_dtype dtype, const cured_op *ops, size_t op_count,
                                           const void *data, uint64_t count, const cured_options *options,
                                           cured_call **call, cured_error *error);
/* Reduces count elements (CURED_TO_END: all) from byte `offset` of a regular file or memfd, which the daemon reads
 * itself; not over TCP (FAILED_PRECONDITION). The library keeps its own duplicate of fd: the caller may
 * close its own at once. Neither side moves the file position. */
CURED_API cured_status cured_reduce_fd(cured_conn *conn, cured_dtype dtype, const cured_op *ops, size_t op_count,
                                       int fd, uint64_t offset, uint64_t count, const cured_options *options,
                                       cured_call **call, cured_error *error);
/* Reduces bytes that are handed over piece by piece: exactly `bytes`, or CURED_UNKNOWN_LENGTH. */
CURED_API cured_status cured_reduce_stream_begin(cured_conn *conn, cured_dtype dtype, const cured_op *ops,
                                                 size_t op_count, uint64_t bytes, const cured_options *options,
                                                 cured_call **call, cured_error *error);
/* Hands over the next bytes; they need not be whole elements. data must stay valid until cured_stream_pending() is 0 or
 * the call is done. One piece at a time: FAILED_PRECONDITION while the one before is pending. INVALID_ARGUMENT beyond
 * the declared length. Nothing is copied; the daemon's credit and the socket set the pace. */
CURED_API cured_status cured_stream_write(cured_call *call, const void *data, size_t bytes, cured_error *error);
/* Bytes handed over and not sent yet; 0 when the call is done. */
CURED_API size_t cured_stream_pending(const cured_call *call);
/* Blocks until nothing is pending or the call is done; returns the call's status in the second case. */
CURED_API cured_status cured_stream_drain(cured_call *call, cured_error *error);
/* No more bytes come. INVALID_ARGUMENT, and no effect, when fewer than declared were handed over. */
CURED_API cured_status cured_stream_end(cured_call *call, cured_error *error);

/* ---- Regions: memory that the daemon keeps open and reads in place (FAILED_PRECONDITION over TCP) ----
 *
 * Register once, reduce any part of it as often as wanted; nothing is copied or sent. The daemon writes only where
 * options.outputs say so, reads what is there at the time, and lets go when the region is unregistered, or when this connection
 * ends for whatever reason. The functions that make a region only queue its registration, and reductions may be queued at once:
 * those of a region that the daemon refuses end with its reason. On a connection that was made anew the region is registered
 * anew, by itself. *region is the caller's until cured_region_free(), also after cured_close(). In this process a memfd that is
 * sealed (F_SEAL_SHRINK) and has no holes is mapped and read where it is; everything else is read by pread. */

/* A memfd or a regular file, open for reading, at its present size; the library keeps its own duplicate of fd. Memory that is sealed
 * (F_SEAL_SHRINK) and has no holes is read with the least work, if fd may write, too: only then Linux watches it for holes. One whose
 * file is cut, or gets holes, while it is read is lost (DATA_LOSS). */
CURED_API cured_status cured_region_fd(cured_conn *conn, int fd, cured_region **region, cured_error *error);
/* The same of memory that answers may be written to, too (options.outputs): a memfd or POSIX shared memory, open for reading and
 * writing. INVALID_ARGUMENT for files, and for memory with holes (posix_fallocate fills them; cured_array_alloc() leaves none),
 * in huge pages, or sealed against writing; in this process also for a descriptor that appends (O_APPEND). A daemon that is too old
 * to write reads it as cured_region_fd(). */
CURED_API cured_status cured_region_fd_writable(cured_conn *conn, int fd, cured_region **region, cured_error *error);
/* POSIX shared memory by the name given to shm_open(), of this program's own user; for daemons with the option shm_names
 * (PERMISSION_DENIED otherwise). Where the descriptor is at hand, cured_region_fd() needs no option. */
CURED_API cured_status cured_region_shm(cured_conn *conn, const char *name, cured_region **region, cured_error *error);

typedef struct cured_cuda_memory {
    unsigned char device[16]; /* the GPU's UUID */
    const void
        *handle; /* 64 bytes: cudaIpcMemHandle_t, or cudaMemPoolPtrExportData when fd is a pool's; NULL: fd alone */
    int fd;      /* of the memory or pool (POSIX descriptor), duplicated; -1: handle alone */
    uint64_t offset, bytes; /* the region, from the start of the allocation */
    const void *event;      /* 64 bytes: cudaIpcEventHandle_t that every reduction waits for; NULL: none */
} cured_cuda_memory;

/* Device memory of this program. FAILED_PRECONDITION where the daemon has no such GPU, UNIMPLEMENTED in this process. */
CURED_API cured_status cured_region_cuda(cured_conn *conn, const cured_cuda_memory *memory, cured_region **region,
                                         cured_error *error);
/* The same from any pointer into device memory: `bytes` from there on. The library finds the GPU, the allocation and how it is shared:
 * CUDA IPC for cudaMalloc, a descriptor for memory of cuMemCreate and of memory pools that were made to be shared
 * (CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR). It asks the CUDA driver that the program has loaded; libcured itself is not linked with
 * CUDA. event: a cudaEvent_t of cudaEventInterprocess behind the work that fills the memory: each reduction begins when it has fired;
 * record it before the reduction is asked for. NULL: none. The memory must stay allocated until the region is unregistered.
 * FAILED_PRECONDITION, with the reason, where the memory cannot be shared (managed memory, pools and allocations that were not made for
 * it); INVALID_ARGUMENT for what is no device memory and for more bytes than the allocation has. */
CURED_API cured_status cured_region_cuda_pointer(cured_conn *conn, const void *pointer, uint64_t bytes, void *event,
                                                 cured_region **region, cured_error *error);
/* The same two of memory that answers may be written to, too (options.outputs, without options.results): those to a region in the
 * memory of the same GPU. The GPU writes them there itself, and they are there when the call is done: any stream of this program may
 * read them then. Each op's answers begin at a multiple of their size in the allocation. The call begins when the events of its input
 * and of its outputs have fired. A daemon that is too old to write reads such a region only. UNIMPLEMENTED in this process. */
CURED_API cured_status cured_region_cuda_writable(cured_conn *conn, const cured_cuda_memory *memory,
                                                  cured_region **region, cured_error *error);
CURED_API cured_status cured_region_cuda_pointer_writable(cured_conn *conn, const void *pointer, uint64_t bytes,
                                                          void *event, cured_region **region, cured_error *error);
/* Blocks until the daemon has opened the region, or says why not: DEADLINE_EXCEEDED after 60 s. No need to. */
CURED_API cured_status cured_region_wait(cured_region *region, cured_error *error);
/* Its size, once it is open; 0 before. */
CURED_API uint64_t cured_region_bytes(const cured_region *region);
/* Reduces count elements (CURED_TO_END: all) from byte `offset` of the region. */
CURED_API cured_status cured_region_reduce(cured_region *region, cured_dtype dtype, const cured_op *ops,
                                           size_t op_count, uint64_t offset, uint64_t count,
                                           const cured_options *options, cured_call **call, cured_error *error);
/* `count` elements (CURED_TO_END: all) from byte `offset` of a region. */
typedef struct cured_piece {
    cured_region *region;
    uint64_t offset, count;
} cured_piece;

/* Reduces one array that lies in up to 16 pieces, one after the other, in regions of one connection: on different GPUs, in
 * host memory or both. The daemon reduces every piece where it lies, all at once, merges the partials and answers with the
 * bits of the whole array. A piece that fails fails the call, whose sentence names it ("regions[2]: ..."). No axis and no
 * kernel; with prod of floats every piece but the last has a multiple of 4,096 elements. All pieces but the last need a count,
 * or a region that is open (FAILED_PRECONDITION otherwise). In this process: UNIMPLEMENTED. */
CURED_API cured_status cured_reduce_regions(const cured_piece *pieces, size_t count, cured_dtype dtype,
                                            const cured_op *ops, size_t op_count, const cured_options *options,
                                            cured_call **call, cured_error *error);
/* Ends the region: no reduction of it can be started any more. *call is done when those under way are over and the daemon has let go
 * of the memory. */
CURED_API cured_status cured_region_unregister(cured_region *region, const cured_options *options, cured_call **call,
                                               cured_error *error);
/* Unregisters it if need be, without waiting, and frees it; calls under way go on. NULL is fine. */
CURED_API void cured_region_free(cured_region *region);

/* An array to write into and reduce with no copy at all: zeroed memory of count elements (at least 1), all of it there
 * (RESOURCE_EXHAUSTED otherwise) and sealed against being cut: cured_region_fd(conn, cured_array_fd(array), …). Any thread. */
CURED_API cured_status cured_array_alloc(cured_dtype dtype, uint64_t count, cured_array **array, cured_error *error);
/* Valid until cured_array_free(). */
CURED_API void *cured_array_data(const cured_array *array);
CURED_API size_t cured_array_bytes(const cured_array *array);
CURED_API int cured_array_fd(const cured_array *array);
/* Frees it; regions of it stay readable for the daemon until they end. NULL is fine. */
CURED_API void cured_array_free(cured_array *array);

/* ---- Arrays of answers: reductions along an axis ----
 *
 * With options.axis a call gives outer·inner answers for each op instead of one: cured_call_array() instead of
 * cured_call_value(). All answers of an op have one type (cured_call_array says which): integer sums are i64 or u64 (i128 with
 * result_dtype), min and max the input's type, indices and counts u64, any and all bool, everything else f64 or
 * result_dtype. One that does not fit fails the call (OUT_OF_RANGE, naming it). The input must have exactly
 * outer·n·inner elements (INVALID_ARGUMENT, at once where the count is known). first and partial are not for these calls.
 *
 * Where the answers go: into options.results, one array of outer·inner elements of the op's type for each op, which must
 * stay valid until the call is done and hold nothing that is promised unless it ends with CURED_OK; else, without
 * on_part, into arrays of the library's own, which cured_call_free() frees. What the library has to allocate (those arrays, and
 * one bit for each answer of each op) is bounded by max_result_bytes: INVALID_ARGUMENT above it, before anything is sent.
 *
 * on_part is called with answers first … first + count − 1 of ops[index] as they come, in any order, each once; values are
 * valid during the callback, which may do what the other callbacks may. They count only if the call ends with
 * CURED_OK; a call that has handed some over is not tried again.
 *
 * options.outputs names a place in a writable region of this connection for each op: the daemon writes the answers there, and none goes
 * through the socket. With options.statuses only those come, where an answer has no value. No on_part then. With options.results too,
 * results[i] must be where this program sees the same memory (cured_array_data() and the offset): a daemon that cannot write there sends
 * the answers, and the library puts them there. Without results such a call ends UNIMPLEMENTED, or with the reason why the region was
 * refused, and cured_call_array() gives NULL. INVALID_ARGUMENT: answers that go beyond their region, or into bytes of another op's or of
 * the input; and in a GPU's memory, answers to input elsewhere (UNIMPLEMENTED: to axes without elements). The content is promised only if
 * the call ends with CURED_OK; one that was cancelled or lost may write for some milliseconds more, until the region is unregistered. In
 * this process the answers are copied there at the end of the call.
 *
 * An answer may have no value: a sum or product that does not fit its integer type, and the extrema of no elements. It fails the
 * call with all its ops, unless options.statuses is set. Then cured_call_array_status() says of each op whether all of its answers
 * have values, cured_call_array_statuses() which have none (their bytes are zeros; those of extrema of only NaNs that are skipped
 * are NaN and 2^64-1, and have the status too), and the others are good. max_result_bytes counts a byte for each answer more. A
 * daemon that is too old for this fails the call as without. Set before on_part is called, the bytes may be read there. */

/* From byte `offset` of the region on, of any alignment. */
typedef struct cured_output {
    cured_region *region;
    uint64_t offset;
} cured_output;

/* The type of an op's answers along an axis, 0 where there is none of fixed size; size them with cured_dtype_size(). */
CURED_API cured_dtype cured_axis_dtype(cured_op op, cured_dtype dtype, cured_dtype result_dtype);

/* ---- Partials: unfinished answers, to be merged (docs/PARTIALS.md) ----
 *
 * With options.partial a call answers with the exact state of its reduction: bytes that may be kept and sent anywhere
 * (cured_call_partial). options.first says where in a larger array the input begins. Partials of disjoint ranges, made for
 * the same type and the same ops, merge in any order to the bits that the whole array would have given. */

/* options.layout: the input is a block, in C order, of an array of shape[i] elements along axis i: the extent[i] from start[i] on. Such
 * partials merge in any order, also with those that say first; indices and digest are the array's. A digest tells of a missing or doubled
 * block; nothing else does. No prod of floats, first, unplaced, mask, second, several regions. UNIMPLEMENTED: the daemon is too old. */
enum { CURED_BLOCK_MAX_DIMS = 32 };
typedef struct cured_block {
    size_t dims; /* CURED_BLOCK_MAX_DIMS at most */
    const uint64_t *shape, *start, *extent;
} cured_block;
typedef struct cured_bytes {
    const void *data;
    size_t bytes;
} cured_bytes;

/* Answers ops from partials, merged by the daemon: values as of one reduction, or with options.partial the merged partial. The
 * partials are copied. INVALID_ARGUMENT (when the call is done) when one is not a partial, types or ops differ, or elements are in
 * two of them; UNIMPLEMENTED for another version of the form. axis and first are not for this call. Where the first partial is by key
 * (cured/by_key.h) all are, and the answers are those of a call by key: results, statuses and on_part are for them, or with options.partial
 * cured_call_partial() has the merged one. UNIMPLEMENTED: the daemon is too old to merge those. */
CURED_API cured_status cured_merge(cured_conn *conn, const cured_bytes *partials, size_t count, const cured_op *ops,
                                   size_t op_count, const cured_options *options, cured_call **call,
                                   cured_error *error);
/* The same here, without a daemon. Merges count partials, at least 1, into out, which has *out_bytes bytes
 * (CURED_PARTIAL_BYTES is always enough) and may be one of them; *out_bytes becomes the length. Errors as cured_merge(), and
 * INVALID_ARGUMENT with *out_bytes set to what is needed; out is not touched then. Any thread. */
CURED_API cured_status cured_partial_merge(const cured_bytes *partials, size_t count, void *out, size_t *out_bytes,
                                           cured_error *error);
/* Checks a partial, and says of what type its array is and how many elements it has seen; NULL: not asked. Any thread. */
CURED_API cured_status cured_partial_check(const void *partial, size_t bytes, cured_dtype *dtype, uint64_t *count,
                                           cured_error *error);

typedef struct cured_values cured_values;

/* Answers ops from a partial, here: the bits that the daemon would give. Of options (NULL: defaults) nan, overflow, result_dtype and ddof
 * count. INVALID_ARGUMENT when the partial was not made for one of the ops, or a digest is asked of less than a whole array. *values
 * belongs to the caller until cured_values_free(). Any thread. */
CURED_API cured_status cured_partial_finish(const void *partial, size_t bytes, const cured_op *ops, size_t op_count,
                                            const cured_options *options, cured_values **values, cured_error *error);
/* The answer to ops[index], valid until cured_values_free(); NULL when there is none. */
CURED_API const cured_value *cured_values_get(const cured_values *values, size_t index);
CURED_API void cured_values_free(cured_values *values);

/* ---- Partials that add up: one Allreduce of int64 (docs/PARTIALS.md, "Linear form"). Any thread ----
 *
 * The sums of up to 2^31 - 1 such vectors, and the maxima of those of extrema, are the vectors of the merged partial. INVALID_ARGUMENT
 * for products and bits, which do not add up, and for argmin and argmax, because vectors have no positions. No sum tells whether a
 * part is missing or there twice. cured_linear_size: how many numbers; max_count is 0 where none asks for extrema. */
CURED_API cured_status cured_linear_size(cured_dtype dtype, const cured_op *ops, size_t op_count, size_t *sum_count,
                                         size_t *max_count, cured_error *error);
/* A partial's vectors. The counts say how much room there is, then how many numbers; sums and maxima may be NULL. */
CURED_API cured_status cured_partial_linear(const void *partial, size_t bytes, int64_t *sums, size_t *sum_count,
                                            int64_t *maxima, size_t *max_count, cured_error *error);
/* The checked partial, without a position, of vectors that were added and compared: at out, as of cured_partial_merge. */
CURED_API cured_status cured_linear_partial(cured_dtype dtype, const cured_op *ops, size_t op_count,
                                            const int64_t *sums, size_t sum_count, const int64_t *maxima,
                                            size_t max_count, void *out, size_t *out_bytes, cured_error *error);

/* ---- Searches: medians and quantiles of an array in parts: files, ranks, chunks (docs/PARTIALS.md, "Searches") ----
 *
 * The elements that answer are found by several reads of all parts. Each is a call for each part, of the op median and with
 * options.asked: it answers with counts in place of values (cured_call_counts), in this process. The sum of the parts' counts, element by
 * element and in any order, goes to cured_search_next(). When nothing more is asked the values have the bits of the whole array. */
typedef struct cured_search cured_search;

/* ops: median and quantile alone. Of options nan, result_dtype, parameters and method count. *search is the caller's until
 * cured_search_free(). One thread at a time. */
CURED_API cured_status cured_search_begin(cured_dtype dtype, const cured_op *ops, size_t op_count,
                                          const cured_options *options, cured_search **search, cured_error *error);
/* What the next read counts: bytes that may be sent anywhere, valid until cured_search_next(), and how many counts there are. Without
 * bytes, and 0, the search is over. */
CURED_API cured_bytes cured_search_asked(const cured_search *search, size_t *count);
/* The read is over, with these counts of all parts. INVALID_ARGUMENT where they are not so many, or the search was over. */
CURED_API cured_status cured_search_next(cured_search *search, const uint64_t *counts, size_t count,
                                         cured_error *error);
/* The answers, once it is over (FAILED_PRECONDITION before). *values as of cured_partial_finish. */
CURED_API cured_status cured_search_values(const cured_search *search, cured_values **values, cured_error *error);
CURED_API void cured_search_free(cured_search *search);
/* A call with options.asked that is done: its counts; NULL, with 0, for other calls. */
CURED_API const uint64_t *cured_call_counts(const cured_call *call, size_t *count);

/* ---- Small arrays, here: no connection, no call ---- */

/* Reduces count elements at data in this thread, before it returns: no connection, no call. For arrays so small (some KiB)
 * that a call costs as much as its fold; the bits are the same. Of options (NULL: defaults) nan, overflow, result_dtype and
 * ddof count; axis, offsets, keys, outputs, partial, first, layout, asked and kernel are INVALID_ARGUMENT. UNIMPLEMENTED in a library without kernels. *values as
 * above. Any thread. */
CURED_API cured_status cured_reduce_here(cured_dtype dtype, const cured_op *ops, size_t op_count, const void *data,
                                         uint64_t count, const cured_options *options, cured_values **values,
                                         cured_error *error);

/* ---- Questions about the daemon ---- */

/* Asks the daemon about itself; cured_call_info() has the answer. */
CURED_API cured_status cured_info(cured_conn *conn, const cured_options *options, cured_call **call,
                                  cured_error *error);
/* Has the daemon read its options again, as SIGHUP does; cured_call_reloaded() has the answer. For root and the daemon's user, and
 * tokens that may "admin". CURED_FAILED_PRECONDITION: the options are wrong, and stay as they were. */
CURED_API cured_status cured_reload(cured_conn *conn, const cured_options *options, cured_call **call,
                                    cured_error *error);
/* Asks what every option of the daemon is set to, and by what. For root and the daemon's user, and tokens that may "admin". */
CURED_API cured_status cured_config(cured_conn *conn, const cured_options *options, cured_call **call,
                                    cured_error *error);
/* Asks the daemon what it knows of its calls: counts, times, lanes, users. An older one refuses with UNIMPLEMENTED. */
CURED_API cured_status cured_stats(cured_conn *conn, const cured_options *options, cured_call **call,
                                   cured_error *error);
/* Asks for the slowest calls of the last hour: the own user's; to root and the daemon's user those of all. */
CURED_API cured_status cured_slow_log(cured_conn *conn, const cured_options *options, cured_call **call,
                                      cured_error *error);
/* Asks whether the daemon answers; cured_call_elapsed_ns() tells how fast. */
CURED_API cured_status cured_ping(cured_conn *conn, const cured_options *options, cured_call **call,
                                  cured_error *error);

/* ---- Waiting for a call, and its end ---- */

/* Ends a call now, with CANCELLED, without a callback; nothing when it is done. Its buffer is free for other use. */
CURED_API void cured_cancel(cured_call *call);
/* Blocks until the call is done and returns its status; callbacks of other calls run meanwhile. None of them may free the
 * call that is waited for. */
CURED_API cured_status cured_wait(cured_call *call, cured_error *error);
/* The same for at most so many milliseconds: FAILED_PRECONDITION when the call is not done then. It goes on. */
CURED_API cured_status cured_wait_for(cured_call *call, uint32_t most_ms, cured_error *error);
CURED_API bool cured_call_done(const cured_call *call);
/* The status of a call that is done; FAILED_PRECONDITION before. CURED_OK: the input was good; each op still has a status of its own. */
CURED_API cured_status cured_call_status(const cured_call *call, cured_error *error);
/* Cancels if need be and frees the call and everything that came from it. NULL is fine. Also after cured_close(). */
CURED_API void cured_call_free(cured_call *call);

/* ---- Answers: of a call that is done with CURED_OK; valid until cured_call_free() ---- */

typedef struct cured_timing { /* measured by the daemon, in nanoseconds */
    uint64_t queue_ns, run_ns, total_ns;
} cured_timing;

/* Elements of the input. */
CURED_API uint64_t cured_call_count(const cured_call *call);
CURED_API cured_timing cured_call_timing(const cured_call *call);
/* From the start of the call until its answer was read, measured here. */
CURED_API uint64_t cured_call_elapsed_ns(const cured_call *call);
/* How often the call was sent again. */
CURED_API uint32_t cured_call_retries(const cured_call *call);
/* The answer to ops[index], and to an op; NULL when there is none, as for calls with an axis or for a partial. */
CURED_API const cured_value *cured_call_value(const cured_call *call, size_t index);
CURED_API const cured_value *cured_call_find(const cured_call *call, cured_op op);
/* A call with an axis: the answers to ops[index], *count = outer·inner elements of type *dtype (each may be NULL), little-endian;
 * options.results[index] if that was given. NULL, with 0 and CURED_DTYPE_DEFAULT, for other calls and where only on_part had them. */
CURED_API const void *cured_call_array(const cured_call *call, size_t index, cured_dtype *dtype, uint64_t *count);
/* The same call with options.statuses: a byte for each answer, its cured_status; *missing (may be NULL): how many have no value. NULL,
 * with 0, for calls without. */
CURED_API const uint8_t *cured_call_array_statuses(const cured_call *call, size_t index, uint64_t *missing);
/* CURED_OK: every answer to ops[index] has a value; otherwise the status of the first that has none, and a sentence. */
CURED_API cured_status cured_call_array_status(const cured_call *call, size_t index, cured_error *error);
/* A call with options.partial: its bytes; NULL, with 0, for other calls. */
CURED_API const void *cured_call_partial(const cured_call *call, size_t *bytes);

/* ---- Values ---- */

CURED_API cured_op cured_value_op(const cured_value *value);
/* CURED_OK: there is a value; otherwise why not, with a sentence. The accessors below return the same status then. */
CURED_API cured_status cured_value_status(const cured_value *value, cured_error *error);
CURED_API cured_dtype cured_value_dtype(const cured_value *value);
/* Whether the value is what docs/NUMERICS.md says of its op. Only sums and products of floats by a kernel that was asked for by
 * name are not: they depend on the order in which it adds. */
CURED_API bool cured_value_exact(const cured_value *value);
/* The value's bytes, little-endian, integers in two's complement; NULL when there is no value. */
CURED_API const void *cured_value_bytes(const cured_value *value, size_t *bytes);
/* argmin, argmax: the element at that index, in the input's type; NULL for other ops. */
CURED_API const void *cured_value_at(const cured_value *value, cured_dtype *dtype, size_t *bytes);
/* The nearest double; OUT_OF_RANGE (with *out set all the same) when an integer is not exactly that. */
CURED_API cured_status cured_value_double(const cured_value *value, double *out);
/* Integers, indices, counts and bool (0, 1). OUT_OF_RANGE when it does not fit, INVALID_ARGUMENT for floats. */
CURED_API cured_status cured_value_int64(const cured_value *value, int64_t *out);
CURED_API cured_status cured_value_uint64(const cured_value *value, uint64_t *out);
/* The exact value as text: decimal integers of any width; for floats the fewest digits that read back to the same value of the same type
 * (whole numbers below 1e16 in full), "nan", "inf", "-inf"; "true", "false". Independent of the locale. At most CURED_TEXT_BYTES. */
CURED_API cured_status cured_value_text(const cured_value *value, char *out, size_t bytes);
/* The same for one element of any type. INVALID_ARGUMENT when the size does not belong to the type. */
CURED_API cured_status cured_text(cured_dtype dtype, const void *element, size_t element_bytes, char *out,
                                  size_t bytes);
/* A float as a C99 hexadecimal constant, which needs no rounding to read back. INVALID_ARGUMENT for other types. */
CURED_API cured_status cured_value_hex(const cured_value *value, char *out, size_t bytes);

/* ---- Answers to questions about the daemon ---- */

typedef struct cured_lane {
    const char *name, *device;
    uint32_t workers;
    double bytes_per_second; /* 0: not measured */
} cured_lane;

typedef struct cured_counter {
    const char *name;
    uint64_t value;
} cured_counter;

/* What a user of the daemon holds. */
typedef struct cured_held {
    uint64_t connections, calls;
    uint64_t bytes;       /* input of calls in flight */
    uint64_t state_bytes; /* memory of reductions along an axis */
    uint64_t regions, region_bytes;
    uint64_t descriptors; /* passed, without their frame */
} cured_held;

typedef struct cured_user {
    const char *name;       /* "uid 1000"; of TCP "tcp 192.0.2.1", which counts as a user */
    bool own;               /* whoever asks */
    cured_held used, limit; /* limit: what it may hold now, beside what others hold */
} cured_user;

typedef struct cured_server_info {
    const char *version, *backend, *backend_reason;
    uint64_t uptime_ms;
    size_t lane_count, counter_count;
    const cured_lane *lanes;
    const cured_counter *counters;
    uint32_t max_ops, max_jobs_per_connection;
    uint64_t max_input_bytes, credit_bytes;
    uint32_t max_regions_per_connection;
    uint64_t max_region_bytes; /* of one connection */
    size_t user_count;         /* 0: an older daemon */
    const cured_user *users;   /* one's own first; to root and the daemon's user everybody, at most 32 */
} cured_server_info;

/* Options by name. */
typedef struct cured_reloaded {
    size_t changed_count, restart_count;
    const char *const *changed; /* other than before, and in force */
    const char *const *restart; /* other than before, but they take a restart */
} cured_reloaded;

/* The answer to cured_reload(); NULL for other calls. */
CURED_API const cured_reloaded *cured_call_reloaded(const cured_call *call);
/* The answer to cured_info(); NULL for other calls. */
CURED_API const cured_server_info *cured_call_info(const cured_call *call);
/* The answer to cured_stats(), cured_slow_log() or cured_config(), valid until cured_call_free(): a JSON object in one line, as the admin
 * address gives it at /stats.json (docs/OPERATIONS.md). NULL for other calls. */
CURED_API const char *cured_call_json(const cured_call *call);

#ifdef __cplusplus
}
#endif
#endif
