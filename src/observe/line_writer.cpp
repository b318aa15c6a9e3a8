#include "observe/line_writer.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <utility>

#include "base/file_descriptor.h"
#include "base/threads.h"

namespace simile::observe {
namespace {

// How often the thread checks whether it must end, while the reader does not read.
constexpr std::chrono::milliseconds kLookInterval{100};

// How long an urgent line waits to be written. On a busy machine the thread gets its turn in less.
constexpr std::chrono::milliseconds kUrgentWait{10};

std::uint64_t CountLines(std::string_view text) {
  return static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
}

}  // namespace

struct LineWriter::State {
  explicit State(Options given) : options(std::move(given)) {}

  // Writes until all is written, the descriptor fails or the writer ends. Returns what is left.
  std::string_view Write(std::string_view text) const {
    while (!text.empty() && !is_ending) {
      const base::BoundedWrite result = base::WriteWithin(options.fd, text, kLookInterval);
      text.remove_prefix(result.written_bytes);
      if (result.failed) break;
    }
    return text;
  }

  // Writes the line about dropped lines. False when it was not written, or had no memory.
  bool ReportDropped(std::uint64_t count) const {
    try {
      return Write(options.dropped_line(count)).empty();
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  // Waits until every line added so far is written or lost. False when that takes longer than
  // `wait`.
  //   lock  of mutex
  bool AwaitAdded(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds wait) {
    const std::uint64_t added = lines_added;
    return progress.wait_for(lock, wait, [&] { return lines_done >= added; });
  }

  const Options options;
  std::atomic<bool> is_ending = false;  // set with mutex held

  mutable std::mutex mutex;  // guards everything below
  std::condition_variable wake;
  std::condition_variable progress;  // lines_done or has_ended changed
  std::string waiting;
  std::uint64_t lines_added = 0;
  std::uint64_t lines_done = 0;  // of lines_added: written or lost
  std::uint64_t lines_dropped = 0;
  std::uint64_t drops_reported = 0;  // of lines_dropped: reported by a line that was written
  bool is_stalled = false;           // an urgent line waited too long; nothing was written since
  bool has_ended = false;
};

LineWriter::LineWriter(Options options)
    : state_(std::make_shared<State>(std::move(options))),
      thread_([state = state_] { Run(*state); }) {}

LineWriter::~LineWriter() {
  Flush(state_->options.end_wait);
  std::unique_lock lock(state_->mutex);
  state_->is_ending = true;
  state_->wake.notify_one();
  const bool ended =
      state_->progress.wait_for(lock, 3 * kLookInterval, [&] { return state_->has_ended; });
  lock.unlock();
  ended ? thread_.join() : thread_.detach();
}

void LineWriter::Add(std::string_view line) {
  const std::lock_guard lock(state_->mutex);
  if (state_->waiting.size() + line.size() > state_->options.waiting_bytes_max) {
    ++state_->lines_dropped;
    state_->wake.notify_one();
    return;
  }
  if (state_->waiting.empty()) state_->wake.notify_one();
  state_->waiting += line;
  ++state_->lines_added;
}

void LineWriter::AddUrgent(std::string_view line) {
  Add(line);
  std::unique_lock lock(state_->mutex);
  if (!state_->is_stalled) state_->is_stalled = !state_->AwaitAdded(lock, kUrgentWait);
}

void LineWriter::CountLost() {
  const std::lock_guard lock(state_->mutex);
  ++state_->lines_dropped;
  state_->wake.notify_one();
}

bool LineWriter::Flush(std::chrono::milliseconds wait) {
  std::unique_lock lock(state_->mutex);
  return state_->AwaitAdded(lock, wait);
}

std::uint64_t LineWriter::lines_dropped() const {
  const std::lock_guard lock(state_->mutex);
  return state_->lines_dropped;
}

void LineWriter::Run(State& state) {
  base::NameThread("simile-log");
  std::string lines;
  std::unique_lock lock(state.mutex);
  bool report_failed = false;  // then the next report is written after other lines
  while (true) {
    state.wake.wait(lock, [&] {
      return state.is_ending || !state.waiting.empty() ||
             (!report_failed && state.lines_dropped > state.drops_reported);
    });
    if (state.is_ending) break;
    lines.clear();
    lines.swap(state.waiting);
    const std::uint64_t count = state.lines_added - state.lines_done;
    // Lines were dropped after the lines that wait, when no more could wait.
    const std::uint64_t dropped = state.lines_dropped;
    const std::uint64_t unreported = dropped - state.drops_reported;
    lock.unlock();

    const std::string_view unwritten = state.Write(lines);
    const bool reported = unreported > 0 && state.ReportDropped(unreported);

    lock.lock();
    state.lines_done += count;
    state.lines_dropped += CountLines(unwritten);
    if (reported) state.drops_reported = dropped;
    report_failed = unreported > 0 && !reported;
    if (unwritten.size() < lines.size()) state.is_stalled = false;
    state.progress.notify_all();
  }
  state.has_ended = true;
  state.progress.notify_all();
}

}  // namespace simile::observe
