#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "net/peers.h"

namespace simile::service {

// Who calls, so that one cannot take what is there for all: a number for each address, the same one
// for several now and then.
using CallerKey = std::uint8_t;
inline constexpr std::size_t kCallerKeys = std::size_t{std::numeric_limits<CallerKey>::max()} + 1;

CallerKey CallerKeyOf(const net::PeerKey& peer);
//   name  of a principal, which shares with nobody because of its address
CallerKey CallerKeyOfName(std::string_view name);

}  // namespace simile::service
