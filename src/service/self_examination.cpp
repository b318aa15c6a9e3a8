#include "service/self_examination.h"

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <absl/status/status.h>

#include "service/calls/call.h"

namespace simile::service {

// What an examination has found so far. Its thread may outlive the SelfExamination.
struct SelfExamination::Progress {
  std::mutex mutex;  // guards everything below
  std::condition_variable changed;
  std::vector<doctor::Finding> findings;
  // OUT_OF_MEMORY when a probe had no memory, which says nothing about the GPU.
  absl::Status failure;
  std::string began;
  bool done = false;
  bool given_up = false;  // nobody waits any longer

  void ExamineOrSayWhereItFailed(const doctor::Options& options) {
    try {
      doctor::ExamineGpu(options, {.began =
                                       [this](std::string_view probe) {
                                         const std::lock_guard lock(mutex);
                                         began = probe;
                                       },
                                   .found =
                                       [this](doctor::Finding finding) {
                                         const std::lock_guard lock(mutex);
                                         findings.push_back(std::move(finding));
                                       }});
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex);
      doctor::AddUnfinished(began, doctor::CrashBy(error.what()), findings);
    }
  }
  void Examine(const doctor::Options& options) {
    const absl::Status examined = Guarded([&] { ExamineOrSayWhereItFailed(options); });
    const std::lock_guard lock(mutex);
    failure = examined;
    done = true;
    changed.notify_all();
  }
};

SelfExamination::SelfExamination(MakeOptions make_options, std::chrono::seconds limit)
    : make_options_(std::move(make_options)), limit_(limit) {}

SelfExamination::~SelfExamination() {
  Stop();
  if (answers_.joinable()) answers_.join();
}

void SelfExamination::Run(Done done) {
  std::unique_lock lock(mutex_);
  if (stopped_) {
    lock.unlock();
    done(std::vector<doctor::Finding>());
    return;
  }
  if (!answers_.joinable()) answers_ = std::thread([this] { WaitAndAnswer(); });
  waiting_.push_back(std::move(done));
  changed_.notify_all();
}

void SelfExamination::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
  if (progress_ == nullptr) return;
  const std::lock_guard of_progress(progress_->mutex);
  progress_->given_up = true;
  progress_->changed.notify_all();
}

void SelfExamination::Begin(doctor::Options options) {
  options_ = std::move(options);
  progress_ = std::make_shared<Progress>();
  std::thread([progress = progress_, examined = options_] {
    progress->Examine(examined);
  }).detach();
}

// Waits for the examination, but not beyond the limit.
SelfExamination::Findings SelfExamination::FindingsSoFar() {
  std::unique_lock lock(progress_->mutex);
  progress_->changed.wait_for(lock, limit_,
                              [this] { return progress_->done || progress_->given_up; });
  if (!progress_->failure.ok()) return progress_->failure;
  std::vector<doctor::Finding> findings = progress_->findings;
  if (!progress_->done) {
    progress_->given_up = true;
    doctor::AddUnfinished(progress_->began, doctor::HangAfter(limit_), findings);
  }
  lock.unlock();
  for (doctor::Finding& finding : doctor::ExamineSurroundings(options_)) {
    findings.push_back(std::move(finding));
  }
  doctor::Conclude(findings);
  return findings;
}

void SelfExamination::WaitAndAnswer() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const bool hangs = progress_ != nullptr && progress_->given_up && !progress_->done;
    Findings findings = std::vector<doctor::Finding>();
    const absl::Status examined = Guarded([&] {
      if (!stopped_ && !hangs) Begin(make_options_());
      if (progress_ == nullptr) return;
      lock.unlock();
      findings = FindingsSoFar();
    });
    if (!examined.ok()) findings = examined;
    if (!lock.owns_lock()) lock.lock();
    for (const Done& done : std::exchange(waiting_, {})) done(findings);
  }
}

}  // namespace simile::service
