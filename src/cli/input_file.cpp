#include "cli/input_file.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace simile::cli {
namespace {

// Reads to the end, or one byte beyond `bytes_max`.
std::string ReadSome(std::istream& stream, std::size_t bytes_max) {
  std::string bytes;
  std::vector<char> buffer(1U << 16);
  while (bytes.size() <= bytes_max && stream) {
    stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    bytes.append(buffer.data(), static_cast<std::size_t>(stream.gcount()));
  }
  return bytes;
}

}  // namespace

absl::StatusOr<InputFile> ReadInputFile(const std::string& file, std::size_t bytes_max) {
  const bool from_input = file == "-";
  InputFile input{from_input ? "standard input" : file, ""};
  std::ifstream stream;
  if (!from_input) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(file, error);
    if (!std::filesystem::exists(status)) return absl::NotFoundError(file + ": no such file");
    if (std::filesystem::is_directory(status)) {
      return absl::InvalidArgumentError(file + ": is a folder, not a file");
    }
    stream.open(file, std::ios::binary);
    if (!stream) return absl::PermissionDeniedError(file + ": cannot be opened for reading");
  }
  input.bytes = ReadSome(from_input ? std::cin : stream, bytes_max);
  if (input.bytes.size() > bytes_max) {
    return absl::InvalidArgumentError(
        fmt::format("{}: over {} MiB, more than one call can hold", input.source, bytes_max >> 20));
  }
  return input;
}

}  // namespace simile::cli
