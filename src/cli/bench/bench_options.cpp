#include "cli/bench/bench_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/threads.h"
#include "cli/bench/mix_file.h"
#include "cli/bench/request_pool.h"
#include "cli/bench/server_process.h"
#include "cli/client_flags.h"
#include "cli/quantity_text.h"
#include "simile/limits.h"

namespace simile::cli::bench {
namespace {

constexpr std::uint32_t kDefaultInFlight = 64;
constexpr std::uint32_t kDefaultOpenInFlight = 1'000;
constexpr std::uint32_t kInFlightMax = 10'000;
constexpr double kRateMax = 10'000'000;
constexpr std::uint32_t kConnectionsMax = 1'000;
constexpr std::uint32_t kThreadsMax = 64;
constexpr std::uint32_t kCallsPerConnection = 64;
constexpr std::chrono::nanoseconds kDefaultDuration = std::chrono::seconds(10);
constexpr std::chrono::nanoseconds kDefaultWarmUp = std::chrono::seconds(2);
constexpr double kDefaultTimeoutSeconds = 10;
// The largest SearchStreamRequest.timeout, and the longest that a server works on a call.
constexpr double kTimeoutSecondsMost = 600;

absl::Status RefuseFlag(std::string_view flag, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", flag, why));
}

// Parses a number of a list flag.
template <class Number>
absl::StatusOr<Number> ParseNumber(std::string_view flag, const std::string& text, Number least,
                                   Number most) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || !(number >= least && number <= most)) {
    return RefuseFlag(flag, fmt::format("\"{}\" is not a number from {} to {}", text, least, most));
  }
  return number;
}

absl::StatusOr<std::chrono::nanoseconds> ParseDurationFlag(std::string_view flag,
                                                           const std::optional<std::string>& text,
                                                           std::chrono::nanoseconds fallback) {
  if (!text) return fallback;
  auto duration = ParseDuration(*text);
  if (!duration.ok()) return RefuseFlag(flag, std::string(duration.status().message()));
  return duration;
}

bool IsProcess(std::uint32_t number) {
  const auto process = static_cast<pid_t>(number);
  return process > 0 && ReadCpuSeconds({process}).has_value();
}

absl::StatusOr<std::vector<Load>> ParseLoads(const BenchFlags& flags) {
  std::vector<Load> loads;
  if (flags.rate.empty()) {
    if (flags.in_flight.empty()) {
      loads.push_back({std::max(kDefaultInFlight, flags.connections.value_or(0)), {}});
    }
    for (const std::string& text : flags.in_flight) {
      const auto in_flight = ParseNumber<std::uint32_t>("--in-flight", text, 1, kInFlightMax);
      if (!in_flight.ok()) return in_flight.status();
      loads.push_back({*in_flight, {}});
    }
    return loads;
  }
  if (flags.in_flight.size() > 1) {
    return RefuseFlag("--in-flight",
                      "several values and --rate together: give several to one only");
  }
  std::uint32_t most = kDefaultOpenInFlight;
  if (!flags.in_flight.empty()) {
    const auto in_flight =
        ParseNumber<std::uint32_t>("--in-flight", flags.in_flight[0], 1, kInFlightMax);
    if (!in_flight.ok()) return in_flight.status();
    most = *in_flight;
  }
  for (const std::string& text : flags.rate) {
    const auto rate = ParseNumber<double>("--rate", text, 0.01, kRateMax);
    if (!rate.ok()) return rate.status();
    loads.push_back({most, *rate});
  }
  return loads;
}

// Refuses flags of a load together with a report or a comparison, which make their own calls.
//   by  the flag that asks for the report or comparison
absl::Status CheckNoLoad(const BenchFlags& flags, std::string_view by) {
  const std::pair<std::string_view, bool> of_load[] = {
      {"--in-flight", !flags.in_flight.empty()},
      {"--rate", !flags.rate.empty()},
      {"--connections", flags.connections.has_value()},
      {"--threads", flags.threads.has_value()},
      {"--stream", flags.stream},
      {"--duration", flags.duration.has_value()},
      {"--warm-up", flags.warm_up.has_value()},
      {"--batch", flags.batch.has_value()},
      {"--payload", !flags.payload.empty()},
      {"--filter", flags.filter.has_value()},
      {"--bulk", flags.bulk},
      {"--mix", flags.mix.has_value()},
      {"--expected-interval", flags.expected_interval.has_value()},
      {"--verify", flags.verify_share.has_value()},
      {"--plot", flags.plot.has_value()}};
  for (const auto& [flag, given] : of_load) {
    if (given) {
      return RefuseFlag(flag, fmt::format("not together with {}, whose calls are fixed", by));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckReport(const BenchFlags& flags) {
  if (*flags.report != "a100") {
    return RefuseFlag("--report",
                      fmt::format("there is no report \"{}\"; give a100", *flags.report));
  }
  if (flags.k) return RefuseFlag("-k", "not together with --report, whose calls are fixed");
  if (absl::Status status = CheckNoLoad(flags, "--report"); !status.ok()) return status;
  for (const auto& [flag, price] : {std::pair("--hourly-price", flags.hourly_price),
                                    std::pair("--cpu-hourly-price", flags.cpu_hourly_price)}) {
    if (price && !(*price >= 0 && std::isfinite(*price))) {
      return RefuseFlag(flag, fmt::format("{} is no price", *price));
    }
  }
  if (flags.cpu_hourly_price && !(flags.hourly_price && flags.cpu_server)) {
    return RefuseFlag("--cpu-hourly-price",
                      "needs --cpu-server, whose machine it is the price of, and --hourly-price");
  }
  return absl::OkStatus();
}

absl::Status CheckCompare(const BenchFlags& flags) {
  if (flags.report) return RefuseFlag("--compare", "not together with --report: one or the other");
  if (absl::Status status = CheckNoLoad(flags, "--compare"); !status.ok()) return status;
  if (flags.requests) {
    return RefuseFlag("--requests", "not together with --compare, whose calls are fixed");
  }
  if (*flags.compare != kCompareCpu) {
    const absl::StatusOr<std::string> address = ParseServerAddress(*flags.compare);
    return address.ok()
               ? absl::OkStatus()
               : RefuseFlag("--compare", fmt::format("give cpu, or the other server: {}",
                                                     std::string(address.status().message())));
  }
  if (flags.folder) return absl::OkStatus();
  return RefuseFlag("--compare",
                    "cpu needs --folder FOLDER, the collection's own files: a second server of "
                    "them is started, which uses the CPU");
}

absl::Status CheckTogether(const BenchFlags& flags) {
  if (flags.expected_interval && !flags.rate.empty()) {
    return RefuseFlag("--expected-interval",
                      "an open loop (--rate) counts from the intended times already");
  }
  if (flags.mix && (flags.filter || flags.batch)) {
    return RefuseFlag("--mix",
                      "has filters and batch sizes of its own: \"filter\" and \"batch\" of "
                      "each call, instead of --filter and --batch");
  }
  if (flags.plot && std::max(flags.in_flight.size(), flags.rate.size()) < 2) {
    return RefuseFlag("--plot", "needs several loads: --in-flight 1,8,64,256 or --rate 1000,2000");
  }
  if (flags.connections && (*flags.connections < 1 || *flags.connections > kConnectionsMax)) {
    return RefuseFlag("--connections", fmt::format("{} is not a number from 1 to {}",
                                                   *flags.connections, kConnectionsMax));
  }
  if (flags.threads && (*flags.threads < 1 || *flags.threads > kThreadsMax)) {
    return RefuseFlag("--threads",
                      fmt::format("{} is not a number from 1 to {}", *flags.threads, kThreadsMax));
  }
  if (flags.verify_share && !(*flags.verify_share >= 0 && *flags.verify_share <= 1)) {
    return RefuseFlag("--verify",
                      fmt::format("{} is not a share from 0 to 1", *flags.verify_share));
  }
  if (flags.server_pid && !IsProcess(*flags.server_pid)) {
    return RefuseFlag("--server-pid",
                      fmt::format("there is no process {} on this machine", *flags.server_pid));
  }
  if (flags.requests && *flags.requests > RequestPool::kRequestsMax) {
    return RefuseFlag("--requests", fmt::format("{} is not a number from 1 to {}", *flags.requests,
                                                base::Grouped(RequestPool::kRequestsMax)));
  }
  if (flags.cpu_server) {
    const auto address = ParseServerAddress(*flags.cpu_server);
    if (!address.ok()) return RefuseFlag("--cpu-server", std::string(address.status().message()));
    if (!flags.report && flags.verify_share.value_or(0) <= 0) {
      return RefuseFlag("--cpu-server",
                        "needs --report a100, or --verify with the share to compare");
    }
  }
  if (flags.compare) {
    if (absl::Status status = CheckCompare(flags); !status.ok()) return status;
  }
  if (flags.report) return CheckReport(flags);
  for (const auto& [flag, given] :
       {std::pair("--hourly-price", flags.hourly_price.has_value()),
        std::pair("--cpu-hourly-price", flags.cpu_hourly_price.has_value())}) {
    if (given) return RefuseFlag(flag, "needs --report a100");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CallSpec>> MakeCallSpecs(const BenchFlags& flags) {
  constexpr Limits kLimits;
  CallSpec spec;
  spec.kind = FindCallKind("vector");
  spec.batch = flags.batch.value_or(1);
  spec.k = flags.k;
  spec.payload =
      MakePayloadSelector(flags.payload.empty() ? std::vector<std::string>{"none"} : flags.payload);
  if (flags.filter) spec.filters = {*flags.filter};
  spec.bulk = flags.bulk;
  if (spec.batch < 1 || spec.batch > kLimits.queries_per_call_max) {
    return RefuseFlag("--batch", fmt::format("{} is not a number from 1 to {}", spec.batch,
                                             base::Grouped(kLimits.queries_per_call_max)));
  }
  if (flags.k && (*flags.k < 1 || *flags.k > kLimits.k_max)) {
    return RefuseFlag("-k", fmt::format("{} is not a number from 1 to {}", *flags.k,
                                        base::Grouped(kLimits.k_max)));
  }
  if (flags.mix) return ReadMixFile(*flags.mix, spec);
  return std::vector<CallSpec>{spec};
}

std::chrono::milliseconds Milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

}  // namespace

void AddBenchFlags(Command& command, BenchFlags& flags) {
  command.Collection(flags.collection, "The collection to query (default: the server's only one)")
      .List("--in-flight", flags.in_flight, "N",
            "Closed loop: keep this many calls under way (default 64); several values: a run each")
      .List("--rate", flags.rate, "R",
            "Open loop: this many calls a second at random times (Poisson), answered or not; "
            "several values: a run each")
      .Number("--connections", flags.connections, "N", "Connections (default 4, or 64 calls each)")
      .Number("--threads", flags.threads, "N",
              "Client threads (default 1 for each 4 processors, at most 8)")
      .Switch("--stream", flags.stream, "Send over SearchStream instead of single calls")
      .Text("--duration", flags.duration, "TIME", "Measured time of a run (default 10s)")
      .Text("--warm-up", flags.warm_up, "TIME",
            "Load before the measured time, not counted (default 2s)")
      .Number("--batch", flags.batch, "N", "Queries in each call (default 1)")
      .Number("-k", flags.k, "COUNT", "Hits of each query (default 10)")
      .List("--payload", flags.payload, "none|all|FIELD", "Payload to ask for (default none)")
      .Text("--filter", flags.filter, "TEXT", "A filter for every query; see `simile fields`")
      .Switch("--bulk", flags.bulk, "Send all calls with the priority of bulk work")
      .File("--mix", flags.mix, "FILE",
            "Calls of several kinds with weights, as JSON; docs/bench.md explains")
      .File("--vectors", flags.vectors, "FILE",
            "Query vectors: .npy or .safetensors (default: made of stored rows)")
      .File("--users", flags.users, "FILE",
            "User ids for calls that need them: a JSON list such as user_ids.json")
      .File("--folder", flags.folder, "FOLDER",
            "The collection's own files: items, users, and a complete --verify")
      .Paths(PathKind::kFolder)
      .File("--config", flags.config, "FILE",
            "The server's settings, whose limits apply to the files (or SIMILE_CONFIG)")
      .Number(
          "--requests", flags.requests, "N",
          "Different requests of each kind (default 4,096, or as many as 64 MiB hold). A report "
          "makes at most N calls in each of its tests",
          1)
      .Number("--seed", flags.seed, "N", "The seed of all random choices (default 1)")
      .Text("--expected-interval", flags.expected_interval, "TIME",
            "Closed loop: also the latencies of a caller who calls this often")
      .Real("--verify", flags.verify_share, "SHARE",
            "Compare this share of the answers with double precision; fails when one is wrong")
      .File("--plot", flags.plot, "FILE.svg", "Draw latency against load, of several runs")
      .File("--out", flags.out, "FILE.json", "Also write the JSON of --json to a file")
      .Number("--server-pid", flags.server_pid, "PID",
              "The server's process, for its CPU time (default: found by its port)")
      .Text("--report", flags.report, "a100",
            "Instead of a load: the five-part report of the A100 guide, with its targets")
      .Text("--compare", flags.compare, "cpu|HOST:PORT",
            "Instead of a load: how many times faster the server is than the CPU, or than another "
            "server of the same content; cpu starts a server of --folder")
      .Real(
          "--hourly-price", flags.hourly_price, "PRICE",
          "The machine's price: adds the cost of a million and of a month's queries to the report")
      .Text("--cpu-server", flags.cpu_server, "HOST:PORT",
            "A server of the same content on a CPU: --verify compares with its answers, of every "
            "kind and to the bit; --report makes its calls there too and shows both")
      .Real(
          "--cpu-hourly-price", flags.cpu_hourly_price, "PRICE",
          "The price of the CPU server's machine: adds from how many queries a month a card pays");
  AddClientFlags(command, flags.client,
                 fmt::format("of each call; default {:.0f}", kDefaultTimeoutSeconds));
}

std::uint32_t DefaultConnections(std::uint32_t in_flight) {
  const std::uint32_t needed = (in_flight + kCallsPerConnection - 1) / kCallsPerConnection;
  return std::clamp(std::max(std::min(in_flight, 4U), needed), 1U,
                    Limits{}.connections_per_peer_max);
}

absl::StatusOr<BenchOptions> MakeBenchOptions(const BenchFlags& flags) {
  if (absl::Status status = CheckTogether(flags); !status.ok()) return status;
  const auto loads = ParseLoads(flags);
  if (!loads.ok()) return loads.status();
  const auto duration = ParseDurationFlag("--duration", flags.duration, kDefaultDuration);
  if (!duration.ok()) return duration.status();
  const auto warm_up = ParseDurationFlag("--warm-up", flags.warm_up, kDefaultWarmUp);
  if (!warm_up.ok()) return warm_up.status();
  if (*duration < std::chrono::milliseconds(100)) {
    return RefuseFlag("--duration", "at least 100ms: less measures nothing");
  }
  const double timeout_s = flags.client.timeout_s.value_or(kDefaultTimeoutSeconds);
  if (!(timeout_s > 0 && timeout_s <= kTimeoutSecondsMost)) {
    return RefuseFlag("--timeout", fmt::format("{} is not a number above 0, up to {:.0f}",
                                               timeout_s, kTimeoutSecondsMost));
  }
  BenchOptions options;
  if (flags.expected_interval) {
    const auto interval = ParseDuration(*flags.expected_interval);
    if (!interval.ok() || *interval < std::chrono::microseconds(1)) {
      return RefuseFlag("--expected-interval", "give a time of at least 1us, such as 5ms");
    }
    options.expected_interval = *interval;
  }
  auto specs = MakeCallSpecs(flags);
  if (!specs.ok()) return specs.status();
  options.specs = *std::move(specs);
  for (const Load& load : *loads) {
    RunPlan& plan = options.plans.emplace_back();
    plan.load = load;
    plan.transport = flags.stream ? Transport::kStream : Transport::kUnary;
    plan.connections =
        std::min(flags.connections.value_or(DefaultConnections(load.in_flight)), load.in_flight);
    const std::uint32_t threads = std::clamp(base::UsableCpuCount() / 4, 1U, 8U);
    plan.threads = std::min(flags.threads.value_or(threads), plan.connections);
    plan.warm_up = Milliseconds(*warm_up);
    plan.duration = Milliseconds(*duration);
    plan.timeout = std::chrono::milliseconds(std::max<long long>(1, std::llround(timeout_s * 1e3)));
    plan.seed = flags.seed.value_or(1);
    plan.verify_share = flags.verify_share.value_or(0);
  }
  return options;
}

}  // namespace simile::cli::bench
