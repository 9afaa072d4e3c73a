/* digest: which bytes an array has, as two residues that add up (docs/NUMERICS.md, "Digest").
 *
 * The array's bytes, little-endian and in C order, are cut into words w_k of 4 bytes, the last filled with zeros. Component j is
 * H_j = Σ w_k · r_j^k mod p, p = 2^61 − 1: the polynomial of the words at r_j (Carter and Wegman 1979, "Universal classes of hash
 * functions", in the form of Dietzfelbinger and others 1992, "Polynomial hash functions are reliable"). It is linear in the bytes, so
 * that digests of disjoint bytes, each at its place, add up to the digest of them all.
 *
 * Words of 8 bytes would not do: as residues −1 and 7 were equal. r_1 and r_2 are public, so a digest is no defence against a forger.
 *
 * Thread: any; the tables are made once, by whoever comes first. Owner: the caller owns all that is passed. */
#ifndef CURED_KERNELS_CORE_DIGEST_H
#define CURED_KERNELS_CORE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define CR_DIGEST_P (((uint64_t)1 << 61) - 1)
/* The first primitive roots mod p at or above the first 61 bits of the fractions of π and of e. */
#define CR_DIGEST_R1 0x0487ed5110b4612cull
#define CR_DIGEST_R2 0x16fc2a2c515da557ull

enum {
    CR_DIGEST_PARTS = 2,
    CR_DIGEST_WORD = 4,   /* bytes */
    CR_DIGEST_KEYS = 256, /* words that a fold takes by one table */
    CR_DIGEST_BYTES = 24, /* of a value: H_1, H_2, the number of bytes, each 8 bytes, little-endian */
    CR_DIGEST_TEXT = 60   /* room for its text, and the 0 */
};

/* The GPU's kernel makes its tables of powers when it is compiled. */
#if defined(__CUDACC__)
#define CR_DIGEST_INLINE constexpr __host__ __device__
#elif defined(__cplusplus)
#define CR_DIGEST_INLINE constexpr
#else
#define CR_DIGEST_INLINE static inline
#endif

/* Any x < 2^64, below 2^61 + 8: equal mod p, not yet the least. */
CR_DIGEST_INLINE uint64_t cr_digest_fold(uint64_t x) { return (x & CR_DIGEST_P) + (x >> 61); }
/* The residue of any x. */
CR_DIGEST_INLINE uint64_t cr_digest_least(uint64_t x) {
    x = cr_digest_fold(x);
    return x >= CR_DIGEST_P ? x - CR_DIGEST_P : x;
}
/* The residue of any number of 128 bits. */
CR_DIGEST_INLINE uint64_t cr_digest_wide(unsigned __int128 x) {
    const uint64_t low = (uint64_t)x & CR_DIGEST_P, mid = (uint64_t)(x >> 61) & CR_DIGEST_P,
                   high = (uint64_t)(x >> 122);
    return cr_digest_least(low + mid + high);
}
CR_DIGEST_INLINE uint64_t cr_digest_mul(uint64_t a, uint64_t b) { return cr_digest_wide((unsigned __int128)a * b); }
CR_DIGEST_INLINE uint64_t cr_digest_add(uint64_t a, uint64_t b) { return cr_digest_least(a + b); }

/* base^exponent mod p. */
CR_DIGEST_INLINE uint64_t cr_digest_raised(uint64_t base, uint64_t exponent) {
    uint64_t power = 1;
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1) power = cr_digest_mul(power, base);
        base = cr_digest_mul(base, base);
    }
    return power;
}

/* r_j^0 … r_j^CR_DIGEST_KEYS, j from 0. */
typedef struct cr_digest_keys {
    uint64_t key[CR_DIGEST_PARTS][CR_DIGEST_KEYS + 1];
} cr_digest_keys;
const cr_digest_keys *cr_digest_table(void);
/* r_j^exponent. */
uint64_t cr_digest_power(unsigned j, uint64_t exponent);
/* The coverage of elements [first, first + n): Σ r_1^e. It adds up as residues do, and is that of [0, n) where each of n elements is
 * there once. */
uint64_t cr_digest_cover(uint64_t first, uint64_t n);
/* 1 + ratio + … + ratio^(n − 1) mod p, of any ratio below p. */
uint64_t cr_digest_series(uint64_t ratio, uint64_t n);

/* "cd1-", 16 hexadecimal digits of H_1, 16 of H_2, "-", the bytes in decimal: of a value of CR_DIGEST_BYTES. */
void cr_digest_text(const uint8_t *value, char out[CR_DIGEST_TEXT]);

#endif
