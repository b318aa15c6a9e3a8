#pragma once

#include <csignal>
#include <mutex>
#include <string>
#include <thread>

namespace simile::cli {

// While it exists, Ctrl-C prints a message to standard error and ends the program with
// kInterrupted. Make it before the program's other threads: they inherit that the signal is left to
// it.
class InterruptMessage {
 public:
  InterruptMessage();
  ~InterruptMessage();
  InterruptMessage(const InterruptMessage&) = delete;
  InterruptMessage& operator=(const InterruptMessage&) = delete;

  // From now on; none until this is called.
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
