#include "simulation/primitives.h"

#include <algorithm>
#include <string>

namespace simile::simulation {

void CheckAssertion(bool holds, std::string_view text) {
  Simulator* const simulator = Simulator::current();
  if (!holds && simulator != nullptr) simulator->Fail("this does not hold: " + std::string(text));
}

void Mutex::lock() {
  if (Simulator* const simulator = Simulator::current()) simulator->Point("locks", name_);
  Lock();
}

void Mutex::Lock() {
  Simulator* const simulator = Simulator::current();
  const SimulatedThread* const thread = simulator == nullptr ? nullptr : simulator->running();
  if (thread == nullptr) {  // an idle check, or outside a schedule
    if (locked_ && simulator != nullptr) {
      simulator->Fail("a thread waits with " + std::string(name_) + " locked");
    }
    locked_ = true;
    owner_ = nullptr;
    return;
  }
  if (locked_ && owner_ == thread) simulator->Fail(std::string(name_) + " is locked twice");
  while (locked_) simulator->Wait(waiters_);
  locked_ = true;
  owner_ = thread;
  ++simulator->locks_held();
}

// What follows without the lock may come late.
void Mutex::unlock() {
  Unlock();
  if (Simulator* const simulator = Simulator::current()) simulator->Point("unlocked", name_);
}

void Mutex::Unlock() {
  Simulator* const simulator = Simulator::current();
  const SimulatedThread* const thread = simulator == nullptr ? nullptr : simulator->running();
  if (simulator != nullptr && (!locked_ || owner_ != thread)) {
    simulator->Fail(std::string(name_) + " is unlocked by a thread that has not locked it");
  }
  locked_ = false;
  if (thread == nullptr) return;
  --simulator->locks_held();
  simulator->WakeAll(waiters_);
}

void ConditionVariable::WaitUntil(std::unique_lock<Mutex>& lock, Clock::TimePoint until) {
  Simulator& simulator = *Simulator::current();
  simulator.Point("awaits", name_);
  Mutex& mutex = *lock.mutex();
  mutex.Unlock();
  simulator.Wait(waiters_, until, true);
  mutex.Lock();
}

void ConditionVariable::notify_one() {
  Simulator* const simulator = Simulator::current();
  if (simulator == nullptr) return;
  simulator->Point("notifies", name_);
  simulator->WakeAny(waiters_);
}

void ConditionVariable::notify_all() {
  Simulator* const simulator = Simulator::current();
  if (simulator == nullptr) return;
  simulator->Point("notifies", name_);
  simulator->WakeAll(waiters_);
}

Thread::~Thread() {
  if (thread_ != nullptr && Simulator::current() != nullptr) {
    Simulator::current()->Fail("a thread is destroyed that was not joined");
  }
}

Thread& Thread::operator=(Thread&& other) noexcept {
  if (thread_ != nullptr) Simulator::current()->Fail("a thread is replaced that was not joined");
  thread_ = std::exchange(other.thread_, nullptr);
  return *this;
}

SimulatedThread* Thread::Start(std::function<void()> body) {
  Simulator& simulator = *Simulator::current();
  simulator.Point("starts", "a thread");
  return simulator.StartThread(std::move(body));
}

void Thread::join() { Simulator::current()->JoinThread(std::exchange(thread_, nullptr)); }

bool StopState::requested() const {
  if (Simulator* const simulator = Simulator::current()) simulator->Point("reads", "a stop state");
  return requested_;
}

void StopState::Request() {
  Simulator& simulator = *Simulator::current();
  simulator.Point("requests", "a stop");
  if (std::exchange(requested_, true)) return;
  caller_ = simulator.running();
  while (!callbacks_.empty()) {
    Callback* const callback = callbacks_.front();
    callbacks_.erase(callbacks_.begin());
    called_ = callback;
    bool destroyed = false;
    callback->destroyed = &destroyed;
    simulator.Point("calls", "a stop callback");
    callback->run();
    if (!destroyed) callback->destroyed = nullptr;
    called_ = nullptr;
    simulator.WakeAll(waiters_);
  }
}

void StopState::Add(Callback* callback) {
  if (requested()) {
    callback->run();
    return;
  }
  callbacks_.push_back(callback);
}

void StopState::Remove(Callback* callback) {
  Simulator* const simulator = Simulator::current();
  if (simulator != nullptr) simulator->Point("removes", "a stop callback");
  if (std::erase(callbacks_, callback) > 0 || called_ != callback) return;
  if (simulator != nullptr && simulator->running() == caller_) {
    *callback->destroyed = true;
    return;
  }
  while (called_ == callback) simulator->Wait(waiters_);
}

void Event::Set() {
  if (std::exchange(set_, true)) return;
  Simulator::current()->WakeAll(waiters_);
}

void Event::Await() {
  Simulator& simulator = *Simulator::current();
  simulator.Point("awaits", "an event");
  while (!set_) simulator.Wait(waiters_);
}

}  // namespace simile::simulation
