#pragma once

#include <cassert>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/statusor.h>
#include <fmt/format.h>

#include "app/config/config.h"
#include "app/config/settings.h"

// Makes the rows of the table in settings.cpp, one function for each type. Each binds a member of
// the config, so that reading, checking and printing use the same member.
namespace simile::app {

struct SettingName {
  std::string key;
  std::string flag;
  std::string unit;
  std::string help;
};

template <typename Value>
using Values = std::vector<std::pair<std::string, Value>>;

// Errors: kInvalidArgument, `"2s" is not a whole number of ms from 1 to 9`.
//   unit  empty for none
absl::StatusOr<std::uint64_t> ParseWholeNumber(std::string_view text, std::uint64_t min,
                                               std::uint64_t max, std::string_view unit);
// Errors: kInvalidArgument, `"2x" is not a number from 0.05 to 1`.
absl::StatusOr<double> ParseNumber(std::string_view text, double min, double max);
// Errors: kInvalidArgument, `"maybe" is neither true nor false`. Takes 1, 0, yes, no, on and off.
absl::StatusOr<bool> ParseSwitch(std::string_view text);
// Errors: kInvalidArgument, `"tpu" is not one of auto, cpu or gpu`.
absl::StatusOr<std::size_t> ParseChoice(std::string_view text,
                                        const std::vector<std::string>& names);
// `films=examples/films`. Errors: kInvalidArgument for anything else or a name with other
// characters than letters, digits, '-', '_' and '.'.
absl::StatusOr<CollectionConfig> ParseCollection(std::string_view text);
// "auto, cpu or gpu"
std::string JoinedNames(const std::vector<std::string>& names);

Setting Text(const SettingName& name, std::string range, std::string Config::*member);
//   flag_value  what the bare flag sets, "true" or "false"
Setting Switch(const SettingName& name, std::string flag_value, bool Config::*member);
// A whole number of MiB, kept in bytes.
Setting Mebibytes(const SettingName& name, std::uint64_t min, std::uint64_t max,
                  std::uint64_t backend::GpuOptions::*member);
Setting Collections(const SettingName& name, std::vector<CollectionConfig> Config::*member);
// The part that all types share.
Setting MakeSetting(const SettingName& name, std::string range, SettingKind kind);

// The member in its part of the config; const if the config is.
template <typename AnyConfig, typename T>
auto& Member(AnyConfig& config, T Config::*member) {
  return config.*member;
}
template <typename AnyConfig, typename T>
auto& Member(AnyConfig& config, T Limits::*member) {
  return config.limits.*member;
}
template <typename AnyConfig, typename T>
auto& Member(AnyConfig& config, T backend::RegistryOptions::*member) {
  return config.backend.*member;
}

template <typename AnyConfig, typename T>
auto& Member(AnyConfig& config, T backend::GpuOptions::*member) {
  return config.backend.gpu.*member;
}

template <typename AnyConfig, typename T>
auto& Member(AnyConfig& config, T net::TlsFiles::*member) {
  return config.tls.*member;
}

template <typename T>
std::uint64_t AsWhole(T value) {
  return static_cast<std::uint64_t>(value);
}
inline std::uint64_t AsWhole(std::chrono::milliseconds value) {
  return static_cast<std::uint64_t>(value.count());
}

template <typename Owner>
Setting Path(const SettingName& name, std::filesystem::path Owner::*member) {
  Setting setting = MakeSetting(name, "path", SettingKind::kPath);
  setting.set = [member](const std::vector<std::string>& values, Config& config) {
    Member(config, member) = values.front();
    return absl::OkStatus();
  };
  setting.get = [member](const Config& config) {
    return std::vector{Member(config, member).string()};
  };
  return setting;
}

template <typename T, typename Owner>
Setting WholeNumber(const SettingName& name, std::uint64_t min, std::uint64_t max,
                    T Owner::*member) {
  Setting setting = MakeSetting(name, std::to_string(min) + " to " + std::to_string(max),
                                SettingKind::kWholeNumber);
  setting.set = [min, max, member, unit = name.unit](const std::vector<std::string>& values,
                                                     Config& config) {
    const absl::StatusOr<std::uint64_t> number = ParseWholeNumber(values.front(), min, max, unit);
    if (number.ok()) Member(config, member) = static_cast<T>(*number);
    return number.status();
  };
  setting.get = [member](const Config& config) {
    return std::vector{std::to_string(AsWhole(Member(config, member)))};
  };
  return setting;
}

// A fraction; printed with the fewest digits that read back as the same number.
template <typename Owner>
Setting Number(const SettingName& name, double min, double max, double Owner::*member) {
  Setting setting = MakeSetting(name, fmt::format("{} to {}", min, max), SettingKind::kNumber);
  setting.set = [min, max, member](const std::vector<std::string>& values, Config& config) {
    const absl::StatusOr<double> number = ParseNumber(values.front(), min, max);
    if (number.ok()) Member(config, member) = *number;
    return number.status();
  };
  setting.get = [member](const Config& config) {
    return std::vector{fmt::format("{}", Member(config, member))};
  };
  return setting;
}

template <typename T, typename Owner>
Setting Choice(const SettingName& name, const Values<T>& choices, T Owner::*member) {
  std::vector<std::string> names;
  for (const auto& choice : choices) names.push_back(choice.first);
  Setting setting = MakeSetting(name, JoinedNames(names), SettingKind::kChoice);
  setting.set = [choices, names, member](const std::vector<std::string>& values, Config& config) {
    const absl::StatusOr<std::size_t> index = ParseChoice(values.front(), names);
    if (index.ok()) Member(config, member) = choices[*index].second;
    return index.status();
  };
  setting.get = [choices, member](const Config& config) {
    for (const auto& [text, value] : choices) {
      if (value == Member(config, member)) return std::vector{text};
    }
    assert(false && "a value without a choice");
    return std::vector<std::string>{};
  };
  return setting;
}

}  // namespace simile::app
