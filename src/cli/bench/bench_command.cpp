#include <cstdio>
#include <fstream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backend/nvml.h"
#include "base/message_text.h"
#include "cli/bench/a100_report.h"
#include "cli/bench/answer_check.h"
#include "cli/bench/bench_options.h"
#include "cli/bench/card_watch.h"
#include "cli/bench/comparison_run.h"
#include "cli/bench/load_plot.h"
#include "cli/bench/mix_file.h"
#include "cli/bench/run_report.h"
#include "cli/bench/server_process.h"
#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/interrupt_message.h"
#include "cli/output_text.h"
#include "cli/settings_flags.h"
#include "cli/terminal.h"

namespace simile::cli::bench {
namespace {

// The timeout of calls that read the server's metrics.
constexpr double kStatsTimeoutSeconds = 5;
// The timeout of calls that prepare a run. Long, because a server answers late while it loads.
constexpr int kPrepareTimeoutSeconds = 30;

absl::Status WriteTextFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? absl::OkStatus() : absl::DataLossError(path + ": cannot be written");
}

std::string IndentedJson(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

PlotTexts MakePlotTexts(const BenchSetup& setup, const RunPlan& plan) {
  const std::string loop = plan.load.rate ? "open loop, Poisson arrivals" : "closed loop";
  return {fmt::format("Latency against load: {}", setup.collection),
          fmt::format("{} x {}, {}, {}", base::Grouped(setup.rows), setup.dim, loop,
                      plan.transport == Transport::kStream ? "streamed" : "unary calls"),
          "queries answered per second", "latency, ms"};
}

absl::Status DrawPlot(const std::string& path, const BenchSetup& setup,
                      const std::vector<ReportedRun>& runs) {
  std::vector<PlotSeries> series = {{"p50", {}}, {"p99", {}}, {"p99.9", {}}};
  constexpr double kShares[] = {0.5, 0.99, 0.999};
  for (const ReportedRun& run : runs) {
    const LatencyHistogram latency = run.result.tally.All();
    if (latency.count() == 0) continue;
    const double load =
        static_cast<double>(run.result.tally.queries_in_window) / run.result.seconds;
    for (std::size_t i = 0; i < series.size(); ++i) {
      const auto ns = static_cast<double>(latency.Percentile(kShares[i]).count());
      series[i].points.push_back({load, std::max(ns, 1.0) / 1e6});
    }
  }
  if (series[0].points.empty()) return absl::UnavailableError("no call succeeded: nothing to plot");
  return WriteTextFile(path, LoadPlot(MakePlotTexts(setup, runs.front().result.plan), series));
}

// Whether any call was answered. The tally holds latencies of unsent calls too, so subtracts these.
bool AnyAnswered(const RunResult& result) { return result.tally.All().count() > result.unsent; }

// The exit code: 0 if calls succeeded and no answer was wrong. Otherwise prints the error.
int CheckRuns(const std::vector<ReportedRun>& runs) {
  for (const ReportedRun& run : runs) {
    const bool wrong = run.checks && run.checks->wrong > 0;
    const bool nothing_compared = run.checks && run.checks->compared == 0;
    if (wrong)
      return Fail(
          absl::DataLossError(fmt::format("{} of {} wrong", run.checks->wrong,
                                          base::Counted(run.checks->compared, "compared answer"))));
    if (!AnyAnswered(run.result)) return Fail(absl::UnavailableError("no call succeeded"));
    if (nothing_compared) {
      return Fail(absl::FailedPreconditionError("--verify: no answer could be compared"));
    }
  }
  return kSucceeded;
}

// A line on standard error that is redrawn during a run and erased by the destructor. Draws nothing
// if standard error is not a terminal.
class LiveLine {
 public:
  LiveLine() : terminal_(StandardError()) {}
  ~LiveLine() {
    if (terminal_.is_terminal) fmt::print(stderr, "\r\x1b[K");
  }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // The callback for RunLoad; null without a terminal. Valid during this object's lifetime.
  OnLive Drawing() {
    if (!terminal_.is_terminal) return nullptr;
    return [this](const LiveState& state) {
      fmt::print(stderr, "\r {}\x1b[K", Shortened(LiveText(state), terminal_.width - 2));
      std::fflush(stderr);
    };
  }

 private:
  const Terminal terminal_;
};

// Runs all loads, one after another.
//   other  the server to compare answers with; null: compare with double precision
absl::StatusOr<std::vector<ReportedRun>> RunAll(const BenchOptions& options,
                                                const RequestPool& pool,
                                                const QuerySamples& samples,
                                                const Connection* other) {
  std::vector<ReportedRun> runs;
  for (const RunPlan& plan : options.plans) {
    LiveLine live;
    auto result = RunLoad(plan, pool, live.Drawing());
    if (!result.ok()) return result.status();
    ReportedRun& run = runs.emplace_back();
    run.result = *std::move(result);
    for (const PreparedKind& kind : pool.kinds()) run.kind_names.push_back(kind.name);
    run.expected_interval = options.expected_interval;
    if (plan.verify_share > 0 && other != nullptr) {
      auto checks = CompareKept(run.result.kept, pool, plan.transport, *other);
      if (!checks.ok()) return checks.status();
      run.checks = *std::move(checks);
      run.result.kept.clear();
    } else if (plan.verify_share > 0) {
      run.checks = CheckKept(run.result.kept, pool, plan.transport, VectorCheck(samples));
      run.result.kept.clear();
    }
  }
  return runs;
}

absl::Status Show(const BenchFlags& flags, const BenchSetup& setup,
                  const std::vector<ReportedRun>& runs) {
  const nlohmann::ordered_json json = RunsJson(setup, runs);
  if (flags.client.json) {
    fmt::print("{}", JsonLine(json));
  } else if (runs.size() == 1) {
    fmt::print("{}", RunText(runs.front(), StandardOutput()));
  } else {
    fmt::print("{}", SweepText(runs, StandardOutput()));
  }
  if (flags.out) {
    if (absl::Status status = WriteTextFile(*flags.out, IndentedJson(json)); !status.ok()) {
      return status;
    }
  }
  return flags.plot ? DrawPlot(*flags.plot, setup, runs) : absl::OkStatus();
}

// Reads the server's metrics over its own connection. Used by one thread. First asks the server,
// once, whether this caller may read them, because each refused call would add a line to the
// server's log.
class StatsReader {
 public:
  explicit StatsReader(const ClientFlags& flags)
      : connection_(Connect(flags, kStatsTimeoutSeconds)) {}

  absl::StatusOr<v1::GetStatsResponse> Read() {
    if (!refused_.ok()) return refused_;
    if (!is_allowed_) {
      const absl::StatusOr<v1::GetServerInfoResponse> info = connection_.GetServerInfo();
      if (!info.ok()) return info.status();
      is_allowed_ = info->admin_allowed();
      if (!is_allowed_) {
        refused_ = absl::PermissionDeniedError(
            connection_.security().names_caller()
                ? "the server does not show its metrics to this caller, who lacks the role admin"
                : "the server does not show its metrics: start it with --allow-admin");
        return refused_;
      }
    }
    absl::StatusOr<v1::GetStatsResponse> stats = connection_.GetStats();
    if (absl::IsPermissionDenied(stats.status())) refused_ = stats.status();
    return stats;
  }

 private:
  const Connection connection_;
  bool is_allowed_ = false;
  absl::Status refused_;
};

// Reads the server's card with this machine's management library, or else from the server's
// metrics.
CardReader MakeCardReader(const BenchFlags& flags, const std::vector<pid_t>& processes) {
  ReadStats stats = [shared = std::make_shared<StatsReader>(flags.client)] {
    return shared->Read();
  };
  return ChooseReader(MakeProcessReader(processes, backend::kNvmlLibrary),
                      MakeMetricsReader(std::move(stats)));
}

// The most calls of each test of a report.
std::uint32_t ChooseCallsMax(const BenchFlags& flags) {
  return flags.requests.value_or(RequestPool::kRequestsMax);
}

Connection ConnectToCpu(const BenchFlags& flags) {
  ClientFlags client = flags.client;
  client.address = *ParseServerAddress(*flags.cpu_server);  // checked with the flags
  return Connect(client, kPrepareTimeoutSeconds);
}

// Makes the report's calls to the server of --cpu-server. Fails unless it serves the same content.
absl::StatusOr<std::shared_ptr<const A100Measurements>> MeasureCpu(const BenchFlags& flags,
                                                                   const v1::Collection& collection,
                                                                   const QuerySamples& samples) {
  const Connection connection = ConnectToCpu(flags);
  const absl::StatusOr<v1::Collection> beside = connection.Get(collection.name());
  if (!beside.ok()) return beside.status();
  if (beside->snapshot_id() != collection.snapshot_id()) {
    return absl::FailedPreconditionError(fmt::format(
        "--cpu-server: {} serves other content of {} ({}) than --server ({}); let both "
        "load the same files",
        connection.address(), collection.name(), beside->snapshot_id(), collection.snapshot_id()));
  }
  auto measured = MeasureA100(connection, *beside, samples, FindListeners(connection.address()),
                              ChooseCallsMax(flags));
  if (!measured.ok()) return measured.status();
  if (measured->on_gpu) {
    return absl::FailedPreconditionError(fmt::format(
        "--cpu-server: {} answers on a GPU; start it with --backend cpu", connection.address()));
  }
  return std::make_shared<const A100Measurements>(*std::move(measured));
}

// Returns the exit code. A missed target is a result, not a failure. An answer that differs from
// the CPU server's is a failure.
int RunReport(const BenchFlags& flags, const Connection& connection,
              const v1::Collection& collection, const QuerySamples& samples,
              const std::vector<pid_t>& processes) {
  absl::StatusOr<A100Measurements> measured =
      MeasureA100(connection, collection, samples, processes, ChooseCallsMax(flags));
  if (!measured.ok()) return Fail(measured.status(), flags.client.json);
  measured->hourly_price = flags.hourly_price;
  measured->cpu_hourly_price = flags.cpu_hourly_price;
  if (flags.cpu_server) {
    auto cpu = MeasureCpu(flags, collection, samples);
    if (!cpu.ok()) return Fail(cpu.status(), flags.client.json);
    measured->cpu = *std::move(cpu);
  }
  const nlohmann::ordered_json json = A100Json(*measured);
  fmt::print("{}", flags.client.json ? JsonLine(json) : A100Text(*measured, StandardOutput()));
  if (flags.out) {
    const absl::Status status = WriteTextFile(*flags.out, IndentedJson(json));
    if (!status.ok()) return Fail(status, flags.client.json);
  }
  const std::uint64_t different = measured->cpu != nullptr ? DifferentAnswers(*measured) : 0;
  if (different == 0) return kSucceeded;
  return Fail(absl::DataLossError(fmt::format("{} of {} differ from the CPU server's", different,
                                              base::Counted(measured->answers.size(), "answer"))));
}

absl::StatusOr<Comparison> CompareWith(const BenchFlags& flags, const Connection& connection,
                                       const QuerySamples& samples) {
  constexpr std::uint32_t kDefaultHits = 10;
  const std::uint32_t k = flags.k.value_or(kDefaultHits);
  if (*flags.compare != kCompareCpu) {
    ClientFlags other = flags.client;
    other.address = *ParseServerAddress(*flags.compare);  // CheckComparison has parsed it already
    return Compare(connection, Connect(other, kPrepareTimeoutSeconds), samples, k, false);
  }
  const auto server = StartedServer::Start(samples.collection, *flags.folder);
  if (!server.ok()) return server.status();
  const Connection other((*server)->address(), std::chrono::seconds(kPrepareTimeoutSeconds));
  return Compare(connection, other, samples, k, true);
}

int RunComparison(const BenchFlags& flags, const Connection& connection,
                  const QuerySamples& samples) {
  const absl::StatusOr<Comparison> comparison = CompareWith(flags, connection, samples);
  if (!comparison.ok()) return Fail(comparison.status(), flags.client.json);
  const nlohmann::ordered_json json = ComparisonJson(*comparison);
  fmt::print("{}",
             flags.client.json ? JsonLine(json) : ComparisonText(*comparison, StandardOutput()));
  if (!flags.out) return kSucceeded;
  const absl::Status status = WriteTextFile(*flags.out, IndentedJson(json));
  return status.ok() ? kSucceeded : Fail(status, flags.client.json);
}

int RunBench(const BenchFlags& flags) {
  InterruptMessage interrupt;
  interrupt.Set("stopped before the end; nothing was measured");
  absl::StatusOr<BenchOptions> options = MakeBenchOptions(flags);
  if (!options.ok()) return Fail(options.status(), flags.client.json);
  const Connection connection = Connect(flags.client, kPrepareTimeoutSeconds);
  const absl::StatusOr<v1::Collection> collection = ChooseCollection(connection, flags.collection);
  if (!collection.ok()) return Fail(collection.status(), flags.client.json);
  const std::vector<pid_t> processes =
      flags.server_pid ? std::vector<pid_t>{static_cast<pid_t>(*flags.server_pid)}
                       : FindListeners(connection.address());

  SampleNeeds needs = FindSampleNeeds(options->specs);
  needs.rows |= flags.verify_share.value_or(0) > 0 || flags.report.has_value();
  needs.query_vectors |= flags.report.has_value() || flags.compare.has_value();
  needs.fields |= flags.report.has_value();
  const auto settings = ReadConfigFor(flags.config, {}, std::nullopt);
  if (!settings.ok()) return Fail(settings.status(), flags.client.json);
  const SampleSources sources{flags.vectors, flags.users, flags.folder, settings->config.limits,
                              flags.seed.value_or(1)};
  const absl::StatusOr<QuerySamples> samples =
      CollectSamples(connection, *collection, sources, needs);
  if (!samples.ok()) return Fail(samples.status(), flags.client.json);
  if (flags.report) {
    return RunReport(flags, connection, *collection, *samples, processes);
  }
  if (flags.compare) return RunComparison(flags, connection, *samples);

  const absl::StatusOr<RequestPool> pool =
      RequestPool::Make(options->specs, *samples, flags.seed.value_or(1),
                        flags.requests.value_or(RequestPool::kRequestsMax));
  if (!pool.ok()) return Fail(pool.status(), flags.client.json);
  CardWatch card(MakeCardReader(flags, processes));
  for (RunPlan& plan : options->plans) {
    plan.card = &card;
    plan.address = connection.address();
    plan.security = connection.security();
    plan.server_processes = processes;
  }
  std::unique_ptr<const Connection> cpu;
  if (flags.cpu_server) cpu.reset(new Connection(ConnectToCpu(flags)));  // it cannot be moved
  const auto runs = RunAll(*options, *pool, *samples, cpu.get());
  if (!runs.ok()) return Fail(runs.status(), flags.client.json);
  const BenchSetup setup{connection.address(), samples->collection, samples->row_count,
                         static_cast<std::uint32_t>(samples->dim), samples->snapshot_id};
  if (absl::Status status = Show(flags, setup, *runs); !status.ok())
    return Fail(status, flags.client.json);
  const int code = CheckRuns(*runs);
  if (code == kSucceeded && runs->size() == 1 && !flags.client.json) {
    SuggestNext("simile bench --in-flight 1,8,64,256 --plot load.svg");
  }
  return code;
}

}  // namespace
}  // namespace simile::cli::bench

namespace simile::cli {

void AddBenchCommand(CommandLine& line) {
  auto flags = std::make_shared<bench::BenchFlags>();
  Command command = line.Add("bench", "Load a server and measure its latencies and throughput");
  bench::AddBenchFlags(command, *flags);
  command
      .Footer(
          "simile bench --in-flight 1,8,64 --plot load.svg\nsimile bench --rate 5000 --verify "
          "0.01\nsimile bench --compare cpu --folder examples/films")
      .Run([flags] { return bench::RunBench(*flags); });
}

}  // namespace simile::cli
