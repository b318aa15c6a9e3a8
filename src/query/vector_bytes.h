#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace simile::query {

// A request's vector as it was received: little-endian fp32 or fp16, at any alignment. Borrows the
// bytes.
class VectorBytes {
 public:
  enum class Format : std::uint8_t { kF32, kF16 };

  VectorBytes() = default;
  // REQUIRES: bytes.size() is a multiple of the number's size.
  VectorBytes(Format format, std::string_view bytes) : format_(format), bytes_(bytes) {}
  // Implicit: a span of floats has this form.
  VectorBytes(std::span<const float> values)  // NOLINT(google-explicit-constructor)
      : bytes_(reinterpret_cast<const char*>(values.data()), values.size_bytes()) {}

  // How many numbers.
  std::size_t size() const { return bytes_.size() / (format_ == Format::kF32 ? 4 : 2); }

  // Writes the numbers as fp32, exactly. Returns the sum of their squares (data::ProductSum).
  //   out  [size()]
  // REQUIRES: size() > 0.
  double CopyTo(float* out) const;

 private:
  Format format_ = Format::kF32;
  std::string_view bytes_;
};

}  // namespace simile::query
