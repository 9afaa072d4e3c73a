/* fake_plan: the faults that are planned for the stand-in GPUs, and the counts of what was asked of them.
 * Thread: any; both have one mutex. Owner: the test. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/fake_internal.h"

pthread_mutex_t fake_gpu_mutex = PTHREAD_MUTEX_INITIALIZER;
fake_gpu_state fake_gpu_now = {.plan = {.devices = 1}, .armed = true};

void fake_gpu_misused(const char *how) {
    fprintf(stderr, "Assertion of the GPU's contract failed: %s\n", how);
    abort();
}

void fake_gpu_arm(void) {
    fake_gpu_state *now = &fake_gpu_now;
    now->armed = true;
    now->copies = now->folds = now->polls = now->looks = now->calls = now->pins = now->puts = 0;
}

void fake_gpu_plan(const fake_gpu_faults *faults) {
    pthread_mutex_lock(&fake_gpu_mutex);
    fake_gpu_now.plan = *faults;
    fake_gpu_arm();
    pthread_mutex_unlock(&fake_gpu_mutex);
}

fake_gpu_counts fake_gpu_seen(void) {
    pthread_mutex_lock(&fake_gpu_mutex);
    fake_gpu_counts seen = fake_gpu_now.counts;
    pthread_mutex_unlock(&fake_gpu_mutex);
    return seen;
}

fake_gpu_faults fake_gpu_planned(void) {
    pthread_mutex_lock(&fake_gpu_mutex);
    fake_gpu_faults faults = fake_gpu_now.plan;
    pthread_mutex_unlock(&fake_gpu_mutex);
    return faults;
}

void fake_gpu_count(uint32_t *counter) {
    pthread_mutex_lock(&fake_gpu_mutex);
    ++*counter;
    pthread_mutex_unlock(&fake_gpu_mutex);
}

bool fake_gpu_nth(uint32_t *counter, uint32_t wanted) {
    pthread_mutex_lock(&fake_gpu_mutex);
    bool is = fake_gpu_now.armed && ++*counter == wanted;
    pthread_mutex_unlock(&fake_gpu_mutex);
    return is;
}

/* "name=number,…" */
void fake_gpu_plan_from_environment(void) {
    fake_gpu_faults *plan = &fake_gpu_now.plan;
    const struct {
        const char *name;
        uint32_t *member;
    } names[] = {{"devices", &plan->devices},
                 {"fail_open", &plan->fail_open},
                 {"fail_pin", &plan->fail_pin},
                 {"fail_copy", &plan->fail_copy},
                 {"fail_fold", &plan->fail_fold},
                 {"fail_fault", &plan->fail_fault},
                 {"lose_at", &plan->lose_at},
                 {"hang_at", &plan->hang_at},
                 {"lacks", &plan->lacks},
                 {"stuck_at", &plan->stuck_at},
                 {"stuck_pin", &plan->stuck_pin},
                 {"stuck_put", &plan->stuck_put},
                 {"lies_at", &plan->lies_at},
                 {"polls", &plan->polls},
                 {"late_at", &plan->late_at},
                 {"room", &plan->room},
                 {"untraced", &plan->untraced},
                 {"hang_count", &plan->hang_count},
                 {"hang_open", &plan->hang_open},
                 {"stuck_unpin", &plan->stuck_unpin},
                 {"late_import", &plan->late_import}};
    const char *text = getenv("CURED_TEST_GPU");
    while (text && *text) {
        size_t i = 0, length = strcspn(text, "=");
        while (i < sizeof names / sizeof *names &&
               (strlen(names[i].name) != length || strncmp(names[i].name, text, length) != 0))
            i++;
        if (i == sizeof names / sizeof *names || text[length] != '=')
            fake_gpu_misused("CURED_TEST_GPU is not understood");
        char *end;
        *names[i].member = (uint32_t)strtoul(text + length + 1, &end, 0);
        text = *end == ',' ? end + 1 : end;
        fake_gpu_now.armed = false;
    }
}
