#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// How gRPC writes texts, bytes and times in headers (PROTOCOL-HTTP2.md of gRPC). Pure functions.
namespace simile::net {

// Clients drop trailers of more than 8 KiB, and the message is one of several.
inline constexpr std::size_t kStatusMessageBytesMax = 2'048;

// The value of grpc-message: UTF-8 with escapes. A longer text is cut between two characters, so
// that the value has at most kStatusMessageBytesMax bytes.
std::string PercentEncoded(std::string_view text);

// A value of a "-bin" header: base64 without padding. And the bytes of one, padded or not; nothing
// for a text that is not base64.
std::string BinaryValue(std::string_view bytes);
std::optional<std::string> BytesOfBinaryValue(std::string_view text);

// What grpc-timeout says: "250m" are 250 ms. Cut to a day. Nothing for another text.
std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text);

}  // namespace simile::net
