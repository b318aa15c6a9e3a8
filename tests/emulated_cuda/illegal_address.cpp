#include "emulated_cuda/illegal_address.h"

#include <csignal>
#include <cstdio>
#include <vector>

#include "emulated_cuda/device_state.h"
#include "emulated_cuda/sanitizer.h"

namespace emulated_cuda {
namespace {

// Returns to the instruction, which then ends the process by the default handler.
void OnIllegalAddress(int signal, siginfo_t* info, void* /*context*/) {
  if (current != nullptr) {
    std::fprintf(stderr, "emulated_cuda: %sillegal address %p\n", current->runner->Where().c_str(),
                 info->si_addr);
  } else if (State().memory.Contains(info->si_addr)) {
    std::fprintf(stderr, "emulated_cuda: host code touched device memory at %p\n", info->si_addr);
  }
  std::signal(signal, SIG_DFL);
}

class SignalStack {
 public:
  SignalStack() : memory_(kBytes) {
    stack_t stack{};
    stack.ss_sp = memory_.data();
    stack.ss_size = kBytes;
    sigaltstack(&stack, nullptr);
  }
  ~SignalStack() {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr std::size_t kBytes = std::size_t{64} * 1024;
  std::vector<char> memory_;
};

}  // namespace

void PrepareSignalStack() {
  if (!kAddressSanitizer) static thread_local const SignalStack stack;
}

void WatchIllegalAddresses() {
  if (kAddressSanitizer) return;
  PrepareSignalStack();
  struct sigaction action {};
  action.sa_sigaction = &OnIllegalAddress;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace emulated_cuda
