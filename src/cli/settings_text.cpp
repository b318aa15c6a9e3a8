#include "cli/settings_text.h"

#include <nlohmann/json.hpp>

#include "app/settings.h"
#include "cli/json_line.h"
#include "cli/table.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;
using app::Setting;
using app::SettingKind;

std::string Joined(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : ", ") + text;
  return joined.empty() ? "-" : joined;
}

Json ValueJson(const Setting& setting, const app::Config& config) {
  const std::vector<std::string> texts = setting.get(config);
  switch (setting.kind) {
    case SettingKind::kWholeNumber:
      return std::stoull(texts.front());
    case SettingKind::kSwitch:
      return texts.front() == "true";
    case SettingKind::kCollections: {
      Json collections = Json::object();
      for (const app::CollectionConfig& collection : config.collections) {
        collections[collection.name] = collection.folder.string();
      }
      return collections;
    }
    default:
      return texts.front();
  }
}

}  // namespace

std::string SettingsTable(const app::ConfigReading& reading, const Terminal& terminal) {
  Table table({{"setting"}, {"value"}, {"unit"}, {"range"}, {"default"}, {"from"}});
  const app::Config defaults;
  for (std::size_t i = 0; i < app::Settings().size(); ++i) {
    const Setting& setting = app::Settings()[i];
    table.AddRow({setting.key, Joined(setting.get(reading.config)), setting.unit, setting.range,
                  Joined(setting.get(defaults)), reading.origins[i]});
  }
  return table.Render(terminal, 0);
}

std::string SettingsJson(const app::ConfigReading& reading) {
  Json list = Json::array();
  const app::Config defaults;
  for (std::size_t i = 0; i < app::Settings().size(); ++i) {
    const Setting& setting = app::Settings()[i];
    list.push_back({{"key", setting.key},
                    {"value", ValueJson(setting, reading.config)},
                    {"unit", setting.unit},
                    {"range", setting.range},
                    {"default", ValueJson(setting, defaults)},
                    {"origin", reading.origins[i]},
                    {"environment", setting.Environment()},
                    {"flag", setting.flag},
                    {"help", setting.help}});
  }
  return JsonLine({{"settings", std::move(list)}});
}

}  // namespace simile::cli
