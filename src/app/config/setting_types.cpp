#include "app/config/setting_types.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include <fmt/format.h>

namespace simile::app {

absl::StatusOr<std::uint64_t> ParseWholeNumber(std::string_view text, std::uint64_t min,
                                               std::uint64_t max, std::string_view unit) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < min || number > max) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is not a whole number{}{} from {} to {}",
                                                  text, unit.empty() ? "" : " of ", unit, min,
                                                  max));
  }
  return number;
}

absl::StatusOr<double> ParseNumber(std::string_view text, double min, double max) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  // NaN fails both comparisons.
  const bool within = number >= min && number <= max;
  if (error != std::errc() || stop != end || !within) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a number from {} to {}", text, min, max));
  }
  return number;
}

absl::StatusOr<bool> ParseSwitch(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array<std::string_view, 4> kTrue{"true", "1", "yes", "on"};
  constexpr std::array<std::string_view, 4> kFalse{"false", "0", "no", "off"};
  if (std::ranges::find(kTrue, lower) != kTrue.end()) return true;
  if (std::ranges::find(kFalse, lower) != kFalse.end()) return false;
  return absl::InvalidArgumentError(fmt::format("\"{}\" is neither true nor false", text));
}

absl::StatusOr<std::size_t> ParseChoice(std::string_view text,
                                        const std::vector<std::string>& names) {
  const auto found = std::ranges::find(names, text);
  if (found == names.end()) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not one of {}", text, JoinedNames(names)));
  }
  return static_cast<std::size_t>(found - names.begin());
}

bool IsCollectionName(std::string_view name) {
  const bool well_formed =
      !name.empty() && name.front() != '.' && std::ranges::all_of(name, [](unsigned char c) {
        return (c < 0x80 && std::isalnum(c) != 0) || c == '-' || c == '_' || c == '.';
      });
  return well_formed && name.size() <= Limits{}.collection_name_bytes_max;
}

// `. Did you mean films=examples/films?` for a folder; empty if there is none.
std::string NamedAsItsFolder(std::string_view text) {
  std::error_code error;
  const std::filesystem::path folder = (std::filesystem::path(text) / "").parent_path();
  const std::string name = folder.filename().string();
  if (!IsCollectionName(name) || !std::filesystem::is_directory(folder, error)) return "";
  return fmt::format(". Did you mean {}={}?", name, folder.string());
}

absl::StatusOr<CollectionConfig> ParseCollection(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not NAME=FOLDER, as in films=examples/films{}", text,
                    equals == std::string_view::npos ? NamedAsItsFolder(text) : ""));
  }
  const std::string_view name = text.substr(0, equals);
  if (!IsCollectionName(name)) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a name for a collection: letters, digits, '-', '_' and '.', not "
                    "beginning with '.', at most {} bytes",
                    name, Limits{}.collection_name_bytes_max));
  }
  return CollectionConfig{std::string(name), std::filesystem::path(text.substr(equals + 1))};
}

std::string JoinedNames(const std::vector<std::string>& names) {
  std::string joined;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) joined += i + 1 == names.size() ? " or " : ", ";
    joined += names[i];
  }
  return joined;
}

Setting MakeSetting(const SettingName& name, std::string range, SettingKind kind) {
  Setting setting;
  setting.key = name.key;
  setting.flag = name.flag;
  setting.unit = name.unit;
  setting.help = name.help;
  setting.range = std::move(range);
  setting.kind = kind;
  return setting;
}

Setting Text(const SettingName& name, std::string range, std::string Config::*member) {
  Setting setting = MakeSetting(name, std::move(range), SettingKind::kText);
  setting.set = [member](const std::vector<std::string>& values, Config& config) -> absl::Status {
    if (values.front().empty()) return absl::InvalidArgumentError("it must not be empty");
    config.*member = values.front();
    return absl::OkStatus();
  };
  setting.get = [member](const Config& config) { return std::vector{config.*member}; };
  return setting;
}

Setting Switch(const SettingName& name, std::string flag_value, bool Config::*member) {
  Setting setting = MakeSetting(name, "true or false", SettingKind::kSwitch);
  setting.flag_value = std::move(flag_value);
  setting.set = [member](const std::vector<std::string>& values, Config& config) {
    const absl::StatusOr<bool> on = ParseSwitch(values.front());
    if (on.ok()) config.*member = *on;
    return on.status();
  };
  setting.get = [member](const Config& config) {
    return std::vector<std::string>{config.*member ? "true" : "false"};
  };
  return setting;
}

Setting Mebibytes(const SettingName& name, std::uint64_t min, std::uint64_t max,
                  std::uint64_t backend::GpuOptions::*member) {
  constexpr unsigned kShift = 20;
  Setting setting = WholeNumber(name, min, max, member);
  setting.set = [min, max, member](const std::vector<std::string>& values, Config& config) {
    const absl::StatusOr<std::uint64_t> number = ParseWholeNumber(values.front(), min, max, "MiB");
    if (number.ok()) Member(config, member) = *number << kShift;
    return number.status();
  };
  setting.get = [member](const Config& config) {
    return std::vector{std::to_string(Member(config, member) >> kShift)};
  };
  return setting;
}

Setting Collections(const SettingName& name, std::vector<CollectionConfig> Config::*member) {
  Setting setting = MakeSetting(name, "NAME=FOLDER", SettingKind::kCollections);
  setting.set = [member](const std::vector<std::string>& values, Config& config) -> absl::Status {
    std::vector<CollectionConfig> collections;
    std::set<std::string> names;
    for (const std::string& value : values) {
      absl::StatusOr<CollectionConfig> collection = ParseCollection(value);
      if (!collection.ok()) return collection.status();
      if (!names.insert(collection->name).second) {
        return absl::InvalidArgumentError(fmt::format("\"{}\" is named twice", collection->name));
      }
      collections.push_back(*std::move(collection));
    }
    config.*member = std::move(collections);
    return absl::OkStatus();
  };
  setting.get = [member](const Config& config) {
    std::vector<std::string> texts;
    for (const CollectionConfig& collection : config.*member) {
      texts.push_back(collection.name + "=" + collection.folder.string());
    }
    return texts;
  };
  return setting;
}

}  // namespace simile::app
