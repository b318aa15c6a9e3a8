#include "cli/interrupt_message.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "base/file_descriptor.h"
#include "cli/errors.h"
#include "cli/terminal.h"

namespace simile::cli {
namespace {

sigset_t OnlyInterrupt() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  return signals;
}

// Whether SIGINT is ignored, as in a program that a script started in the background. The
// terminal's Ctrl-C is not meant for it.
bool IgnoresInterrupt() {
  struct sigaction present {};
  return sigaction(SIGINT, nullptr, &present) == 0 && present.sa_handler == SIG_IGN;
}

}  // namespace

InterruptMessage::InterruptMessage() {
  if (IgnoresInterrupt()) return;
  const sigset_t interrupt = OnlyInterrupt();
  pthread_sigmask(SIG_BLOCK, &interrupt, &former_mask_);
  thread_ = std::thread([this] { Wait(); });
}

InterruptMessage::~InterruptMessage() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  pthread_kill(thread_.native_handle(), SIGINT);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &former_mask_, nullptr);
}

void InterruptMessage::Set(std::string message) {
  const std::lock_guard lock(mutex_);
  message_ = std::move(message);
}

void InterruptMessage::Wait() {
  const sigset_t interrupt = OnlyInterrupt();
  int signal = 0;
  while (sigwait(&interrupt, &signal) != 0) {
  }
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  if (!message_.empty()) {
    const char* after_the_bar = StandardError().is_terminal ? "\n" : "";
    base::WriteAll(STDERR_FILENO, fmt::format("{}{}\n", after_the_bar, message_));
  }
  std::_Exit(kInterrupted);
}

}  // namespace simile::cli
