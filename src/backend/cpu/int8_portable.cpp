#include "backend/cpu/int8_walk.h"

namespace simile::backend::cpu {
namespace {

struct PortableProducts {
  // The columns of each row of a group are stored in fours. Columns returns where the fours of a
  // column begin; Byte decodes one of the four.
  template <bool /*kOneTurn*/>
  struct Bytes {
    static constexpr std::size_t kInOneByte = 1;
    Bytes(const std::uint8_t* /*int4_bytes*/, const PieceTurn& /*turn*/) {}
    static const std::uint8_t* Columns(const std::uint8_t* group, std::size_t column) {
      return group + column * kGroupRows;
    }
    static std::int32_t Byte(std::uint8_t codes, std::size_t /*column*/) { return codes; }
  };
  class Int4 {
   public:
    static constexpr std::size_t kInOneByte = 2;
    Int4(const std::uint8_t* int4_bytes, const PieceTurn& /*turn*/) : bytes_(int4_bytes) {}
    static const std::uint8_t* Columns(const std::uint8_t* group, std::size_t column) {
      return group + column / 8 * 4 * kGroupRows;
    }
    std::int32_t Byte(std::uint8_t codes, std::size_t column) const {
      return bytes_[column % 8 < 4 ? codes & 15 : codes >> 4];
    }

   private:
    const std::uint8_t* bytes_;
  };

  template <std::size_t kQueries, class Codes>
  static bool Score(const Codes& codes, const std::uint8_t* group, std::size_t group_bytes,
                    const std::int8_t* queries, std::size_t steps, const std::int32_t* starts,
                    std::int32_t* sums) {
    bool any_hit = false;
    for (std::size_t q = 0; q < kQueries; ++q) {
      for (std::size_t g = 0; g < kGroupsTogether; ++g) {
        std::int32_t* sum = sums + (q * kGroupsTogether + g) * kGroupRows;
        for (std::size_t row = 0; row < kGroupRows; ++row) sum[row] = starts[q];
        for (std::size_t column = 0; column < steps * 64; column += 4) {
          const std::int8_t* four =
              queries + column / 64 * kTileQueries * 64 + q * 64 + column % 64;
          const std::uint8_t* fours = Codes::Columns(group + g * group_bytes, column);
          for (std::size_t row = 0; row < kGroupRows; ++row) {
            const std::uint8_t* bytes = fours + row * 4;
            for (std::size_t i = 0; i < 4; ++i) {
              sum[row] += four[i] * codes.Byte(bytes[i], column);
            }
          }
        }
        for (std::size_t row = 0; row < kGroupRows; ++row) any_hit |= sum[row] >= 0;
      }
    }
    return any_hit;
  }

  static void Append(const std::int32_t* sums, std::uint32_t first_pair, HitList& hits) {
    unsigned bits = 0;
    for (std::size_t row = 0; row < kGroupRows; ++row) bits |= (sums[row] >= 0 ? 1U : 0U) << row;
    AppendBits(bits, sums, first_pair, hits);
  }
};

using Walk = Int8Walk<PortableProducts>;

}  // namespace

const Int8Kernel kInt8Portable{"portable",   0,          true, 1U << 24, &Walk::Enter,
                               &Walk::Leave, &Walk::Scan};

}  // namespace simile::backend::cpu
