#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "simile/payload.h"

namespace simile::data {

// A value of any kind, lists and objects to the given depth.
//   random  returns a std::uint64_t
template <class Random>
PayloadValue RandomValue(Random& random, int depth) {
  switch (random() % (depth > 0 ? 9 : 7)) {
    case 0:
      return {};
    case 1:
      return {random() % 2 == 0};
    case 2:
      return {static_cast<std::int64_t>(random())};
    case 3:
      return {static_cast<std::int64_t>(random() % 512) - 256};
    case 4:
      return {std::ldexp(static_cast<double>(random() % 1000), static_cast<int>(random() % 99))};
    case 5: {
      const std::uint64_t length = random() % 300;
      return {std::string(length, static_cast<char>('a' + random() % 26))};
    }
    case 6:
      return {std::string("h\xc3\xa9t\xc3\xa9rog\xc3\xa8ne \xf0\x9f\x8e\xac")};
    case 7: {
      PayloadList list(random() % 5);
      for (PayloadValue& value : list) value = RandomValue(random, depth - 1);
      return {std::move(list)};
    }
    default: {
      PayloadObject object(random() % 5);
      for (std::size_t i = 0; i < object.size(); ++i) {
        object[i] = {fmt::format("name{}", i), RandomValue(random, depth - 1)};
      }
      return {std::move(object)};
    }
  }
}

}  // namespace simile::data
