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

// Writes lines to a descriptor from a thread of its own: a reader who stops reading costs lines,
// and no caller waits for it. The lines that wait are bounded. Lines beyond the bound are dropped,
// and one line says how many once the reader reads again. All methods may be called from any
// thread.
class LineWriter {
 public:
  struct Options {
    int fd = -1;  // borrowed; see base::WriteWithin
    // The thread may hold the same number of bytes once more, while it writes them.
    std::size_t waiting_bytes_max = std::size_t{1} << 20;
    // Makes the line that says how many lines were dropped. Called on the thread, which may outlive
    // the writer.
    std::function<std::string(std::uint64_t count)> dropped_line;
    // How long the destructor waits for the reader.
    std::chrono::milliseconds end_wait{1'000};
  };

  explicit LineWriter(Options options);
  // Lines that the reader has not taken after Options::end_wait are lost. A thread that hangs in a
  // write is left behind; it ends with the process.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Adds a line. Does not wait for the reader.
  //   line  with its end of line
  void Add(std::string_view line);
  // Adds a line and waits at most 10 ms until it is written, in case the process ends. After one
  // such wait in vain it waits no more until the reader reads again.
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
