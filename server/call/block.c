/* block: see block.h. Thread: the loop's. Owner: its uses. */
#include "server/call/block.h"

#include <stdlib.h>

static void release(cr_block *block) {
    if (--block->uses == 0) free(block);
}

static void job_lets_go(cr_held *held) { release(cr_container(held, cr_block, held)); }

cr_status cr_call_layout(cr_call *call, cr_wire_form form, const uint8_t *in, size_t len, cr_error *error) {
    cr_wire_layout asked;
    if (call->request.kind != CR_CALL_REDUCE || !call->request.reduce.has_layout) return CR_OK;
    const cr_status status = cr_wire_unpack_layout(form, in, len, &asked, error);
    if (status != CR_OK) return status;
    cr_block *block = call->block = calloc(1, sizeof *block);
    if (!block) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a block");
    block->held.release = job_lets_go;
    block->uses = 1;
    return cr_layout_make(&block->at, asked.axes, asked.shape, asked.start, asked.extent, error);
}

void cr_block_hold(cr_call *call, cr_job *job) {
    cr_block *block = call->block;
    if (!block) return;
    block->uses++;
    block->held.next = job->held;
    job->held = &block->held;
    job->layout = &block->at;
    job->by_host = true; /* no kernel of a lane knows blocks */
}

void cr_block_drop(cr_call *call) {
    if (call->block) release(call->block);
    call->block = NULL;
}
