// Preloaded into a server, this lets the N-th call of a kind fail that the program's own code
// makes, directly or through the C and C++ libraries: not those of gRPC, protobuf and absl. What
// fails, and from when on it is counted, a test says through fault_control.h.
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "faults/fault_control.h"

namespace {

using simile::faults::FaultControl;
using simile::faults::FaultKind;

// Who called is the first on the stack that is neither this library nor one of those, nor a
// function that the program exports: templates of libraries, whose one copy the dynamic linker
// gives to all.
constexpr std::array<std::string_view, 8> kPassedThrough = {
    "libc.so",      "libstdc++.so", "libgcc_s.so",         "libfmt.so",
    "libspdlog.so", "libm.so",      "libinject_faults.so", "libpthread.so"};

enum class Owner : std::uint8_t { kProgram, kPassed, kOther };

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::uintptr_t base = 0;
  Owner owner = Owner::kOther;
};

// What is loaded when the program starts; anything else (a driver's libraries) is others'.
constexpr std::size_t kRangesMax = 256;
std::array<Range, kRangesMax> ranges;
std::size_t range_count = 0;
FaultControl* control = nullptr;
// Of what runs before main, nothing can fail with an error.
std::atomic<bool> main_began{false};
int (*program_main)(int, char**, char**) = nullptr;
thread_local bool is_inside __attribute__((tls_model("initial-exec"))) = false;

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

Owner OwnerOf(std::string_view path) {
  if (path.empty()) return Owner::kProgram;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const bool passed = std::ranges::any_of(
      kPassedThrough, [&](std::string_view each) { return name.starts_with(each); });
  return passed ? Owner::kPassed : Owner::kOther;
}

int AddRanges(dl_phdr_info* info, std::size_t /*bytes*/, void* /*unused*/) {
  for (int i = 0; i < info->dlpi_phnum && range_count < kRangesMax; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    ranges[range_count++] = {begin, begin + header.p_memsz, info->dlpi_addr,
                             OwnerOf(info->dlpi_name)};
  }
  return 0;
}

const Range* RangeOf(const void* address) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  for (std::size_t i = 0; i < range_count; ++i) {
    if (place >= ranges[i].begin && place < ranges[i].end) return &ranges[i];
  }
  return nullptr;
}

Owner OwnerOf(const void* address) {
  const Range* const range = RangeOf(address);
  if (range == nullptr) return Owner::kOther;
  Dl_info symbol{};
  const bool exported = range->owner == Owner::kProgram && dladdr(address, &symbol) != 0 &&
                        symbol.dli_sname != nullptr;
  return exported ? Owner::kPassed : range->owner;
}

// Whether the program's own code called, and where, when it did.
struct Caller {
  bool is_program = false;
  int frame_count = 0;
  std::array<void*, FaultControl::kFramesMax> frames{};
};

Caller WhoCalled(const void* return_address) {
  Caller caller;
  if (OwnerOf(return_address) == Owner::kOther) return caller;
  caller.frame_count = backtrace(caller.frames.data(), static_cast<int>(caller.frames.size()));
  for (int i = 0; i < caller.frame_count; ++i) {
    const Owner owner = OwnerOf(caller.frames[static_cast<std::size_t>(i)]);
    if (owner == Owner::kPassed) continue;
    caller.is_program = owner == Owner::kProgram;
    return caller;
  }
  return caller;
}

void Record(const Caller& caller) {
  control->frame_count = static_cast<std::uint32_t>(caller.frame_count);
  for (std::size_t i = 0; i < caller.frames.size(); ++i) {
    const void* const frame = caller.frames[i];
    const Range* const range = RangeOf(frame);
    const bool is_program = range != nullptr && range->owner == Owner::kProgram;
    control->frames[i] = is_program ? reinterpret_cast<std::uintptr_t>(frame) - range->base : 0;
  }
  control->failed.store(1, std::memory_order_release);
}

FaultKind Armed() {
  const bool watched = control != nullptr && main_began && !is_inside;
  return watched ? control->kind.load(std::memory_order_acquire) : FaultKind::kNone;
}

bool IsOfFile(int fd) {
  const std::string_view wanted(control->file);
  if (wanted.empty()) return true;
  char link[64];
  char path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path);
  return length > 0 && std::string_view(path, static_cast<std::size_t>(length)).ends_with(wanted);
}

// Counts a call of the kind that is armed. Returns whether it is the one to fail.
bool IsTheOne(const void* return_address) {
  is_inside = true;
  const Caller caller = WhoCalled(return_address);
  const bool failing =
      caller.is_program && control->seen.fetch_add(1) + 1 == control->failing.load();
  if (failing) Record(caller);
  is_inside = false;
  return failing;
}

bool Fails(FaultKind kind, const void* return_address) {
  return Armed() == kind && IsTheOne(return_address);
}
bool Fails(FaultKind kind, int fd, const void* return_address) {
  return Armed() == kind && IsOfFile(fd) && IsTheOne(return_address);
}

void KillAt(FaultKind kind, int fd, const void* return_address) {
  if (Fails(kind, fd, return_address)) raise(SIGKILL);
}

// Changes the file that is about to be read there, as another program might.
void ChangeFile(int fd, off_t offset) {
  char link[64];
  char path[PATH_MAX] = {};
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, path, sizeof path - 1) <= 0) return;
  is_inside = true;
  switch (control->kind.load()) {
    case FaultKind::kCut:
      if (truncate(path, offset) != 0) abort();
      break;
    case FaultKind::kGrow: {
      const int file = Next<int(const char*, int, ...)>("open")(path, O_WRONLY | O_APPEND);
      if (Next<ssize_t(int, const void*, std::size_t)>("write")(file, "\n", 1) != 1) abort();
      close(file);
      break;
    }
    case FaultKind::kSwap: {
      char next[PATH_MAX + 8];
      snprintf(next, sizeof next, "%s.next", path);
      if (Next<int(const char*, const char*)>("rename")(next, path) != 0) abort();
      break;
    }
    default:
      break;
  }
  is_inside = false;
}

std::size_t Half(std::size_t bytes) { return std::max<std::size_t>(1, bytes / 2); }

void* Allocate(std::size_t bytes, std::size_t alignment, const void* caller) {
  if (Fails(FaultKind::kMemory, caller)) return nullptr;
  is_inside = true;
  void* const memory = alignment <= alignof(std::max_align_t)
                           ? malloc(std::max<std::size_t>(bytes, 1))
                           : memalign(alignment, std::max<std::size_t>(bytes, 1));
  is_inside = false;
  return memory;
}

void* AllocateOrThrow(std::size_t bytes, std::size_t alignment, const void* caller) {
  void* const memory = Allocate(bytes, alignment, caller);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

__attribute__((constructor)) void Begin() {
  void* frames[2];
  backtrace(frames, 2);  // allocates the first time
  dl_iterate_phdr(AddRanges, nullptr);
  const char* const path = getenv("INJECT_FAULTS");
  if (path == nullptr) return;
  const int file = Next<int(const char*, int, ...)>("open")(path, O_RDWR | O_CLOEXEC);
  if (file < 0) abort();
  void* const mapped =
      mmap(nullptr, sizeof(FaultControl), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) abort();
  close(file);
  control = static_cast<FaultControl*>(mapped);
}

int BeginMain(int argument_count, char** arguments, char** variables) {
  main_began = true;
  return program_main(argument_count, arguments, variables);
}

}  // namespace

#define CALLER __builtin_return_address(0)

void* operator new(std::size_t bytes) { return AllocateOrThrow(bytes, 1, CALLER); }
void* operator new[](std::size_t bytes) { return AllocateOrThrow(bytes, 1, CALLER); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return AllocateOrThrow(bytes, static_cast<std::size_t>(alignment), CALLER);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return AllocateOrThrow(bytes, static_cast<std::size_t>(alignment), CALLER);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, 1, CALLER);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, 1, CALLER);
}

extern "C" {

// The C library's own, which no dlsym can be asked for before they work.
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  if (!Fails(FaultKind::kMemory, CALLER)) return __libc_malloc(bytes);
  errno = ENOMEM;
  return nullptr;
}

void* calloc(std::size_t count, std::size_t bytes) {
  if (!Fails(FaultKind::kMemory, CALLER)) return __libc_calloc(count, bytes);
  errno = ENOMEM;
  return nullptr;
}

void* realloc(void* memory, std::size_t bytes) {
  if (!Fails(FaultKind::kMemory, CALLER)) return __libc_realloc(memory, bytes);
  errno = ENOMEM;
  return nullptr;
}

void* memalign(std::size_t alignment, std::size_t bytes) {
  if (!Fails(FaultKind::kMemory, CALLER)) return __libc_memalign(alignment, bytes);
  errno = ENOMEM;
  return nullptr;
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (!Fails(FaultKind::kMemory, CALLER)) return __libc_memalign(alignment, bytes);
  errno = ENOMEM;
  return nullptr;
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  if (Fails(FaultKind::kMemory, CALLER)) return ENOMEM;
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

void* mmap(void* address, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  static const auto next = Next<void*(void*, std::size_t, int, int, int, off_t)>("mmap");
  if (!Fails(FaultKind::kMemory, CALLER)) {
    return next(address, bytes, protection, flags, fd, offset);
  }
  errno = ENOMEM;
  return MAP_FAILED;
}

ssize_t read(int fd, void* into, std::size_t bytes) {
  static const auto next = Next<ssize_t(int, void*, std::size_t)>("read");
  KillAt(FaultKind::kKillAtRead, fd, CALLER);
  if (Fails(FaultKind::kShortRead, fd, CALLER)) bytes = Half(bytes);
  if (!Fails(FaultKind::kRead, fd, CALLER)) return next(fd, into, bytes);
  errno = EIO;
  return -1;
}

ssize_t pread(int fd, void* into, std::size_t bytes, off_t offset) {
  static const auto next = Next<ssize_t(int, void*, std::size_t, off_t)>("pread");
  KillAt(FaultKind::kKillAtRead, fd, CALLER);
  for (const FaultKind kind : {FaultKind::kCut, FaultKind::kGrow, FaultKind::kSwap}) {
    if (Fails(kind, fd, CALLER)) ChangeFile(fd, offset);
  }
  if (Fails(FaultKind::kShortRead, fd, CALLER)) bytes = Half(bytes);
  if (!Fails(FaultKind::kRead, fd, CALLER)) return next(fd, into, bytes, offset);
  errno = EIO;
  return -1;
}

ssize_t write(int fd, const void* from, std::size_t bytes) {
  static const auto next = Next<ssize_t(int, const void*, std::size_t)>("write");
  if (fd <= STDERR_FILENO) return next(fd, from, bytes);
  KillAt(FaultKind::kKillAtWrite, fd, CALLER);
  if (!Fails(FaultKind::kWrite, fd, CALLER)) return next(fd, from, bytes);
  errno = ENOSPC;
  return -1;
}

ssize_t pwrite(int fd, const void* from, std::size_t bytes, off_t offset) {
  static const auto next = Next<ssize_t(int, const void*, std::size_t, off_t)>("pwrite");
  if (!Fails(FaultKind::kWrite, fd, CALLER)) return next(fd, from, bytes, offset);
  errno = ENOSPC;
  return -1;
}

int fsync(int fd) {
  static const auto next = Next<int(int)>("fsync");
  KillAt(FaultKind::kKillAtSync, fd, CALLER);
  if (!Fails(FaultKind::kSync, fd, CALLER)) return next(fd);
  errno = EIO;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  static const auto next = Next<int(const char*, const char*)>("rename");
  if (Fails(FaultKind::kKillAtRename, CALLER)) raise(SIGKILL);
  if (!Fails(FaultKind::kRename, CALLER)) return next(from, to);
  errno = EIO;
  return -1;
}

int open(const char* path, int flags, ...) {
  static const auto next = Next<int(const char*, int, ...)>("open");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  if (!Fails(FaultKind::kOpen, CALLER)) return next(path, flags, mode);
  errno = EMFILE;
  return -1;
}

// What open without a mode becomes under _FORTIFY_SOURCE when its flags are no constant.
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming)
int __open_2(const char* path, int flags) {
  static const auto next = Next<int(const char*, int)>("__open_2");
  if (!Fails(FaultKind::kOpen, CALLER)) return next(path, flags);
  errno = EMFILE;
  return -1;
}

int openat(int folder, const char* path, int flags, ...) {
  static const auto next = Next<int(int, const char*, int, ...)>("openat");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  if (!Fails(FaultKind::kOpen, CALLER)) return next(folder, path, flags, mode);
  errno = EMFILE;
  return -1;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  static const auto next =
      Next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  if (Fails(FaultKind::kThread, CALLER)) return EAGAIN;
  return next(thread, attributes, start, argument);
}

// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming)
int __libc_start_main(int (*main)(int, char**, char**), int argument_count, char** arguments,
                      void (*init)(), void (*fini)(), void (*linker_fini)(), void* stack_end) {
  using Start =
      int(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  program_main = main;
  return Next<Start>("__libc_start_main")(BeginMain, argument_count, arguments, init, fini,
                                          linker_fini, stack_end);
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto next = Next<int(clockid_t, timespec*)>("clock_gettime");
  const int result = next(clock, time);
  if (result != 0 || control == nullptr || clock != CLOCK_REALTIME) return result;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t ns = time->tv_nsec + control->wall_clock_offset_ns.load() % kSecond;
  time->tv_sec += control->wall_clock_offset_ns.load() / kSecond + (ns < 0 ? -1 : ns / kSecond);
  time->tv_nsec = (ns + kSecond) % kSecond;
  return result;
}

}  // extern "C"
