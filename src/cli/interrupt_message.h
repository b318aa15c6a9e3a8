#pragma once

#include <csignal>
#include <mutex>
#include <string>
#include <thread>

namespace simile::cli {

// While an InterruptMessage exists, Ctrl-C prints its message to standard error and ends the
// program with kInterrupted. Create it before any other thread, because threads inherit the signal
// mask.
class InterruptMessage {
 public:
  InterruptMessage();
  ~InterruptMessage();
  InterruptMessage(const InterruptMessage&) = delete;
  InterruptMessage& operator=(const InterruptMessage&) = delete;

  // Sets the message. Until the first call Ctrl-C prints none.
  void Set(std::string message);

 private:
  void Wait();

  std::mutex mutex_;  // guards message_ and stopping_
  std::string message_;
  bool stopping_ = false;
  sigset_t former_mask_{};
  std::thread thread_;
};

}  // namespace simile::cli
