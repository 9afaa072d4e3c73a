/* names: the words. Thread: any. Owner: the process. */
#include "base/names.h"

#include "base/may.h"

const char *const cr_method_names[CR_METHODS] = {
#define CR_METHOD(name, right) #name,
#include "base/names.def"
#undef CR_METHOD
};

const uint8_t cr_method_rights[CR_METHODS] = {
#define CR_METHOD(name, right) CR_MAY_##right,
#include "base/names.def"
#undef CR_METHOD
};

const char *const cr_given_names[CR_GIVENS] = {
#define CR_GIVEN(name) #name,
#include "base/names.def"
#undef CR_GIVEN
};

const char *const cr_spoken_names[CR_SPOKENS] = {
#define CR_SPOKEN(name) #name,
#include "base/names.def"
#undef CR_SPOKEN
};

const char *const cr_path_names[CR_PATHS] = {
#define CR_PATH(name) #name,
#include "base/names.def"
#undef CR_PATH
};

const char *const cr_stage_names[CR_STAGES] = {
#define CR_STAGE(name, help) #name,
#include "base/names.def"
#undef CR_STAGE
};

const char *const cr_reason_names[CR_REASONS] = {
#define CR_REASON(name, help) #name,
#include "base/names.def"
#undef CR_REASON
};

const char *const cr_region_kind_names[CR_REGION_KINDS] = {
#define CR_REGION_KIND(name) #name,
#include "base/names.def"
#undef CR_REGION_KIND
};

const char *const cr_gpu_error_names[CR_GPU_ERRORS] = {
#define CR_GPU_ERROR(name, help) #name,
#include "base/names.def"
#undef CR_GPU_ERROR
};
