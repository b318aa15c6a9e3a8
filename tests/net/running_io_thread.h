#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include <grpcpp/alarm.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "engine/fake_clock.h"
#include "net/io_thread.h"
#include "observe/build_info.h"
#include "observe/metrics.h"

namespace simile::net {

// An IoThread whose time the test sets, of a server without methods and connections.
class RunningIoThread {
 public:
  RunningIoThread() {
    grpc::ServerBuilder builder;
    thread_ = std::make_unique<IoThread>(
        builder.AddCompletionQueue(), [this] { return CountLook(); }, clock_, metrics_);
    server_ = builder.BuildAndStart();
  }
  ~RunningIoThread() {
    StopCalls();
    server_->Shutdown();
    server_->Wait();
    thread_.reset();
  }

  IoThread& thread() { return *thread_; }
  const engine::FakeClock& clock() const { return clock_; }

  void Start() { thread_->Start(); }
  // Unless called before, called at the end.
  void StopCalls() {
    if (!std::exchange(stopped_, true)) thread_->StopCalls();
  }
  // Runs it on the thread, and returns when the thread has looked around after that.
  void Run(const std::function<void()>& step) {
    std::unique_lock lock(mutex_);
    step_.run = &step;
    grpc::Alarm alarm;
    alarm.Set(&thread_->queue(), gpr_now(GPR_CLOCK_MONOTONIC), static_cast<IoEvent*>(&step_));
    looked_.wait(lock, [this] { return awaited_look_ > 0 && looks_ >= awaited_look_; });
    awaited_look_ = 0;
  }
  // Advances the clock, and returns when the thread has seen that.
  void Advance(Clock::Duration duration) {
    clock_.Advance(duration);
    Run([] {});
  }

 private:
  // Made before the thread, and its content handed over under the mutex: ThreadSanitizer does not
  // see that gRPC's queue orders what one thread puts in and another takes out.
  struct Step final : IoEvent {
    explicit Step(RunningIoThread& owner) : io(owner) {}
    void Happened(bool /*ok*/) override {
      const std::lock_guard lock(io.mutex_);
      (*run)();
      io.awaited_look_ = io.looks_ + 1;
    }
    RunningIoThread& io;
    const std::function<void()>* run = nullptr;
  };
  // Before each wait of the thread.
  bool CountLook() {
    const std::lock_guard lock(mutex_);
    ++looks_;
    looked_.notify_all();
    return false;
  }

  engine::FakeClock clock_;
  bool stopped_ = false;
  std::mutex mutex_;  // guards the members below
  std::condition_variable looked_;
  int looks_ = 0;
  int awaited_look_ = 0;  // 0 for none
  Step step_{*this};

  observe::Metrics metrics_{observe::GetBuildInfo()};
  std::unique_ptr<IoThread> thread_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace simile::net
