#include "cli/settings_text.h"

#include <nlohmann/json.hpp>

#include "app/settings.h"
#include "backend/cpu/int8_tuning.h"
#include "cli/json_line.h"
#include "cli/table.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;
using app::Setting;
using app::SettingKind;
using backend::cpu::Int8Tuning;
using backend::cpu::TuningValue;
using backend::cpu::TuningValues;

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
    case SettingKind::kNumber:
      return std::stod(texts.front());
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

Json TuningJson(const app::TuningInForce& tuning) {
  Json list = Json::array();
  const Int8Tuning defaults;
  for (std::size_t i = 0; i < TuningValues().size(); ++i) {
    const TuningValue& value = TuningValues()[i];
    list.push_back({{"name", value.name},
                    {"value", tuning.tuning.*value.value},
                    {"unit", value.unit},
                    {"default", defaults.*value.value},
                    {"origin", tuning.origins[i]},
                    {"help", value.help}});
  }
  return list;
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

std::string TuningTable(const app::TuningInForce& tuning, const Terminal& terminal) {
  Table table({{"tuning"}, {"value"}, {"unit"}, {"default"}, {"from"}});
  const Int8Tuning defaults;
  for (std::size_t i = 0; i < TuningValues().size(); ++i) {
    const TuningValue& value = TuningValues()[i];
    table.AddRow({value.name, std::to_string(tuning.tuning.*value.value), value.unit,
                  std::to_string(defaults.*value.value), tuning.origins[i]});
  }
  std::string text = table.Render(terminal, 0);
  if (!tuning.cache.ok()) text += std::string(tuning.cache.message()) + "\n";
  return text;
}

std::string SettingsJson(const app::ConfigReading& reading, const app::TuningInForce& tuning) {
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
  return JsonLine({{"settings", std::move(list)}, {"tuning", TuningJson(tuning)}});
}

}  // namespace simile::cli
