// Any bytes as a filter: an expression or an error that can be sent as text, never a crash, a leak
// or undefined behaviour. The canonical text of an expression parses to the same canonical text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "filter/parser.h"

namespace {

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = simile::base::Utf8SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using simile::filter::Expression;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Expression> first = simile::filter::Parse(bytes);
  if (!first.ok()) {
    const std::string message(first.status().message());
    if (!message.starts_with("column ") || !IsUtf8(message)) std::abort();
    return 0;
  }
  const std::string text = simile::filter::ToText(*first);
  // The canonical text has more spaces than the filter, so it may exceed the bound.
  if (text.size() > simile::filter::kFilterBytesMax) return 0;
  const absl::StatusOr<Expression> second = simile::filter::Parse(text);
  if (!second.ok() || simile::filter::ToText(*second) != text) std::abort();
  return 0;
}
