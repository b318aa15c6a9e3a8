#include "app/stop_signals.h"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

namespace simile::app {
namespace {

// What the kernel sends when the parent ends. No SIGTERM, because Ctrl-C ends a parent and reaches
// this process, too, and a second SIGTERM would end it before its calls are answered.
constexpr int kParentEnded = SIGUSR1;

// Has the kernel report the end of the parent.
void WatchParent() {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, kParentEnded);
  // The parent may have ended before the kernel was asked.
  if (getppid() != parent) raise(kParentEnded);
}

}  // namespace

StopSignals::StopSignals(bool die_with_parent) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (die_with_parent) sigaddset(&set, kParentEnded);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  fd_ = base::FileDescriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (die_with_parent) WatchParent();
}

std::optional<StopSignals::Request> StopSignals::Next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  const auto signal = static_cast<int>(info.ssi_signo);
  return Request{signal, signal == kParentEnded};
}

}  // namespace simile::app
