/* value: the answer from what came back from the device. Exact ones go through a partial, so that they are finished by the rules of
 * all others; for sums and products of floats there is only the float.
 *
 * Thread: any; nothing here holds state. Owner: the caller. */
#include "kernels/core/finish.h"
#include "kernels/core/key.h"
#include "kernels/core/round.h"
#include "kernels/ladder/total.h"

/* min or max: the key that won is an element's, or says that there was a NaN. */
static void set_extremum(cr_partial *p, const cr_ladder_job *job, uint64_t key) {
    unsigned width = 8 * (unsigned)cr_dtype_size(job->dtype);
    if (cr_dtype_kind(job->dtype) == CR_KIND_FLOAT && key == UINT64_MAX) {
        p->first_nan = 0;
        return;
    }
    if (job->op == CR_OP_MIN) key = ~key;
    if (job->dtype == CR_F16) key = (uint32_t)key >> 16;
    if (width < 64) key &= ((uint64_t)1 << width) - 1;
    cr_extremum *best = job->op == CR_OP_MIN ? &p->min : &p->max;
    *best = (cr_extremum){.key = key, .index = 0};
}

static void set_sum(cr_partial *p, __int128 sum) {
    int64_t *limbs = p->sums[CR_AT_SUM].limbs;
    for (int i = 0; i < 3; i++, sum >>= 32) limbs[i] = (int64_t)((uint64_t)sum & UINT32_MAX);
    limbs[3] = (int64_t)sum;
}

static void set_product(cr_partial *p, const cr_ladder_total *total) {
    p->prod.zeros = total->magnitude == 0;
    p->prod.negative = total->negative != 0;
    p->prod.over = total->magnitude == UINT64_MAX;
    p->prod.words = total->magnitude != 0 && !p->prod.over;
    p->prod.magnitude[0] = total->magnitude;
}

/* A float as the kernel left it: a NaN in its one form, and no -0. */
static void give_real(cr_value *value, double real) {
    union {
        double real;
        uint64_t bits;
    } u = {.real = real == 0 ? 0 : real};
    cr_value_bits(value, CR_F64, real != real ? cr_float_nan(CR_F64) : u.bits);
}

void cr_ladder_value(const cr_ladder_job *job, const cr_ladder_total *total, cr_value *value) {
    static const cr_finish_opts defaults;
    bool is_float = cr_dtype_kind(job->dtype) == CR_KIND_FLOAT;
    cr_partial p;
    cr_partial_init(&p, job->dtype, cr_op_needs(job->op, job->dtype));
    p.n = job->n;
    if (job->n != 0 && p.families & CR_FAM_EXTREMA) set_extremum(&p, job, total->key);
    if (p.families & CR_FAM_COUNTS) p.nonzero = total->truths;
    if (!is_float && p.families & CR_FAM_SUM) set_sum(&p, total->sum);
    if (!is_float && p.families & CR_FAM_PROD) set_product(&p, total);
    cr_partial_finish(&p, job->op, &defaults, value);
    if (!cr_ladder_exact(job->op, job->dtype)) {
        give_real(value, total->real);
    } else if (value->error.code == CR_OUT_OF_RANGE && p.prod.over) {
        cr_fail(&value->error, CR_OUT_OF_RANGE, "prod is beyond 64 bits, which is as far as %s keeps it", job->name);
    }
}
