/* answer: what a call has to say, as the messages that every front sends.
 *
 * Thread: the loop's. Owner: the caller owns what it gives. */
#ifndef CURED_SERVER_CALL_ANSWER_H
#define CURED_SERVER_CALL_ANSWER_H

#include "server/call/calls.h"

/* The answer to what was asked, whose kind is neither FAILED nor DONE, as a ReduceResponse of *bytes. Until the next call; the
 * loop's. */
const uint8_t *cr_answer_pack(const cr_answer *answer, const cr_wire_reduce *asked, size_t *bytes);
/* What Info, Stats or SlowLog tells whoever asks, as its response; CR_HEAD_MAX_BYTES are enough. Its length. */
size_t cr_answer_plain(cr_calls *calls, const cr_peer *peer, cr_wire_kind kind, uint8_t *out, size_t cap);
/* What calls may be like. */
void cr_answer_limits(const cr_calls *calls, cr_wire_limits *limits);
/* What a client is advised to wait after such an error, in ms; 0: nothing is. */
uint32_t cr_answer_retry_ms(const cr_error *error);

#endif
