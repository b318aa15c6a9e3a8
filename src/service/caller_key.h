#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace simile::service {

// Who calls, so that one cannot take what is there for all: a number for each address, the same one
// for several now and then.
using CallerKey = std::uint8_t;
inline constexpr std::size_t kCallerKeys = std::size_t{std::numeric_limits<CallerKey>::max()} + 1;

// Addresses are those of net::PeerKey.
//   peer       address and port, as gRPC writes them: "ipv4:10.0.0.7:51234",
//              "ipv6:%5B2001:db8::7%5D:80"
//   ipv6_bits  Limits::ipv6_peer_bits
CallerKey CallerKeyOf(std::string_view peer, unsigned ipv6_bits);
//   name  of a principal, which shares with nobody because of its address
CallerKey CallerKeyOfName(std::string_view name);

}  // namespace simile::service
