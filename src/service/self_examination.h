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

// Runs the doctor's probes in the server's process, one examination at a time. A caller who asks
// meanwhile gets the findings of the running one. A probe may hang in a driver forever. So an
// examination runs on its own thread, which is given up after the limit. While that thread hangs,
// no other examination begins. Safe to use from any thread.
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

  // Calls `done` once, on a thread of this class, after the limit at the latest. After Stop it is
  // called on this thread, without findings. `done` must not throw. It gets an error of Guarded
  // when memory or threads have run out.
  void Run(Done done);

  // Answers the waiting callers with the findings so far. An examination that hangs is not
  // interrupted.
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
  // Of the last examination, which may hang; its thread shares the progress.
  std::shared_ptr<Progress> progress_;
  doctor::Options options_;  // of the last examination
  std::vector<Done> waiting_;
  bool stopped_ = false;
  std::thread answers_;  // begins with the first examination
};

}  // namespace simile::service
