#include "emulated_cuda/fiber.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

namespace emulated_cuda {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kLastFramesBytes = std::size_t{16} * 1024;
constexpr std::size_t kColors = 48, kColorBytes = 192;

}  // namespace

void Fiber::Enter(boost::context::detail::transfer_t from) noexcept {
  auto& host = *static_cast<FiberHost*>(from.data);
  host.context = from.fctx;
  FinishSwitch(nullptr, &host.stack, &host.stack_bytes);
  host.body(host.argument);
  std::abort();
}

Fiber::~Fiber() {
  if (stack_ == nullptr) return;
  UnpoisonRegion(stack_, kStackBytes);
  munmap(stack_ - kPageBytes, kStackBytes + kPageBytes);
}

void Fiber::Map() {
  void* const map = mmap(nullptr, kStackBytes + kPageBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  // A kernel whose locals overflow the stack stops at this page.
  if (map == MAP_FAILED || mprotect(map, kPageBytes, PROT_NONE) != 0) {
    std::perror("emulated_cuda: no memory for the stack of a thread");
    std::abort();
  }
  stack_ = static_cast<char*>(map) + kPageBytes;
}

void Fiber::Start(std::size_t color) {
  if (stack_ == nullptr) Map();
  // The last frames of a finished fiber are not unwound either, but they are few.
  const std::size_t marked = clean_ ? kLastFramesBytes : kStackBytes;
  UnpoisonRegion(stack_ + kStackBytes - marked, marked);
  clean_ = false;
  fake_stack_ = nullptr;
  const std::size_t bytes = (kStackBytes - color % kColors * kColorBytes) / 16 * 16;
  context_ = boost::context::detail::make_fcontext(stack_ + bytes, bytes, &Enter);
}

void Fiber::Finish(FiberHost& host) {
  clean_ = true;
  Suspend(host, true);
  std::abort();
}

}  // namespace emulated_cuda
