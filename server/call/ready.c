/* ready: see ready.h. Thread: the loop's. */
#include "server/call/ready.h"

static bool is_full(const cr_calls *calls, cr_use use, cr_error *why) {
    if (!cr_admit_full(&calls->admission, use)) return false;
    cr_fail(why, CR_RESOURCE_EXHAUSTED, "%s: all %llu are taken; calls end by and by, or raise the limit",
            cr_admit_option(&calls->admission, use), (unsigned long long)calls->admission.most[use]);
    return true;
}

const char *cr_calls_unready(const cr_calls *calls, cr_error *why) {
    const cr_lanes *lanes = &calls->lanes;
    /* While they are opened, the lanes are another thread's. */
    const bool lost = !calls->warming && lanes->gpus_lost, all_lost = lost && lanes->gpus_lost == lanes->gpus;
    if (calls->config->on_gpu_fault == CR_ON_GPU_FAULT_EXIT && (all_lost || (lost && calls->draining))) {
        cr_fail(why, CR_UNAVAILABLE, "%s, and on_gpu_fault is exit", all_lost ? "every GPU is lost" : "a GPU is lost");
        return "gpu_lost";
    }
    if (calls->draining) {
        cr_fail(why, CR_UNAVAILABLE, "the daemon is about to end: running calls finish, and no new ones come in");
        return "draining";
    }
    if (calls->warming) {
        cr_fail(why, CR_UNAVAILABLE, "the daemon is starting: its lanes are being opened and measured");
        return "warming";
    }
    if (is_full(calls, CR_USE_connections, why) || is_full(calls, CR_USE_calls, why)) return "full";
    return NULL;
}
