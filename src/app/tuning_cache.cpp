#include "app/tuning_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backend/cpu/calibration.h"
#include "backend/cpu/cpu_name.h"
#include "data/file_descriptor.h"

namespace simile::app {
namespace {

using backend::cpu::TuningValue;
using backend::cpu::TuningValues;
using Json = nlohmann::ordered_json;

// Of the file's own form; entries say by which calibration they were found.
constexpr const char* kFormat = "simile_cpu_tuning";
constexpr int kFormatVersion = 1;
constexpr std::size_t kFileBytesMax = 256U << 10;
constexpr std::size_t kMachinesMax = 64;

Json KeyJson(const TuningKey& key) {
  return {{"cpu", key.cpu},
          {"threads", key.threads},
          {"kernels", key.kernels},
          {"calibration", backend::cpu::kCalibrationVersion}};
}

bool Matches(const Json& machine, const Json& key) {
  return std::ranges::all_of(key.items(), [&](const auto& member) {
    return machine.contains(member.key()) && machine.at(member.key()) == member.value();
  });
}

Json NewFile() { return {{kFormat, kFormatVersion}, {"machines", Json::array()}}; }

absl::Status NotACache(const std::filesystem::path& file) {
  return absl::InvalidArgumentError(
      fmt::format("{}: not a tuning cache of this release; it is left as it is", file.string()));
}

// The file's content; that of a new one where there is none, or an empty one.
absl::StatusOr<Json> ReadFile(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return NewFile();
  if (!std::filesystem::is_regular_file(file, error)) return NotACache(file);
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  if (error || bytes > kFileBytesMax) return NotACache(file);
  if (bytes == 0) return NewFile();  // a crash right after it was made
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    return absl::PermissionDeniedError(
        fmt::format("{}: cannot be opened for reading", file.string()));
  }
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  Json content = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool is_ours = content.is_object() && content.contains(kFormat) &&
                       content.at(kFormat) == kFormatVersion && content.contains("machines") &&
                       content.at("machines").is_array();
  if (!is_ours) return NotACache(file);
  return content;
}

// What an entry says. Nothing when one of its numbers cannot be: it would not be what was written.
std::optional<MeasuredTuning> Parse(const Json& machine, const TuningKey& key) {
  const auto date = machine.find("measured");
  if (date == machine.end() || !date->is_string()) return std::nullopt;
  MeasuredTuning measured{key, date->get<std::string>(), {}};
  for (const TuningValue& value : TuningValues()) {
    const auto found = machine.find(value.name);
    if (found == machine.end()) continue;
    if (!found->is_number_unsigned()) return std::nullopt;
    const auto number = found->get<std::uint64_t>();
    if (number < value.min || number > value.max) return std::nullopt;
    measured.findings.*value.found = static_cast<std::size_t>(number);
  }
  return measured;
}

// Takes the place of the file in one step.
absl::Status Replace(const std::filesystem::path& file, const std::string& text) {
  const auto cannot = [&file](int error) {
    return absl::UnavailableError(fmt::format("{}: cannot be written: {}", file.string(),
                                              std::generic_category().message(error)));
  };
  std::error_code made;
  std::filesystem::create_directories(file.parent_path(), made);
  if (made) return cannot(made.value());
  std::string draft = file.string() + ".XXXXXX";
  const data::FileDescriptor out(mkstemp(draft.data()));
  if (!out.valid()) return cannot(errno);
  const bool written =
      write(out.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (written && std::rename(draft.c_str(), file.c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  unlink(draft.c_str());
  return cannot(error);
}

}  // namespace

TuningKey KeyOf(const backend::cpu::Int8Options& options) {
  std::string kernels = options.large->isa;
  if (options.small != options.large) kernels += fmt::format("+{}", options.small->isa);
  return {backend::cpu::CpuName(), options.threads, std::move(kernels)};
}

absl::StatusOr<MeasuredTuning> ReadTuningCache(const std::filesystem::path& file,
                                               const TuningKey& key) {
  const absl::StatusOr<Json> content = ReadFile(file);
  if (!content.ok()) return content.status();
  const Json wanted = KeyJson(key);
  for (const Json& machine : content->at("machines")) {
    if (!Matches(machine, wanted)) continue;
    if (auto measured = Parse(machine, key)) return *std::move(measured);
  }
  return absl::NotFoundError(fmt::format("{}: nothing measured for {} with {} threads, {}",
                                         file.string(), key.cpu, key.threads, key.kernels));
}

absl::Status WriteTuningCache(const std::filesystem::path& file, const MeasuredTuning& measured) {
  absl::StatusOr<Json> content = ReadFile(file);
  if (!content.ok()) return content.status();
  const Json key = KeyJson(measured.key);
  Json machines = Json::array();
  for (Json& machine : content->at("machines")) {
    if (!Matches(machine, key)) machines.push_back(std::move(machine));
  }
  while (machines.size() >= kMachinesMax) machines.erase(0);
  Json added = key;
  added["measured"] = measured.date;
  for (const TuningValue& value : TuningValues()) {
    const auto& found = measured.findings.*value.found;
    if (found) added[value.name] = *found;
  }
  machines.push_back(std::move(added));
  (*content)["machines"] = std::move(machines);
  constexpr int kIndent = 1;
  return Replace(file, content->dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace simile::app
