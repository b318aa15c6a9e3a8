#include "app/config_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/json_object.h"
#include "base/atomic_file.h"
#include "base/nearest_name.h"

namespace simile::app {
namespace {

using nlohmann::json;

constexpr std::size_t kFileBytesMax = 1U << 20;

const Setting* FindSetting(std::string_view key) {
  const std::size_t index = SettingIndex(key);
  return index == Settings().size() ? nullptr : &Settings()[index];
}

bool IsFamiliar(std::string_view key) {
  return std::ranges::find(FamiliarNames(), key, &FamiliarName::name) != FamiliarNames().end();
}

// Whether settings have this key as their prefix, so that an object there is a group, not a value.
bool IsGroup(const std::string& key) {
  return std::ranges::any_of(Settings(), [prefix = key + "."](const Setting& setting) {
    return setting.key.starts_with(prefix);
  });
}

// Collects the values of one file's object.
class Collector {
 public:
  explicit Collector(const std::filesystem::path& file)
      : folder_(file.parent_path()), origin_("file " + file.string()) {}

  absl::Status Walk(const json& object, const std::string& prefix) {
    for (const auto& [name, value] : object.items()) {
      const std::string key = prefix.empty() ? name : fmt::format("{}.{}", prefix, name);
      absl::Status added =
          value.is_object() && IsGroup(key) ? Walk(value, key) : AddValue(key, value);
      if (!added.ok()) return added;
    }
    return absl::OkStatus();
  }

  std::vector<FileValue> Values() && { return std::move(values_); }

 private:
  absl::Status AddValue(const std::string& key, const json& value) {
    const Setting* setting = FindSetting(key);
    if (setting == nullptr && !IsFamiliar(key)) return Unknown(key);
    if (!seen_.insert(key).second) {
      return absl::InvalidArgumentError(fmt::format("{}: given twice (in {})", key, origin_));
    }
    absl::StatusOr<std::vector<std::string>> texts =
        setting == nullptr ? FamiliarTexts(value) : Texts(*setting, value);
    if (!texts.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: {} (from {})", key, std::string(texts.status().message()), origin_));
    }
    values_.push_back({key, *std::move(texts)});
    return absl::OkStatus();
  }

  absl::Status Unknown(const std::string& key) const {
    std::vector<std::string> known;
    for (const Setting& setting : Settings()) known.push_back(setting.key);
    return UnknownSetting(key, known, origin_);
  }

  static absl::StatusOr<std::vector<std::string>> FamiliarTexts(const json& value) {
    if (value.is_string()) return std::vector{value.get<std::string>()};
    if (value.is_number() || value.is_boolean()) return std::vector{value.dump()};
    return absl::InvalidArgumentError(
        fmt::format("{} is neither a number nor true or false", value.dump()));
  }

  absl::StatusOr<std::vector<std::string>> Texts(const Setting& setting, const json& value) const {
    switch (setting.kind) {
      case SettingKind::kText:
      case SettingKind::kChoice:
        if (value.is_string()) return std::vector{value.get<std::string>()};
        break;
      case SettingKind::kPath:
        if (value.is_string()) return std::vector{FromFolder(value.get<std::string>())};
        break;
      case SettingKind::kWholeNumber:
        if (value.is_number_integer()) return std::vector{value.dump()};
        break;
      case SettingKind::kNumber:
        if (value.is_number()) return std::vector{value.dump()};
        break;
      case SettingKind::kSwitch:
        if (value.is_boolean()) return std::vector{value.dump()};
        break;
      case SettingKind::kCollections:
        return CollectionTexts(value);
    }
    return absl::InvalidArgumentError(fmt::format("{} is not {}", value.dump(), Wanted(setting)));
  }

  static std::string Wanted(const Setting& setting) {
    switch (setting.kind) {
      case SettingKind::kWholeNumber:
        return "a whole number from " + setting.range;
      case SettingKind::kNumber:
        return "a number from " + setting.range;
      case SettingKind::kSwitch:
        return "true or false";
      case SettingKind::kChoice:
        return "one of \"" + setting.range + "\"";
      default:
        return "a string";
    }
  }

  absl::StatusOr<std::vector<std::string>> CollectionTexts(const json& value) const {
    std::vector<std::string> texts;
    const bool all_strings = value.is_object() && std::ranges::all_of(value, [](const json& entry) {
                               return entry.is_string();
                             });
    if (!all_strings) {
      return absl::InvalidArgumentError(fmt::format(
          "{} is not an object from name to folder, as in {{\"films\": \"examples/films\"}}",
          value.dump()));
    }
    for (const auto& [name, folder] : value.items()) {
      texts.push_back(name + "=" + FromFolder(folder.get<std::string>()));
    }
    return texts;
  }

  std::string FromFolder(const std::string& path) const {
    return path.empty() ? path : (folder_ / path).lexically_normal().string();
  }

  const std::filesystem::path folder_;
  const std::string origin_;
  std::set<std::string> seen_;
  std::vector<FileValue> values_;
};

}  // namespace

absl::StatusOr<std::vector<FileValue>> ReadConfigFile(const std::filesystem::path& file) {
  const std::string file_name = file.string();
  std::error_code unreachable;
  if (!std::filesystem::is_regular_file(file, unreachable)) {
    return absl::NotFoundError(fmt::format("{}: no such configuration file", file_name));
  }
  const absl::StatusOr<std::string> text = base::ReadWholeFile(file, kFileBytesMax);
  if (!text.ok()) return text.status();
  const absl::StatusOr<JsonObject> object =
      JsonObject::Parse(*text, file_name, R"({"server": {"port": 50051}})");
  if (!object.ok()) return object.status();
  Collector collector(file);
  if (absl::Status walked = collector.Walk(object->get(), ""); !walked.ok()) return walked;
  return std::move(collector).Values();
}

namespace {

// The known name that was probably meant: the shortest that ends with the words of this one
// ("server.port" for "port"), else the nearest. What all variables begin with is not compared, or
// else any two short ones would be near each other.
std::string NearSetting(std::string_view name, const std::vector<std::string>& known) {
  constexpr std::string_view kPrefix = "SIMILE_";
  const bool is_variable = name.starts_with(kPrefix);
  const std::string_view prefix = is_variable ? kPrefix : "";
  const std::string wanted(name.substr(prefix.size()));
  const std::string end = fmt::format("{}{}", is_variable ? '_' : '.', wanted);
  std::vector<std::string> words;
  std::string shortest;
  for (const std::string& each : known) {
    if (!each.starts_with(prefix)) continue;
    words.push_back(each.substr(prefix.size()));
    const bool ends_so = !wanted.empty() && words.back().ends_with(end);
    if (ends_so && (shortest.empty() || words.back().size() < shortest.size())) {
      shortest = words.back();
    }
  }
  const std::string found = shortest.empty() ? base::NearestName(wanted, words) : shortest;
  return found.empty() ? "" : fmt::format("{}{}", prefix, found);
}

}  // namespace

absl::Status UnknownSetting(std::string_view name, const std::vector<std::string>& known,
                            std::string_view origin) {
  for (const RenamedSetting& renamed : RenamedSettings()) {
    const bool is_variable = name == VariableOf(renamed.old_key);
    if (name != renamed.old_key && !is_variable) continue;
    return absl::InvalidArgumentError(fmt::format(
        "{} is called {} since {} (from {})", name,
        is_variable ? VariableOf(renamed.key) : std::string(renamed.key), renamed.since, origin));
  }
  for (const EndedSetting& ended : EndedSettings()) {
    if (name != ended.key && name != VariableOf(ended.key)) continue;
    return absl::InvalidArgumentError(
        fmt::format("{} is no setting any more: {} (from {})", name, ended.instead, origin));
  }
  const std::string offer = base::DidYouMean(NearSetting(name, known));
  return absl::InvalidArgumentError(
      fmt::format("no setting \"{}\" (from {}){}", name, origin,
                  offer.empty() ? "; `simile config --print` shows all" : "." + offer));
}

}  // namespace simile::app
