#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace simile::cli::bench {

// The median; the upper of the two middle values for an even count. 0 without values.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Measures calls of one kind, made one after another.
class MeasuredCalls {
 public:
  // Makes a call and returns its answer. The time of a call that fails does not count.
  //   call  returns an absl::StatusOr of a response with a receipt
  template <class Call>
  auto Time(const Call& call) {
    const auto start = std::chrono::steady_clock::now();
    auto response = call();
    const auto end = std::chrono::steady_clock::now();
    if (response.ok()) {
      call_ms_.push_back(std::chrono::duration<double, std::milli>(end - start).count());
      compute_ms_.push_back(static_cast<double>(response->receipt().compute_us()) / 1e3);
    }
    return response;
  }

  std::size_t count() const { return call_ms_.size(); }
  double call_median_ms() const { return Median(call_ms_); }        // measured by the client
  double compute_median_ms() const { return Median(compute_ms_); }  // by the receipts

 private:
  std::vector<double> call_ms_;
  std::vector<double> compute_ms_;
};

}  // namespace simile::cli::bench
