#include "cli/id_file.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/input_file.h"

namespace simile::cli {
namespace {

using Ids = std::vector<std::string>;

absl::Status Refuse(const InputFile& input, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", input.source, why));
}

absl::StatusOr<Ids> FromJson(const InputFile& input) {
  nlohmann::json list;
  try {
    list = nlohmann::json::parse(input.bytes);
  } catch (const nlohmann::json::exception&) {
    return Refuse(input, "begins as a JSON list and is none; give [\"id\", ...], or one id a line");
  }
  Ids ids;
  ids.reserve(list.size());
  for (const nlohmann::json& element : list) {
    if (element.is_string()) {
      ids.push_back(element.get<std::string>());
    } else if (element.is_number_integer()) {
      ids.push_back(element.dump());
    } else {
      return Refuse(input, fmt::format("element {} is {}; an id is a string or an integer",
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

}  // namespace

absl::StatusOr<Ids> ReadIdFile(const std::string& file, const Limits& limits) {
  // Ids, quotes, commas and blanks.
  const std::size_t bytes_max = std::size_t{limits.allowed_ids_max} * (limits.id_bytes_max + 8);
  const absl::StatusOr<InputFile> input = ReadInputFile(file, bytes_max);
  if (!input.ok()) return input.status();
  const std::size_t begin = input->bytes.find_first_not_of(" \t\r\n");
  const bool is_json = begin != std::string::npos && input->bytes[begin] == '[';
  absl::StatusOr<Ids> ids = is_json ? FromJson(*input) : FromLines(input->bytes);
  if (ids.ok() && ids->empty() && !is_json) {
    return Refuse(*input, "holds no ids; write [] to allow no item");
  }
  if (ids.ok() && ids->size() > limits.allowed_ids_max) {
    return Refuse(*input, fmt::format("holds {} ids; at most {}", base::Grouped(ids->size()),
                                      base::Grouped(limits.allowed_ids_max)));
  }
  return ids;
}

}  // namespace simile::cli
