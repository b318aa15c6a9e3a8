#include "cli/config_command.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/foreign_variables.h"
#include "app/settings.h"
#include "backend/cpu/int8_tuning.h"
#include "base/cpu_count.h"
#include "base/message_text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json_line.h"
#include "cli/settings_flags.h"
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
  const std::string joined = fmt::format("{}", fmt::join(texts, ", "));
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
  list.push_back({{"name", "threads"},
                  {"value", tuning.threads},
                  {"unit", "threads"},
                  {"default", base::UsableCpuCount()},
                  {"origin", tuning.threads_origin},
                  {"help",
                   "Threads that search; `simile tune` may choose them where "
                   "backend.threads is 0."}});
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

// "the GPU's driver"; nothing for a variable that has no effect.
std::string ReaderName(app::VariableReader reader) {
  switch (reader) {
    case app::VariableReader::kGpuDriver:
      return "the GPU's driver";
    case app::VariableReader::kContainerRuntime:
      return "the container runtime";
    case app::VariableReader::kNobody:
      break;
  }
  return "";
}

Json FamiliarJson() {
  Json list = Json::array();
  for (const app::FamiliarName& familiar : app::FamiliarNames()) {
    list.push_back({{"name", familiar.name}, {"key", familiar.key}, {"help", familiar.help}});
  }
  return list;
}

Json ForeignJson(const app::ConfigReading& reading) {
  Json list = Json::array();
  for (std::size_t i = 0; i < app::ForeignVariables().size(); ++i) {
    const app::ForeignVariable& variable = app::ForeignVariables()[i];
    const std::optional<std::string>& value = reading.foreign_values[i];
    list.push_back({{"name", variable.name},
                    {"value", value ? Json(*value) : Json()},
                    {"reader", ReaderName(variable.reader)},
                    {"help", variable.effect}});
  }
  return list;
}

struct ConfigFlags {
  SettingsFlags settings;
  bool print = false;
  bool json = false;
};

void PrintValid(const app::ConfigReading& reading) {
  const auto changed = std::ranges::count_if(
      reading.origins, [](const std::string& origin) { return !origin.starts_with("default"); });
  fmt::print("the configuration is valid; {} of {} differ from their defaults\n", changed,
             base::Counted(reading.origins.size(), "setting"));
  SuggestNext("simile config --print");
}

// kFailed if there are problems. They were printed as JSON already, if that is wanted.
int FailOn(const std::vector<app::ConfigProblem>& problems) {
  for (const app::ConfigProblem& problem : problems) {
    Fail(absl::FailedPreconditionError(app::ProblemText(problem)));
  }
  return problems.empty() ? kSucceeded : kFailed;
}

int RunConfig(const ConfigFlags& flags) {
  const absl::StatusOr<app::ConfigReading> reading = flags.settings.Read();
  if (!reading.ok()) {
    Fail(reading.status(), flags.json);
    return kWrongUsage;
  }
  const std::vector<app::ConfigProblem> problems = app::FolderProblems(*reading);
  if (flags.json) {
    fmt::print("{}", SettingsJson(*reading, app::KnownTuning(reading->config), problems));
    return FailOn(problems);
  }
  if (flags.print) {
    fmt::print("{}\n{}{}", SettingsTable(*reading, StandardOutput()),
               TuningTable(app::KnownTuning(reading->config), StandardOutput()),
               ForeignTable(*reading, StandardOutput()));
    std::fflush(stdout);  // so that the problems follow it
    return FailOn(problems);
  }
  if (const absl::Status served = app::CheckSomethingToServe(reading->config); !served.ok()) {
    Fail(served);
    return kWrongUsage;
  }
  if (problems.empty()) PrintValid(*reading);
  return FailOn(problems);
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
  table.AddRow({"threads", std::to_string(tuning.threads), "threads",
                std::to_string(base::UsableCpuCount()), tuning.threads_origin});
  for (std::size_t i = 0; i < TuningValues().size(); ++i) {
    const TuningValue& value = TuningValues()[i];
    table.AddRow({value.name, std::to_string(tuning.tuning.*value.value), value.unit,
                  std::to_string(defaults.*value.value), tuning.origins[i]});
  }
  std::string text = table.Render(terminal, 0);
  if (!tuning.cache.ok()) text += std::string(tuning.cache.message()) + "\n";
  return text;
}

std::string ForeignTable(const app::ConfigReading& reading, const Terminal& terminal) {
  Table table({{"variable"}, {"value"}, {"read by"}, {"what"}});
  bool any = false;
  for (std::size_t i = 0; i < app::ForeignVariables().size(); ++i) {
    const app::ForeignVariable& variable = app::ForeignVariables()[i];
    if (!reading.foreign_values[i]) continue;
    const std::string reader = ReaderName(variable.reader);
    table.AddRow({std::string(variable.name), *reading.foreign_values[i],
                  reader.empty() ? "nobody: ignored" : reader, std::string(variable.effect)});
    any = true;
  }
  return any ? fmt::format("\n{}", table.Render(terminal, 0)) : "";
}

std::string SettingsJson(const app::ConfigReading& reading, const app::TuningInForce& tuning,
                         const std::vector<app::ConfigProblem>& problems) {
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
  Json found = Json::array();
  for (const app::ConfigProblem& problem : problems) {
    found.push_back(
        {{"key", problem.key}, {"origin", problem.origin}, {"message", problem.message}});
  }
  return JsonLine({{"settings", std::move(list)},
                   {"familiar_names", FamiliarJson()},
                   {"foreign_variables", ForeignJson(reading)},
                   {"tuning", TuningJson(tuning)},
                   {"problems", std::move(found)}});
}

void AddConfigCommand(CommandLine& line) {
  auto flags = std::make_shared<ConfigFlags>();
  Command command =
      line.Add("config", "Check and show the settings and folders that `serve` would use");
  command
      .Switch("--print", flags->print,
              "Print every setting: value, unit, range, default, origin; and the CPU's tuning")
      .Switch("--json", flags->json, "Print every setting as JSON for programs");
  flags->settings.AddTo(command);
  command
      .Footer(
          "Settings come from a JSON file, then SIMILE_* variables, then flags; the last one "
          "wins.\n"
          "server.port is SIMILE_SERVER_PORT, and {\"server\": {\"port\": 50051}} in a file.\n"
          "Names from other servers also work: USE_GPU (true: auto, false: cpu), "
          "INFERENCE_BATCH_SIZE,\n"
          "WORKER_CONCURRENCY; --print names the variables that are set and have no effect.\n"
          "Of a collection's folder the headers are read; `simile inspect FOLDER` reads all.\n"
          "Exit codes: 0 valid, 1 a folder is missing or no collection, 64 a wrong setting, or "
          "nothing to serve.")
      .Run([flags] { return RunConfig(*flags); });
}

}  // namespace simile::cli
