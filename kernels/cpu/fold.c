/* fold: the choice of instruction set.
 *
 * Thread: cr_cpu_select once before any fold; cr_cpu_fold from any thread. The choice is one atomic pointer. */
#include "kernels/cpu/fold.h"

#include <stdatomic.h>
#include <string.h>

#include "kernels/core/float_state.h"
#include "kernels/cpu/table.h"

#if defined(__x86_64__)
#include <sys/platform/x86.h>
#endif

static _Atomic(const cr_fold_isa *) chosen;

#if defined(__x86_64__)
/* By what the loader has found out already, of which glibc's own macro shifts into a sign. __builtin_cpu_supports comes with a
 * constructor that runs CPUID some 25 times: in a virtual machine, where each is a trap, 60 µs of every process. */
static bool active(unsigned feature) {
    const struct cpuid_feature *leaf = __x86_get_cpuid_feature_leaf(feature / 128);
    return (leaf->active_array[feature % 128 / 32] >> feature % 32 & 1) != 0;
}
#endif

#if defined(__x86_64__)
bool cr_cpu_has_ifma(void) { return active(x86_cpu_AVX512_IFMA); }
#endif

static bool have(const cr_fold_isa *isa) {
#if defined(__x86_64__)
    if (isa == &cr_fold_avx512) {
        return active(x86_cpu_AVX512F) && active(x86_cpu_AVX512BW) && active(x86_cpu_AVX512DQ) &&
               active(x86_cpu_AVX512VL) && active(x86_cpu_FMA) && active(x86_cpu_BMI2);
    }
#if !defined(CR_NO_AVX2)
    if (isa == &cr_fold_avx2)
        return active(x86_cpu_AVX2) && active(x86_cpu_FMA) && active(x86_cpu_F16C) && active(x86_cpu_BMI2);
#endif
#endif
    return isa == &cr_fold_portable;
}

/* Best first. */
static const cr_fold_isa *const isas[] = {
#if defined(__x86_64__)
    &cr_fold_avx512,
#if !defined(CR_NO_AVX2) /* kernels/CMakeLists.txt */
    &cr_fold_avx2,
#endif
#endif
    &cr_fold_portable,
};
enum { ISAS = sizeof isas / sizeof isas[0] };

cr_status cr_cpu_select(const char *isa, cr_error *error) {
    bool any = isa == NULL || strcmp(isa, "auto") == 0;
    for (int i = 0; i < ISAS; i++) {
        if (!any && strcmp(isa, isas[i]->name) != 0) continue;
        if (have(isas[i])) {
            atomic_store(&chosen, isas[i]);
            return CR_OK;
        }
        if (!any) return cr_fail(error, CR_FAILED_PRECONDITION, "this machine has no %s", isa);
    }
    if (strcmp(isa, "avx2") == 0 || strcmp(isa, "avx512") == 0) {
        return cr_fail(error, CR_FAILED_PRECONDITION, "this machine has no %s", isa);
    }
    return cr_fail(error, CR_INVALID_ARGUMENT, "unknown instruction set \"%.40s\" (auto, portable, avx2 or avx512)",
                   isa);
}

static const cr_fold_isa *current(void) {
    const cr_fold_isa *isa = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (isa == NULL) {
        cr_cpu_select(NULL, NULL);
        isa = atomic_load(&chosen);
    }
    return isa;
}

const char *cr_cpu_isa(void) { return current()->name; }

void cr_cpu_fold_view(cr_partial *p, const cr_view *view, uint64_t n, uint64_t index) {
    const uint64_t state = cr_float_enter();
    current()->fold(p, view, n, index);
    cr_float_leave(state);
}

void cr_cpu_fold(cr_partial *p, const void *data, uint64_t n, uint64_t index) {
    const cr_view view = cr_view_plain(data);
    cr_cpu_fold_view(p, &view, n, index);
}

void cr_cpu_quantile_fold(const cr_quantile *s, uint64_t *counts, const cr_view *view, uint64_t n) {
    current()->quantile(s, counts, view, n);
}
