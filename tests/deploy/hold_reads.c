// Preloaded into a server, this makes a load or a start last as long as a test likes: reads of the
// file named by HOLD_READS_OF (the end of its path) wait until the file HOLD_READS_UNTIL exists.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int IsHeld(int fd) {
  const char* const held = getenv("HOLD_READS_OF");
  if (held == NULL) return 0;
  char link[64];
  char path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path);
  const size_t wanted = strlen(held);
  return length >= (ssize_t)wanted && memcmp(path + length - wanted, held, wanted) == 0;
}

static void AwaitRelease(int fd) {
  if (!IsHeld(fd)) return;
  const struct timespec tick = {0, 10 * 1000 * 1000};
  while (access(getenv("HOLD_READS_UNTIL"), F_OK) != 0) nanosleep(&tick, NULL);
}

ssize_t pread(int fd, void* into, size_t bytes, off_t offset) {
  AwaitRelease(fd);
  ssize_t (*const real)(int, void*, size_t, off_t) =
      (ssize_t(*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  return real(fd, into, bytes, offset);
}

ssize_t read(int fd, void* into, size_t bytes) {
  AwaitRelease(fd);
  ssize_t (*const real)(int, void*, size_t) =
      (ssize_t(*)(int, void*, size_t))dlsym(RTLD_NEXT, "read");
  return real(fd, into, bytes);
}
