#include "cli/settings_flags.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "app/config/settings.h"

namespace simile::cli {
namespace {

using app::Setting;
using app::SettingKind;

// The setting's help sentence without its full stop, like the help of other flags.
std::string Phrase(const Setting& setting) {
  return setting.help.substr(0, setting.help.find_last_not_of('.') + 1);
}

// `The port to answer on; 0 takes any free one (0 to 65535, default 50051)`
std::string HelpFor(const Setting& setting) {
  const std::vector<std::string> defaults = setting.get(app::Config{});
  const bool bounded = setting.kind == SettingKind::kWholeNumber ||
                       setting.kind == SettingKind::kNumber || setting.kind == SettingKind::kChoice;
  std::string notes = bounded ? setting.range : "";
  if (!setting.unit.empty()) notes += " " + setting.unit;
  if (!defaults.empty() && !defaults.front().empty()) {
    notes += fmt::format("{}default {}", notes.empty() ? "" : ", ", defaults.front());
  }
  return notes.empty() ? Phrase(setting) : fmt::format("{} ({})", Phrase(setting), notes);
}

// `Serve Prometheus metrics` becomes `Do not serve Prometheus metrics` for the flag that stops it.
std::string SwitchHelp(const Setting& setting) {
  std::string phrase = Phrase(setting);
  if (setting.flag_value == "true") return phrase;
  phrase.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(phrase.front())));
  return "Do not " + phrase;
}

std::string ValueName(const Setting& setting) {
  switch (setting.kind) {
    case SettingKind::kCollections:
      return setting.range;
    case SettingKind::kWholeNumber:
    case SettingKind::kNumber:
      return "NUMBER";
    case SettingKind::kPath:
      return "PATH";
    default:
      return "TEXT";
  }
}

// The choices in a range such as `auto, cpu or gpu`; empty for a setting of another kind.
std::vector<std::string> ParseChoices(const Setting& setting) {
  if (setting.kind != SettingKind::kChoice) return {};
  std::vector<std::string> choices;
  std::istringstream words(setting.range);
  for (std::string word; words >> word;) {
    if (word == "or") continue;
    choices.push_back(word.substr(0, word.find(',')));
  }
  return choices;
}

}  // namespace

std::string NamedFolder(const std::string& collection) {
  if (collection.find('=') != std::string::npos) return collection;
  const std::filesystem::path folder = (std::filesystem::path(collection) / "").parent_path();
  return folder.filename().string() + '=' + collection;
}

absl::StatusOr<app::ConfigReading> ReadConfigFor(const std::optional<std::string>& file,
                                                 const std::vector<std::string>& collections,
                                                 const std::optional<std::string>& threads) {
  app::ConfigSources sources;
  sources.file = file.value_or("");
  sources.environment = app::ProcessEnvironment();
  std::vector<std::string> named;
  for (const std::string& collection : collections) named.push_back(NamedFolder(collection));
  if (!named.empty()) sources.flags.push_back({"collections.serve", std::move(named)});
  if (threads) sources.flags.push_back({"backend.threads", {*threads}});
  return app::ReadConfig(sources);
}

void SettingsFlags::AddTo(Command& command, std::span<const std::string_view> keys) {
  command.File("--config", file_, "FILE", "A JSON file of settings (or SIMILE_CONFIG)");
  for (const Setting& setting : app::Settings()) {
    const bool wanted = keys.empty() || std::ranges::find(keys, setting.key) != keys.end();
    if (setting.flag.empty() || !wanted) continue;
    if (setting.kind == SettingKind::kCollections) {
      std::vector<std::string>& collections = lists_[setting.key];
      command.Texts(setting.flag, collections, ValueName(setting), HelpFor(setting))
          .Paths(PathKind::kNamedFolder)
          .Texts(ValueName(setting), collections, "", fmt::format("The same as {}", setting.flag))
          .Paths(PathKind::kNamedFolder);
    } else if (!setting.flag_value.empty()) {
      command.Switch(setting.flag, switches_[setting.key], SwitchHelp(setting));
    } else if (setting.kind == SettingKind::kPath) {
      command.File(setting.flag, values_[setting.key], ValueName(setting), HelpFor(setting));
    } else {
      command.Text(setting.flag, values_[setting.key], ValueName(setting), HelpFor(setting))
          .Choices(ParseChoices(setting));
    }
  }
}

absl::StatusOr<app::ConfigReading> SettingsFlags::Read() const {
  return app::ReadConfig(Sources());
}

app::LogFormat SettingsFlags::ReadLogFormat() const { return app::ReadLogFormat(Sources()); }

app::ConfigSources SettingsFlags::Sources() const {
  app::ConfigSources sources;
  if (file_) sources.file = *file_;
  sources.environment = app::ProcessEnvironment();
  for (const Setting& setting : app::Settings()) {
    if (const auto list = lists_.find(setting.key); list != lists_.end() && !list->second.empty()) {
      sources.flags.push_back({setting.key, list->second});
    }
    if (const auto on = switches_.find(setting.key); on != switches_.end() && on->second) {
      sources.flags.push_back({setting.key, {setting.flag_value}});
    }
    if (const auto value = values_.find(setting.key); value != values_.end() && value->second) {
      sources.flags.push_back({setting.key, {*value->second}});
    }
  }
  return sources;
}

}  // namespace simile::cli
