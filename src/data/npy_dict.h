#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

namespace simile::data {

// The dictionary in a .npy header.
struct NpyDict {
  std::string descr;  // "<f2"; for a structured type its text, beginning with '['
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

// Parses the Python literal {'descr': ..., 'fortran_order': ..., 'shape': ...}: any order of keys,
// any spacing, either quote, a trailing comma or none; the three keys once each and no others.
// Nothing is evaluated.
// Errors: kInvalidArgument with `column N: ...`, columns from 1; the caller adds the file.
absl::StatusOr<NpyDict> ParseNpyDict(std::string_view text);

}  // namespace simile::data
