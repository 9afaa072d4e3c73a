/* cpu_data: the arrays that `cured-bench cpu` and `axis` fold.
 *
 * Thread: main. Owner: the caller owns the data. */
#include <math.h>
#include <string.h>

#include "bench/cpu.h"

enum { BLOCK_BYTES = 64 << 20 };

/* xorshift64* (Vigna 2016). */
static uint64_t state = 0x9e3779b97f4a7c15;
static uint64_t next_word(void) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717u;
}

static double uniform(void) { return ((double)(next_word() >> 11) + 0.5) * 0x1p-53; }

static double draw(cpu_data which) {
    switch (which) {
        case DATA_ORDERS20: /* magnitudes 1e-10 … 1e10, evenly by logarithm */
            return (next_word() >> 63 ? -1 : 1) * exp((uniform() * 20 - 10) * 2.302585092994046);
        case DATA_NANS:
            if (next_word() >> 63) return NAN;
            break;
        case DATA_NORMAL:
        case DATA_BITS: /* these are not drawn one by one */
        case DATA_DENORMAL:
        case DATA_COUNT:
            break;
    }
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

const char *cpu_data_name(cpu_data which) {
    static const char *const names[] = {"normal", "20 orders", "random bits", "denormals", "half NaN"};
    return names[which];
}

void cpu_fill(uint8_t *data, size_t bytes, cr_dtype dtype, cpu_data which) {
    size_t block = bytes < BLOCK_BYTES ? bytes : BLOCK_BYTES, size = cr_dtype_size(dtype);
    bool is_float = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    for (size_t at = 0; at + 8 <= block; at += 8) {
        uint64_t word = next_word();
        if (is_float && which == DATA_DENORMAL) {
            word &= dtype == CR_F64 ? 0x800fffffffffffffu : dtype == CR_F32 ? 0x807fffff807fffffu : 0x807f807f807f807fu;
        } else if (is_float && which != DATA_BITS && size >= 4) {
            for (size_t i = 0; i < 8 / size; i++) {
                double x = draw(which);
                float narrow = (float)x;
                memcpy((uint8_t *)&word + i * size, size == 8 ? (void *)&x : (void *)&narrow, size);
            }
        } else if (is_float && size == 1 && which != DATA_BITS) {
            word &= 0xb7b7b7b7b7b7b7b7u; /* finite */
        } else if (dtype == CR_F16 && which != DATA_BITS) {
            word = (word & 0x83ff83ff83ff83ffu) + 0x3800380038003800u; /* ±0.5 … 1 */
        } else if (dtype == CR_BF16 && which != DATA_BITS) {
            for (size_t i = 0; i < 4; i++) {
                float narrow = (float)draw(which);
                uint32_t bits;
                memcpy(&bits, &narrow, sizeof bits);
                word = word << 16 | bits >> 16;
            }
        }
        memcpy(data + at, &word, sizeof word);
    }
    for (size_t at = block; at < bytes; at += block) memcpy(data + at, data, bytes - at < block ? bytes - at : block);
}
