/* checkpoint: what the files of `cured-client weights` share: a checkpoint with its answers, a table of it, and its comparison with
 * another one or with a manifest.
 *
 * Thread: one. Owner: cmd_weights owns checkpoints; an entry's strings are its owner's. */
#ifndef CURED_CLIENT_CLI_CHECKPOINT_H
#define CURED_CLIENT_CLI_CHECKPOINT_H

#include "client/cli/cli.h"
#include "client/cli/table.h"
#include "client/weights/run.h"

typedef struct cli_checkpoint {
    const char *path;
    weights table;
    size_t all; /* tensors before --filter */
    weights_answers answers;
    char digest[CURED_TEXT_BYTES]; /* of all; "": a tensor has none, or none was asked for */
} cli_checkpoint;

/* What is asked, and how it is shown. */
typedef struct cli_columns {
    cured_op ops[CURED_MAX_OPS];
    size_t count;
    bool own;                              /* no --ops: count_nonzero is shown as zeros */
    cured_op digest, nans, infs, nonzeros; /* by name; asked for or not */
} cli_columns;

/* What counts of a whole checkpoint. */
typedef struct cli_totals {
    uint64_t tensors, elements, bytes, nans, infs, zeros;
    size_t strange;     /* tensors with a NaN or an infinity */
    size_t bytes_alone; /* tensors of types that cured does not reduce */
    size_t unknown;     /* of those, of a size that is not known: without a digest */
} cli_totals;

bool cli_columns_have(const cli_columns *c, cured_op op);
/* A count that was asked of a tensor; 0 where it has none. */
uint64_t cli_checkpoint_count(const cli_checkpoint *c, size_t tensor, cured_op op);
cli_totals cli_checkpoint_totals(const cli_checkpoint *c, const cli_columns *columns);
/* weights_table.c: rows, totals and the digest of all, as text or as a line of JSON. */
int cli_checkpoint_print(const cli_options *o, const cli_checkpoint *c, const cli_columns *columns);

/* weights_diff.c: a tensor as a manifest has it. */
typedef struct cli_entry {
    char *name, *type, *shape, *digest;
    uint64_t bytes;
} cli_entry;
typedef struct cli_entries {
    cli_entry *entries; /* by name */
    size_t count, all;  /* all: before --filter */
    char digest[CURED_TEXT_BYTES];
} cli_entries;
int cli_entries_of(const cli_checkpoint *c, const cli_columns *columns, cli_entries *out);
void cli_entries_free(cli_entries *e);
/* Prints what differs, is missing or is new; EXIT_OK or EXIT_DIFFERENT. */
int cli_entries_compare(const cli_entries *before, const cli_entries *now, bool json);
/* manifest.c */
int cli_manifest_write(const char *path, const cli_entries *e);
/* filter: as for a checkpoint; NULL: all. */
int cli_manifest_read(const char *path, const char *filter, cli_entries *out);

#endif
