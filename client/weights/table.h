/* table: what the readers of the room put tensors into, and share.
 *
 * Thread: one. Owner: the table is the caller's of weights_open(). */
#ifndef CURED_CLIENT_WEIGHTS_TABLE_H
#define CURED_CLIENT_WEIGHTS_TABLE_H

#include "client/weights/weights.h"

/* A place in a split GGUF file's set; count 0: it is none. */
typedef struct weights_split {
    uint64_t number, count, tensors; /* tensors: of the whole set; UINT64_MAX: not said */
} weights_split;

/* A printable copy of a name for a sentence: at most so many bytes, whole characters, and only visible ones. */
enum { WEIGHTS_SHOWN_BYTES = 88 };
const char *weights_shown(const char *name, char out[WEIGHTS_SHOWN_BYTES]);
/* The last part of a path. */
const char *weights_base(const char *path);
/* The same of a folder, whatever slashes its path ends in, for a sentence. */
const char *weights_shown_folder(const char *path, char out[WEIGHTS_SHOWN_BYTES]);

/* Adds an open file, whose descriptor is the table's from now on. */
cured_status weights_add_file(weights *w, const char *path, uint32_t *index, cured_error *error);
/* Adds a tensor of the last file with this name, which is copied; NULL: an error. Everything but name and file is zero. */
weights_tensor *weights_add(weights *w, const char *name, cured_error *error);
cured_status weights_set_shape(weights_tensor *t, uint32_t dims, const uint64_t *shape, cured_error *error);
/* Names the type: cured's own if there is one of that name, otherwise as the file says. */
void weights_set_type(weights_tensor *t, const char *own, const char *files);
/* Fills *error: "FILE: tensor 'NAME': sentence". */
cured_status weights_refuse(const weights *w, const weights_tensor *t, cured_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* "FILE: sentence", of the last file. */
cured_status weights_refuse_file(const weights *w, cured_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Keeps a sentence for the user, if there is memory for it. */
void weights_note(weights *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reads exactly `bytes` at `at` of the last file; DATA_LOSS where it ends before. */
cured_status weights_read(const weights *w, uint64_t at, void *out, size_t bytes, cured_error *error);
/* The product of the shape; false when it is above 2^63 - 1. */
bool weights_product(uint32_t dims, const uint64_t *shape, uint64_t *out);
/* Whether the tensors from `first` on lie side by side in the last file from `begin` on to its end, in any order: no hole, no
 * overlap, nothing behind them. Each begins at the next multiple of `alignment` behind the one before. */
cured_status weights_check_extents(const weights *w, size_t first, uint64_t begin, uint64_t alignment,
                                   cured_error *error);
/* Sorts by names, and refuses one that is there twice. */
cured_status weights_sort(weights *w, cured_error *error);

/* kind.c: refuses the last file if it is known not to be read. shard: of an index, where an archive is refused, too. */
cured_status weights_refuse_kind(const weights *w, bool shard, cured_error *error);
/* "FILE: it is WHAT, which runs code where it is read: ...", of the last file. */
cured_status weights_refuse_pickle(const weights *w, const char *what, cured_error *error);

/* The readers: each adds the tensors of the last file. */
cured_status weights_read_safetensors(weights *w, cured_error *error);
cured_status weights_read_gguf(weights *w, weights_split *split, cured_error *error);
cured_status weights_read_npz(weights *w, cured_error *error);
cured_status weights_read_npy(weights *w, const char *name, cured_error *error);
/* set.c: those that are several files. */
cured_status weights_read_index(weights *w, const char *path, cured_error *error);
cured_status weights_read_folder(weights *w, const char *path, cured_error *error);
/* Adds a file by what it is. named: its tensor's name, if it is a .npy file. */
cured_status weights_add_path(weights *w, const char *path, const char *named, cured_error *error);

#endif
