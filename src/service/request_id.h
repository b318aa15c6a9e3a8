#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace simile::service {

// The name and largest length of the metadata entry that carries a request id, both ways.
inline constexpr char kRequestIdKey[] = "x-request-id";
inline constexpr std::size_t kRequestIdBytesMax = 128;

// Whether a caller's request id may go into logs and answers: 1 to 128 printable ASCII characters.
bool IsUsableRequestId(std::string_view id);

// Makes request ids: 16 hexadecimal digits, distinct within a process and, but for chance, between
// processes. Safe to call from any thread.
class RequestIds {
 public:
  explicit RequestIds(std::uint64_t seed) : next_(seed) {}
  std::string Next();

 private:
  std::atomic<std::uint64_t> next_;
};

}  // namespace simile::service
