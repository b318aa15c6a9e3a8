#include "app/variable_effects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/settings.h"

namespace simile::app {
namespace {

constexpr std::string_view kThisServer = "this server";

VariableEffect EffectOf(const FamiliarName& familiar, const std::string& given,
                        const ConfigReading& reading) {
  const std::size_t index = SettingIndex(familiar.key);
  const Setting& setting = Settings()[index];
  const std::string value = setting.get(reading.config).front();
  const std::string& normal = reading.before_familiar.at(familiar.name);
  const std::string& origin = reading.origins[index];
  const bool is_taken = origin == VariableOrigin(familiar.name);
  const bool is_default = origin.starts_with("default");
  VariableEffect effect{
      familiar.name, given, std::string(kThisServer),
      fmt::format("{} {} {}", familiar.key, is_default && !is_taken ? "stays" : "is", value),
      is_taken && value != normal};
  if (effect.has_changed) effect.effect += fmt::format(" instead of {}", normal);
  if (!is_taken && !is_default) effect.effect += ", from " + origin;
  return effect;
}

VariableEffect EffectOf(const ForeignValue& found) {
  const ForeignVariable& row = *found.row;
  const bool is_neutral = !row.neutral.empty() && found.value == row.neutral;
  return {found.name, std::string(found.display_value()), std::string(ReaderName(row.reader)),
          std::string(row.effect), row.reader != VariableReader::kNobody && !is_neutral};
}

}  // namespace

std::vector<VariableEffect> EffectsOf(const ConfigReading& reading) {
  std::vector<VariableEffect> effects;
  for (const FamiliarName& familiar : FamiliarNames()) {
    const auto found = reading.familiar_values.find(familiar.name);
    if (found == reading.familiar_values.end()) continue;
    effects.push_back(EffectOf(familiar, found->second, reading));
  }
  for (const ForeignValue& found : reading.foreign_values) effects.push_back(EffectOf(found));
  return effects;
}

std::string IgnoredVariables(const std::vector<VariableEffect>& effects) {
  std::vector<std::string_view> names;
  for (const VariableEffect& each : effects) {
    if (each.reader.empty()) names.push_back(each.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string VariablesWithoutChange(const std::vector<VariableEffect>& effects) {
  std::vector<std::string> texts;
  for (const VariableEffect& each : effects) {
    if (each.reader.empty() || each.has_changed) continue;
    std::string text = fmt::format("{}={}", each.name, each.value);
    if (each.reader == kThisServer) text += fmt::format(" ({})", each.effect);
    texts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace simile::app
