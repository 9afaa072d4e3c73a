/* nvtx_tool: the least that looks on by NVTX, for tests and for machines without Nsight Systems: NVTX_INJECTION64_PATH names this
 * library. It writes what ranges begin and end to the file that CURED_NVTX_LOG names, a line each: "+ 3 NAME", "- 3".
 *
 * Thread: any. Owner: the process that it is loaded into. */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long begun;

static void note(char what, unsigned long long number, const char *name) {
    const char *path = getenv("CURED_NVTX_LOG");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (!file) return;
    fprintf(file, *name ? "%c %llu %s\n" : "%c %llu\n", what, number, name);
    fclose(file);
}

static nvtxDomainHandle_t NVTX_API create(const char *name) {
    static char domain;
    note('=', 0, name);
    return (nvtxDomainHandle_t)(void *)&domain;
}

static nvtxRangeId_t NVTX_API start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *what) {
    (void)domain;
    pthread_mutex_lock(&mutex);
    const unsigned long long number = ++begun;
    note('+', number, what->message.ascii);
    pthread_mutex_unlock(&mutex);
    return number;
}

static void NVTX_API end(nvtxDomainHandle_t domain, nvtxRangeId_t range) {
    (void)domain;
    pthread_mutex_lock(&mutex);
    note('-', range, "");
    pthread_mutex_unlock(&mutex);
}

/* The name that NVTX looks for. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
    const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) ||
        size <= NVTX_CBID_CORE2_DomainCreateA)
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
    *table[NVTX_CBID_CORE2_DomainRangeStartEx] = (NvtxFunctionPointer)start;
    *table[NVTX_CBID_CORE2_DomainRangeEnd] = (NvtxFunctionPointer)end;
    return 1;
}
