/* axis: a call's job along an axis, and the memory that is admitted for it. Thread: the loop's. Owner: the call. */
#ifndef CURED_SERVER_CALL_AXIS_H
#define CURED_SERVER_CALL_AXIS_H

#include "server/call/call.h"

/* Makes the call's job one along the axis of its checked request. on_device: its input is in a GPU's memory. */
cr_status cr_axis_attach(cr_call *call, bool on_device, cr_error *error);

#endif
