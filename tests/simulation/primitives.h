#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "simulation/simulator.h"

// What takes the place of the standard library's threads in the sources under simulation
// (simulated_sources.py). Each operation is a point at which another simulated thread may run.
// Outside a schedule nothing waits, and a lock is only a mark.
namespace simile::simulation {

// Of the assertions of the copied sources.
void CheckAssertion(bool holds, std::string_view text);
#define SIMILE_SIMULATED_ASSERT(...) \
  ::simile::simulation::CheckAssertion(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__)

// As std::mutex. Names are of the member that it is.
class Mutex {
 public:
  explicit Mutex(std::string_view name = "a mutex") : name_(name) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock();
  void unlock();

 private:
  friend class ConditionVariable;
  void Lock();  // without a point before it
  void Unlock();

  const std::string_view name_;
  bool locked_ = false;
  const SimulatedThread* owner_ = nullptr;
  Waiters waiters_;
};

// As std::condition_variable.
class ConditionVariable {
 public:
  explicit ConditionVariable(std::string_view name = "a condition") : name_(name) {}
  ConditionVariable(const ConditionVariable&) = delete;
  ConditionVariable& operator=(const ConditionVariable&) = delete;

  void notify_one();
  void notify_all();
  void wait(std::unique_lock<Mutex>& lock) { WaitUntil(lock, Clock::TimePoint::max()); }
  template <class Predicate>
  void wait(std::unique_lock<Mutex>& lock, Predicate predicate) {
    while (!predicate()) wait(lock);
  }
  void wait_for(std::unique_lock<Mutex>& lock, Clock::Duration duration) {
    WaitUntil(lock, Simulator::current()->now() + duration);
  }

 private:
  void WaitUntil(std::unique_lock<Mutex>& lock, Clock::TimePoint until);

  const std::string_view name_;
  Waiters waiters_;
};

// As std::thread.
class Thread {
 public:
  Thread() = default;
  template <class Body>
  requires(!std::same_as<std::remove_cvref_t<Body>, Thread>) explicit Thread(Body body)
      : thread_(Start(std::move(body))) {}
  ~Thread();
  Thread(Thread&& other) noexcept : thread_(std::exchange(other.thread_, nullptr)) {}
  Thread& operator=(Thread&& other) noexcept;

  bool joinable() const { return thread_ != nullptr; }
  void join();

 private:
  static SimulatedThread* Start(std::function<void()> body);

  SimulatedThread* thread_ = nullptr;
};

// As std::atomic, as far as it is used.
template <class Value>
class Atomic {
 public:
  Atomic() = default;
  Atomic(Value value) : value_(value) {}  // NOLINT(google-explicit-constructor): as the original
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  Value load() const {
    Point("reads");
    return value_;
  }
  void store(Value value) {
    Point("writes");
    value_ = value;
  }
  Value operator+=(Value value) {
    Point("adds to");
    return value_ += value;
  }
  Value operator-=(Value value) {
    Point("subtracts from");
    return value_ -= value;
  }
  operator Value() const { return load(); }  // NOLINT(google-explicit-constructor)
  Value operator=(Value value) {             // NOLINT(misc-unconventional-assign-operator)
    store(value);
    return value;
  }

 private:
  static void Point(std::string_view operation) {
    if (Simulator* const simulator = Simulator::current()) simulator->Point(operation, "an atomic");
  }

  Value value_{};
};

// What std::stop_source, its tokens and callbacks share.
class StopState {
 public:
  struct Callback {
    std::function<void()> run;
    bool* destroyed = nullptr;  // set when it is destroyed by its own call
  };

  bool requested() const;
  void Request();
  // Calls it at once when a stop was requested before.
  void Add(Callback* callback);
  // Waits for its call to end, unless it is the caller.
  void Remove(Callback* callback);

 private:
  bool requested_ = false;
  std::vector<Callback*> callbacks_;
  Callback* called_ = nullptr;
  const SimulatedThread* caller_ = nullptr;
  Waiters waiters_;
};

// As std::stop_token.
class StopToken {
 public:
  StopToken() = default;
  explicit StopToken(std::shared_ptr<StopState> state) : state_(std::move(state)) {}
  bool stop_requested() const { return state_ != nullptr && state_->requested(); }
  const std::shared_ptr<StopState>& state() const { return state_; }

 private:
  std::shared_ptr<StopState> state_;
};

// As std::stop_source.
class StopSource {
 public:
  StopToken get_token() const { return StopToken(state_); }
  void request_stop() { state_->Request(); }

 private:
  std::shared_ptr<StopState> state_ = std::make_shared<StopState>();
};

// As std::stop_callback.
template <class Function>
class StopCallback {
 public:
  StopCallback(const StopToken& token, Function function)
      : callback_{std::move(function)}, state_(token.state()) {
    if (state_ != nullptr) state_->Add(&callback_);
  }
  ~StopCallback() {
    if (state_ != nullptr) state_->Remove(&callback_);
  }
  StopCallback(const StopCallback&) = delete;
  StopCallback& operator=(const StopCallback&) = delete;

 private:
  StopState::Callback callback_;
  const std::shared_ptr<StopState> state_;
};

// Something that happens once and that simulated threads await.
class Event {
 public:
  void Set();
  void Await();
  bool is_set() const { return set_; }

 private:
  bool set_ = false;
  Waiters waiters_;
};

// The simulated time.
class SimulatedClock final : public Clock {
 public:
  TimePoint Now() const override {
    Simulator* const simulator = Simulator::current();
    if (simulator == nullptr) return TimePoint(std::chrono::hours(1));
    simulator->Point("reads", "the clock");
    return simulator->now();
  }
  std::chrono::system_clock::time_point WallNow() const override {
    return std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));
  }
};

}  // namespace simile::simulation
