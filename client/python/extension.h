/* extension: what the files of the Python extension share. An array becomes an input (input.c), a plan of how its memory is
 * walked (plan.c), a call of libcured (job.c) and an answer (answer.c); libcured does everything else.
 *
 * Thread: every function wants the GIL, except where its comment says otherwise. Owner: as the comments say; references to
 * Python objects are borrowed where nothing is said. */
#ifndef CURED_CLIENT_PYTHON_EXTENSION_H
#define CURED_CLIENT_PYTHON_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "cured/by_key.h"
#include "cured/cured.h"
#include "kernels/core/op.h"
#include "kernels/core/strided.h"

enum {
    CR_PY_MAX_DIMS = CR_STRIDED_MAX_DIMS,
    CR_PY_MOST_DEPTH = 32,         /* of calls inside calls: a request takes 10 KiB of the stack */
    CR_PY_SMALL_BYTES = 64 * 1024, /* folded with the GIL held: giving it away would cost more */
};

/* ---- module.c ---- */

/* Raises the exception that belongs to the status, in Python's words: libcured's result_dtype is its dtype. */
void cr_py_raise(const cured_error *error);
/* The same of a sentence that may name a file or an address: its words stay. */
void cr_py_raise_as_it_is(const cured_error *error);
/* Before and after what may call a function of the caller's that calls cured again, and takes much of the stack. False with a
 * RecursionError where too many of them are under way in this thread. */
bool cr_py_enter(void);
void cr_py_leave(void);
/* Calls a function of one of the package's Python files; a new reference. */
PyObject *cr_py_helper(const char *file, const char *function, PyObject *argument);
extern PyObject *cr_py_error;

/* ---- memory.c: memory as a Python object that exports its buffer: answers along an axis, and cured.empty ---- */

typedef struct cr_py_memory cr_py_memory;
typedef struct cr_py_client cr_py_client;
typedef struct cr_py_link cr_py_link;
typedef struct cr_py_kept cr_py_kept;
typedef struct cr_py_async cr_py_async;
extern PyTypeObject *cr_py_memory_type;
bool cr_py_memory_ready(PyObject *module);
/* An array of this shape, in C order; shared: in memory that a daemon can read. NULL with an exception. */
cr_py_memory *cr_py_memory_new(cured_dtype dtype, int ndim, const Py_ssize_t *shape, bool shared);
void *cr_py_memory_data(cr_py_memory *memory);
/* A numpy.ndarray of it, or a memoryview where there is no NumPy; takes over the reference. */
PyObject *cr_py_memory_array(cr_py_memory *memory);
/* The shared memory that holds these bytes, from *offset on, or NULL. */
cr_py_memory *cr_py_memory_find(const void *data, uint64_t bytes, uint64_t *offset);
/* Shared memory's region on this link, made if need be and kept with the memory; NULL with an exception. */
cured_region *cr_py_memory_region(cr_py_memory *memory, cr_py_link *link);
/* The same of one that the daemon may write to. */
cured_region *cr_py_memory_output(cr_py_memory *memory, cr_py_link *link);
PyObject *cr_py_empty(PyObject *module, PyObject *args, PyObject *kwargs);

/* ---- client.c: connections ---- */

/* One connection. It is used by one thread at a time: busy while a thread is at it, without the GIL perhaps. */
struct cr_py_link {
    cr_py_link *next; /* in the client's list of idle links */
    cured_conn *conn; /* NULL: closed */
    uint32_t uses;    /* the client's until it is closed, and one for each region that is kept */
    bool busy, local; /* local: it answers in this process */
    bool watched;     /* by an event loop, which must see what is read */
    cr_py_kept *trash;
    cr_list kept; /* all regions of it that are kept */
};
/* How many more threads may look; as if there were so many cores from now on, where it is not None. */
PyObject *cr_py_look_seats(PyObject *module, PyObject *cores);

/* A region of some memory on one link; the memory's owner keeps a list of these. */
struct cr_py_kept {
    cr_py_kept *next;
    cr_py_link *link;
    cr_list of_link;
    cured_region *region; /* NULL: it was let go of */
};

extern PyTypeObject *cr_py_client_type;
bool cr_py_client_ready(PyObject *module);
/* Takes an idle link, or makes one. NULL with an exception. */
cr_py_link *cr_py_link_take(cr_py_client *client);
void cr_py_link_give(cr_py_client *client, cr_py_link *link);
uint32_t cr_py_client_timeout_ms(const cr_py_client *client);
/* The client that answers in this process, and the one for regions and files; borrowed, NULL with an exception. */
cr_py_client *cr_py_client_local(void);
cr_py_client *cr_py_client_auto(void);
/* Of the list, the region on this link, or NULL. */
cured_region *cr_py_kept_find(const cr_py_kept *list, const cr_py_link *link);
/* Adds a region to the list, which takes it over. False without memory; the region is freed then. */
bool cr_py_kept_add(cr_py_kept **list, cr_py_link *link, cured_region *region);
/* Lets go of all regions, at once or when their link is given back. */
void cr_py_kept_drop(cr_py_kept **list);
/* The link's thread lets go of all regions that are kept on the link, and on links of the client that nobody uses: what reads them next
 * registers them anew. */
void cr_py_client_forget(const cr_py_client *client, cr_py_link *link);

/* ---- input.c: what an array is ---- */

typedef enum cr_py_kind { CR_PY_HOST, CR_PY_CUDA, CR_PY_FILE } cr_py_kind;

typedef struct cr_py_mask {
    const char *data; /* NULL: there is none */
    bool keeps;       /* elements where it is true; false: where it is false */
    Py_ssize_t strides[CR_PY_MAX_DIMS];
} cr_py_mask;

/* Where a file's array lies; all of it is the cured.File's. */
typedef struct cr_py_file_part {
    int fd;
    bool big, fortran;               /* big-endian; in Fortran order */
    bool in_c_order;                 /* it is to be read in C order although it is not */
    uint64_t offset;                 /* of the first element; of a deflated array, as if it were stored */
    const struct npz_member *packed; /* NULL: not deflated */
    const uint64_t *shape;
} cr_py_file_part;

typedef struct cr_py_input {
    cr_py_kind kind;
    cured_dtype dtype;
    uint8_t size; /* of an element */
    bool swap;    /* memory: big-endian */
    int ndim;
    cr_py_file_part file; /* FILE */
    const char *data;     /* HOST, CUDA: of the element at index 0 of every axis */
    uintptr_t stream;     /* CUDA: on which its library works now */
    cr_py_mask mask;
    cured_mask cuda_mask; /* CUDA: of its kind; data NULL: there is none */
    PyObject *owner;      /* whose memory it is: the object that was given; borrowed */
    PyObject *held;       /* owned, keeps the memory; may be NULL */
    PyObject *mask_held;  /* the same of a mask without a buffer */
    Py_buffer view, mask_view;
    bool has_view, has_mask_view;
    bool is_masked; /* elements may be left out: of a masked array, even where it has no mask, and with where= */
    bool
        is_lent; /* CUDA: the producer of it, or of its mask, may free it when the call has returned, which waits so long */
    Py_ssize_t shape[CR_PY_MAX_DIMS], strides[CR_PY_MAX_DIMS];
} cr_py_input;

/* What is not taken yet: cr_py_input_release may follow. */
void cr_py_input_begin(cr_py_input *in, PyObject *array);
/* Looks at an array. False with an exception; cr_py_input_release belongs to both. */
bool cr_py_input_take(cr_py_input *in, PyObject *array);
/* The exception that is set, with the name of the argument before its sentence. */
void cr_py_input_refused(const char *name);
/* Takes what stands for an array beside another, the argument `name`, in one piece and without its mask. False with an exception, of an
 * element that is missing, too. */
bool cr_py_input_plain(cr_py_input *in, const char *name, PyObject *array);
/* By the buffer protocol. 1: taken; 0: the type is not ours; -1: exception. */
int cr_py_input_buffer(cr_py_input *in, PyObject *array);
/* Looks at a mask, which must broadcast to the input's shape. */
bool cr_py_input_mask(cr_py_input *in, PyObject *mask, bool keeps);
/* Takes where=, beside a mask that the array of this input may have of its own. */
bool cr_py_input_where(cr_py_input *in, PyObject *array, PyObject *where);
/* Keeps this object, which it takes over, instead of what it kept. */
void cr_py_input_hold(cr_py_input *in, PyObject *object);
void cr_py_input_release(cr_py_input *in);
/* numpy.c: an array whose type is numpy.ndarray, once that was learnt. False: go by its buffer. */
bool cr_py_numpy_take(cr_py_input *in, PyObject *array);
/* Learns the type if it is numpy.ndarray. Raises nothing. */
void cr_py_numpy_learn(PyTypeObject *type);
bool cr_py_numpy_known(void);
/* tensor.c: tensors of CUDA memory, and of host memory without the buffer protocol. -1 with an exception, 0: it is none. */
int cr_py_input_tensor(cr_py_input *in, PyObject *array);
/* device.c: a column of Arrow on a GPU, and its mask. 0: it is none. */
int cr_py_input_arrow(cr_py_input *in, PyObject *array);
/* The next axis' step in C order. It wraps where a shape without elements is too large; nothing is read by it then. */
static inline Py_ssize_t cr_py_step(Py_ssize_t step, int64_t n) { return (Py_ssize_t)((size_t)step * (size_t)n); }
/* Whether its elements lie in C order without gaps. */
static inline bool cr_py_input_in_c_order(const cr_py_input *in) {
    Py_ssize_t step = in->size;
    for (int i = in->ndim - 1; i >= 0; i--) {
        if (in->shape[i] > 1 && in->strides[i] != step) return false;
        step = cr_py_step(step, in->shape[i]);
    }
    return true;
}
/* A type from "f32", "float32", numpy.float32, numpy.dtype, float, int, bool, torch.float32. big: NULL, or whether it is
 * big-endian, as ">f4". */
bool cr_py_dtype(PyObject *given, cured_dtype *dtype, bool *big);

/* ---- plan.c: in which order memory is walked (kernels/core/strided.h), and what of it is reduced ---- */

typedef cr_strided_plan cr_py_plan;

/* The input as an array with strides. */
cr_strided cr_py_plan_array(const cr_py_input *in);
/* axes: a bit for each axis that is reduced. ordered: the answer depends on the order of the elements. False with an exception. */
bool cr_py_plan_make(cr_py_plan *plan, const cr_py_input *in, uint64_t axes, bool whole, bool ordered);

/* A mask as libcured takes it: a byte an element, in the order of a plan. */
typedef struct cr_py_marks {
    cured_mask mask;
    bool parted; /* there is one */
    char *own;   /* NULL: the mask lies so in the caller's memory. To be freed by free() */
} cr_py_marks;

/* Parts a plan from its mask, which goes to marks: the plan is then one of all elements. A mask that does not lie so is copied; beyond
 * `most` elements it is left where it is, and parted is false. False with an exception. */
bool cr_py_plan_part(cr_py_plan *plan, const cr_py_input *in, uint64_t most, cr_py_marks *marks);

/* ---- source.c: a file that is read in blocks. Without the GIL ---- */

typedef struct cr_py_source cr_py_source;
/* Whether the input is such a file. */
bool cr_py_source_wanted(const cr_py_input *in);
/* count: its elements. NULL with an error. */
cr_py_source *cr_py_source_begin(const cr_py_input *in, uint64_t count, cured_error *error);
/* The next `most` elements, which there must be; *n is 0 where only bytes before the first were read. */
cured_status cr_py_source_next(cr_py_source *source, void *out, size_t most, size_t *n, cured_error *error);
/* After the last element: whether the file ends well. */
cured_status cr_py_source_check(cr_py_source *source, cured_error *error);
void cr_py_source_end(cr_py_source *source);

/* ---- job.c: a call of libcured from beginning to end ---- */

typedef struct cr_py_job {
    cured_call *call;
    char *block; /* NULL: the call reads the memory itself */
    cr_walk walk;
    cr_py_source *source; /* NULL: memory is walked */
    bool ended, hasty;    /* hasty: it is tried once */
    uint8_t extra[8];     /* one more element at the end of what is walked: initial= */
    bool has_extra;
} cr_py_job;

struct cr_py_request;
/* Starts the call of a request on a link and runs it to its end. Where the daemon has no room for a region more, those that are kept go
 * first. False with an exception. */
bool cr_py_job_do(cr_py_job *job, struct cr_py_request *request, const cr_py_plan *plan, cr_py_client *client,
                  cr_py_link *link);
/* By itself: starts it. False with an exception. */
bool cr_py_job_start(cr_py_job *job, struct cr_py_request *request, const cr_py_plan *plan, cr_py_client *client,
                     cr_py_link *link);
/* Hands the next block over where one is wanted. Without the GIL. */
cured_status cr_py_job_feed(cr_py_job *job, cured_error *error);
/* Runs it to its end, without the GIL where it takes long; Ctrl-C ends it. False with an exception. */
bool cr_py_job_run(cr_py_job *job, cr_py_link *link, uint64_t bytes);
void cr_py_job_end(cr_py_job *job);

/* ---- request.c: what is asked ---- */

typedef struct cr_py_request {
    PyObject *array, *axis, *where, *initial, *out; /* borrowed; NULL: not given */
    PyObject *shape, *start;                        /* of a block: the same */
    PyObject *offsets;                              /* of segments: the same */
    PyObject *second;                               /* of pairs: the same */
    PyObject *made;          /* owned: array, made of a list of numbers. NULL: it is the caller's */
    PyObject *keys, *groups; /* the same; with keys plan.axis is (groups, rows, columns) */
    cr_py_client *client;    /* borrowed; NULL: wherever is best */
    cr_py_async *async;      /* borrowed; NULL: the function waits for the answer */
    cured_op ops[CURED_MAX_OPS];
    size_t op_count;
    bool strict;        /* nulls="error" */
    uint64_t min_count; /* 0: none */
    bool has_ddof, takes_fraction;
    PyObject *fraction;             /* borrowed: a ddof that is no whole number; NULL: none */
    bool keepdims, partial, single; /* single: the answer of the one op, instead of a Result */
    bool listed;                    /* several quantiles: a list of their answers, instead of a Result */
    double shares[CURED_MAX_OPS];   /* options.parameters is this, or NULL */
    bool ordered;                   /* the answer depends on the order of the elements */
    bool has_results, has_first;    /* first: of a partial was given */
    uint64_t axes;                  /* a bit for each reduced axis, unless plan.whole */
    cured_options options;
    cured_bytes asked;                        /* of a search: options.asked is this, or NULL. Borrowed bytes */
    cr_py_marks marks;                        /* options.mask is of them, or NULL */
    cured_block block;                        /* options.layout is this, or NULL */
    cr_py_input *borders;                     /* owned; NULL: no offsets */
    cured_offsets segments;                   /* theirs: options.offsets is this, or NULL */
    cr_py_input *pair;                        /* owned; NULL: no second array */
    char *pair_own;                           /* a copy in the order of the plan; to be freed by free(). NULL: none */
    cured_second of_pair;                     /* options.second is this, or NULL */
    uint64_t places[3][CURED_BLOCK_MAX_DIMS]; /* the block's numbers */
    cr_py_memory *results[CURED_MAX_OPS];     /* owned, along an axis */
    PyObject *lacking[CURED_MAX_OPS];         /* owned: why some answers of an op have no value; NULL: all have one */
    void *pointers[CURED_MAX_OPS];
    size_t out_count; /* 0, or op_count: answers go straight into these, in place of results */
    Py_buffer out_views[CURED_MAX_OPS];
    cr_py_input *out_tensors; /* owned; not NULL: they are out_count tensors of a GPU, in place of out_views */
    size_t out_room;          /* for how many there is room */
    cr_py_input input;
    cr_py_plan plan;
    bool has_keys; /* of_keys is taken */
    cr_py_input of_keys;
    cured_keys by_key; /* options.keys is this, or NULL */
    cured_axis along;  /* the plan's: what options.axis points at */
} cr_py_request;

/* args behind those that name the array and the ops. False with an exception. */
bool cr_py_request_options(cr_py_request *request, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
/* An integer from 0 to 2^64 - 1. False with an exception, which names the keyword. */
bool cr_py_number(PyObject *value, const char *keyword, uint64_t *out);
/* ops: names in a sequence, or in one string with commas. */
bool cr_py_request_ops(cr_py_request *request, PyObject *ops);
/* order.c: the same of quantile, whose first argument, or q=, is its share. */
enum { CR_PY_MOST_WORDS = 32 };
bool cr_py_order_options(cr_py_request *request, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
/* Whether q is no number, but an array of them. */
bool cr_py_order_spreads(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
/* Whether an op goes by rank: this process answers it, unless a client is given. */
bool cr_py_wants_order(const cr_py_request *request);
/* The array, the mask and the axes of a request: its input and its plan. */
bool cr_py_request_plan(cr_py_request *request);
void cr_py_request_release(cr_py_request *request);
/* masks.c. Whether it is answered slice by slice (slices.c): for a first value, and under a mask that does not go beside the array. */
bool cr_py_request_in_slices(const cr_py_request *request);
/* Has the mask go beside the array, unless it would have to be copied and is long. False with an exception. */
bool cr_py_request_part_mask(cr_py_request *request);
/* The same of a file, which is never walked here. */
bool cr_py_request_part_file(cr_py_request *request);
/* Whether the mask is to go beside the array: a daemon keeps all of it, and is sent what counts instead where that is much. Of a
 * product of floats it has to know the places of all. */
bool cr_py_request_masks_beside(const cr_py_request *request, const cr_py_link *link);
/* Whether a product of floats is asked, which goes by the places of all elements. */
bool cr_py_request_has_float_prod(const cr_py_request *request);
/* Whether the order of elements matters: for first indices, and for the fixed tree of products. */
bool cr_py_request_is_ordered(const cr_py_request *request);
/* Whether each op has one answer. */
static inline bool cr_py_request_is_whole(const cr_py_request *r) {
    return r->plan.whole && r->options.offsets == NULL;
}
/* segments.c: the offsets of a request whose array is taken, if it has some. False with an exception. */
bool cr_py_segments_take(cr_py_request *request);
void cr_py_segments_release(cr_py_request *request);
/* The whole way, blocking. A new reference. */
PyObject *cr_py_request_run(cr_py_request *request);
/* slices.c: the same, one slice after the other, where a mask or a first value makes slices differ in length. */
PyObject *cr_py_request_slices(cr_py_request *request, cr_py_client *client, cr_py_link *link);
/* Whether the first value is one, also where no answer will ask for it, because there are no slices. False with an exception. */
bool cr_py_initial_check(const cr_py_request *request);

/* ---- ddof.c: ddof= and correction= ---- */

/* Takes the argument: a whole number, or, where the function has a way for it, another one. False with an exception. */
bool cr_py_ddof_take(cr_py_request *request, PyObject *value);
/* Of a request that has one: puts it to the options of a call that Python answers, under one name, and as a whole number if it is one. */
bool cr_py_ddof_give(const cr_py_request *request, PyObject *options);

/* ---- stored.c: containers that are read in blocks ---- */

/* Whether cured/_chunks.py answers for the object. */
bool cr_py_is_stored(PyObject *array);
bool cr_py_is_sequence(PyObject *object); /* a list or a tuple, of no class that stands on them */
/* Whether it is a range, or a list or a tuple of Python's numbers or of rows of them, by the first. Of nothing it is, too. */
bool cr_py_is_of_numbers(PyObject *array);
PyObject *cr_py_of_numbers(PyObject *self, PyObject *array); /* the same for _pairs.py */

/* Containers that stand beside an array in memory (where=, keys=, offsets=, second=): the request has arrays in their place, which `held`
 * owns until release. False with an exception; release is due then, too. */
enum { CR_PY_BESIDE = 4 };
bool cr_py_beside_take(cr_py_request *request, PyObject *held[CR_PY_BESIDE]);
void cr_py_beside_release(PyObject *held[CR_PY_BESIDE]);

/* ---- block.c: partials of blocks ---- */

/* shape and start of a request; without them nothing. False with an exception. */
bool cr_py_block_take(cr_py_request *request);

/* ---- second.c: ops of two arrays ---- */

/* The second array of a request whose array is taken, if it has one. False with an exception. */
bool cr_py_second_take(cr_py_request *request);
/* Lays it out in the order of the plan, which has these axes. False with an exception. */
bool cr_py_second_plan(cr_py_request *request, uint64_t axes, bool whole);
void cr_py_second_release(cr_py_request *request);

/* ---- keys.c: reductions by key ---- */

/* The keys of a request, beside its input, and how many groups there are; without keys nothing. False with an exception. */
bool cr_py_keys_take(cr_py_request *request);
/* Makes of the plan of a whole array one by key. */
bool cr_py_keys_plan(cr_py_request *request);
void cr_py_keys_release(cr_py_request *request);

/* ---- search.c: medians and quantiles of an array in parts ---- */

/* What a search asks of a part, as bytes: the request's answer is then counts. False with an exception. */
bool cr_py_search_ask(cr_py_request *request, PyObject *asked);
/* The counts, as an array of u64. */
PyObject *cr_py_search_counts(const cured_call *call);
/* How many numbers the counts are that r->asked asks; 0, with an exception set, where it is none of a search's. */
size_t cr_py_search_words(const cr_py_request *r);
/* Adds the functions that cured/_search.py stands on. */
bool cr_py_search_ready(PyObject *module);

/* ---- answer.c: answers as Python objects ---- */

PyObject *cr_py_answer_value(const cured_value *value);
/* The exception that is set, as an object; it is set no more. */
PyObject *cr_py_answer_take_error(void);
/* A Result of values, by these names of their ops, which are in a tuple. */
PyObject *cr_py_answer_named(PyObject *names, const cured_values *values);
/* The value, or the exception that says why there is none: a Result raises it when somebody asks for the value. */
PyObject *cr_py_answer_or_error(const cured_value *value);
/* Whether the op's answer is an index. */
bool cr_py_answer_is_index(cured_op op);
/* The index of an element of what r->plan walks. libcured's value counts the elements that a mask keeps; this counts all. */
uint64_t cr_py_answer_index(const cr_py_request *request, const cured_value *value);
/* Of an array that was folded without a call. */
PyObject *cr_py_answer_values(const cr_py_request *request, const cured_values *values);
/* Of a call that is done. */
PyObject *cr_py_answer(cr_py_request *request, const cured_call *call);
/* results[] of a request along an axis: memory for the answers. */
bool cr_py_answer_room(cr_py_request *request);
PyObject *cr_py_answer_arrays(cr_py_request *request);
/* A Result of values for the request's ops; takes over the references in `values`. */
PyObject *cr_py_answer_result(const cr_py_request *request, PyObject **values);

/* ---- results.c: a sequence of Results ---- */

bool cr_py_results_ready(PyObject *module);
/* Of so many values of the request's ops, which it takes over, also where it fails: the array from malloc(), and each of them. */
PyObject *cr_py_results_new(const cr_py_request *request, cured_values **values, size_t count);
/* The same of a list of Results that are there. */
PyObject *cr_py_results_of(PyObject *module, PyObject *list);

/* ---- out.c: where the caller wants the answers ---- */

/* The one op's type, if out and nothing else says it. */
bool cr_py_out_type(cr_py_request *request);
/* Takes the buffers or the tensors of out, if answers of that shape may go there as they come. False with an exception. */
bool cr_py_out_places(cr_py_request *request, int ndim, const Py_ssize_t *shape);
void cr_py_out_release(cr_py_request *request);
/* Of out, the op's; a new reference. */
PyObject *cr_py_out_item(const cr_py_request *request, size_t index);
/* Copies the answer, which it takes over, to out: what the function returns. */
PyObject *cr_py_out_store(const cr_py_request *request, PyObject *answer);
/* Whether the daemon of the link can write there: all of it is shared memory, or a GPU's. False with an exception: it must, and cannot. */
bool cr_py_out_regions(const cr_py_request *request, cr_py_link *link, cured_output outputs[CURED_MAX_OPS]);

/* ---- cuda.c: CUDA tensors in this process ---- */

/* Whether the request is answered there, and does it. */
bool cr_py_cuda_wanted(const cr_py_request *request);
PyObject *cr_py_cuda_run(cr_py_request *request);
/* Whether answers may go straight to tensors: that all of them have values is known, or waited for. */
bool cr_py_cuda_may_place(const cr_py_request *request);
/* A request whose array is a list or a tuple: its answer, where that holds CUDA tensors of one library, device and dtype, and nothing else is
 * asked; NULL without an exception where it does not. */
PyObject *cr_py_cuda_list(cr_py_request *request);
PyObject *cr_py_cuda_to(PyObject *module, PyObject *args);
PyObject *cr_py_cuda_whole(PyObject *module, PyObject *args);
/* Of a list of CUDA tensors: the partial of all, a Result for each, and another (stats.c); None where their streams differ. */
PyObject *cr_py_cuda_partial(PyObject *module, PyObject *args);
PyObject *cr_py_cuda_each(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
/* linears.c: linear forms in device memory. */
PyObject *cr_py_cuda_linear(PyObject *module, PyObject *args);
PyObject *cr_py_cuda_from_linear(PyObject *module, PyObject *args);
PyObject *cr_py_cuda_stats(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

/* ---- partial.c, file.c ---- */

extern PyTypeObject *cr_py_file_type;
bool cr_py_partial_ready(PyObject *module);
bool cr_py_file_ready(PyObject *module);
PyObject *cr_py_merge(PyObject *module, PyObject *parts);
/* _widened(list, dtype=None): the merged partial, as if all elements had that type: the narrowest that holds them all. */
PyObject *cr_py_widened(PyObject *module, PyObject *args);
/* linear.c: of a partial's bytes, the numbers that add up, or those of which the greatest counts. */
PyObject *cr_py_linear(PyObject *bytes, bool maxima);
PyObject *cr_py_from_linear(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *cr_py_partial_new(const void *data, size_t bytes);
/* by_key.c: the answers of the request's ops, as arrays, from a partial by key. */
PyObject *cr_py_by_key_finish(cr_py_request *r, const void *data, size_t bytes, const cured_by_key *of);
PyObject *cr_py_file_open(PyObject *module, PyObject *args, PyObject *kwargs);
/* Takes the place of an array in an input. */
void cr_py_file_input(PyObject *file, cr_py_input *in);

/* weights.c: path, ops or None, pattern or None, address: the tensors of a checkpoint and their answers, and the digest of all. */
PyObject *cr_py_weights(PyObject *module, PyObject *args);

/* ---- async.c: calls that an event loop waits for ---- */

extern PyTypeObject *cr_py_async_type;
bool cr_py_async_ready(PyObject *module);
/* Starts a call of the request, which is copied: a Call. */
PyObject *cr_py_async_start(cr_py_async *link, const cr_py_request *request);

/* ops.c: a function for each op, of the module, of Client and of File. */
typedef enum cr_py_owner { CR_PY_OF_MODULE, CR_PY_OF_CLIENT, CR_PY_OF_FILE } cr_py_owner;
PyMethodDef *cr_py_ops_methods(PyMethodDef *more, cr_py_owner owner);

/* signatures.c: puts the function's arguments before its text. op: 0 for reduce, describe and partial. False with an exception. */
bool cr_py_sign(PyMethodDef *method, cr_py_owner owner, int op);
/* slices.c: how a first value (initial=) joins op's answer, as _initial.py calls it; NULL: op takes none. */
const char *cr_py_joining(cr_op op);

#endif
