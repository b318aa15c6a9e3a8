#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/output_text.h"
#include "cli/progress.h"
#include "cli/settings_flags.h"
#include "cli/table.h"
#include "cli/verify/verification.h"
#include "cli/wire_names.h"
#include "data/load/load.h"

namespace simile::cli {
namespace {

constexpr double kVerifyTimeoutSeconds = 30;
// The exit code if nothing was compared.
constexpr int kNotCompared = 2;

struct VerifyFlags {
  ClientFlags client;
  std::optional<std::string> collection;
  std::optional<std::string> folder;
  std::optional<std::string> config;
  std::optional<std::uint32_t> samples;
  std::optional<std::uint32_t> rows;
  std::optional<std::uint32_t> seed;
};

// The findings of a run, and how long it took.
struct VerifyReport {
  std::string server;
  std::string collection;
  Verification verification;
  double seconds = 0;
};

std::string VerifyText(const VerifyReport& report, const Terminal& terminal) {
  const Verification& found = report.verification;
  Table table({{"compared"}, {"samples", Align::kRight}, {"wrong", Align::kRight}});
  const bool none = found.rows.compared == 0;
  table.AddRow({"stored rows", none ? "not applicable" : base::Grouped(found.rows.compared),
                none ? "" : base::Grouped(found.rows.different)});
  for (const Verification::Kind& kind : found.kinds) {
    table.AddRow({kind.name, kind.asked == 0 ? "not applicable" : base::Grouped(kind.asked),
                  kind.asked == 0 ? "" : base::Grouped(kind.wrong)});
  }
  std::string text = table.Render(terminal, 0);
  for (const auto* findings : {&found.rows.findings, &found.findings}) {
    for (const std::string& finding : *findings) {
      text += fmt::format("{} {}\n", Bold("different:", terminal), Printable(finding));
    }
  }
  const std::uint64_t described = found.rows.findings.size() + found.findings.size();
  if (found.different > described) {
    text += fmt::format("... and {} more\n", base::Grouped(found.different - described));
  }
  text += found.same()
              ? fmt::format("{} at {} is what its files say (snapshot {}), {:.1f} s\n",
                            report.collection, report.server, found.snapshot_id, report.seconds)
              : fmt::format("{} at {} is not what its files say: {}, {:.1f} s\n", report.collection,
                            report.server, base::Counted(found.different, "difference"),
                            report.seconds);
  return text;
}

// {"server", "collection", "same", "snapshot_id": {"served", "files"}, "rows": {"compared",
// "different"}, "kinds": [{"kind", "asked", "wrong"}], "findings": [...], "different", "seconds"}
std::string VerifyJson(const VerifyReport& report) {
  const Verification& found = report.verification;
  nlohmann::ordered_json kinds = nlohmann::ordered_json::array();
  for (const Verification::Kind& kind : found.kinds) {
    kinds.push_back({{"kind", kind.name}, {"asked", kind.asked}, {"wrong", kind.wrong}});
  }
  nlohmann::ordered_json findings = found.rows.findings;
  for (const std::string& finding : found.findings) findings.push_back(finding);
  return JsonLine(
      {{"server", report.server},
       {"collection", report.collection},
       {"same", found.same()},
       {"snapshot_id", {{"served", found.served_snapshot_id}, {"files", found.snapshot_id}}},
       {"rows", {{"compared", found.rows.compared}, {"different", found.rows.different}}},
       {"kinds", std::move(kinds)},
       {"findings", std::move(findings)},
       {"different", found.different},
       {"seconds", report.seconds}});
}

absl::StatusOr<data::Dataset> LoadFolder(const std::string& folder, const Limits& limits,
                                         const v1::Collection& served) {
  absl::StatusOr<data::DatasetPlan> plan = data::PlanDataset(folder, limits);
  if (!plan.ok()) {
    return base::WithMessage(plan.status(),
                             fmt::format("{}: {}", folder, std::string(plan.status().message())));
  }
  plan->kept_types = ServedTypes(served);
  return data::LoadDataset(*plan, limits, {});
}

absl::StatusOr<VerifyReport> RunVerify(const VerifyFlags& flags) {
  const Connection connection = Connect(flags.client, kVerifyTimeoutSeconds);
  const auto began = std::chrono::steady_clock::now();
  const absl::StatusOr<v1::Collection> served = ChooseCollection(connection, flags.collection);
  if (!served.ok()) return served.status();
  const VerifyOptions defaults;
  const VerifyOptions options{
      .samples = flags.samples.value_or(defaults.samples),
      .seed = flags.seed.value_or(1),
      .rows_max = flags.rows.value_or(static_cast<std::uint32_t>(defaults.rows_max))};
  std::atomic<double> fraction = 0;
  constexpr std::size_t kBarWidth = 40;
  const ProgressBar bar([&] { return "comparing " + BarText(fraction.load(), kBarWidth); });
  const auto settings = ReadConfigFor(flags.config, {}, std::nullopt);
  if (!settings.ok()) return settings.status();
  const absl::StatusOr<data::Dataset> dataset =
      LoadFolder(*flags.folder, settings->config.limits, *served);
  if (!dataset.ok()) return dataset.status();
  absl::StatusOr<Verification> verification =
      Verify(connection, *served, *dataset, options, [&](double done) { fraction = done; });
  if (!verification.ok()) return verification.status();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  return VerifyReport{connection.address(), served->name(), *std::move(verification), took.count()};
}

}  // namespace

void AddVerifyCommand(CommandLine& line) {
  auto flags = std::make_shared<VerifyFlags>();
  Command command =
      line.Add("verify", "Compare a server's answers with those computed from its files");
  command
      .File("--folder", flags->folder, "FOLDER",
            "The files that the collection should have been loaded from")
      .Paths(PathKind::kFolder)
      .Required()
      .File("--config", flags->config, "FILE",
            "The server's settings, whose limits apply to the files (or SIMILE_CONFIG)");
  const VerifyOptions defaults;
  command.Collection(flags->collection,
                     "The collection to compare (default: the server's only one)");
  command.Number("--samples", flags->samples, "N",
                 fmt::format("Queries of each kind (default {})", defaults.samples));
  command.Number("--rows", flags->rows, "N",
                 fmt::format("Stored rows to compare, evenly spread (default {})",
                             base::Grouped(defaults.rows_max)));
  command.Number("--seed", flags->seed, "N", "The seed of the drawn queries (default 1)");
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kVerifyTimeoutSeconds));
  command.Footer("Exit codes: 0 as the files say, 1 a difference, 2 not compared.").Run([flags] {
    const absl::StatusOr<VerifyReport> report = RunVerify(*flags);
    if (!report.ok()) {
      Fail(report.status(), flags->client.json);
      return kNotCompared;
    }
    fmt::print("{}",
               flags->client.json ? VerifyJson(*report) : VerifyText(*report, StandardOutput()));
    return report->verification.same() ? kSucceeded : kFailed;
  });
}

}  // namespace simile::cli
