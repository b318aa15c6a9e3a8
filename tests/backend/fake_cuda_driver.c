/* A driver library whose calls all fail with the code in FAKE_CUDA_ERROR, as on a machine whose
 * driver is installed but cannot be used. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int Error(void) {
  const char* error = getenv("FAKE_CUDA_ERROR");
  return error != NULL ? atoi(error) : 100; /* CUDA_ERROR_NO_DEVICE */
}

int cuInit(unsigned flags) {
  (void)flags;
  return Error();
}

int cuDriverGetVersion(int* version) {
  const char* wanted = getenv("FAKE_CUDA_VERSION");
  *version = wanted != NULL ? atoi(wanted) : 13000;
  return 0;
}

static int Fail(void) { return Error(); }

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
