#include "engine/reclaimer.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

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

  // Makes sure that LetGo never allocates: a deleter has nowhere to report a failure to.
  void ExpectOneMore() {
    const std::lock_guard lock(mutex_);
    let_go_.reserve(alive_ + 1);
    ++alive_;
  }

  void LetGo(const Snapshot* snapshot) {
    std::unique_ptr<const Snapshot> owned(snapshot);
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;  // freed here: the thread that would have done it is gone
      let_go_.push_back(std::move(owned));
    }
    wake_.notify_one();
  }

  void AwaitReclaimed() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return let_go_.empty() && !freeing_; });
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stopped_ || !let_go_.empty(); });
      if (let_go_.empty()) return;
      std::unique_ptr<const Snapshot> snapshot = std::move(let_go_.back());
      let_go_.pop_back();
      --alive_;
      freeing_ = true;
      lock.unlock();
      snapshot.reset();
      lock.lock();
      freeing_ = false;
      if (let_go_.empty()) idle_.notify_all();
    }
  }

  std::mutex mutex_;  // guards everything below but the thread
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::vector<std::unique_ptr<const Snapshot>> let_go_;  // capacity >= alive_
  std::size_t alive_ = 0;                                // adopted and not yet freed
  bool freeing_ = false;
  bool stopped_ = false;
  std::thread worker_;
};

Reclaimer::Reclaimer() : state_(std::make_shared<State>()) { state_->Start(); }

Reclaimer::~Reclaimer() { state_->Stop(); }

SnapshotPtr Reclaimer::Adopt(Snapshot snapshot) {
  state_->ExpectOneMore();
  return {new Snapshot(std::move(snapshot)),
          [state = state_](const Snapshot* last) { state->LetGo(last); }};
}

void Reclaimer::AwaitReclaimed() const { state_->AwaitReclaimed(); }

}  // namespace simile::engine
