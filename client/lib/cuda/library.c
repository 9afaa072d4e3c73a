/* library: see library.h. A library of another version is an error and never half used: both sides share structs.
 *
 * Thread: any. Owner: this file; the library stays open, since streams have work of it. */
#include "client/lib/cuda/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "client/lib/error.h"
#include "cured/cuda.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const cr_caller_api *api;
static cr_error refusal;

/* Beside the program or library that this code is in, as in a wheel. NULL: it is not there. A program is known here by the name that whoever
 * started it has made up: one that is no whole path would lead to wherever that is now, and one of a program with rights that its user
 * has not, to where that user says. */
static void *open_beside(void) {
    static const char anchor = 0;
    char path[4096];
    Dl_info here;
    if (getauxval(AT_SECURE) != 0 || dladdr(&anchor, &here) == 0) return NULL;
    if (here.dli_fname == NULL || here.dli_fname[0] != '/') return NULL;
    const int folder = (int)(strrchr(here.dli_fname, '/') - here.dli_fname);
    if (snprintf(path, sizeof path, "%.*s/%s", folder, here.dli_fname, CR_CALLER_LIBRARY) >= (int)sizeof path)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *open_library(const char *name) {
    char text[200] = "";
    void *library = name != NULL ? NULL : open_beside();
    if (library == NULL) library = dlopen(name != NULL ? name : CR_CALLER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) return library;
    snprintf(text, sizeof text, "%s", dlerror());
    cr_fail(&refusal, CR_UNAVAILABLE,
            "device memory is reduced by libcured-cuda %s, which is not there: install it, name it in "
            "CURED_CUDA_LIBRARY, or ask a daemon (in Python by client=): %s",
            CURED_VERSION, text);
    return NULL;
}

static void load(void) {
    const cr_caller_api *(*symbol)(void) = NULL;
    const char *name = secure_getenv("CURED_CUDA_LIBRARY");
    if (name != NULL && *name == 0) name = NULL;
    void *library = open_library(name);
    if (library == NULL) return;
    if (name == NULL) name = CR_CALLER_LIBRARY;
    *(void **)&symbol = dlsym(library, CR_CALLER_SYMBOL);
    const cr_caller_api *found = symbol != NULL ? symbol() : NULL;
    if (found == NULL) {
        cr_fail(&refusal, CR_UNAVAILABLE, "%s is no libcured-cuda: it lacks %s", name, CR_CALLER_SYMBOL);
    } else if (strcmp(found->version, CURED_VERSION) != 0 || found->partial_bytes != sizeof(cr_partial)) {
        cr_fail(&refusal, CR_UNAVAILABLE, "%s is of cured %s, and libcured of %s: install one version of both", name,
                found->version, CURED_VERSION);
    } else {
        api = found;
        return;
    }
    dlclose(library);
}

const cr_caller_api *cr_cl_cuda(cr_error *error) {
    pthread_once(&once, load);
    if (api == NULL) *error = refusal;
    return api;
}

cured_status cured_cuda_version(const char **library, const char **runtime, cured_error *error) {
    cr_error e = {CR_OK, ""};
    const cr_caller_api *found = cr_cl_cuda(&e);
    if (found != NULL) {
        if (library != NULL) *library = found->version;
        if (runtime != NULL) *runtime = found->runtime;
    }
    return cr_cl_give(error, &e, 0);
}

void cured_cuda_trim(void) {
    cr_error e;
    const cr_caller_api *found = cr_cl_cuda(&e);
    if (found != NULL) found->trim();
}
