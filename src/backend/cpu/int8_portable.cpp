#include "backend/cpu/int8_walk.h"

namespace simile::backend::cpu {
namespace {

struct PortableProducts {
  template <std::size_t kQueries>
  static bool Score(const std::uint8_t* codes, std::size_t group_bytes, const std::int8_t* queries,
                    std::size_t steps, const std::int32_t* starts, std::int32_t* sums) {
    bool any_hit = false;
    for (std::size_t q = 0; q < kQueries; ++q) {
      for (std::size_t g = 0; g < kGroupsTogether; ++g) {
        std::int32_t* sum = sums + (q * kGroupsTogether + g) * kGroupRows;
        for (std::size_t row = 0; row < kGroupRows; ++row) sum[row] = starts[q];
        const std::uint8_t* group = codes + g * group_bytes;
        for (std::size_t column = 0; column < steps * 64; column += 4, group += 64) {
          const std::int8_t* four =
              queries + column / 64 * kTileQueries * 64 + q * 64 + column % 64;
          for (std::size_t row = 0; row < kGroupRows; ++row) {
            const std::uint8_t* bytes = group + row * 4;
            sum[row] +=
                four[0] * bytes[0] + four[1] * bytes[1] + four[2] * bytes[2] + four[3] * bytes[3];
          }
        }
        for (std::size_t row = 0; row < kGroupRows; ++row) any_hit |= sum[row] >= 0;
      }
    }
    return any_hit;
  }
};

using Walk = Int8Walk<PortableProducts>;

}  // namespace

const Int8Kernel kInt8Portable{"portable", 127, &Walk::Enter, &Walk::Leave, &Walk::Scan};

}  // namespace simile::backend::cpu
