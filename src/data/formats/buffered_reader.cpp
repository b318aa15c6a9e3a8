#include "data/formats/buffered_reader.h"

#include <algorithm>
#include <array>
#include <cassert>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::data {
namespace {

constexpr std::uint64_t kBufferBytesMax = std::uint64_t{256} << 10;

}  // namespace

BufferedReader::BufferedReader(ByteSource& source)
    : source_(source), buffer_(std::clamp<std::uint64_t>(source.size(), 1, kBufferBytesMax)) {}

absl::StatusOr<bool> BufferedReader::Fill() {
  assert(window_.empty());
  const absl::StatusOr<std::size_t> count = source_.Read(buffer_);
  if (!count.ok()) return count.status();
  window_ = {buffer_.data(), *count};
  return *count != 0;
}

void BufferedReader::Consume(std::size_t count) {
  window_.remove_prefix(count);
  position_ += count;
}

absl::Status BufferedReader::ReadExact(std::span<char> into) {
  assert(into.size() <= bytes_left());
  while (!into.empty()) {
    if (window_.empty()) {
      const absl::StatusOr<bool> filled = Fill();
      if (!filled.ok()) return filled.status();
      assert(*filled);
    }
    const std::size_t count = window_.copy(into.data(), std::min(into.size(), window_.size()));
    into = into.subspan(count);
    Consume(count);
  }
  return absl::OkStatus();
}

absl::Status BufferedReader::Skip(std::uint64_t count) {
  assert(count <= bytes_left());
  const std::size_t buffered = std::min<std::uint64_t>(count, window_.size());
  Consume(buffered);
  position_ += count - buffered;
  return source_.Skip(count - buffered);
}

absl::StatusOr<std::string_view> BufferedReader::Peek() {
  if (window_.empty()) {
    const absl::StatusOr<bool> filled = Fill();
    if (!filled.ok()) return filled.status();
  }
  return window_;
}

absl::Status BufferedReader::SkipByteOrderMark() {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const absl::StatusOr<std::string_view> begin = Peek();
  if (begin.ok() && begin->starts_with(kByteOrderMark)) Consume(kByteOrderMark.size());
  return begin.status();
}

absl::StatusOr<std::string_view> BufferedReader::ReadSome() {
  absl::StatusOr<std::string_view> bytes = Peek();
  if (bytes.ok()) Consume(bytes->size());
  return bytes;
}

absl::Status BufferedReader::SkipLine() {
  while (true) {
    const absl::StatusOr<std::string_view> bytes = Peek();
    if (!bytes.ok() || bytes->empty()) return bytes.status();
    const std::size_t newline = bytes->find('\n');
    Consume(newline == std::string_view::npos ? bytes->size() : newline + 1);
    if (newline != std::string_view::npos) return absl::OkStatus();
  }
}

absl::StatusOr<bool> BufferedReader::ReadLine(std::uint64_t line_number, std::size_t bytes_max,
                                              std::string& line) {
  line.clear();
  bool found_any = false;
  while (true) {
    if (window_.empty()) {
      const absl::StatusOr<bool> filled = Fill();
      if (!filled.ok()) return filled.status();
      if (!*filled) return found_any;
    }
    found_any = true;
    const std::size_t newline = window_.find('\n');
    const std::string_view part = window_.substr(0, newline);
    if (part.size() > bytes_max - line.size()) {
      if (absl::Status status = SkipLine(); !status.ok()) return status;
      return absl::InvalidArgumentError(
          fmt::format("{}: line {} is longer than {} bytes (limits.jsonl_line_bytes_max)",
                      display_name(), line_number, base::Grouped(bytes_max)));
    }
    line += part;
    if (newline != std::string_view::npos) {
      Consume(newline + 1);
      return true;
    }
    Consume(part.size());
  }
}

absl::Status Refuse(const BufferedReader& in, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", in.display_name(), why));
}

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
