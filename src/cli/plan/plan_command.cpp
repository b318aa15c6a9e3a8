#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "app/config_read.h"
#include "app/tuning.h"
#include "backend/nvml.h"
#include "backend/registry.h"
#include "base/message_text.h"
#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/named_folder.h"
#include "cli/plan/byte_quantity.h"
#include "cli/plan/host_speed.h"
#include "cli/plan/known_cards.h"
#include "cli/plan/plan_report.h"
#include "data/plan.h"
#include "engine/snapshots/host_memory.h"

namespace simile::cli {
namespace {

constexpr double kPlanTimeoutSeconds = 10;
constexpr std::uint32_t kHitsTypical = 10;

struct PlanFlags {
  ClientFlags client;
  std::vector<std::string> collections;
  std::optional<std::string> host_memory;
  std::optional<std::string> host_bandwidth;
  std::optional<std::string> device;
  std::optional<std::string> device_memory;
  std::optional<std::string> device_bandwidth;
  std::optional<std::uint32_t> batch;
  std::optional<std::uint32_t> k;
  std::optional<double> price_per_hour;
  std::optional<std::string> config;
};

// The quantities of the flags; 0 where one is not given.
struct GivenQuantities {
  double host_memory = 0;
  double host_bandwidth = 0;
  double device_memory = 0;
  double device_bandwidth = 0;
};

absl::Status ReadQuantity(const char* flag, const std::optional<std::string>& text,
                          absl::StatusOr<double> (*parse)(std::string_view), double& quantity) {
  if (!text) return absl::OkStatus();
  const absl::StatusOr<double> parsed = parse(*text);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {}", flag, std::string(parsed.status().message())));
  }
  quantity = *parsed;
  return absl::OkStatus();
}

absl::StatusOr<GivenQuantities> ReadQuantities(const PlanFlags& flags) {
  GivenQuantities given;
  absl::Status status =
      ReadQuantity("--host-memory", flags.host_memory, ParseBytes, given.host_memory);
  status.Update(
      ReadQuantity("--host-bandwidth", flags.host_bandwidth, ParseBandwidth, given.host_bandwidth));
  status.Update(
      ReadQuantity("--device-memory", flags.device_memory, ParseBytes, given.device_memory));
  status.Update(ReadQuantity("--device-bandwidth", flags.device_bandwidth, ParseBandwidth,
                             given.device_bandwidth));
  if (!status.ok()) return status;
  return given;
}

absl::Status CheckPlanFlags(const PlanFlags& flags) {
  if (flags.client.server && !flags.collections.empty()) {
    return absl::InvalidArgumentError("give folders or --server, not both");
  }
  if (flags.price_per_hour &&
      !(*flags.price_per_hour > 0 && std::isfinite(*flags.price_per_hour))) {
    return absl::InvalidArgumentError("--price-per-hour: a price above 0, as in 1.20");
  }
  if (flags.device && !SpeedOfCard(*flags.device)) {
    return absl::InvalidArgumentError(
        fmt::format("--device: {} is not in the table, which has {}; give --device-bandwidth",
                    base::Quoted(*flags.device), KnownCardNames()));
  }
  return ReadQuantities(flags).status();
}

absl::StatusOr<app::ConfigReading> ReadPlanConfig(const PlanFlags& flags) {
  app::ConfigSources sources;
  if (flags.config) sources.file = *flags.config;
  sources.environment = app::ProcessEnvironment();
  std::vector<std::string> collections;
  for (const std::string& each : flags.collections) collections.push_back(NamedFolder(each));
  if (!collections.empty()) sources.flags.push_back({"collections.serve", collections});
  return app::ReadConfig(sources);
}

absl::StatusOr<PlannedCollection> PlanFolder(const app::CollectionConfig& collection,
                                             const Limits& limits,
                                             const backend::cpu::Int8Options& options) {
  const absl::StatusOr<data::DatasetPlan> plan = data::PlanDataset(collection.folder, limits);
  const absl::StatusOr<engine::DataBytes> data =
      plan.ok() ? engine::PlanData(*plan, limits) : plan.status();
  if (!data.ok()) {
    return absl::Status(data.status().code(),
                        fmt::format("{}={}: {}", collection.name, collection.folder.string(),
                                    std::string(data.status().message())));
  }
  PlannedCollection planned;
  planned.name = collection.name;
  planned.rows = plan->row_count;
  planned.dim = plan->dim;
  planned.metric = plan->files.metric;
  planned.users = plan->user_count;
  return PlanCollection(std::move(planned), *data, options);
}

PlannedCollection PlanLoaded(const v1::Collection& collection,
                             const backend::cpu::Int8Options& options) {
  PlannedCollection planned;
  planned.name = collection.name();
  planned.rows = collection.rows();
  planned.dim = collection.dim();
  planned.metric =
      collection.metric() == v1::Collection::METRIC_DOT ? Metric::kDot : Metric::kCosine;
  planned.users = collection.users();
  const v1::ResidentBytes& bytes = collection.bytes();
  engine::DataBytes data;
  data.vectors = bytes.vectors();
  data.payload = bytes.payload();
  data.users = bytes.users();
  planned = PlanCollection(std::move(planned), data, options);
  planned.is_loaded = true;
  // What its own processor and settings made of it.
  planned.memory.resident.index = bytes.index();
  planned.memory.resident.device = bytes.device();
  return planned;
}

absl::StatusOr<std::vector<PlannedCollection>> PlanServer(
    const PlanFlags& flags, const backend::cpu::Int8Options& options) {
  const Connection connection = Connect(flags.client, kPlanTimeoutSeconds);
  const absl::StatusOr<v1::ListCollectionsResponse> listed = connection.List();
  if (!listed.ok()) return listed.status();
  std::vector<PlannedCollection> planned;
  for (const v1::Collection& each : listed->collections()) {
    if (each.rows() > 0) planned.push_back(PlanLoaded(each, options));
  }
  if (planned.empty()) {
    return absl::NotFoundError(fmt::format("{} serves no collection", connection.address()));
  }
  return planned;
}

absl::StatusOr<std::vector<PlannedCollection>> PlanFolders(
    const app::Config& config, const backend::cpu::Int8Options& options) {
  std::vector<PlannedCollection> planned;
  for (const app::CollectionConfig& each : config.collections) {
    absl::StatusOr<PlannedCollection> one = PlanFolder(each, config.limits, options);
    if (!one.ok()) return one.status();
    planned.push_back(*std::move(one));
  }
  return planned;
}

// What this machine leaves for collections and the program.
absl::Status ReadHost(const app::Config& config, const PlanFlags& flags,
                      const GivenQuantities& given, PlanReport& report) {
  if (given.host_memory > 0) {
    const engine::HostMemory memory{static_cast<std::uint64_t>(given.host_memory), ""};
    report.host_available_bytes = engine::MayBeTaken(memory);
    report.host_available_from = fmt::format("nine tenths of the {} of --host-memory",
                                             base::BytesText(memory.available_bytes));
    return absl::OkStatus();
  }
  if (config.memory_bytes_max > 0) {
    report.host_available_bytes = config.memory_bytes_max + kProgramBytes;
    report.host_available_from = "collections.memory_bytes_max and the program";
    return absl::OkStatus();
  }
  const absl::StatusOr<engine::HostMemory> memory = engine::ReadHostMemory();
  if (!memory.ok()) return memory.status();
  report.host_available_bytes = engine::MayBeTaken(*memory);
  report.host_available_from = fmt::format(
      "nine tenths of the {} {}", base::BytesText(memory->available_bytes), memory->origin);
  if (flags.client.server) {
    report.host_available_bytes += report.host.rest_bytes;
    report.host_available_from += ", and what it takes now";
  }
  return absl::OkStatus();
}

// The card to plan for: the given one, else this machine's as the driver's management library
// describes it, without using it.
void ReadDevice(const app::Config& config, const PlanFlags& flags, const GivenQuantities& given,
                PlanReport& report) {
  const backend::GpuOptions& options = config.backend.gpu;
  report.memory_fraction = options.memory_fraction;
  report.reserve_bytes = options.reserve_bytes;
  report.full_goes_to_cpu = config.backend.gpu_when_full == backend::WhenFull::kCpu;
  std::uint64_t memory = static_cast<std::uint64_t>(given.device_memory);
  report.device_name = "--device-memory";
  if (memory == 0) {
    report.device_name = "--device-memory 16GiB plans for a card";
    if (flags.client.server || config.backend.preference == backend::Preference::kCpu) return;
    const auto nvml = backend::Nvml::Open();
    if (!nvml.ok()) return;
    const auto reading = (*nvml)->Read(static_cast<unsigned>(options.device));
    if (!reading.ok() || !reading->memory_total_bytes) return;
    memory = *reading->memory_total_bytes;
    report.device_name = reading->name;
  }
  const std::string card = flags.device.value_or(report.device_name);
  if (const auto speed = SpeedOfCard(card)) {
    report.device_speed = {speed->bytes_per_s, speed->products_per_s};
    report.device_speed_from = fmt::format("data sheet of {}", card);
  }
  if (given.device_bandwidth > 0) {
    report.device_speed = {given.device_bandwidth, 0};
    report.device_speed_from = "--device-bandwidth";
  }
  report.device = PlanDevice(report.collections, options, memory);
  report.pinned_bytes = backend::WorkspaceHostBytes(report.device->workspace);
  if (!report.device->fits()) {
    report.choices = Choices(report.collections, *report.device, options);
  }
}

absl::Status ReadHostSpeed(const PlanFlags& flags, const GivenQuantities& given,
                           const backend::cpu::Int8Options& options, PlanReport& report) {
  if (given.host_bandwidth > 0) {
    report.host_speed.bytes_per_s = given.host_bandwidth;
    report.host_speed_from = "--host-bandwidth";
    return absl::OkStatus();
  }
  if (flags.client.server) return absl::OkStatus();  // it may be another machine
  const RealClock clock;
  const absl::StatusOr<HostSpeed> speed =
      MeasureHostSpeed(options, report.collections.front().dim, clock);
  if (!speed.ok()) return speed.status();
  report.host_speed = {speed->bytes_per_s, speed->products_per_s};
  report.host_speed_from = fmt::format("measured on {}", base::Counted(options.threads, "thread"));
  return absl::OkStatus();
}

absl::StatusOr<PlanReport> MakeReport(const PlanFlags& flags, const app::Config& config) {
  const absl::StatusOr<GivenQuantities> given = ReadQuantities(flags);
  if (!given.ok()) return given.status();
  backend::RegistryOptions registry = config.backend;
  registry.tuning = app::KnownTuning(config).tuning;
  const absl::StatusOr<backend::cpu::Int8Options> options = backend::CpuOptionsOf(registry);
  if (!options.ok()) return options.status();
  PlanReport report;
  auto planned = flags.client.server ? PlanServer(flags, *options) : PlanFolders(config, *options);
  if (!planned.ok()) return planned.status();
  report.collections = *std::move(planned);
  report.batch_max = flags.batch.value_or(config.limits.batch_queries_max);
  report.k = flags.k.value_or(kHitsTypical);
  report.k_max = config.limits.k_max;
  report.threads = options->threads;
  report.price_per_hour = flags.price_per_hour;
  ReadDevice(config, flags, *given, report);
  report.host = PlanHost(report.collections, report.pinned_bytes);
  if (absl::Status status = ReadHost(config, flags, *given, report); !status.ok()) return status;
  const absl::Status speed = ReadHostSpeed(flags, *given, *options, report);
  if (!speed.ok()) return speed;
  return report;
}

int RunPlan(const PlanFlags& flags) {
  const absl::StatusOr<app::ConfigReading> reading = ReadPlanConfig(flags);
  if (!reading.ok()) {
    Fail(reading.status(), flags.client.json);
    return kWrongUsage;
  }
  if (!flags.client.server && reading->config.collections.empty()) {
    Fail(absl::InvalidArgumentError("nothing to plan: name a folder, as in simile plan "
                                    "examples/films, or a --server"),
         flags.client.json);
    return kWrongUsage;
  }
  const absl::StatusOr<PlanReport> report = MakeReport(flags, reading->config);
  if (!report.ok()) return Fail(report.status(), flags.client.json);
  fmt::print("{}", flags.client.json ? PlanJson(*report) : PlanText(*report, StandardOutput()));
  std::fflush(stdout);  // so that the suggestion follows it
  if (!flags.client.json && !flags.collections.empty() && Fits(*report)) {
    SuggestNext(
        fmt::format("simile serve --collection {}", NamedFolder(flags.collections.front())));
  }
  return Fits(*report) ? kSucceeded : kFailed;
}

}  // namespace

void AddPlanCommand(CommandLine& line) {
  auto flags = std::make_shared<PlanFlags>();
  Command command = line.Add("plan", "Say what collections take on host and GPU before they load");
  command
      .Texts("NAME=FOLDER", flags->collections, "",
             "A collection to plan, or its FOLDER alone (default: those of the configuration)")
      .Paths(PathKind::kNamedFolder)
      .Text("--device-memory", flags->device_memory, "SIZE",
            "Plan for a card with this memory: 16GiB (default: this machine's card, if it has one)")
      .Text("--device", flags->device, "NAME",
            "The card whose data sheet says how fast it is: T4 (default: this machine's)")
      .Text("--device-bandwidth", flags->device_bandwidth, "RATE",
            "The card's memory bandwidth, of one that is not known: 300GB/s")
      .Text("--host-memory", flags->host_memory, "SIZE",
            "Plan for a host with this much available (default: this one's)")
      .Text("--host-bandwidth", flags->host_bandwidth, "RATE",
            "The host's memory bandwidth: 20GB/s (default: measured, in about a second)")
      .Number("--batch", flags->batch, "N", "The largest batch (default limits.batch_queries_max)",
              1)
      .Number("-k", flags->k, "N", fmt::format("Hits of each query (default {})", kHitsTypical), 1)
      .Real("--price-per-hour", flags->price_per_hour, "PRICE",
            "What the machine costs: adds the least cost of a million queries")
      .File("--config", flags->config, "FILE", "A JSON file of settings (or SIMILE_CONFIG)");
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kPlanTimeoutSeconds));
  command.Check([flags] { return CheckPlanFlags(*flags); })
      .Footer(
          "simile plan examples/films --device T4 --device-memory 15GiB --price-per-hour 1.20\n"
          "Reads headers, sizes and at most 4 MiB of each other file; calls no server but the one "
          "of --server, and then plans what its collections take now. Uses the settings that serve "
          "would: gpu.memory_fraction, "
          "gpu.reserve_mib, limits, tuning.\nExit codes: 0 it fits, 1 it does not, or an error.")
      .Run([flags] { return RunPlan(*flags); });
}

}  // namespace simile::cli
