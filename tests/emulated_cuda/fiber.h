#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#include "emulated_cuda/sanitizer.h"

namespace emulated_cuda {

// The OS thread's own side of a switch, and what its fibers run. One for each set of fibers.
struct FiberHost {
  void (*body)(void* argument) = nullptr;  // must end in Fiber::Finish
  void* argument = nullptr;
  void* context = nullptr;
  const void* stack = nullptr;  // for AddressSanitizer
  std::size_t stack_bytes = 0;
};

// A stack of its own and the place where it stopped. It never moves to another OS thread while it
// runs. The stack is kept from one start to the next.
class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next Resume runs the host's body from its begin. A fiber that was left in the middle may be
  // started afresh: what its frames own is lost. `color` spreads the stacks of many fibers over the
  // cache's sets.
  void Start(std::size_t color);

  // On the host: runs until Suspend. These two are inline because every return that a switch leaves
  // for later is one that the processor mispredicts.
  void Resume(FiberHost& host) {
    void* fake_stack = nullptr;
    StartSwitch(&fake_stack, stack_, kStackBytes);
    context_ = boost::context::detail::jump_fcontext(context_, &host).fctx;
    FinishSwitch(fake_stack, nullptr, nullptr);
  }
  // On the fiber: back to the host. With `for_ever` it will not be resumed.
  void Suspend(FiberHost& host, bool for_ever) {
    StartSwitch(for_ever ? nullptr : &fake_stack_, host.stack, host.stack_bytes);
    host.context = boost::context::detail::jump_fcontext(host.context, nullptr).fctx;
    FinishSwitch(fake_stack_, nullptr, nullptr);
  }
  // On the fiber, when all that its body owns is gone.
  [[noreturn]] void Finish(FiberHost& host);

 private:
  static constexpr std::size_t kStackBytes = std::size_t{kAddressSanitizer ? 256 : 64} * 1024;

  static void Enter(boost::context::detail::transfer_t from) noexcept;
  void Map();

  void* context_ = nullptr;
  char* stack_ = nullptr;
  void* fake_stack_ = nullptr;  // AddressSanitizer's
  bool clean_ = true;           // no frame was left in the middle
};

}  // namespace emulated_cuda
