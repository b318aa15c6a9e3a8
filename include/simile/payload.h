#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace simile {

struct PayloadValue;
struct PayloadMember;

using PayloadList = std::vector<PayloadValue>;
using PayloadObject = std::vector<PayloadMember>;

// One value of a row's payload: any JSON value, with integers kept as integers.
struct PayloadValue {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, PayloadList, PayloadObject>
      value;

  friend bool operator==(const PayloadValue&, const PayloadValue&) = default;
};

// One member of an object. Not a std::pair, because clang 14 needs the complete PayloadValue for a
// pair, and PayloadValue is not complete here.
struct PayloadMember {
  PayloadMember() = default;
  PayloadMember(std::string name, PayloadValue member_value)
      : first(std::move(name)), second(std::move(member_value)) {}

  std::string first;
  PayloadValue second;

  friend bool operator==(const PayloadMember&, const PayloadMember&) = default;
};

}  // namespace simile
