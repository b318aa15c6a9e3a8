#pragma once

#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include <gtest/gtest.h>

namespace simile::base {

// Sends a signal to one process, and says why that failed. kill(2) takes 0 and negative numbers for
// groups of processes. So the number of a process that was never started would end ctest and the
// shell.
//   signal  0 sends none and asks whether the process exists
inline testing::AssertionResult SignalProcess(pid_t pid, int signal) {
  if (pid <= 0)
    return testing::AssertionFailure() << "no process was started, its number is " << pid;
  if (kill(pid, signal) == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "process " << pid << ": " << std::strerror(errno);
}

}  // namespace simile::base
