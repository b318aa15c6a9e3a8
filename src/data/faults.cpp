#include "data/faults.h"

#include <iterator>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::data {

bool FaultList::Add(const absl::Status& error) {
  constexpr std::size_t kNamedMax = 10;
  if (!absl::IsInvalidArgument(error)) return false;
  if (count_++ < kNamedMax) first_.emplace_back(error.message().data(), error.message().size());
  return true;
}

absl::Status FaultList::ToStatus() const {
  if (count_ == 0) return absl::OkStatus();
  if (count_ == 1) return absl::InvalidArgumentError(first_.front());
  std::string text = fmt::format("{}: {} faults", display_name_, base::Grouped(count_));
  const std::string prefix = fmt::format("{}: ", display_name_);
  for (const std::string& message : first_) {
    const std::string_view fault = message;
    fmt::format_to(std::back_inserter(text), "\n  {}",
                   fault.starts_with(prefix) ? fault.substr(prefix.size()) : fault);
  }
  if (count_ > first_.size()) {
    fmt::format_to(std::back_inserter(text), "\n  and {} more",
                   base::Grouped(count_ - first_.size()));
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace simile::data
