/* A driver library. Its calls return the code in FAKE_CUDA_ERROR, 100 (no device) without one, as
 * on a machine whose driver is installed but cannot be used. `hang` never returns, and ends the
 * process by a signal when its destructors run meanwhile, as a real driver may; `silent_hang`
 * closes the process's descriptors first; `crash` ends the process. With 0 it counts
 * FAKE_CUDA_DEVICES devices, one without it, and supports nothing else: a call that succeeded
 * without its result would crash CUDA's runtime. FAKE_CUDA_VERSION is the newest CUDA that it
 * runs. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int Number(const char* variable, int usual) {
  const char* value = getenv(variable);
  return value != NULL ? atoi(value) : usual;
}

static volatile int hangs = 0;
static void Hang(void) {
  hangs = 1;
  for (;;) pause();
}
__attribute__((destructor)) static void End(void) {
  if (hangs) abort();
}

static int Error(void) {
  const char* error = getenv("FAKE_CUDA_ERROR");
  if (error != NULL && strcmp(error, "crash") == 0) abort();
  if (error != NULL && strcmp(error, "silent_hang") == 0) {
    for (int descriptor = 3; descriptor < 1024; ++descriptor) close(descriptor);
    Hang();
  }
  if (error != NULL && strcmp(error, "hang") == 0) Hang();
  return Number("FAKE_CUDA_ERROR", 100); /* CUDA_ERROR_NO_DEVICE */
}

int cuInit(unsigned flags) {
  (void)flags;
  return Error();
}

int cuDriverGetVersion(int* version) {
  *version = Number("FAKE_CUDA_VERSION", 13000);
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = Number("FAKE_CUDA_DEVICES", 1);
  return Error();
}

int cuGetErrorName(int error, const char** name) {
  *name = error == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR";
  return 0;
}

int cuGetErrorString(int error, const char** text) {
  *text = error == 100 ? "no CUDA-capable device is detected" : "as the test asked";
  return 0;
}

static int Fail(void) {
  const int error = Error();
  return error != 0 ? error : 801; /* CUDA_ERROR_NOT_SUPPORTED */
}

int cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags,
                        int* status) {
  (void)version;
  (void)flags;
  if (status != NULL) *status = 0;
  if (strcmp(symbol, "cuInit") == 0) {
    *function = (void*)&cuInit;
  } else if (strcmp(symbol, "cuDriverGetVersion") == 0) {
    *function = (void*)&cuDriverGetVersion;
  } else if (strcmp(symbol, "cuGetProcAddress") == 0 ||
             strcmp(symbol, "cuGetProcAddress_v2") == 0) {
    *function = (void*)&cuGetProcAddress_v2;
  } else {
    *function = (void*)&Fail;
  }
  return 0;
}

int cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
