#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "simile/payload.h"

namespace simile::data {

// The packed form of payload values, used in memory only: it is never written to disk or sent, so
// decoding trusts it. A value is a tag byte and then
//   null, false, true   nothing
//   integer             a zigzag varint
//   number              8 bytes, binary64 in host order
//   string              a varint length and the bytes
//   list                a varint count and the values
//   object              a varint count and, for each member, name (as a string) and value
void AppendVarint(std::vector<std::uint8_t>& out, std::uint64_t value);
void AppendText(std::vector<std::uint8_t>& out, std::string_view text);
void AppendValue(std::vector<std::uint8_t>& out, const PayloadValue& value);

// Walks packed bytes. Views borrow the bytes.
class PayloadCursor {
 public:
  explicit PayloadCursor(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint64_t ReadVarint();
  std::string_view ReadText();
  PayloadValue ReadValue();
  // Skips a value. Returns an upper bound on its size as a protobuf Value, in bytes.
  std::uint64_t SkipValue();

 private:
  std::uint8_t ReadByte();
  double ReadNumber();
  std::int64_t ReadInteger();

  std::span<const std::uint8_t> bytes_;
};

}  // namespace simile::data
