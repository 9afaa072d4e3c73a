/* answer: what a call has to say, as the messages that every front sends.
 *
 * Thread: the loop's. Owner: the caller owns what it gives. */
#ifndef CURED_SERVER_CALL_ANSWER_H
#define CURED_SERVER_CALL_ANSWER_H

#include "server/call/calls.h"

/* The answer to what was asked, whose kind is neither FAILED nor DONE, as a ReduceResponse of *bytes. Until the next call; the
 * loop's. */
const uint8_t *cr_answer_pack(const cr_answer *answer, const cr_wire_reduce *asked, size_t *bytes);
/* What Info tells whoever asks. Until the next call; the loop's. */
const cr_wire_info *cr_answer_info(const cr_calls *calls, const cr_peer *peer);
/* What calls may be like. */
void cr_answer_limits(const cr_calls *calls, cr_wire_limits *limits);
/* What a client is advised to wait after such an error, in ms; 0: nothing is. */
uint32_t cr_answer_retry_ms(const cr_error *error);

#endif
