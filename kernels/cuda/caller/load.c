/* load: finds libcured-cuda for who does not link with it: libcured, and a daemon. A library of another version is never half used,
 * because both sides share structs.
 *
 * Thread: any. Owner: whoever loads; a library that was found stays open, because streams have work of it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "kernels/cuda/caller/caller.h"

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

const cr_caller_api *cr_caller_load(const char *version, cr_error *error) {
    const cr_caller_api *(*symbol)(void) = NULL;
    const char *name = secure_getenv("CURED_CUDA_LIBRARY");
    if (name != NULL && *name == 0) name = NULL;
    void *library = name != NULL ? NULL : open_beside();
    if (name == NULL) name = CR_CALLER_LIBRARY;
    if (library == NULL) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *why = dlerror();
        cr_fail(error, CR_NOT_FOUND, "%s", why != NULL ? why : name);
        return NULL;
    }
    *(void **)&symbol = dlsym(library, CR_CALLER_SYMBOL);
    const cr_caller_api *found = symbol != NULL ? symbol() : NULL;
    if (found != NULL && strcmp(found->version, version) == 0 && found->partial_bytes == sizeof(cr_partial) &&
        found->gpu_bytes == sizeof(cr_gpu_api) && found->api_bytes == sizeof(cr_caller_api))
        return found;
    if (found == NULL)
        cr_fail(error, CR_FAILED_PRECONDITION, "%s is no libcured-cuda: it lacks %s", name, CR_CALLER_SYMBOL);
    else if (strcmp(found->version, version) == 0)
        cr_fail(error, CR_FAILED_PRECONDITION, "%s is of another build of cured %s: install both from one build", name,
                version);
    else
        cr_fail(error, CR_FAILED_PRECONDITION, "%s is of cured %s, and this is %s: install one version of both", name,
                found->version, version);
    dlclose(library);
    return NULL;
}
