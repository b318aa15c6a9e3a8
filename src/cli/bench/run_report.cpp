#include "cli/bench/run_report.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/table.h"

namespace simile::cli::bench {
namespace {

nlohmann::ordered_json TimesJson(const ComparedTimes& times) {
  return {{"call_time_ms", times.call_ms}, {"compute_time_ms", times.compute_ms}};
}

std::string TimeText(double ms) { return fmt::format("{:.3f}", ms); }

// "gpu"
std::string ParseBackendKind(const std::string& backend) {
  return backend.substr(0, backend.find(':'));
}

constexpr std::size_t kLiveBarWidth = 38;
// Warns about small passes: at least kManyInFlight queries are in flight, and a pass holds at most
// one in kSmallPassDivisor of them.
constexpr double kSmallPassDivisor = 4;
constexpr double kManyInFlight = 32;

// Warns if the client's p99 send delay exceeds this: its own delay then distorts the latencies.
constexpr Nanoseconds kLateSendingMin = std::chrono::milliseconds(1);

std::string RateText(double per_second) {
  return per_second < 100 ? fmt::format("{:.1f}", per_second)
                          : base::Grouped(static_cast<std::uint64_t>(per_second + 0.5));
}

double CallsEnded(const RunResult& result) {
  return static_cast<double>(result.tally.calls_in_window + result.tally.failed_in_window);
}

std::string CpuText(double seconds, const RunResult& result) {
  const double calls = CallsEnded(result);
  const double cores = seconds / result.seconds;
  if (calls == 0) return fmt::format("{:.2f} cores", cores);
  return fmt::format("{:.1f} us a call ({:.2f} cores)", seconds / calls * 1e6, cores);
}

std::string LoadText(const RunPlan& plan) {
  const std::string calls =
      plan.load.rate ? fmt::format("{} calls/s at random times, at most {} in flight",
                                   RateText(*plan.load.rate), base::Grouped(plan.load.in_flight))
                     : fmt::format("{} in flight", base::Grouped(plan.load.in_flight));
  return fmt::format("{} over {}{}{}", calls, base::Counted(plan.connections, "connection"),
                     plan.transport == Transport::kStream ? ", streamed" : "",
                     plan.threads > 1 ? fmt::format(", {} client threads", plan.threads) : "");
}

void AddLatencyRow(Table& table, const std::string& name, const LatencyHistogram& latency) {
  table.AddRow({name, base::Grouped(latency.count()), LatencyText(latency.Percentile(0.5)),
                LatencyText(latency.Percentile(0.9)), LatencyText(latency.Percentile(0.99)),
                LatencyText(latency.Percentile(0.999)), LatencyText(latency.max()),
                LatencyText(latency.Mean())});
}

std::string LatencyTable(const ReportedRun& run, const Terminal& terminal) {
  const LoadTally& tally = run.result.tally;
  constexpr Align kRight = Align::kRight;
  Table table({{""},
               {"calls", kRight},
               {"p50", kRight},
               {"p90", kRight},
               {"p99", kRight},
               {"p99.9", kRight},
               {"max", kRight},
               {"mean", kRight}});
  if (tally.kinds.size() > 1) {
    for (std::size_t i = 0; i < tally.kinds.size(); ++i) {
      if (tally.kinds[i].count() > 0) AddLatencyRow(table, run.kind_names[i], tally.kinds[i]);
    }
  }
  const LatencyHistogram all = tally.All();
  AddLatencyRow(table, tally.kinds.size() > 1 ? "all" : run.kind_names[0], all);
  if (run.expected_interval) {
    AddLatencyRow(table, fmt::format("as if called every {}", LatencyText(*run.expected_interval)),
                  all.Corrected(*run.expected_interval));
  }
  if (tally.failed.count() > 0) AddLatencyRow(table, "failed", tally.failed);
  return table.Render(terminal, 2);
}

std::string CheckText(const CheckSummary& checks, std::uint64_t not_kept) {
  std::string text = fmt::format("verified    {} compared with {}, {} wrong\n",
                                 base::Counted(checks.compared, "answer"), checks.against,
                                 base::Grouped(checks.wrong));
  for (const std::string& finding : checks.findings) text += fmt::format("  WRONG  {}\n", finding);
  for (const auto& [why, count] : checks.unchecked) {
    text += fmt::format("  not compared: {} ({})\n", base::Counted(count, "answer"), why);
  }
  if (not_kept > 0) {
    text += fmt::format("  not compared: {} (memory for answers was full)\n",
                        base::Counted(not_kept, "answer"));
  }
  return text;
}

std::string ReceiptText(const ReceiptTally& receipts) {
  if (receipts.receipts == 0) return "";
  const auto count = static_cast<double>(receipts.receipts);
  std::string backends;
  for (const auto& [backend, times] : receipts.backends) {
    backends += (backends.empty() ? "" : ", ") + backend;
  }
  const std::optional<double> alone = receipts.EngineQueriesPerSecond();
  return fmt::format(
      "engine      {}; batch {:.1f}, queue {:.0f} us, compute {:.0f} us, whole call {:.0f} us "
      "(means of {} receipts)\n{}",
      backends, receipts.batch_size / count, receipts.queue_us / count, receipts.compute_us / count,
      receipts.total_us / count, base::Grouped(receipts.receipts),
      alone ? fmt::format("            alone it answers such batches at {} queries/s\n",
                          RateText(*alone))
            : "");
}

bool AnsweredByGpu(const ReceiptTally& receipts) {
  return std::ranges::any_of(receipts.backends,
                             [](const auto& backend) { return backend.first.starts_with("gpu"); });
}

// Whether a card was read and answered calls. A machine's only card may be busy with other work
// instead.
bool HasCard(const RunResult& result) {
  return result.card && result.card->readings > 0 && AnsweredByGpu(result.tally.receipts);
}

// "71 %"; empty if unknown.
std::string ShareText(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.0f} %", *ratio * 100) : "";
}

// A line about the card; empty if no card was to be read or the GPU answered no call.
std::string CardText(const RunResult& result) {
  if (!result.card || !AnsweredByGpu(result.tally.receipts)) return "";
  const CardUse& card = *result.card;
  if (card.readings == 0) {
    return fmt::format("card        unknown: {}\n", card.why_not);
  }
  std::string text = fmt::format("card        {}: ", card.name);
  if (card.utilization_mean) {
    text += fmt::format("{} busy, at most {}", ShareText(card.utilization_mean),
                        ShareText(card.utilization_max));
  } else {
    text += "utilization unknown";
  }
  if (card.memory_used_bytes_max) {
    text += fmt::format("; at most {}", base::BytesText(*card.memory_used_bytes_max));
    if (card.memory_total_bytes) {
      text += fmt::format(" of {}", base::BytesText(*card.memory_total_bytes));
    }
    text += " used by all processes";
  }
  return text + fmt::format(" ({})\n", base::Counted(card.readings, "reading"));
}

nlohmann::ordered_json CardJson(const RunResult& result) {
  if (!HasCard(result)) return nullptr;
  const CardUse& card = *result.card;
  const auto or_null = [](const auto& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  return {{"name", card.name},
          {"readings", card.readings},
          {"utilization_ratio_mean", or_null(card.utilization_mean)},
          {"utilization_ratio_max", or_null(card.utilization_max)},
          {"memory_used_bytes_max", or_null(card.memory_used_bytes_max)},
          {"memory_total_bytes", or_null(card.memory_total_bytes)}};
}

nlohmann::ordered_json LatencyJson(const LatencyHistogram& latency, bool buckets) {
  const auto us = [](Nanoseconds time) { return static_cast<double>(time.count()) / 1e3; };
  nlohmann::ordered_json report = {{"count", latency.count()},
                                   {"mean_us", us(latency.Mean())},
                                   {"p50_us", us(latency.Percentile(0.5))},
                                   {"p90_us", us(latency.Percentile(0.9))},
                                   {"p99_us", us(latency.Percentile(0.99))},
                                   {"p99_9_us", us(latency.Percentile(0.999))},
                                   {"max_us", us(latency.max())}};
  if (!buckets) return report;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [end, count] : latency.Buckets()) list.push_back({us(end), count});
  report["buckets"] = std::move(list);  // pairs [end of the bucket in us, count]
  return report;
}

nlohmann::ordered_json PerCallJson(const std::optional<double>& seconds, const RunResult& result) {
  if (!seconds || CallsEnded(result) == 0) return nullptr;
  return *seconds / CallsEnded(result) * 1e6;
}

nlohmann::ordered_json ReceiptsJson(const ReceiptTally& receipts) {
  if (receipts.receipts == 0) return nullptr;
  const auto count = static_cast<double>(receipts.receipts);
  return {{"read", receipts.receipts},
          {"batch_size_mean", receipts.batch_size / count},
          {"queue_us_mean", receipts.queue_us / count},
          {"compute_us_mean", receipts.compute_us / count},
          {"total_us_mean", receipts.total_us / count},
          {"engine_queries_per_s", receipts.EngineQueriesPerSecond()
                                       ? nlohmann::ordered_json(*receipts.EngineQueriesPerSecond())
                                       : nlohmann::ordered_json(nullptr)},
          {"backends", receipts.backends}};
}

nlohmann::ordered_json ChecksJson(const CheckSummary& checks, std::uint64_t not_kept) {
  nlohmann::ordered_json kinds = nlohmann::ordered_json::object();
  for (const auto& [name, kind] : checks.kinds) {
    kinds[name] = {{"compared", kind.compared}, {"wrong", kind.wrong}};
  }
  return {{"against", checks.against},   {"compared", checks.compared},
          {"wrong", checks.wrong},       {"kinds", std::move(kinds)},
          {"findings", checks.findings}, {"unchecked", checks.unchecked},
          {"not_kept", not_kept}};
}

nlohmann::ordered_json ErrorsJson(const std::map<std::string, ErrorTally>& errors) {
  nlohmann::ordered_json report = nlohmann::ordered_json::object();
  for (const auto& [reason, tally] : errors) {
    report[reason] = {{"count", tally.count}, {"first_message", tally.first_message}};
  }
  return report;
}

nlohmann::ordered_json RunJson(const ReportedRun& run) {
  const RunResult& result = run.result;
  const RunPlan& plan = result.plan;
  const LoadTally& tally = result.tally;
  const LatencyHistogram all = tally.All();
  nlohmann::ordered_json report = {
      {"loop", plan.load.rate ? "open" : "closed"},
      {"rate", plan.load.rate ? nlohmann::ordered_json(*plan.load.rate) : nullptr},
      {"in_flight", plan.load.in_flight},
      {"transport", plan.transport == Transport::kStream ? "stream" : "unary"},
      {"connections", plan.connections},
      {"client_threads", plan.threads},
      {"warm_up_s", std::chrono::duration<double>(plan.warm_up).count()},
      {"duration_s", result.seconds},
      {"seed", plan.seed},
      {"calls_per_s", static_cast<double>(tally.calls_in_window) / result.seconds},
      {"queries_per_s", static_cast<double>(tally.queries_in_window) / result.seconds},
      {"answer_bytes_mean", tally.calls_in_window == 0
                                ? 0.0
                                : static_cast<double>(tally.answer_bytes_in_window) /
                                      static_cast<double>(tally.calls_in_window)},
      {"latency", LatencyJson(all, true)}};
  if (run.expected_interval) {
    report["expected_interval_us"] = static_cast<double>(run.expected_interval->count()) / 1e3;
    report["latency_corrected"] = LatencyJson(all.Corrected(*run.expected_interval), true);
  }
  nlohmann::ordered_json kinds = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < tally.kinds.size(); ++i) {
    kinds[run.kind_names[i]] = LatencyJson(tally.kinds[i], false);
  }
  report["kinds"] = std::move(kinds);
  report["send_delay"] = LatencyJson(tally.send_delay, false);
  report["unsent"] = result.unsent;
  report["errors"] = ErrorsJson(tally.errors);
  report["failed_latency"] = LatencyJson(tally.failed, false);
  report["client_cpu_us_per_call"] = PerCallJson(result.client_cpu_s, result);
  report["client_cpu_cores"] = result.client_cpu_s / result.seconds;
  report["server_cpu_us_per_call"] = PerCallJson(result.server_cpu_s, result);
  report["server_cpu_cores"] =
      result.server_cpu_s ? nlohmann::ordered_json(*result.server_cpu_s / result.seconds) : nullptr;
  report["card"] = CardJson(result);
  report["receipts"] = ReceiptsJson(tally.receipts);
  if (run.checks) report["verify"] = ChecksJson(*run.checks, result.not_kept);
  return report;
}

// The mean number of queries in flight; 0 for an open loop, where it is unknown.
double QueriesInFlight(const RunResult& result) {
  if (result.plan.load.rate || result.tally.calls_in_window == 0) return 0;
  return static_cast<double>(result.plan.load.in_flight * result.tally.queries_in_window) /
         static_cast<double>(result.tally.calls_in_window);
}

std::string SmallPassText(const RunResult& result) {
  const ReceiptTally& receipts = result.tally.receipts;
  const double in_flight = QueriesInFlight(result);
  if (receipts.receipts == 0 || in_flight < kManyInFlight) return "";
  const double batch = receipts.batch_size / static_cast<double>(receipts.receipts);
  if (batch * kSmallPassDivisor > in_flight) return "";
  return fmt::format(
      "warning: passes held {:.1f} queries on average of {:.0f} in flight. Calls of different "
      "collections, priorities or list lengths do not share a pass; `simile list NAME` shows what "
      "larger passes would save\n",
      batch, in_flight);
}

std::string WarningText(const RunResult& result) {
  std::string text = SmallPassText(result);
  if (result.unsent > 0) {
    text += fmt::format(
        "warning: the server did not keep up: {} never sent; they count with their age at the "
        "end, so the true latencies are higher\n",
        base::Counted(result.unsent, "call"));
  }
  const Nanoseconds late = result.tally.send_delay.Percentile(0.99);
  if (result.unsent == 0 && result.plan.load.rate && late > kLateSendingMin) {
    text += fmt::format(
        "warning: 1 of 100 calls was sent {} late or more; --threads and --in-flight allow more, "
        "or "
        "the machine is too busy to measure this rate\n",
        LatencyText(late));
  }
  return text;
}

}  // namespace

nlohmann::ordered_json ComparisonJson(const Comparison& comparison) {
  nlohmann::ordered_json json{
      {"collection", comparison.collection},
      {"rows", comparison.rows},
      {"dim", comparison.dim},
      {"k", comparison.k},
      {"measured",
       {{"backend", comparison.measured_backend}, {"device", comparison.measured_device}}},
      {"other", {{"backend", comparison.other_backend}, {"device", comparison.other_device}}},
      {"answers_compared", comparison.answers},
      {"batches", nlohmann::ordered_json::array()}};
  for (const ComparedBatch& batch : comparison.batches) {
    json["batches"].push_back({{"queries", batch.queries},
                               {"calls", batch.calls},
                               {"measured", TimesJson(batch.measured)},
                               {"other", TimesJson(batch.other)},
                               {"times_faster", batch.times_faster()}});
  }
  return json;
}

std::string ComparisonText(const Comparison& comparison, const Terminal& terminal) {
  const std::string measured = ParseBackendKind(comparison.measured_backend);
  std::string other = ParseBackendKind(comparison.other_backend);
  if (measured == other) other = "other";
  const std::string text = fmt::format(
      "{}, {} x {}, k {}\n  {} on {}\n  {} on {}\n\n", Bold(comparison.collection, terminal),
      base::Grouped(comparison.rows), comparison.dim, comparison.k, comparison.measured_backend,
      comparison.measured_device, comparison.other_backend, comparison.other_device);
  Table table({{"queries a call", Align::kRight},
               {other + ", ms", Align::kRight},
               {measured + ", ms", Align::kRight},
               {"times faster", Align::kRight},
               {other + " computes, ms", Align::kRight},
               {measured + " computes, ms", Align::kRight}});
  for (const ComparedBatch& batch : comparison.batches) {
    table.AddRow({base::Grouped(batch.queries), TimeText(batch.other.call_ms),
                  TimeText(batch.measured.call_ms), fmt::format("{:.1f}", batch.times_faster()),
                  TimeText(batch.other.compute_ms), TimeText(batch.measured.compute_ms)});
  }
  return text + table.Render(terminal, 0) +
         fmt::format("\n{} compared, all equal to the bit; medians of whole calls, one at a time\n",
                     base::Counted(comparison.answers, "answer"));
}

std::string LatencyText(Nanoseconds latency) {
  const double ms = static_cast<double>(latency.count()) / 1e6;
  if (ms < 10) return fmt::format("{:.2f} ms", ms);
  if (ms < 1'000) return fmt::format("{:.1f} ms", ms);
  return fmt::format("{:.2f} s", ms / 1e3);
}

std::string RunText(const ReportedRun& run, const Terminal& terminal) {
  const RunResult& result = run.result;
  const LoadTally& tally = result.tally;
  std::string text =
      Bold(fmt::format("{} queries/s",
                       RateText(static_cast<double>(tally.queries_in_window) / result.seconds)),
           terminal);
  if (tally.queries_in_window != tally.calls_in_window) {
    text += fmt::format(" in {} calls/s",
                        RateText(static_cast<double>(tally.calls_in_window) / result.seconds));
  }
  text += fmt::format(", {} for {:.1f} s\n", LoadText(result.plan), result.seconds);
  text += LatencyTable(run, terminal);
  text += fmt::format("server CPU  {}\n", result.server_cpu_s
                                              ? CpuText(*result.server_cpu_s, result)
                                              : "unknown: give --server-pid for a server on this "
                                                "machine");
  text += fmt::format("client CPU  {}\n", CpuText(result.client_cpu_s, result));
  text += CardText(result);
  text += ReceiptText(tally.receipts);
  if (run.checks) text += CheckText(*run.checks, result.not_kept);
  for (const auto& [reason, errors] : tally.errors) {
    text += fmt::format("errors      {} {}: {}\n", base::Grouped(errors.count), reason,
                        errors.first_message);
  }
  if (tally.errors.empty()) text += "errors      none\n";
  return text + WarningText(result);
}

std::string SweepText(const std::vector<ReportedRun>& runs, const Terminal& terminal) {
  constexpr Align kRight = Align::kRight;
  const bool open = runs.front().result.plan.load.rate.has_value();
  const bool has_card =
      std::ranges::any_of(runs, [](const ReportedRun& run) { return HasCard(run.result); });
  std::vector<Table::Column> columns = {{open ? "rate" : "in flight", kRight},
                                        {"queries/s", kRight},
                                        {"p50", kRight},
                                        {"p99", kRight},
                                        {"p99.9", kRight},
                                        {"server CPU/call", kRight},
                                        {"client CPU/call", kRight},
                                        {"batch", kRight},
                                        {"errors", kRight}};
  if (has_card) columns.push_back({"card busy", kRight});
  Table table(columns);
  std::string warnings;
  for (const ReportedRun& run : runs) {
    const RunResult& result = run.result;
    const LatencyHistogram all = result.tally.All();
    const ReceiptTally& receipts = result.tally.receipts;
    const double calls = std::max(1.0, CallsEnded(result));
    const std::string load =
        open ? RateText(*result.plan.load.rate) : base::Grouped(result.plan.load.in_flight);
    std::vector<std::string> cells = {
        load,
        RateText(static_cast<double>(result.tally.queries_in_window) / result.seconds),
        LatencyText(all.Percentile(0.5)),
        LatencyText(all.Percentile(0.99)),
        LatencyText(all.Percentile(0.999)),
        result.server_cpu_s ? fmt::format("{:.1f} us", *result.server_cpu_s / calls * 1e6) : "",
        fmt::format("{:.1f} us", result.client_cpu_s / calls * 1e6),
        receipts.receipts == 0
            ? ""
            : fmt::format("{:.1f}", receipts.batch_size / static_cast<double>(receipts.receipts)),
        base::Grouped(result.tally.failed.count())};
    if (has_card) cells.push_back(HasCard(result) ? ShareText(result.card->utilization_mean) : "");
    table.AddRow(cells);
    for (const auto& [reason, errors] : result.tally.errors) {
      warnings += fmt::format("{}: {} {}: {}\n", load, base::Grouped(errors.count), reason,
                              errors.first_message);
    }
    if (run.checks)
      warnings += fmt::format("{}: {}", load, CheckText(*run.checks, result.not_kept));
    const std::string warning = WarningText(result);
    if (!warning.empty()) warnings += fmt::format("{}: {}", load, warning);
  }
  return table.Render(terminal, 0) + warnings;
}

nlohmann::ordered_json RunsJson(const BenchSetup& setup, const std::vector<ReportedRun>& runs) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ReportedRun& run : runs) list.push_back(RunJson(run));
  return {{"server", setup.address}, {"collection", setup.collection},   {"rows", setup.rows},
          {"dim", setup.dim},        {"snapshot_id", setup.snapshot_id}, {"runs", std::move(list)}};
}

std::string LiveText(const LiveState& state) {
  if (state.elapsed_s < 0) return fmt::format("warming up, {:.0f} s", -state.elapsed_s);
  const double share = std::clamp(state.elapsed_s / state.duration_s, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(share * kLiveBarWidth);
  std::string text = fmt::format(
      "|{}{}| {:.0f} s   {} q/s   p50 {}  p99 {}", std::string(filled, '#'),
      std::string(kLiveBarWidth - filled, '-'), state.elapsed_s, RateText(state.queries_per_s),
      LatencyText(state.latency.Percentile(0.5)), LatencyText(state.latency.Percentile(0.99)));
  if (state.batch_size > 0) text += fmt::format("   batch {:.0f} (mean)", state.batch_size);
  return text + fmt::format("   {}", base::Counted(state.errors, "error"));
}

}  // namespace simile::cli::bench
