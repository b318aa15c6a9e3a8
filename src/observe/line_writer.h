#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace simile::observe {

// Writes lines to a descriptor from a thread of its own, so that a reader who stops reading costs
// lines and never holds up who writes them. The lines that wait are bounded; more are dropped and
// counted, and a line says how many once the reader reads again. All methods may be called from any
// thread.
class LineWriter {
 public:
  struct Options {
    int fd = -1;  // borrowed; see base::WriteWithin
    // As much again may be in the hands of the thread.
    std::size_t waiting_bytes_max = std::size_t{1} << 20;
    // Makes the line that says how many were dropped. Called on the thread, which may outlive this.
    std::function<std::string(std::uint64_t count)> dropped_line;
    // How long the destructor waits for the reader.
    std::chrono::milliseconds end_wait{1'000};
  };

  explicit LineWriter(Options options);
  // What the reader has not taken after Options::end_wait is lost. A thread that hangs in a write
  // is left behind; it ends with the process.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Does not wait for the reader.
  //   line  with its end of line
  void Add(std::string_view line);
  // Add, and waits a moment until the line is written, in case the process ends. A reader who
  // stopped reading costs one such wait.
  void AddUrgent(std::string_view line);
  // Counts a line that was lost before it could be added.
  void CountLost();
  // Waits until every line that was added before is written or lost. Returns false when that takes
  // longer.
  bool Flush(std::chrono::milliseconds wait);
  // Lines that were dropped or lost since the start.
  std::uint64_t lines_dropped() const;

 private:
  struct State;  // shared with the thread

  static void Run(State& state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace simile::observe
