/* names: numbers for the values of labels (names.def), and their words.
 *
 * Thread: any; constants only. */
#ifndef CURED_BASE_NAMES_H
#define CURED_BASE_NAMES_H

#include <stdint.h>

typedef enum cr_method {
#define CR_METHOD(name, right) CR_METHOD_##name,
#include "base/names.def"
#undef CR_METHOD
    CR_METHODS,
} cr_method;

typedef enum cr_given {
#define CR_GIVEN(name) CR_GIVEN_##name,
#include "base/names.def"
#undef CR_GIVEN
    CR_GIVENS,
} cr_given;

typedef enum cr_spoken {
#define CR_SPOKEN(name) CR_SPOKEN_##name,
#include "base/names.def"
#undef CR_SPOKEN
    CR_SPOKENS,
} cr_spoken;

typedef enum cr_path {
#define CR_PATH(name) CR_PATH_##name,
#include "base/names.def"
#undef CR_PATH
    CR_PATHS,
} cr_path;

typedef enum cr_stage {
#define CR_STAGE(name, help) CR_STAGE_##name,
#include "base/names.def"
#undef CR_STAGE
    CR_STAGES,
} cr_stage;

typedef enum cr_reason {
#define CR_REASON(name, help) CR_REASON_##name,
#include "base/names.def"
#undef CR_REASON
    CR_REASONS,
} cr_reason;

typedef enum cr_region_kind {
#define CR_REGION_KIND(name) CR_REGIONS_##name,
#include "base/names.def"
#undef CR_REGION_KIND
    CR_REGION_KINDS,
} cr_region_kind;

typedef enum cr_gpu_error {
#define CR_GPU_ERROR(name, help) CR_GPU_ERROR_##name,
#include "base/names.def"
#undef CR_GPU_ERROR
    CR_GPU_ERRORS,
} cr_gpu_error;

extern const char *const cr_method_names[CR_METHODS];
extern const uint8_t cr_method_rights[CR_METHODS]; /* cr_may */
extern const char *const cr_given_names[CR_GIVENS];
extern const char *const cr_spoken_names[CR_SPOKENS];
extern const char *const cr_path_names[CR_PATHS];
extern const char *const cr_stage_names[CR_STAGES];
extern const char *const cr_reason_names[CR_REASONS];
extern const char *const cr_region_kind_names[CR_REGION_KINDS];
extern const char *const cr_gpu_error_names[CR_GPU_ERRORS];

#endif
