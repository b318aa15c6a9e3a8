#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#include "emulated_cuda/sanitizer.h"

namespace emulated_cuda {

// The OS thread's side of a switch, and the body of its fibers. One per set of fibers.
struct FiberHost {
  void (*body)(void* argument) = nullptr;  // must end in Fiber::Finish
  void* argument = nullptr;
  void* context = nullptr;
  const void* stack = nullptr;  // for AddressSanitizer
  std::size_t stack_bytes = 0;
};

// A suspended function with its own stack. It stays on one OS thread while it runs. The stack is
// reused by the next start.
class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next Resume runs the host's body from its begin. A suspended fiber may be restarted: its
  // frames are not unwound. `color` spreads the stacks of many fibers over the cache's sets.
  void Start(std::size_t color);

  // On the host: runs until Suspend. Both are inline, because the processor mispredicts every
  // return across a switch.
  void Resume(FiberHost& host) {
    void* fake_stack = nullptr;
    StartSwitch(&fake_stack, stack_, kStackBytes);
    context_ = boost::context::detail::jump_fcontext(context_, &host).fctx;
    FinishSwitch(fake_stack, nullptr, nullptr);
  }
  // On the fiber: switches to the host. With `for_ever` it is never resumed.
  void Suspend(FiberHost& host, bool for_ever) {
    StartSwitch(for_ever ? nullptr : &fake_stack_, host.stack, host.stack_bytes);
    host.context = boost::context::detail::jump_fcontext(host.context, nullptr).fctx;
    FinishSwitch(fake_stack_, nullptr, nullptr);
  }
  // On the fiber, after everything that its body owns is destroyed.
  [[noreturn]] void Finish(FiberHost& host);

 private:
  static constexpr std::size_t kStackBytes = std::size_t{kAddressSanitizer ? 256 : 64} * 1024;

  static void Enter(boost::context::detail::transfer_t from) noexcept;
  void Map();

  void* context_ = nullptr;
  char* stack_ = nullptr;
  void* fake_stack_ = nullptr;  // AddressSanitizer's
  bool clean_ = true;           // no frame is suspended
};

}  // namespace emulated_cuda
