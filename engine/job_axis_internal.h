/* job_axis_internal: what the folds of a job with many answers share: room for answers, handing them over, and the state of an answer
 * that a worker carries. For engine/job_axis*.c.
 *
 * Thread: workers; see job_axis.h. Owner: the job. */
#ifndef CURED_ENGINE_JOB_AXIS_INTERNAL_H
#define CURED_ENGINE_JOB_AXIS_INTERNAL_H

#include "engine/job_axis.h"

/* Room for count answers of every op; out[k] is where op k's begin, and its statuses if there are some, as cr_axis_spec says. */
cr_output *cr_job_axis_output_new(const cr_job_axis *axis, uint64_t first, uint64_t count, void *out[],
                                  cr_error *error);
/* Hands an output to the loop, or writes it where the client wants it. */
cr_status cr_job_axis_output_emit(cr_queue *queue, cr_job *job, cr_output *output, void *const out[], cr_error *error);
uint64_t cr_job_axis_answers_at_once(const cr_job_axis *axis);
/* Scratch for what lies whole in a claim, kept while it is large enough. */
cr_status cr_job_axis_need_scratch(cr_job_axis_hand *hand, size_t bytes, cr_error *error);
/* The hand carries the state of the block, which has so many elements. */
cr_status cr_job_axis_take_up(cr_queue *queue, cr_job_axis_hand *hand, cr_job *job, uint64_t block, uint64_t elements,
                              cr_error *error);
typedef struct cr_job_keys cr_job_keys;
/* What is known by key. Each worker's state is made when it first folds, and comes to have no more than so many bytes. */
enum { CR_JOB_KEYS_STATES = 64 }; /* and there are no more of them */
cr_job_keys *cr_job_keys_new(const cr_keys *keys, uint32_t wants, uint64_t bytes, cr_error *error);
/* keys NULL: none are. */
bool cr_job_keys_has_states(const cr_job_keys *keys);
void cr_job_keys_free(cr_job_keys *keys);
/* A claim of a job by key. */
void cr_job_axis_fold_keys(cr_queue *queue, const cr_claim *claim, cr_error *error);
/* A claim of a job by offsets. */
void cr_job_axis_fold_offsets(cr_queue *queue, cr_job_axis_hand *hand, const cr_claim *claim, cr_error *error);

#endif
