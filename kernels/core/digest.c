/* digest: powers of the roots, and the text. Thread: see digest.h. */
#include "kernels/core/digest.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "kernels/core/finish.h"

static const uint64_t roots[CR_DIGEST_PARTS] = {CR_DIGEST_R1, CR_DIGEST_R2};
static cr_digest_keys keys;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_keys(void) {
    for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) {
        uint64_t power = 1;
        for (unsigned k = 0; k < sizeof keys.key[j] / sizeof keys.key[j][0]; k++) {
            keys.key[j][k] = power;
            power = cr_digest_mul(power, roots[j]);
        }
    }
}

const cr_digest_keys *cr_digest_table(void) {
    pthread_once(&once, make_keys);
    return &keys;
}

uint64_t cr_digest_power(unsigned j, uint64_t exponent) { return cr_digest_raised(roots[j], exponent); }

uint64_t cr_digest_cover(uint64_t first, uint64_t n) {
    return cr_digest_mul(cr_digest_series(roots[0], n), cr_digest_power(0, first));
}

uint64_t cr_digest_series(uint64_t ratio, uint64_t n) {
    uint64_t sum = 0, power = 1; /* of the leading bits of n: the series, and ratio^n */
    for (unsigned bit = 64; bit-- > 0;) {
        sum = cr_digest_add(sum, cr_digest_mul(sum, power));
        power = cr_digest_mul(power, power);
        if ((n >> bit & 1) == 0) continue;
        sum = cr_digest_add(sum, power);
        power = cr_digest_mul(power, ratio);
    }
    return sum;
}

void cr_finish_digest(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v) {
    (void)op;
    (void)opts;
    const uint64_t words[] = {p->digest[0], p->digest[1], p->n * cr_dtype_size((cr_dtype)p->dtype)};
    v->dtype = CR_DIGEST;
    v->len = CR_DIGEST_BYTES;
    memcpy(v->bytes, words, sizeof words);
}

void cr_digest_text(const uint8_t *value, char out[CR_DIGEST_TEXT]) {
    uint64_t words[3];
    memcpy(words, value, CR_DIGEST_BYTES);
    snprintf(out, CR_DIGEST_TEXT, "cd1-%016" PRIx64 "%016" PRIx64 "-%" PRIu64, words[0], words[1], words[2]);
}
