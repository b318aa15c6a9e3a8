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

  // The share of the time of all processors that other programs took since the last call, or since
  // this was made, 0 .. 1; 0 where the system does not say.
  double OthersSinceLastCall();

 private:
  struct Times {
    double total_s = 0;  // of all processors
    double busy_s = 0;   // of that, not idle
    double own_s = 0;    // of that, this process
  };
  std::optional<Times> Read() const;

  const std::filesystem::path stat_;
  std::optional<Times> last_;
};

}  // namespace simile::app
