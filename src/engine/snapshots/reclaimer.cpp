#include "engine/snapshots/reclaimer.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/memory_pages.h"

namespace simile::engine {

// Outlives the reclaimer while snapshots are held: every deleter has a reference.
class Reclaimer::State {
 public:
  // REQUIRES: called once, before the state is shared.
  void Start() {
    worker_ = std::thread([this] { Work(); });
  }

  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    wake_.notify_one();
    worker_.join();
  }

  // Makes space for one more, so that Release never allocates: a deleter cannot report a failure.
  void ReserveOne() {
    const std::lock_guard lock(mutex_);
    released_.reserve(alive_ + 1);
    ++alive_;
  }

  void Release(const Snapshot* snapshot) {
    std::unique_ptr<const Snapshot> owned(snapshot);
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;  // freed here: the worker has ended
      released_.push_back(std::move(owned));
    }
    wake_.notify_one();
  }

  void AwaitReclaimed() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return released_.empty() && !freeing_; });
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stopped_ || !released_.empty(); });
      if (released_.empty()) return;
      std::unique_ptr<const Snapshot> snapshot = std::move(released_.back());
      released_.pop_back();
      --alive_;
      freeing_ = true;
      lock.unlock();
      snapshot.reset();
      base::ReturnFreedMemory();
      lock.lock();
      freeing_ = false;
      if (released_.empty()) idle_.notify_all();
    }
  }

  std::mutex mutex_;  // guards everything below but the thread
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::vector<std::unique_ptr<const Snapshot>> released_;  // capacity >= alive_
  std::size_t alive_ = 0;                                  // adopted and not yet freed
  bool freeing_ = false;
  bool stopped_ = false;
  std::thread worker_;
};

Reclaimer::Reclaimer() : state_(std::make_shared<State>()) { state_->Start(); }

Reclaimer::~Reclaimer() { state_->Stop(); }

SnapshotPtr Reclaimer::Adopt(Snapshot snapshot) {
  state_->ReserveOne();
  return {new Snapshot(std::move(snapshot)),
          [state = state_](const Snapshot* last) { state->Release(last); }};
}

void Reclaimer::AwaitReclaimed() const { state_->AwaitReclaimed(); }

}  // namespace simile::engine
