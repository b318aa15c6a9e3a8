#include "data/id_rules.h"

#include <variant>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/utf8.h"
#include "data/field_type.h"
#include "data/json_value.h"

namespace simile::data {

absl::Status CheckId(std::string_view id, const Limits& limits) {
  if (id.empty()) return absl::InvalidArgumentError("is empty; an id has at least 1 byte");
  if (id.size() > limits.id_bytes_max) {
    return absl::InvalidArgumentError(fmt::format("is {} long; an id has at most {}",
                                                  base::Counted(id.size(), "byte"),
                                                  base::Grouped(limits.id_bytes_max)));
  }
  for (std::size_t at = 0; at < id.size();) {
    const std::size_t length = base::Utf8SequenceLength(id.substr(at));
    if (base::IsControl(id.substr(at, length))) {
      return absl::InvalidArgumentError(fmt::format(
          "is {}, which holds a control character; an id is printable text", base::Quoted(id)));
    }
    at += length;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> IdFrom(const PayloadValue& value, const Limits& limits) {
  if (const auto whole = WholeOf(value)) return fmt::to_string(*whole);
  if (const auto* const number = std::get_if<double>(&value.value)) {
    return absl::InvalidArgumentError(
        fmt::format("is {}; an id is a string or an integer, as astype(int) makes of the column "
                    "where the ids are whole numbers",
                    *number));
  }
  const auto* const text = std::get_if<std::string>(&value.value);
  if (text == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("is {}; an id is a string or an integer", Describe(value)));
  }
  if (absl::Status status = CheckId(*text, limits); !status.ok()) return status;
  return *text;
}

}  // namespace simile::data
