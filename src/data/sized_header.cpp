#include "data/sized_header.h"

#include <array>
#include <cassert>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::data {

absl::StatusOr<std::string> ReadSizedHeader(BufferedReader& in, std::size_t length_bytes,
                                            std::uint64_t bytes_max) {
  std::array<char, 8> bytes{};
  assert(length_bytes <= bytes.size() && length_bytes <= in.bytes_left());
  if (absl::Status status = in.ReadExact({bytes.data(), length_bytes}); !status.ok()) return status;
  std::uint64_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  }
  if (length > bytes_max) {
    return Refuse(in, fmt::format("claims a header of {} bytes; at most {} are read",
                                  base::Grouped(length), base::Grouped(bytes_max)));
  }
  if (length > in.bytes_left()) {
    return Refuse(in, fmt::format("claims a header of {}, but {} follow; the file is cut short",
                                  base::Counted(length, "byte"), base::Grouped(in.bytes_left())));
  }
  std::string header(length, '\0');
  if (absl::Status status = in.ReadExact(header); !status.ok()) return status;
  return header;
}

absl::Status CheckDataBytes(const BufferedReader& in, std::string_view needs, std::uint64_t bytes) {
  const std::uint64_t left = in.bytes_left();
  if (left == bytes) return absl::OkStatus();
  const std::string fault = left < bytes
                                ? "the file is cut short"
                                : fmt::format("{} too many", base::Counted(left - bytes, "byte"));
  return Refuse(in, fmt::format("{} {} after the header, but {} follow; {}", needs,
                                base::Counted(bytes, "byte"), base::Grouped(left), fault));
}

}  // namespace simile::data
