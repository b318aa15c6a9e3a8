#include "bench/engine_report.h"

#include <algorithm>
#include <fstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backend/cpu/processor.h"
#include "base/message_text.h"
#include "bench/timing.h"

namespace simile::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMilli = 1e3;

double Rounded(double value) { return std::stod(fmt::format("{:.5g}", value)); }

// "50%", "0.01%".
std::string ShareText(double pass) { return fmt::format("{:g}%", pass * 100); }

// The tuning that the engine uses: measured, or the defaults.
Json TuningJson(const Engine& engine) {
  Json json = Json::object();
  if (!engine.tuning) return json;
  for (const backend::cpu::TuningValue& each : backend::cpu::TuningValues()) {
    json[each.name] = *engine.tuning.*each.value;
  }
  return json;
}

bool HasFilter(const EngineReport& report) {
  const auto filters = report.session.filters();
  return std::ranges::any_of(filters, [](const Filter& filter) { return filter.mask.has_value(); });
}

Json CaseJson(const EngineReport& report, const CaseLog& log) {
  const Engine& engine = report.session.engines()[log.run().engine];
  const Filter& filter = report.session.filters()[log.run().filter];
  Json json{{"batch", log.run().batch},
            {"k", log.run().k},
            {"backend", engine.backend},
            {"isa", log.isa()},
            {"name", engine.name},
            {"engine", log.answered_by()},
            {"filter_pass", filter.pass},
            {"rows_passing", filter.allowed},
            {"median_ms", Rounded(log.median_s() * kMilli)},
            {"min_ms", Rounded(log.min_s() * kMilli)},
            {"rounds", log.rounds()},
            {"queries_per_s", Rounded(log.queries_per_s())},
            {"rows_scanned_mean", Rounded(log.rows_scanned_mean())},
            {"rows_rescored_mean", Rounded(log.rows_rescored_mean())},
            {"rescans", log.rescans()},
            {"verified_queries", log.verified_queries()},
            {"build_s", Rounded(engine.build_s)}};
  if (report.read) json["times_read"] = Rounded(log.median_s() / report.read->median_s);
  return json;
}

// The times of the engines over the same queries, and how many times faster the GPU is than the CPU
// engine on all its threads.
struct GpuAgainstCpu {
  const CaseLog& gpu;
  const CaseLog& cpu;
  const CaseLog* scan_single = nullptr;  // null where it was not measured

  double times_faster() const { return cpu.median_s() / gpu.median_s(); }
};

const CaseLog* FindCase(const EngineReport& report, std::string_view engine, const Run& like) {
  for (const CaseLog& log : report.cases) {
    if (report.session.engines()[log.run().engine].name != engine) continue;
    const Run& run = log.run();
    if (run.batch == like.batch && run.k == like.k && run.filter == like.filter) return &log;
  }
  return nullptr;
}

// Empty unless both "gpu" and "auto" were measured.
std::vector<GpuAgainstCpu> ComparisonsOf(const EngineReport& report) {
  std::vector<GpuAgainstCpu> comparisons;
  for (const CaseLog& log : report.cases) {
    if (report.session.engines()[log.run().engine].name != "gpu") continue;
    const CaseLog* const cpu = FindCase(report, "auto", log.run());
    if (cpu == nullptr) continue;
    comparisons.push_back({log, *cpu, FindCase(report, "scan-single", log.run())});
  }
  return comparisons;
}

void PrintComparisons(const EngineReport& report) {
  const std::vector<GpuAgainstCpu> comparisons = ComparisonsOf(report);
  if (comparisons.empty()) return;
  fmt::print(
      "\n  The GPU against the CPU engine on {} threads, and against a plain fp32 scan of one "
      "query\n"
      "  at a time: milliseconds of a batch from host to host, the same answers.\n"
      "  {:>6} {:>6} {:>8} {:>12} {:>12} {:>12} {:>14}\n",
      report.session.threads(), "batch", "k", "passing", "plain scan", "CPU engine", "GPU",
      "times faster");
  for (const GpuAgainstCpu& each : comparisons) {
    const Run& run = each.gpu.run();
    const std::string scan =
        each.scan_single ? fmt::format("{:.3f}", each.scan_single->median_s() * kMilli) : "";
    fmt::print("  {:>6} {:>6} {:>8} {:>12} {:>12.3f} {:>12.3f} {:>14.2f}\n", run.batch, run.k,
               ShareText(report.session.filters()[run.filter].pass), scan,
               each.cpu.median_s() * kMilli, each.gpu.median_s() * kMilli, each.times_faster());
  }
}

Json ComparisonsJson(const EngineReport& report) {
  Json json = Json::array();
  for (const GpuAgainstCpu& each : ComparisonsOf(report)) {
    const Run& run = each.gpu.run();
    Json& entry = json.emplace_back(Json{{"batch", run.batch},
                                         {"k", run.k},
                                         {"filter_pass", report.session.filters()[run.filter].pass},
                                         {"cpu_engine", each.cpu.answered_by()},
                                         {"gpu_engine", each.gpu.answered_by()},
                                         {"cpu_ms", Rounded(each.cpu.median_s() * kMilli)},
                                         {"gpu_ms", Rounded(each.gpu.median_s() * kMilli)},
                                         {"times_faster", Rounded(each.times_faster())}});
    if (each.scan_single) entry["scan_single_ms"] = Rounded(each.scan_single->median_s() * kMilli);
  }
  return json;
}

}  // namespace

void CaseLog::Add(const EngineSession& session, const Run& run, double seconds) {
  const SearchResult& result = session.result();
  seconds_.push_back(seconds);
  answered_by_ = result.Engine(0);
  queries_ += result.batch();
  for (std::size_t query = 0; query < run.batch; ++query) {
    if (session.IsVerified(run.first_query + query)) verified_[run.first_query + query] = true;
  }
  for (std::size_t query = 0; query < result.batch(); ++query) {
    rows_scanned_ += static_cast<double>(result.Cost(query).rows_scanned);
    rows_rescored_ += static_cast<double>(result.Cost(query).rows_rescored);
    rescans_ += result.Cost(query).rescans;
  }
}

double CaseLog::median_s() const { return Median(seconds_); }

double CaseLog::min_s() const { return std::ranges::min(seconds_); }

std::size_t CaseLog::verified_queries() const {
  return static_cast<std::size_t>(std::ranges::count(verified_, true));
}

void PrintTable(const EngineReport& report) {
  const EngineSession& session = report.session;
  const MatrixView rows = session.data().rows.view();
  fmt::print("{}, {} threads: {} x {}, {}, {}; answers checked against the plain scan\n",
             backend::cpu::CpuName(), session.threads(), base::Grouped(rows.row_count()),
             rows.dim(), report.options.metric, session.data().description);
  for (const Engine& engine : session.engines()) {
    fmt::print("  {}: built in {:.2f} s, {:.1f} MB beside the rows ({:.3f} bytes a dimension)\n",
               engine.name, engine.build_s, static_cast<double>(engine.index_bytes) / 1e6,
               static_cast<double>(engine.index_bytes) /
                   static_cast<double>(rows.row_count() * rows.dim()));
  }
  if (report.read) {
    fmt::print("  a byte a dimension is read once in {:.2f} ms, {:.1f} GB/s ({})\n",
               report.read->median_s * kMilli,
               static_cast<double>(report.read->bytes) / report.read->median_s / 1e9,
               report.read->pattern);
  }
  const bool filtered = HasFilter(report);
  fmt::print("\n  {:<16} {:<18} {:>6} {:>6}{} {:>10} {:>10} {:>10} {:>9} {:>8}{}\n", "backend",
             "answered by", "batch", "k", filtered ? fmt::format(" {:>8}", "passing") : "",
             "median ms", "min ms", "queries/s", "rescored", "verified",
             report.read ? "  x read" : "");
  for (const CaseLog& log : report.cases) {
    const std::string passing =
        filtered ? fmt::format(" {:>8}", ShareText(session.filters()[log.run().filter].pass)) : "";
    const std::string times_read =
        report.read ? fmt::format(" {:>7.2f}", log.median_s() / report.read->median_s) : "";
    fmt::print("  {:<16} {:<18} {:>6} {:>6}{} {:>10.3f} {:>10.3f} {:>10.0f} {:>9.1f} {:>8}{}\n",
               session.engines()[log.run().engine].name, log.answered_by(), log.run().batch,
               log.run().k, passing, log.median_s() * kMilli, log.min_s() * kMilli,
               log.queries_per_s(), log.rows_rescored_mean(), log.verified_queries(), times_read);
  }
  PrintComparisons(report);
}

absl::Status WriteJson(const EngineReport& report, const std::string& path) {
  const EngineSession& session = report.session;
  const MatrixView rows = session.data().rows.view();
  Json json{{"cpu", backend::cpu::CpuName()},
            {"threads", session.threads()},
            {"data", session.data().description},
            {"metric", report.options.metric},
            {"rows", rows.row_count()},
            {"dim", rows.dim()},
            {"queries", session.data().queries.row_count()},
            {"build_s", Rounded(session.engines().front().build_s)},
            {"index_bytes", session.engines().front().index_bytes}};
  for (const Engine& engine : session.engines()) {
    json["engines"].push_back({{"name", engine.name},
                               {"backend", engine.backend},
                               {"tuning", TuningJson(engine)},
                               {"device", engine.made_by->info().device},
                               {"build_s", Rounded(engine.build_s)},
                               {"index_bytes", engine.index_bytes}});
  }
  if (report.read) {
    json["ceilings"] = {{"code_bytes", report.read->bytes},
                        {"read_median_ms", Rounded(report.read->median_s * kMilli)},
                        {"read_min_ms", Rounded(report.read->min_s * kMilli)},
                        {"read_pattern", report.read->pattern}};
  }
  json["cases"] = Json::array();
  for (const CaseLog& log : report.cases) json["cases"].push_back(CaseJson(report, log));
  if (Json compared = ComparisonsJson(report); !compared.empty()) {
    json["gpu_against_cpu"] = std::move(compared);
  }
  std::ofstream out(path);
  out << json.dump(1) << '\n';
  if (!out.flush()) return absl::UnavailableError(fmt::format("cannot write {}", path));
  return absl::OkStatus();
}

}  // namespace simile::bench
