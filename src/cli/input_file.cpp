#include "cli/input_file.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "data/formats/buffered_reader.h"
#include "data/formats/byte_source.h"
#include "data/formats/vector_format.h"
#include "data/formats/vector_reader.h"

namespace simile::cli {
namespace {

// Reads to the end, or at most bytes_max + 1 bytes.
std::string ReadSome(std::istream& stream, std::size_t bytes_max) {
  std::string bytes;
  std::vector<char> buffer(1U << 16);
  while (bytes.size() <= bytes_max && stream) {
    stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    bytes.append(buffer.data(), static_cast<std::size_t>(stream.gcount()));
  }
  return bytes;
}

using Ids = std::vector<std::string>;

absl::Status Refuse(const std::string& source, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", source, why));
}

absl::StatusOr<Ids> FromJson(const InputFile& input) {
  nlohmann::json list;
  try {
    list = nlohmann::json::parse(input.bytes);
  } catch (const nlohmann::json::exception&) {
    return Refuse(input.source,
                  "begins as a JSON list and is none; give [\"id\", ...], or one id a line");
  }
  Ids ids;
  ids.reserve(list.size());
  for (const nlohmann::json& element : list) {
    if (element.is_string()) {
      ids.push_back(element.get<std::string>());
    } else if (element.is_number_integer()) {
      ids.push_back(element.dump());
    } else {
      return Refuse(input.source, fmt::format("element {} is {}; an id is a string or an integer",
                                              ids.size(), element.type_name()));
    }
  }
  return ids;
}

Ids FromLines(std::string_view text) {
  Ids ids;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) ids.emplace_back(line);
  }
  return ids;
}

constexpr std::string_view kNpyMagic = "\x93NUMPY";
// Bytes per number: a JSON number takes up to about 25 characters, the widest .npy element 8 bytes.
constexpr std::size_t kBytesPerNumberMax = 32;

// The dictionary of a .npy header, and the offset at which the header ends.
struct NpyStart {
  data::NpyDict dict;
  std::size_t end = 0;
};

std::optional<NpyStart> ReadNpyStart(std::string_view bytes) {
  const std::size_t version_at = kNpyMagic.size();
  if (bytes.size() < version_at + 6) return std::nullopt;
  const std::size_t length_bytes = bytes[version_at] == 1 ? 2 : 4;
  const std::size_t begin = version_at + 2 + length_bytes;
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(bytes[version_at + 2 + i]);
  }
  if (length > bytes.size() - begin) return std::nullopt;
  absl::StatusOr<data::NpyDict> dict = data::ParseNpyDict(bytes.substr(begin, length));
  if (!dict.ok()) return std::nullopt;
  return NpyStart{*std::move(dict), begin + length};
}

// Gives a .npy file of one axis two axes, and returns other bytes unchanged. np.save writes a
// single vector with one axis, but ReadNpyHeader requires two.
std::string WithTwoAxes(std::string bytes) {
  const std::optional<NpyStart> start = ReadNpyStart(bytes);
  if (!start || start->dict.shape.size() != 1) return bytes;
  const std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (1, {})}}\n",
                  start->dict.descr, start->dict.shape.front());
  std::string rewritten(kNpyMagic);
  rewritten += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
                static_cast<char>(header.size() >> 8)};
  return rewritten + header + bytes.substr(start->end);
}

absl::Status CheckFinite(const std::vector<double>& numbers, std::uint64_t row,
                         const std::string& source) {
  const auto wrong = std::ranges::find_if_not(
      numbers, [](double number) { return std::isfinite(static_cast<float>(number)); });
  if (wrong == numbers.end()) return absl::OkStatus();
  return Refuse(source, fmt::format("row {} holds {} at column {}; vectors must be finite", row,
                                    std::isnan(*wrong)   ? "NaN"
                                    : std::isinf(*wrong) ? "infinity"
                                                         : fmt::format("{}", *wrong),
                                    wrong - numbers.begin()));
}

absl::StatusOr<QueryVectors> FromNpy(std::string bytes, const std::string& source,
                                     const Limits& limits) {
  bytes = WithTwoAxes(std::move(bytes));
  data::MemorySource npy(source, bytes);
  data::BufferedReader reader(npy);
  const absl::StatusOr<data::VectorLayout> layout = data::ReadNpyHeader(reader, limits);
  if (!layout.ok()) return layout.status();
  if (layout->row_count > limits.queries_per_call_max) {
    return Refuse(source, fmt::format("holds {} vectors; one call takes at most {}",
                                      layout->row_count, limits.queries_per_call_max));
  }
  QueryVectors vectors{source, {}};
  data::RowReader rows(reader, *layout);
  std::vector<double> numbers(layout->dim);
  for (std::uint64_t i = 0; i < layout->row_count; ++i) {
    if (absl::Status read = rows.Next(numbers); !read.ok()) return read;
    if (absl::Status finite = CheckFinite(numbers, i, source); !finite.ok()) return finite;
    std::vector<float>& values = vectors.rows.emplace_back(numbers.size());
    std::ranges::transform(numbers, values.begin(),
                           [](double number) { return static_cast<float>(number); });
  }
  return vectors;
}

absl::StatusOr<std::vector<float>> RowFromJson(const nlohmann::json& list, std::size_t row,
                                               const std::string& source) {
  std::vector<float> values;
  values.reserve(list.size());
  for (const nlohmann::json& number : list) {
    if (!number.is_number()) {
      return Refuse(source, fmt::format("row {}, column {}: {} where a number belongs", row,
                                        values.size(), number.type_name()));
    }
    values.push_back(number.get<float>());
    if (!std::isfinite(values.back())) {
      return Refuse(source, fmt::format("row {} holds {} at column {}, which float32 cannot hold",
                                        row, number.dump(), values.size() - 1));
    }
  }
  return values;
}

absl::StatusOr<QueryVectors> FromJson(const std::string& text, const std::string& source,
                                      const Limits& limits) {
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  constexpr std::string_view kWantedFile =
      "a vector belongs here: a .npy file, or JSON, [0.1, 0.2] or a list of such lists";
  if (parsed.is_discarded()) return Refuse(source, fmt::format("not JSON; {}", kWantedFile));
  if (!parsed.is_array() || parsed.empty()) return Refuse(source, kWantedFile);
  const bool one = !parsed.front().is_array();
  const std::size_t count = one ? 1 : parsed.size();
  if (count > limits.queries_per_call_max) {
    return Refuse(source, fmt::format("holds {} vectors; one call takes at most {}", count,
                                      limits.queries_per_call_max));
  }
  QueryVectors vectors{source, {}};
  for (std::size_t i = 0; i < count; ++i) {
    const nlohmann::json& list = one ? parsed : parsed[i];
    if (!list.is_array()) {
      return Refuse(source,
                    fmt::format("row {}: {} where a list of numbers belongs", i, list.type_name()));
    }
    absl::StatusOr<std::vector<float>> row = RowFromJson(list, i, source);
    if (!row.ok()) return row.status();
    if (row->empty() || row->size() > limits.dim_max) {
      return Refuse(source, fmt::format("row {} has {} numbers; 1 to {} are possible", i,
                                        row->size(), limits.dim_max));
    }
    if (i > 0 && row->size() != vectors.dim()) {
      return Refuse(source, fmt::format("row {} has {} numbers, row 0 has {}", i, row->size(),
                                        vectors.dim()));
    }
    vectors.rows.push_back(*std::move(row));
  }
  return vectors;
}

// Turns numbers separated by commas, with or without brackets, into a JSON list. Nothing for any
// other text.
std::optional<std::string> NumbersAsJson(std::string_view text) {
  const bool has_brackets = text.starts_with('[') && text.ends_with(']');
  std::string list = has_brackets ? std::string(text) : fmt::format("[{}]", text);
  const nlohmann::json parsed = nlohmann::json::parse(list, nullptr, false);
  if (!parsed.is_array() || parsed.empty()) return std::nullopt;
  for (const nlohmann::json& each : parsed) {
    if (!each.is_number() && !(has_brackets && each.is_array())) return std::nullopt;
  }
  return list;
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

absl::StatusOr<Ids> ReadIdFile(const std::string& file, const Limits& limits) {
  // Each id may have quotes, a comma and blanks around it.
  const std::size_t bytes_max = std::size_t{limits.allowed_ids_max} * (limits.id_bytes_max + 8);
  const absl::StatusOr<InputFile> input = ReadInputFile(file, bytes_max);
  if (!input.ok()) return input.status();
  const std::size_t begin = input->bytes.find_first_not_of(" \t\r\n");
  const bool is_json = begin != std::string::npos && input->bytes[begin] == '[';
  absl::StatusOr<Ids> ids = is_json ? FromJson(*input) : FromLines(input->bytes);
  if (ids.ok() && ids->empty() && !is_json) {
    return Refuse(input->source, "holds no ids; write [] to allow no item");
  }
  if (ids.ok() && ids->size() > limits.allowed_ids_max) {
    return Refuse(input->source, fmt::format("holds {} ids; at most {}", base::Grouped(ids->size()),
                                             base::Grouped(limits.allowed_ids_max)));
  }
  return ids;
}

absl::StatusOr<QueryVectors> ParseQueryVectors(std::string bytes, const std::string& source,
                                               const Limits& limits) {
  return bytes.starts_with(kNpyMagic) ? FromNpy(std::move(bytes), source, limits)
                                      : FromJson(bytes, source, limits);
}

absl::StatusOr<QueryVectors> ReadQueryVectors(const std::string& file, const Limits& limits) {
  const std::size_t bytes_max = limits.npy_header_bytes_max + std::size_t{kBytesPerNumberMax} *
                                                                  limits.queries_per_call_max *
                                                                  limits.dim_max;
  absl::StatusOr<InputFile> input = ReadInputFile(file, bytes_max);
  if (absl::IsNotFound(input.status())) {
    if (const auto numbers = NumbersAsJson(file)) return FromJson(*numbers, "the vector", limits);
    return absl::NotFoundError(file + ": no such file, and no list of numbers such as 0.1,0.2");
  }
  if (!input.ok()) return input.status();
  return ParseQueryVectors(std::move(input->bytes), input->source, limits);
}

}  // namespace simile::cli
