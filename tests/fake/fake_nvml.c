/* fake_nvml: libnvidia-ml.so.1 for tests: the stand-in GPU 0 is at 61 degrees, 37 % busy, with 3 of 8 GiB in use. FAKE_NVML=hang: its
 * calls do not return; broken: they fail.
 * Thread: the daemon's, of NVML. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int nvmlInit_v2(void);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetUtilizationRates(void *device, unsigned rates[2]);
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long info[3]);

static int ordered(void) {
    const char *order = getenv("FAKE_NVML");
    if (order && strcmp(order, "hang") == 0)
        for (;;) pause();
    return order && strcmp(order, "broken") == 0 ? 999 : 0;
}

int nvmlInit_v2(void) { return 0; }

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    static char first;
    *device = &first;
    return strcmp(uuid, "GPU-00000000-0000-0000-0000-000000000000") == 0 ? 0 : 6;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
    (void)device;
    *celsius = 61;
    return sensor ? 2 : ordered();
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned rates[2]) {
    (void)device;
    rates[0] = 37;
    rates[1] = 99;
    return ordered();
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long info[3]) {
    (void)device;
    info[0] = 8ull << 30;
    info[1] = 5ull << 30;
    info[2] = 3ull << 30;
    return ordered();
}
