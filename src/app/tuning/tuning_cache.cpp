#include "app/tuning/tuning_cache.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/config/json_file.h"
#include "backend/cpu/calibration.h"
#include "backend/cpu/processor.h"

namespace simile::app {
namespace {

using backend::cpu::TuningFindings;
using backend::cpu::TuningValue;
using backend::cpu::TuningValues;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMachinesMax = 64;
// What `simile tune` found, inside an entry, and its number of threads there.
constexpr const char* kTuned = "tuned";
constexpr const char* kTunedThreads = "threads";

Json KeyJson(const TuningKey& key) {
  return {{"cpu", key.cpu},
          {"threads", key.threads},
          {"kernels", key.kernels},
          {"calibration", backend::cpu::kCalibrationVersion}};
}

// The number with this name, `missing` where there is none; nothing if it is out of range.
std::optional<std::uint64_t> NumberIn(const Json& object, const char* name, std::uint64_t min,
                                      std::uint64_t max, std::uint64_t missing) {
  const auto found = object.find(name);
  if (found == object.end()) return missing;
  if (!found->is_number_unsigned()) return std::nullopt;
  const auto number = found->get<std::uint64_t>();
  if (number < min || number > max) return std::nullopt;
  return number;
}

std::optional<TuningFindings> ParseFindings(const Json& object) {
  constexpr std::uint64_t kMissing = 0;  // below every minimum
  TuningFindings findings;
  for (const TuningValue& value : TuningValues()) {
    const auto number = NumberIn(object, value.name, value.min, value.max, kMissing);
    if (!number) return std::nullopt;
    if (*number != kMissing) findings.*value.found = static_cast<std::size_t>(*number);
  }
  return findings;
}

std::optional<TunedFindings> ParseTuned(const Json& object, const TuningKey& key) {
  if (!object.is_object() || !object.value("collections", Json()).is_array()) return std::nullopt;
  TunedFindings tuned;
  const Json date = object.value("measured", Json());
  if (!date.is_string()) return std::nullopt;
  tuned.date = date.get<std::string>();
  for (const Json& collection : object.at("collections")) {
    if (!collection.is_string()) return std::nullopt;
    tuned.collections.push_back(collection.get<std::string>());
  }
  const auto threads = NumberIn(object, kTunedThreads, 1, key.threads, key.threads);
  const auto findings = ParseFindings(object);
  if (!threads || !findings) return std::nullopt;
  if (*threads < key.threads) tuned.threads = static_cast<unsigned>(*threads);
  tuned.findings = *findings;
  return tuned;
}

// Reads an entry. Nothing if one of its numbers is out of range, because then all are doubtful.
std::optional<MeasuredTuning> Parse(const Json& machine, const TuningKey& key) {
  const auto date = machine.find("measured");
  if (date == machine.end() || !date->is_string()) return std::nullopt;
  const auto findings = ParseFindings(machine);
  if (!findings) return std::nullopt;
  MeasuredTuning measured{key, date->get<std::string>(), *findings, std::nullopt};
  if (const auto tuned = machine.find(kTuned); tuned != machine.end()) {
    measured.tuned = ParseTuned(*tuned, key);
    if (!measured.tuned) return std::nullopt;
  }
  return measured;
}

void AddFindings(const TuningFindings& findings, Json& object) {
  for (const TuningValue& value : TuningValues()) {
    const auto& found = findings.*value.found;
    if (found) object[value.name] = *found;
  }
}

Json TunedJson(const TunedFindings& tuned) {
  Json object = {{"measured", tuned.date}, {"collections", tuned.collections}};
  if (tuned.threads) object[kTunedThreads] = *tuned.threads;
  AddFindings(tuned.findings, object);
  return object;
}

}  // namespace

TuningKey MakeTuningKey(const backend::cpu::Int8Options& options) {
  std::string kernels = options.large->isa;
  if (options.small != options.large) kernels += fmt::format("+{}", options.small->isa);
  return {backend::cpu::CpuName(), options.threads, std::move(kernels)};
}

absl::StatusOr<MeasuredTuning> ReadTuningCache(const std::filesystem::path& file,
                                               const TuningKey& key) {
  const absl::StatusOr<Json> content = ReadTuningFile(file);
  if (!content.ok()) return content.status();
  const Json wanted = KeyJson(key);
  for (const Json& machine : content->at("machines")) {
    if (!IsEntryFor(machine, wanted)) continue;
    if (auto measured = Parse(machine, key)) return *std::move(measured);
  }
  return absl::NotFoundError(fmt::format("{}: nothing measured for {} with {} threads, {}",
                                         file.string(), key.cpu, key.threads, key.kernels));
}

absl::Status CheckTuningCacheWritable(const std::filesystem::path& file) {
  if (const auto content = ReadTuningFile(file); !content.ok()) return content.status();
  // Missing folders would be created in the first that exists.
  std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  std::error_code error;
  while (!std::filesystem::exists(folder, error) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  if (std::filesystem::is_directory(folder, error) && access(folder.c_str(), W_OK) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(fmt::format("{} cannot be written: {} is no folder to write into",
                                            file.string(), folder.string()));
}

absl::Status WriteTuningCache(const std::filesystem::path& file, const MeasuredTuning& measured) {
  absl::StatusOr<Json> content = ReadTuningFile(file);
  if (!content.ok()) return content.status();
  const Json key = KeyJson(measured.key);
  Json machines = Json::array();
  for (Json& machine : content->at("machines")) {
    if (!IsEntryFor(machine, key)) machines.push_back(std::move(machine));
  }
  while (machines.size() >= kMachinesMax) machines.erase(0);
  Json added = key;
  added["measured"] = measured.date;
  AddFindings(measured.findings, added);
  if (measured.tuned) added[kTuned] = TunedJson(*measured.tuned);
  machines.push_back(std::move(added));
  (*content)["machines"] = std::move(machines);
  return WriteTuningFile(file, *content);
}

}  // namespace simile::app
