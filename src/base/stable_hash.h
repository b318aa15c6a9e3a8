#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

struct XXH3_state_s;

namespace simile::base {

// XXH3 (xxhash.com) of bytes that come in parts: the same on every machine and in every build,
// whatever the parts. It finds accidental changes and is no signature: other bytes with the same
// hash can be made on purpose. One thread at a time.
class StableHash {
 public:
  using Digest = std::array<std::uint8_t, 16>;

  StableHash();

  // The Digest64 of `bytes` alone. Allocates nothing, for many short texts.
  static std::uint64_t Hash64(std::string_view bytes);

  void Add(std::string_view bytes);
  // The digests of all bytes so far. The 128-bit digest is in canonical order, as xxhsum prints it.
  Digest Digest128() const;
  std::uint64_t Digest64() const;  // the lower half of the 128 bits

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

// The bytes of a number in little-endian order, which is how hashed and written numbers are laid
// out on every machine.
template <typename Number>
constexpr std::array<char, sizeof(Number)> LittleEndian(Number number) {
  std::array<char, sizeof(Number)> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(number >> (8 * i));
  return bytes;
}

}  // namespace simile::base
