#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace simile::net {

// A request whose body is not received. The frame guard puts a mark in the body's place, a whole
// message of a few bytes, by which the service knows it and says why.
struct RefusedBody {
  enum class Why : std::uint8_t {
    kTooLarge,    // than limits.receive_bytes_max
    kBudgetFull,  // limits.unfinished_bytes_per_peer_max
  };
  Why why = Why::kTooLarge;
  std::uint32_t declared_bytes = 0;
};

inline constexpr std::size_t kRefusalMarkBytes = 16 + 1 + 4;
using RefusalMark = std::array<std::uint8_t, kRefusalMarkBytes>;

// The mark begins with bytes drawn at random once a process, so no client can send one.
RefusalMark MarkOf(const RefusedBody& refused);
// Nothing for a message that is not a mark.
std::optional<RefusedBody> ReadMark(std::span<const std::uint8_t> message);

}  // namespace simile::net
