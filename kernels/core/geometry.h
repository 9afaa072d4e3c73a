/* geometry: where the elements of each answer lie in the input. It says nothing of what is done with them.
 *
 * Thread: any; constants. */
#ifndef CURED_KERNELS_CORE_GEOMETRY_H
#define CURED_KERNELS_CORE_GEOMETRY_H

typedef enum cr_geometry {
    CR_GEOMETRY_WHOLE,   /* one answer, of the whole array */
    CR_GEOMETRY_AXIS,    /* an answer for each (outer, inner) of a shape */
    CR_GEOMETRY_OFFSETS, /* an answer for each segment between two neighbouring offsets */
    CR_GEOMETRY_KEYS,    /* an answer for each key */
} cr_geometry;

/* As sentences say how the answers come. */
static inline const char *cr_geometry_way(cr_geometry geometry) {
    static const char *const ways[] = {"of a whole array", "along an axis", "by offsets", "by key"};
    return ways[geometry];
}

#endif
