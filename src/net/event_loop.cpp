#include "net/event_loop.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/threads.h"

namespace simile::net {
namespace {

thread_local bool is_loop_thread = false;

base::FileDescriptor Checked(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  return base::FileDescriptor(fd);
}

}  // namespace

bool OnLoopThread() { return is_loop_thread; }

EventLoop::EventLoop(std::string thread_name, BeforeWait before_wait, const Clock& clock)
    : thread_name_(std::move(thread_name)),
      before_wait_(std::move(before_wait)),
      clock_(clock),
      epoll_(Checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_event_(Checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      now_(clock.Now()),
      fired_step_(ToStep(now_)),
      read_buffer_(std::make_unique<std::array<std::uint8_t, kReadBytes>>()) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_event_.get(), &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
}

EventLoop::~EventLoop() = default;

void EventLoop::Start() {
  thread_ = std::thread([this] { Run(); });
}

void EventLoop::Stop() {
  if (!thread_.joinable()) return;
  stop_asked_ = true;
  eventfd_write(wake_event_.get(), 1);
  thread_.join();
}

void EventLoop::Post(Task& task) {
  if (task.is_posted_.exchange(true)) return;
  Task* last = posted_.load(std::memory_order_relaxed);
  do {
    task.next_posted_ = last;
  } while (!posted_.compare_exchange_weak(last, &task));
  if (is_asleep_.exchange(false)) eventfd_write(wake_event_.get(), 1);
}

void EventLoop::Soon(Task& task) {
  if (std::exchange(task.is_soon_, true)) return;
  task.next_soon_ = std::exchange(soon_, &task);
}

bool EventLoop::Watch(int fd, Watcher& watcher) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &watcher;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void EventLoop::Run() {
  base::NameThread(thread_name_.c_str());
  is_loop_thread = true;
  while (!stop_asked_) Turn(true);
  now_ = clock_.Now();
  while (posted_.load() != nullptr || soon_ != nullptr) {
    RunPosted();
    RunSoon();
    if (before_wait_) before_wait_();  // for calls that came in this last turn
  }
}

void EventLoop::Turn(bool may_wait) {
  constexpr int kEventsMax = 256;
  std::array<epoll_event, kEventsMax> events;
  // A task that is posted after this store wakes the thread; one that was posted before is seen.
  is_asleep_.store(true);
  const bool waits = may_wait && !looks_again_ && soon_ == nullptr && posted_.load() == nullptr;
  const int count = epoll_wait(epoll_.get(), events.data(), kEventsMax, waits ? TimeoutMs() : 0);
  is_asleep_.store(false, std::memory_order_relaxed);
  now_ = clock_.Now();
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    // The eventfd has no watcher: it only ends the wait.
    if (event.data.ptr != nullptr) static_cast<Watcher*>(event.data.ptr)->OnEvents(event.events);
  }
  RunPosted();
  FireTimers();
  looks_again_ = before_wait_ && before_wait_();
  if (looks_again_) RunPosted();  // the answers
  RunSoon();
}

void EventLoop::RunPosted() {
  Task* first = nullptr;  // in the order in which they were posted
  for (Task* task = posted_.exchange(nullptr); task != nullptr;) {
    Task* const next = std::exchange(task->next_posted_, first);
    first = std::exchange(task, next);
  }
  while (first != nullptr) {
    Task* const task = std::exchange(first, first->next_posted_);
    task->is_posted_.exchange(false);  // a post from here on runs it again
    task->Run();
  }
}

void EventLoop::RunSoon() {
  for (Task* next = std::exchange(soon_, nullptr); next != nullptr;) {
    Task* const task = std::exchange(next, next->next_soon_);
    task->is_soon_ = false;
    task->Run();
  }
}

void EventLoop::Arm(Timer& timer, Clock::TimePoint time) {
  timer.Disarm();
  timer.time_ = time;
  // The slot after the slot of `time`: when it fires, `time` has passed.
  const Step step = std::clamp(ToStep(time) + 1, fired_step_ + 1, fired_step_ + kSlots - 1);
  const auto slot = static_cast<std::size_t>(step % kSlots);
  timer.next_ = slots_[slot];
  timer.link_ = &slots_[slot];
  if (timer.next_ != nullptr) timer.next_->link_ = &timer.next_;
  slots_[slot] = &timer;
  may_have_timers_[slot / 64] |= std::uint64_t{1} << (slot % 64);
}

void EventLoop::FireTimers() {
  const Step now = ToStep(now_);
  Step step = fired_step_;
  while ((step = NextStepWithTimers(step + 1)) <= now && step < fired_step_ + kSlots) {
    fired_step_ = step;
    FireSlot(static_cast<std::size_t>(step % kSlots));
  }
  fired_step_ = std::max(fired_step_, now);
}

void EventLoop::FireSlot(std::size_t slot) {
  // A list of its own: a timer that fires may disarm others of the slot, or arm itself again.
  Timer* first = std::exchange(slots_[slot], nullptr);
  if (first != nullptr) first->link_ = &first;
  while (first != nullptr) {
    Timer& timer = *first;
    timer.Disarm();
    if (timer.time_ <= now_) {
      timer.OnTime();
    } else {
      Arm(timer, timer.time_);
    }
  }
}

EventLoop::Step EventLoop::NextStepWithTimers(Step from) {
  for (Step step = from; step < from + kSlots;) {
    const auto slot = static_cast<std::size_t>(step % kSlots);
    std::uint64_t& word = may_have_timers_[slot / 64];
    const std::uint64_t later = word >> (slot % 64);
    if (later == 0) {
      step += 64 - static_cast<Step>(slot % 64);
      continue;
    }
    const int skipped = std::countr_zero(later);
    const std::size_t found = slot + static_cast<std::size_t>(skipped);
    step += skipped;
    if (slots_[found] != nullptr) return step;
    word &= ~(std::uint64_t{1} << (found % 64));
  }
  return from + kSlots;
}

int EventLoop::TimeoutMs() {
  const Step next = NextStepWithTimers(fired_step_ + 1);
  if (next > fired_step_ + kSlots) return -1;
  const Clock::TimePoint time(next * Clock::Duration(kTimerStep));
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(time - clock_.Now());
  return static_cast<int>(std::clamp<std::int64_t>(wait.count(), 0, 60'000));
}

}  // namespace simile::net
