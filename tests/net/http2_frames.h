#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/frame_reader.h"

// Frames as a peer writes them that keeps to no rule.
namespace simile::net {

inline const std::string kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

inline std::string BigEndian(std::uint64_t number, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text += static_cast<char>(number >> shift);
  }
  return text;
}

// The header may declare another length than the payload has.
inline std::string Frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream,
                         std::string_view payload, std::uint32_t length) {
  return BigEndian(length, 3) + static_cast<char>(type) + static_cast<char>(flags) +
         BigEndian(stream, 4) + std::string(payload);
}
inline std::string Frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream,
                         std::string_view payload = {}) {
  return Frame(type, flags, stream, payload, static_cast<std::uint32_t>(payload.size()));
}
inline std::string Frame(FrameType type, std::uint8_t flags, std::uint32_t stream,
                         std::string_view payload = {}) {
  return Frame(static_cast<std::uint8_t>(type), flags, stream, payload);
}

// A header that enters no table (RFC 7541, section 6.2.2). Both shorter than 127 bytes.
inline std::string Literal(std::string_view name, std::string_view value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + std::string(name) +
         static_cast<char>(value.size()) + std::string(value);
}

// The headers of a gRPC call.
inline std::string CallHeaders(std::string_view path) {
  return "\x83\x86" + Literal(":path", path) + Literal(":authority", "films") +
         Literal("content-type", "application/grpc") + Literal("te", "trailers");
}

// What goes before a message of gRPC.
inline std::string MessagePrefix(std::uint32_t declared_bytes) {
  return std::string(1, '\0') + BigEndian(declared_bytes, 4);
}

inline std::string Settings() { return Frame(FrameType::kSettings, 0, 0); }

}  // namespace simile::net
