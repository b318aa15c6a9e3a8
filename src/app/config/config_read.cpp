#include "app/config/config_read.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/statusor.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/config/foreign_variables.h"
#include "app/config/json_file.h"
#include "app/config/settings.h"
#include "base/atomic_file.h"
#include "base/nearest_name.h"

namespace simile::app {
namespace {

constexpr std::string_view kPrefix = "SIMILE_";
constexpr std::string_view kConfigVariable = "SIMILE_CONFIG";
// Read by the client commands (src/cli); a server may run in the same environment.
constexpr std::array<std::string_view, 4> kClientVariables = {"SIMILE_SERVER", "SIMILE_CA",
                                                              "SIMILE_TOKEN", "SIMILE_TOKEN_FILE"};
// How the origin of a value begins that a flag or a variable gave.
constexpr std::string_view kFlagOrigin = "flag ";
constexpr std::string_view kVariableOrigin = "environment ";

// The known name that was probably meant: the shortest that ends with the words of this one
// ("server.port" for "port"), else the nearest. The prefix of all variables is not compared: with
// it any two short variables would be near each other.
std::string NearSetting(std::string_view name, const std::vector<std::string>& known) {
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

// Returns the error for an unknown key or variable: kInvalidArgument. The message has its new name
// if it was renamed (RenamedSettings), else the nearest of `known` if one is near.
absl::Status UnknownSetting(std::string_view name, const std::vector<std::string>& known,
                            std::string_view origin) {
  for (const RenamedSetting& renamed : RenamedSettings()) {
    const bool is_variable = name == ToVariableName(renamed.old_key);
    if (name != renamed.old_key && !is_variable) continue;
    return absl::InvalidArgumentError(
        fmt::format("{} is called {} since {} (from {})", name,
                    is_variable ? ToVariableName(renamed.key) : std::string(renamed.key),
                    renamed.since, origin));
  }
  for (const EndedSetting& ended : EndedSettings()) {
    if (name != ended.key && name != ToVariableName(ended.key)) continue;
    return absl::InvalidArgumentError(
        fmt::format("{} is no setting any more: {} (from {})", name, ended.instead, origin));
  }
  const std::string offer = base::DidYouMean(NearSetting(name, known));
  return absl::InvalidArgumentError(
      fmt::format("no setting \"{}\" (from {}){}", name, origin,
                  offer.empty() ? "; `simile config --print` shows all" : "." + offer));
}

// One value of a configuration file, as Setting::set takes it.
struct FileValue {
  std::string key;  // "server.port", or a familiar name
  std::vector<std::string> values;
};

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

// Reads a JSON configuration file into key and value pairs: each key once, each value of the JSON
// type of its setting. Relative paths start at the file's folder.
// Errors: kNotFound; kInvalidArgument for text that is not JSON (line and column), unknown keys
//         (UnknownSetting), duplicate keys and values of another type; those of
//         base::ReadWholeFile, also for a file over 1 MiB.
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

// Records where a value came from, or adds its name and origin to the error of setting it.
absl::Status RecordOrigin(const absl::Status& set, std::string_view name, std::string_view key,
                          const std::string& origin, ConfigReading& reading) {
  if (!set.ok()) {
    return absl::Status(set.code(), SettingErrorText(name, origin, std::string(set.message())));
  }
  reading.origins[SettingIndex(key)] = origin;
  return absl::OkStatus();
}

absl::Status Apply(const Setting& setting, const std::vector<std::string>& values,
                   const std::string& origin, ConfigReading& reading) {
  return RecordOrigin(setting.set(values, reading.config), setting.key, setting.key, origin,
                      reading);
}

absl::Status ApplyFamiliar(const FamiliarName& familiar, const std::string& value,
                           const std::string& origin, ConfigReading& reading) {
  const absl::StatusOr<bool> taken = familiar.set(value, reading.config);
  if (taken.ok() && !*taken) return absl::OkStatus();
  return RecordOrigin(taken.status(), familiar.name, familiar.key, origin, reading);
}

absl::Status ApplyFile(const std::filesystem::path& file, ConfigReading& reading) {
  const absl::StatusOr<std::vector<FileValue>> values = ReadConfigFile(file);
  if (!values.ok()) return values.status();
  const std::string origin = "file " + file.string();
  // Familiar names first, so that our own name wins if a file has both.
  for (const FamiliarName& familiar : FamiliarNames()) {
    const auto value = std::ranges::find(*values, familiar.name, &FileValue::key);
    if (value == values->end()) continue;
    absl::Status applied =
        ApplyFamiliar(familiar, value->values.front(), origin + ", " + familiar.name, reading);
    if (!applied.ok()) return applied;
  }
  for (const Setting& setting : Settings()) {
    const auto value = std::ranges::find(*values, setting.key, &FileValue::key);
    if (value == values->end()) continue;
    absl::Status applied = Apply(setting, value->values, origin, reading);
    if (!applied.ok()) return applied;
  }
  return absl::OkStatus();
}

// Kubernetes and Docker describe a service named "simile" to every container by variables like
// SIMILE_SERVICE_HOST, SIMILE_PORT=tcp://10.0.0.7:50051 and SIMILE_PORT_50051_TCP_ADDR. They are
// generated, so they are ignored and not refused as mistakes.
bool IsGenerated(std::string_view name, std::string_view value) {
  return IsServiceLink(name) || value.starts_with("tcp://") || value.starts_with("udp://");
}

// Records the variables of other programs: FamiliarNames, whose values this server takes, and
// ForeignVariables, which this server does not read.
void FindVariables(const std::map<std::string, std::string>& variables, ConfigReading& reading) {
  for (const auto& [name, value] : variables) {
    if (std::ranges::find(FamiliarNames(), name, &FamiliarName::name) != FamiliarNames().end()) {
      reading.familiar_values.emplace(name, value);
    } else if (const ForeignVariable* row = FindForeignVariable(name);
               row != nullptr && !name.starts_with(kPrefix)) {
      reading.foreign_values.push_back({name, value, row});
    }
  }
  std::ranges::stable_sort(reading.foreign_values, {}, &ForeignValue::row);
}

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size() && !text.empty()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

absl::Status RefuseUnknownVariables(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> known{std::string(kConfigVariable)};
  known.insert(known.end(), kClientVariables.begin(), kClientVariables.end());
  for (const Setting& setting : Settings()) known.push_back(setting.Environment());
  for (const auto& [name, value] : variables) {
    if (!name.starts_with(kPrefix) || IsGenerated(name, value)) continue;
    if (std::ranges::find(known, name) == known.end()) {
      return UnknownSetting(name, known, "environment");
    }
  }
  return absl::OkStatus();
}

absl::Status ApplyEnvironment(const std::map<std::string, std::string>& variables,
                              ConfigReading& reading) {
  if (absl::Status known = RefuseUnknownVariables(variables); !known.ok()) return known;
  for (const FamiliarName& familiar : FamiliarNames()) {
    const auto variable = variables.find(familiar.name);
    if (variable == variables.end()) continue;
    const Setting& setting = Settings()[SettingIndex(familiar.key)];
    reading.before_familiar[familiar.name] = setting.get(reading.config).front();
    absl::Status applied =
        ApplyFamiliar(familiar, variable->second, VariableOrigin(familiar.name), reading);
    if (!applied.ok()) return applied;
  }
  for (const Setting& setting : Settings()) {
    const auto variable = variables.find(setting.Environment());
    if (variable == variables.end() || IsGenerated(variable->first, variable->second)) continue;
    const std::vector<std::string> values = setting.kind == SettingKind::kCollections
                                                ? SplitAtCommas(variable->second)
                                                : std::vector{variable->second};
    absl::Status applied = Apply(setting, values, VariableOrigin(variable->first), reading);
    if (!applied.ok()) return applied;
  }
  return absl::OkStatus();
}

absl::Status ApplyFlags(const std::vector<FlagValue>& flags, ConfigReading& reading) {
  for (const FlagValue& flag : flags) {
    const std::size_t index = SettingIndex(flag.key);
    if (index == Settings().size()) return UnknownSetting(flag.key, {}, "flag");
    const Setting& setting = Settings()[index];
    absl::Status applied =
        Apply(setting, flag.values, fmt::format("{}{}", kFlagOrigin, setting.flag), reading);
    if (!applied.ok()) return applied;
  }
  return absl::OkStatus();
}

// Why a budget cannot hold the largest request; empty when all can.
std::string WhyBudgetTooSmall(const Limits& limits) {
  struct Budget {
    std::string_view key;
    std::uint64_t bytes;
    std::uint64_t requests;  // of the largest size, that it must hold
    std::string_view why;
  };
  const Budget budgets[] = {
      {"limits.unfinished_bytes_per_peer_max", limits.unfinished_bytes_per_peer_max, 2,
       "a request of that size could not be received"},
      {"limits.queue_bytes_max", limits.queue_bytes_max, 1,
       "a request of that size would exceed the space of all waiting requests"},
      // See ParsedBytesMax (service/grpc/messages.h).
      {"limits.resolve_bytes_max", limits.resolve_bytes_max, 3,
       "parsing a request of that size may take more"},
  };
  for (const Budget& budget : budgets) {
    const std::uint64_t bytes_min = budget.requests * limits.receive_bytes_max;
    if (budget.bytes >= bytes_min) continue;
    return fmt::format("{}: {} is too little for limits.receive_bytes_max, {}: {}; give {} or more",
                       budget.key, budget.bytes, limits.receive_bytes_max, budget.why, bytes_min);
  }
  return {};
}

// What is wrong about several settings together, each within its range; empty for nothing.
std::string WrongTogether(const Limits& limits) {
  constexpr std::chrono::milliseconds kAgeMin{1'000};
  if (limits.search_deadline_default > limits.search_deadline_max) {
    return fmt::format(
        "limits.search_deadline_default: {} ms is over limits.search_deadline_max, {} ms",
        limits.search_deadline_default.count(), limits.search_deadline_max.count());
  }
  const bool ages = limits.connection_age_max.count() > 0;
  if (ages && limits.connection_age_max < kAgeMin) {
    return fmt::format(
        "limits.connection_age_max: connections {} ms old are closed as soon as they are made; "
        "give {} or more, or 0 for never",
        limits.connection_age_max.count(), kAgeMin.count());
  }
  if (ages && limits.connection_age_grace < limits.search_deadline_max) {
    return fmt::format(
        "limits.connection_age_grace: {} ms is under limits.search_deadline_max, {} ms: calls of "
        "an old connection would be cut before their deadlines; give {} or more",
        limits.connection_age_grace.count(), limits.search_deadline_max.count(),
        limits.search_deadline_max.count());
  }
  return WhyBudgetTooSmall(limits);
}

absl::Status CheckTogether(const ConfigReading& reading) {
  const std::string wrong = WrongTogether(reading.config.limits);
  return wrong.empty() ? absl::OkStatus() : absl::InvalidArgumentError(wrong);
}

// A file that the server keeps in one of the user's folders, found by the XDG Base Directory
// Specification: relative paths are ignored. Without either variable there is no such file.
struct KeptFile {
  std::string_view key;
  std::filesystem::path Config::*member;
  const char* folder_variable;
  const char* below_home;
  const char* name;
};
constexpr KeptFile kKeptFiles[] = {
    {"backend.tuning_cache", &Config::tuning_cache, "XDG_CACHE_HOME", ".cache", "cpu-tuning.json"},
    {"gpu.fault_journal", &Config::gpu_fault_journal, "XDG_STATE_HOME", ".local/state",
     "gpu-faults.json"},
};

void SetDefault(const KeptFile& file, const std::map<std::string, std::string>& variables,
                ConfigReading& reading) {
  const std::pair<const char*, const char*> folders[] = {{file.folder_variable, ""},
                                                         {"HOME", file.below_home}};
  for (const auto& [variable, below] : folders) {
    const auto found = variables.find(variable);
    if (found == variables.end()) continue;
    const std::filesystem::path folder(found->second);
    if (!folder.is_absolute()) continue;
    reading.config.*file.member = folder / below / "simile" / file.name;
    reading.origins[SettingIndex(file.key)] = fmt::format("default ({})", variable);
    return;
  }
}

}  // namespace

absl::StatusOr<ConfigReading> ReadConfig(const ConfigSources& sources) {
  ConfigReading reading;
  reading.origins.assign(Settings().size(), "default");
  const std::map<std::string, std::string> variables(sources.environment.begin(),
                                                     sources.environment.end());
  FindVariables(variables, reading);
  for (const KeptFile& kept : kKeptFiles) SetDefault(kept, variables, reading);
  std::filesystem::path file = sources.file;
  if (const auto named = variables.find(std::string(kConfigVariable));
      file.empty() && named != variables.end()) {
    file = named->second;
  }
  if (!file.empty()) {
    if (absl::Status applied = ApplyFile(file, reading); !applied.ok()) return applied;
  }
  if (absl::Status applied = ApplyEnvironment(variables, reading); !applied.ok()) {
    return applied;
  }
  if (absl::Status applied = ApplyFlags(sources.flags, reading); !applied.ok()) {
    return applied;
  }
  if (absl::Status checked = CheckTogether(reading); !checked.ok()) return checked;
  return reading;
}

std::string VariableOrigin(std::string_view name) {
  return fmt::format("{}{}", kVariableOrigin, name);
}

std::string SettingErrorText(std::string_view key, std::string_view origin,
                             std::string_view message) {
  for (const std::string_view kind : {kFlagOrigin, kVariableOrigin}) {
    if (origin.starts_with(kind)) {
      return fmt::format("{}: {}", origin.substr(kind.size()), message);
    }
  }
  return fmt::format("{}: {} (from {})", key, message, origin);
}

LogFormat ReadLogFormat(ConfigSources sources) {
  const std::string key = "log.format";
  std::erase_if(sources.flags, [&](const FlagValue& flag) { return flag.key != key; });
  const auto keep_variables = [&](std::initializer_list<std::string_view> kept) {
    std::erase_if(sources.environment, [&](const auto& variable) {
      return std::ranges::find(kept, variable.first) == kept.end();
    });
  };
  const std::string variable = ToVariableName(key);
  keep_variables({variable, kConfigVariable});
  absl::StatusOr<ConfigReading> reading = ReadConfig(sources);
  if (!reading.ok()) {  // the file is wrong: read the variable and the flag alone
    sources.file.clear();
    keep_variables({variable});
    reading = ReadConfig(sources);
  }
  return reading.ok() ? reading->config.log_format : LogFormat::kText;
}

std::vector<std::pair<std::string, std::string>> ProcessEnvironment() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace simile::app
