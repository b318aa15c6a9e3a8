#include "app/config/config_check.h"

#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/config/settings.h"
#include "base/loopback.h"
#include "data/load/plan.h"

namespace simile::app {
namespace {

ConfigProblem MakeProblem(std::string_view key, const ConfigReading& reading, std::string message) {
  return {std::string(key), reading.origins[SettingIndex(key)], std::move(message)};
}

constexpr std::string_view kThisServer = "this server";

VariableEffect DescribeEffect(const FamiliarName& familiar, const std::string& given,
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

VariableEffect DescribeEffect(const ForeignValue& found) {
  const ForeignVariable& row = *found.row;
  const bool is_neutral = !row.neutral.empty() && found.value == row.neutral;
  return {found.name, std::string(found.display_value()), std::string(ReaderName(row.reader)),
          std::string(row.effect), row.reader != VariableReader::kNobody && !is_neutral};
}

}  // namespace

absl::Status CheckAccess(const Config& config) {
  const net::TlsFiles& tls = config.tls;
  if (tls.certificate.empty() != tls.key.empty()) {
    return absl::InvalidArgumentError(
        "server.tls_certificate and server.tls_key go together: give both (--tls-certificate, "
        "--tls-key), or neither");
  }
  if (!tls.client_ca.empty() && tls.certificate.empty()) {
    return absl::InvalidArgumentError(
        "server.tls_client_ca needs encrypted connections: give server.tls_certificate and "
        "server.tls_key too");
  }
  if (config.access_file.empty()) return absl::OkStatus();
  if (config.reflection) {
    return absl::InvalidArgumentError(
        "server.reflection describes the services to anyone, which server.access_file rules out: "
        "leave one of them out; clients can use the .proto files");
  }
  if (base::IsLoopback(config.listen) || !tls.certificate.empty() ||
      config.plaintext_tokens_allowed) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format(
      "tokens would cross the network unencrypted: server.access_file is set and --listen {} is "
      "reached from other machines. Give server.tls_certificate and server.tls_key, or, where a "
      "proxy in front encrypts, set server.plaintext_tokens_allowed",
      config.listen));
}

absl::Status CheckSomethingToServe(const Config& config) {
  if (!config.collections.empty()) return absl::OkStatus();
  if ((config.changes_allowed || !config.access_file.empty()) && !config.data_root.empty())
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      "nothing to serve: give --collection NAME=FOLDER, or --allow-changes and --data-root FOLDER "
      "to load collections later");
}

bool LacksDataRoot(const Config& config) {
  std::error_code error;
  return !config.data_root.empty() && !std::filesystem::is_directory(config.data_root, error);
}

std::vector<ConfigProblem> FolderProblems(const ConfigReading& reading) {
  const Config& config = reading.config;
  std::vector<ConfigProblem> problems;
  for (const CollectionConfig& collection : config.collections) {
    const auto plan = data::PlanDataset(collection.folder, config.limits);
    if (plan.ok()) continue;
    problems.push_back(
        MakeProblem("collections.serve", reading, LoadErrorText(collection, plan.status())));
  }
  if (LacksDataRoot(config)) {
    problems.push_back(
        MakeProblem("collections.data_root", reading,
                    fmt::format("{}: the folder does not exist", config.data_root.string())));
  }
  return problems;
}

std::string ProblemText(const ConfigProblem& problem) {
  return SettingErrorText(problem.key, problem.origin, problem.message);
}

std::string LoadErrorText(const CollectionConfig& collection, const absl::Status& error) {
  return fmt::format("{}={}: {}", collection.name, collection.folder.string(),
                     std::string(error.message()));
}

std::vector<VariableEffect> DescribeEffects(const ConfigReading& reading) {
  std::vector<VariableEffect> effects;
  for (const FamiliarName& familiar : FamiliarNames()) {
    const auto found = reading.familiar_values.find(familiar.name);
    if (found == reading.familiar_values.end()) continue;
    effects.push_back(DescribeEffect(familiar, found->second, reading));
  }
  for (const ForeignValue& found : reading.foreign_values) effects.push_back(DescribeEffect(found));
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
