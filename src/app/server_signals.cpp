#include "app/server_signals.h"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <initializer_list>

namespace simile::app {
namespace {

// The signal that the kernel sends when the parent ends. Not SIGTERM: Ctrl-C ends the parent and
// reaches this process, too, and a second stop signal would end it before its calls are answered.
constexpr int kParentEnded = SIGUSR1;

// Known before the settings are read, because the parent may end meanwhile. 0 for a parent outside
// this process' PID namespace.
const pid_t kParent = getppid();

bool HasOtherParent() { return getppid() != kParent; }

// Has the kernel report the end of the parent.
void WatchParent() {
  prctl(PR_SET_PDEATHSIG, kParentEnded);
  // The parent may have ended before the kernel was asked.
  if (HasOtherParent()) raise(kParentEnded);
}

// Whether the kernel's signal means that the parent has ended. The kernel also signals the end of
// the parent's thread that started this process.
bool IsEndOfParent() { return kParent == 0 || HasOtherParent(); }

// Whether a standard stream is a terminal that was not closed.
bool HasTerminal() {
  return std::ranges::any_of(std::initializer_list<int>{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO},
                             [](int fd) { return isatty(fd) == 1; });
}

// `nohup` makes the process ignore SIGHUP: then the server outlives its terminal.
bool IgnoresHangUp() {
  struct sigaction action {};
  return sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Whether SIGHUP means that the terminal was closed: it comes from the kernel, or from the shell
// that the terminal belonged to. Any other sender wants a reload, even where the terminal is
// closed.
bool IsHangUp(const signalfd_siginfo& info) {
  if (info.ssi_code == SI_KERNEL) return true;
  return !HasTerminal() && static_cast<pid_t>(info.ssi_pid) == getsid(0);
}

}  // namespace

ServerSignals::ServerSignals(bool die_with_parent)
    : started_in_terminal_(HasTerminal() && !IgnoresHangUp()) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  if (die_with_parent) sigaddset(&set, kParentEnded);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  fd_ = base::FileDescriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (die_with_parent) WatchParent();
}

std::optional<ServerSignals::Request> ServerSignals::Next() {
  signalfd_siginfo info{};
  while (read(fd_.get(), &info, sizeof info) == sizeof info) {
    const auto signal = static_cast<int>(info.ssi_signo);
    if (signal != kParentEnded || IsEndOfParent()) return Request{ClassifySignal(info), signal};
  }
  return std::nullopt;
}

ServerSignals::Kind ServerSignals::ClassifySignal(const signalfd_siginfo& info) const {
  if (info.ssi_signo == kParentEnded) return Kind::kParentEnded;
  if (info.ssi_signo != SIGHUP) return Kind::kStop;
  return started_in_terminal_ && IsHangUp(info) ? Kind::kStop : Kind::kReload;
}

}  // namespace simile::app
