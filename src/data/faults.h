#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/status.h>

#include "base/error_detail.h"

namespace simile::data {

// The faults of one file, so that one reading names them all: a message has the first ten.
class FaultList {
 public:
  explicit FaultList(std::string_view display_name) : display_name_(display_name) {}

  // Adds a fault of the content, after which reading can go on. False for any other error, such as
  // a file that cannot be read or has changed.
  bool Add(const absl::Status& error);
  bool empty() const { return count_ == 0; }
  // OK without faults. A single fault as it was added. Several faults in a line each:
  //   metadata.jsonl: 12 faults
  //     line 3, column 8: ...
  //     and 2 more
  absl::Status ToStatus() const;

 private:
  const std::string display_name_;
  std::vector<std::string> first_;  // messages
  std::uint64_t count_ = 0;
};

// Gives an error of reading a collection its reason. A reader's own reason, FILES_CHANGED, stays.
// Otherwise it is DOES_NOT_FIT for lack of memory, and INVALID_FILES for a missing or wrong file.
inline absl::Status LoadError(absl::Status error) {
  const bool no_memory = error.code() == absl::StatusCode::kResourceExhausted;
  return base::WithReason(std::move(error), no_memory ? base::ErrorReason::kDoesNotFit
                                                      : base::ErrorReason::kInvalidFiles);
}

}  // namespace simile::data
