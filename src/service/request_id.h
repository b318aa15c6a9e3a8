#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace simile::service {

// The metadata entry that carries a request id, in requests and in responses.
inline constexpr char kRequestIdKey[] = "x-request-id";
inline constexpr std::size_t kRequestIdBytesMax = 128;

// The metadata entry of a response whose caller sent an id that is not used, and what it says.
inline constexpr char kRequestIdReplacedKey[] = "x-request-id-replaced";
inline constexpr char kRequestIdRule[] = "an id of up to 128 printable ASCII characters is kept";

// Whether a caller's request id may be logged and returned: 1 to 128 printable ASCII characters.
bool IsUsableRequestId(std::string_view id);

// Makes request ids of 16 hexadecimal digits, distinct within a process and very likely between
// processes. Safe to call from any thread.
class RequestIds {
 public:
  explicit RequestIds(std::uint64_t seed) : next_(seed) {}
  std::string Next();

 private:
  std::atomic<std::uint64_t> next_;
};

}  // namespace simile::service
