#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace simile {

// A .npy file of fp32 rows [numbers.size() / dim, dim].
inline std::string NpyFile(const std::vector<float>& numbers, std::size_t dim) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(numbers.size() / dim) + ", " + std::to_string(dim) + "), }";
  header.resize(117, ' ');
  std::string file = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n";
  file.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
  return file;
}

}  // namespace simile
