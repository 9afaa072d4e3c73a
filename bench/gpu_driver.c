/* gpu_driver: what calls of CUDA's driver cost the host, one kind after the other: the floors of cured-bench gpu-here. The driver is found as
 * it lies, and the kernel is PTX that the driver compiles, so a build without CUDA has this too.
 *
 * Thread: main, whose context is current. Owner: this file, of the module and the memory. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/gpu_here.h"

enum {
    MOST_ROUNDS = 1000,
    BURST = 16,
    PARAMETERS = 512, /* bytes that the second kernel takes, about as many as a fold's */
    COPIED = 8192,
    MEMORY_TYPE = 2,    /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
    DEVICE_ORDINAL = 9, /* … DEVICE_ORDINAL */
    IS_MANAGED = 8,     /* … IS_MANAGED */
    PARAMETERS_AT = 1,  /* CU_LAUNCH_PARAM_BUFFER_POINTER */
    PARAMETERS_OF = 2,  /* CU_LAUNCH_PARAM_BUFFER_SIZE */
    EARLY = 6,          /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
    CAPTURE_THREAD = 1, /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */
    NOT_READY = 600,
};

/* CUlaunchConfig and CUlaunchAttribute, of cuda.h. */
typedef struct attribute {
    uint32_t id, pad;
    union {
        char bytes[64];
        int value;
    } of;
} attribute;
typedef struct config {
    unsigned grid[3], block[3], shared;
    void *stream;
    attribute *attributes;
    unsigned count;
} config;

static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry nothing() { ret; }\n"
    ".visible .entry told(.param .align 8 .b8 told[512]) { ret; }\n";

static struct {
    int (*load)(void **, const void *), (*function)(void **, void *, const char *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                  void **);
    int (*launch_config)(const config *, void *, void **, void **);
    int (*attribute)(void *, int, unsigned long long), (*attributes)(unsigned, int *, void **, unsigned long long);
    int (*capturing)(void *, int *), (*current)(void **), (*number)(void *, unsigned long long *);
    int (*event)(void **, unsigned), (*record)(void *, void *), (*query)(void *), (*wait)(void *);
    int (*copy)(unsigned long long, const void *, size_t, void *),
        (*set)(unsigned long long, unsigned char, size_t, void *);
    int (*stream)(void **, unsigned), (*begin)(void *, int), (*end)(void *, void **);
    int (*instantiate)(void **, void *, unsigned long long), (*replay)(void *, void *);
} driver;

static struct {
    void *nothing, *told, *context, *made_event, *graphs[2]; /* graphs: of one kernel, and of two */
    const gpu_here_memory *memory;
    char parameters[PARAMETERS];
} b;

static bool find(void) {
    const struct {
        const char *name;
        void *to;
    } all[] = {
        {"cuModuleLoadData", &driver.load},
        {"cuModuleGetFunction", &driver.function},
        {"cuLaunchKernel", &driver.launch},
        {"cuLaunchKernelEx", &driver.launch_config},
        {"cuPointerGetAttribute", &driver.attribute},
        {"cuPointerGetAttributes", &driver.attributes},
        {"cuStreamIsCapturing", &driver.capturing},
        {"cuCtxGetCurrent", &driver.current},
        {"cuCtxGetId", &driver.number},
        {"cuEventCreate", &driver.event},
        {"cuEventRecord", &driver.record},
        {"cuStreamQuery", &driver.query},
        {"cuStreamSynchronize", &driver.wait},
        {"cuMemcpyHtoDAsync_v2", &driver.copy},
        {"cuMemsetD8Async", &driver.set},
        {"cuStreamCreate", &driver.stream},
        {"cuStreamBeginCapture_v2", &driver.begin},
        {"cuStreamEndCapture", &driver.end},
        {"cuGraphInstantiateWithFlags", &driver.instantiate},
        {"cuGraphLaunch", &driver.replay},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; library != NULL && i < sizeof all / sizeof all[0]; i++) {
        void *found = dlsym(library, all[i].name);
        if (found == NULL) return false;
        memcpy(all[i].to, &found, sizeof found);
    }
    return library != NULL;
}

static int launch(void *function, unsigned blocks, void *stream) {
    size_t bytes = PARAMETERS;
    void *extra[] = {(void *)PARAMETERS_AT, b.parameters, (void *)PARAMETERS_OF, &bytes, NULL};
    return driver.launch(function, blocks, 1, 1, 256, 1, 1, 0, stream, NULL, function == b.told ? extra : NULL);
}

/* A graph of so many kernels that do nothing. */
static int make_graph(unsigned kernels, void *stream, void **out) {
    void *graph = NULL;
    int failure = driver.begin(stream, CAPTURE_THREAD);
    for (unsigned i = 0; i < kernels && failure == 0; i++) failure = launch(b.nothing, 1, stream);
    if (failure == 0) failure = driver.end(stream, &graph);
    return failure == 0 ? driver.instantiate(out, graph, 0) : failure;
}

/* ---- The calls ---- */

static int call_launch(void) { return launch(b.nothing, 1, NULL); }
static int call_told(void) { return launch(b.told, 1, NULL); }
static int call_wide(void) { return launch(b.told, 528, NULL); }
static int call_early(void) {
    attribute early = {EARLY, 0, {.value = 1}};
    const config how = {{1, 1, 1}, {256, 1, 1}, 0, NULL, &early, 1};
    return driver.launch_config(&how, b.nothing, NULL, NULL);
}
static int call_attribute(void) {
    int found = 0;
    return driver.attribute(&found, MEMORY_TYPE, (unsigned long long)(uintptr_t)b.memory->device);
}
static int call_attributes(void) {
    int type = 0, device = 0, managed = 0, asked[] = {MEMORY_TYPE, DEVICE_ORDINAL, IS_MANAGED};
    void *to[] = {&type, &device, &managed};
    return driver.attributes(3, asked, to, (unsigned long long)(uintptr_t)b.memory->device);
}
static int call_capturing(void) {
    int found = 0;
    return driver.capturing(NULL, &found);
}
static int call_current(void) {
    void *found = NULL;
    return driver.current(&found);
}
static int call_number(void) {
    unsigned long long found = 0;
    return driver.number(b.context, &found);
}
static int call_record(void) { return driver.record(b.made_event, NULL); }
static int call_copy(void) {
    return driver.copy((unsigned long long)(uintptr_t)b.memory->device, b.memory->host, COPIED, NULL);
}
static int call_set(void) { return driver.set((unsigned long long)(uintptr_t)b.memory->to, 0, 8, NULL); }
static int call_replay(void) { return driver.replay(b.graphs[0], NULL); }
static int call_replay_two(void) { return driver.replay(b.graphs[1], NULL); }
static int wait_idle(void) {
    int answer;
    while ((answer = driver.query(NULL)) == NOT_READY) {
    }
    return answer;
}
static int call_seen(void) {
    const int failure = call_launch();
    return failure == 0 ? wait_idle() : failure;
}
static int call_copied(void) {
    int failure = call_copy();
    if (failure == 0) failure = call_launch();
    return failure == 0 ? wait_idle() : failure;
}
static int call_replayed(void) {
    const int failure = call_replay();
    return failure == 0 ? wait_idle() : failure;
}

/* times: calls in a row, before they are waited for. through: until they are over. */
static int measure(const char *what, int (*call)(void), int times, bool through, int rounds) {
    static double took[MOST_ROUNDS];
    int failure = 0;
    for (int round = 0; round < rounds && failure == 0; round++) {
        const double begin = bench_now();
        for (int i = 0; i < times && failure == 0; i++) failure = call();
        if (through && failure == 0) failure = wait_idle();
        took[round] = (bench_now() - begin) / times;
        if (failure == 0) failure = driver.wait(NULL);
    }
    if (failure != 0) return failure;
    const double median = bench_median(took, (size_t)rounds);
    printf("driver: %-44s %9.3f us  (lowest %.3f)\n", what, median * 1e6, took[0] * 1e6);
    return 0;
}

static int open_all(void) {
    void *module = NULL, *stream = NULL;
    int failure = driver.load(&module, ptx);
    if (failure == 0) failure = driver.function(&b.nothing, module, "nothing");
    if (failure == 0) failure = driver.function(&b.told, module, "told");
    if (failure == 0) failure = driver.current(&b.context);
    if (failure == 0) failure = driver.event(&b.made_event, 2); /* without times */
    if (failure == 0) failure = driver.stream(&stream, 1);
    if (failure == 0) failure = launch(b.nothing, 1, stream);
    if (failure == 0) failure = driver.wait(stream);
    if (failure == 0) failure = make_graph(1, stream, &b.graphs[0]);
    return failure == 0 ? make_graph(2, stream, &b.graphs[1]) : failure;
}

bool gpu_driver_floors(const gpu_here_memory *memory, int rounds) {
    static const struct {
        const char *what;
        int (*call)(void);
        int times;
        bool through;
    } all[] = {
        {"launch of nothing", call_launch, BURST, false},
        {"… with 512 bytes of parameters", call_told, BURST, false},
        {"… of 528 blocks", call_wide, BURST, false},
        {"… that may begin early", call_early, BURST, false},
        {"memory type of a pointer", call_attribute, BURST, false},
        {"… with its device and whether it is managed", call_attributes, BURST, false},
        {"whether the stream is captured", call_capturing, BURST, false},
        {"the current context", call_current, BURST, false},
        {"… its number", call_number, BURST, false},
        {"record of an event", call_record, BURST, false},
        {"copy of 8 KiB from pinned memory", call_copy, BURST, false},
        {"set of 8 bytes", call_set, BURST, false},
        {"replay of a graph of one kernel", call_replay, BURST, false},
        {"… until all are over, each", call_replay, BURST, true},
        {"… of two kernels, likewise", call_replay_two, BURST, true},
        {"launch of nothing, until seen", call_seen, 1, false},
        {"copy of 8 KiB and launch, until seen", call_copied, 1, false},
        {"replay of a graph, until seen", call_replayed, 1, false},
    };
    if (rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    b.memory = memory;
    if (!find()) {
        printf("driver: it is not there, or lacks functions of CUDA 12.0\n");
        return true;
    }
    int failure = open_all();
    for (size_t i = 0; i < sizeof all / sizeof all[0] && failure == 0; i++)
        failure = measure(all[i].what, all[i].call, all[i].times, all[i].through, rounds);
    if (failure != 0) fprintf(stderr, "cured-bench: gpu-here: the driver failed: CUDA error %d\n", failure);
    return failure == 0;
}
