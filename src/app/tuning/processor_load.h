#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace simile::app {

// How much of the machine's processors other programs use. One thread at a time.
class ProcessorLoad {
 public:
  //   stat  where Linux counts the processors' time; tests use a file of their own
  explicit ProcessorLoad(std::filesystem::path stat = "/proc/stat");

  // The share of all processors' time that other programs used since the last call, 0 .. 1. The
  // first call counts from the construction. 0 where the system does not say.
  double OthersSinceLastCall();

 private:
  struct Times {
    double total_s = 0;  // of all processors
    double busy_s = 0;   // not idle
    double own_s = 0;    // of this process
  };
  std::optional<Times> Read() const;

  const std::filesystem::path stat_;
  std::optional<Times> last_;
};

}  // namespace simile::app
