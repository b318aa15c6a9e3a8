#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <absl/status/statusor.h>

#include "doctor/examination.h"
#include "doctor/symptoms.h"

namespace simile::service {

// Runs the doctor's probes in the server's process, one examination at a time: who asks
// meanwhile gets its findings. A probe may hang in a driver for good, so it runs on a thread of its
// own that is given up after the limit; as long as it hangs, no other is begun. Thread-safe.
class SelfExamination {
 public:
  using MakeOptions = std::function<doctor::Options()>;
  using Findings = absl::StatusOr<std::vector<doctor::Finding>>;
  using Done = std::function<void(const Findings& findings)>;

  //   make_options  what to examine, called when an examination begins
  SelfExamination(MakeOptions make_options, std::chrono::seconds limit);
  ~SelfExamination();
  SelfExamination(const SelfExamination&) = delete;
  SelfExamination& operator=(const SelfExamination&) = delete;

  // Calls `done` once, after the limit at the latest, from a thread of this class, or from this one
  // after Stop, then with nothing. `done` must not throw. Its errors: those of Guarded, when memory
  // or threads have run out.
  void Run(Done done);

  // Ends the waiting: those who wait get what was found so far. An examination that hangs goes on.
  void Stop();

 private:
  struct Progress;

  void WaitAndAnswer();
  // REQUIRES: mutex_ is held.
  void Begin(doctor::Options options);
  // Errors: OUT_OF_MEMORY.
  Findings FindingsSoFar();

  const MakeOptions make_options_;
  const std::chrono::seconds limit_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::shared_ptr<Progress> progress_;  // of the last examination, perhaps hung; shared with it
  doctor::Options options_;             // of the last examination
  std::vector<Done> waiting_;
  bool stopped_ = false;
  std::thread answers_;  // begins with the first examination
};

}  // namespace simile::service
