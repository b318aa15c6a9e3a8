#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "app/config/config_read.h"
#include "app/config/settings.h"
#include "app/tuning/better_tuning.h"
#include "app/tuning/processor_load.h"
#include "app/tuning/tuning.h"
#include "backend/accelerator_kinds.h"
#include "backend/nvml.h"
#include "backend/registry.h"
#include "base/message_text.h"
#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/plan/known_cards.h"
#include "cli/plan/plan_report.h"
#include "cli/plan/this_machine.h"
#include "cli/quantity_text.h"
#include "cli/settings_flags.h"
#include "data/load/plan.h"
#include "engine/snapshots/memory_plan.h"

namespace simile::cli {
namespace {

constexpr double kPlanTimeoutSeconds = 10;
constexpr std::uint32_t kHitsTypical = 10;

struct PlanFlags {
  ClientFlags client;
  std::vector<std::string> collections;
  std::optional<std::string> host_memory;
  std::optional<std::string> host_bandwidth;
  std::optional<std::string> card;
  std::optional<std::string> device_memory;
  std::optional<std::string> device_bandwidth;
  std::optional<std::string> capability;
  std::optional<std::uint32_t> batch;
  std::optional<std::uint32_t> k;
  std::optional<double> price_per_hour;
  std::optional<std::string> config;
};

// The quantities of the flags; 0 if not given.
struct GivenQuantities {
  double host_memory = 0;
  double host_bandwidth = 0;
  double device_memory = 0;
  double device_bandwidth = 0;
  int capability = 0;
};

// Parses "8.6", "86" or "sm_86".
absl::StatusOr<int> ParseCapability(std::string_view text) {
  constexpr int kLeast = 10, kMost = 199;  // capabilities 1.0 and 19.9
  std::string digits;
  for (const char c : text.substr(text.starts_with("sm_") ? 3 : 0)) {
    if (c != '.') digits += c;
  }
  int capability = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), capability);
  if (error != std::errc() || end != digits.data() + digits.size() || capability < kLeast ||
      capability > kMost) {
    return absl::InvalidArgumentError(fmt::format(
        "--capability: {} is not a compute capability, as in 8.6 or 86", base::Quoted(text)));
  }
  return capability;
}

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
  if (flags.capability) {
    const absl::StatusOr<int> capability = ParseCapability(*flags.capability);
    if (!capability.ok()) return capability.status();
    given.capability = *capability;
  }
  return given;
}

// Checks a flag that replaces a setting with the setting's bounds.
absl::Status CheckBatch(std::uint32_t batch) {
  constexpr const char* kKey = "limits.batch_queries_max";
  app::Config config;
  const absl::Status status =
      app::Settings()[app::SettingIndex(kKey)].set({std::to_string(batch)}, config);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      fmt::format("--batch: {}, as {} is", std::string(status.message()), kKey));
}

// Whether the flags say enough to compute a price.
bool KnowsSpeed(const PlanFlags& flags) {
  const bool knows_card = flags.card || (flags.device_memory && flags.device_bandwidth);
  return !flags.client.server || flags.host_bandwidth || knows_card;
}

absl::Status CheckPlanFlags(const PlanFlags& flags) {
  if (flags.client.server && !flags.collections.empty()) {
    return absl::InvalidArgumentError("give folders or --server, not both");
  }
  if (flags.price_per_hour && !(*flags.price_per_hour > 0 && *flags.price_per_hour <= 1e6)) {
    return absl::InvalidArgumentError(
        "--price-per-hour: give a price above 0, at most a million, as in 1.20");
  }
  if (flags.price_per_hour && !KnowsSpeed(flags)) {
    return absl::InvalidArgumentError(
        "--price-per-hour: a server's machine is not measured from here; give its "
        "--host-bandwidth, or a --card");
  }
  if (flags.card && !FindCardFacts(*flags.card)) {
    return absl::InvalidArgumentError(
        fmt::format("--card: {} is not in the table (docs/cards.md).{} For another card give "
                    "--device-memory, --device-bandwidth and --capability",
                    base::Quoted(*flags.card), CardsLike(*flags.card)));
  }
  if (flags.batch) {
    if (absl::Status status = CheckBatch(*flags.batch); !status.ok()) return status;
  }
  return ReadQuantities(flags).status();
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
  // The sizes that the server's own processor and settings led to.
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

// Reads how much host memory collections and program may take. The host of a --server is not known.
absl::Status ReadHost(const app::Config& config, const PlanFlags& flags,
                      const GivenQuantities& given, PlanReport& report) {
  absl::StatusOr<engine::HostMemory> memory =
      engine::HostMemory{static_cast<std::uint64_t>(given.host_memory), "of --host-memory"};
  if (given.host_memory == 0 && !flags.client.server) memory = engine::ReadHostMemory();
  if (!memory.ok()) return memory.status();
  if (memory->available_bytes > 0) {
    report.host_available_bytes = engine::MayBeTaken(*memory);
    report.host_available_from = fmt::format(
        "nine tenths of the {} {}", base::BytesText(memory->available_bytes), memory->origin);
  }
  // This setting bounds collections alone.
  const std::uint64_t allowed = config.memory_bytes_max + kProgramBytes + report.pinned_bytes;
  if (config.memory_bytes_max > 0 && allowed < report.host_available_bytes.value_or(UINT64_MAX)) {
    report.host_available_bytes = allowed;
    report.host_available_from =
        fmt::format("collections.memory_bytes_max, {}, and the program's memory",
                    base::BytesText(config.memory_bytes_max));
  }
  return absl::OkStatus();
}

// The card to plan for: the one that flags give, or else the one that a server here would use.
absl::StatusOr<FoundCard> ChooseCard(const app::Config& config, const PlanFlags& flags,
                                     const GivenQuantities& given) {
  const std::optional<CardFacts> facts = flags.card ? FindCardFacts(*flags.card) : std::nullopt;
  if (given.device_memory > 0) {
    return FoundCard{facts ? facts->name : "", "--device-memory",
                     static_cast<std::uint64_t>(given.device_memory)};
  }
  if (facts) {
    return FoundCard{facts->name, fmt::format("--card, {} GB by its data sheet", facts->memory_gib),
                     facts->memory_bytes};
  }
  if (flags.client.server)
    return absl::NotFoundError("a server does not say how much memory its card has");
  if (config.backend.preference == backend::Preference::kCpu) {
    return absl::NotFoundError("backend.preference is cpu");
  }
  return FindCard(config.backend.gpu.device, backend::DefaultGpuSearches().front(),
                  backend::kNvmlLibrary);
}

// Reads the card's speed: the facts known for its name, overridden by the given quantities.
void ReadDeviceSpeed(const std::string& card, const GivenQuantities& given, PlanReport& report) {
  if (const std::optional<CardFacts> facts = FindCardFacts(card)) {
    report.known_card = facts->name;
    report.device_speed = facts->speed;
    report.device_speed_from = fmt::format("{} of {}", facts->source, facts->name);
  }
  if (given.device_bandwidth > 0 || given.capability > 0) report.known_card.clear();
  if (given.device_bandwidth > 0) {
    report.device_speed.limits = {given.device_bandwidth, 0, {}};
    report.device_speed.scan_products_per_s = 0;
    report.device_speed_from = "--device-bandwidth";
  }
  if (given.capability > 0) report.device_speed.capability = given.capability;
}

void ReadDevice(const app::Config& config, const PlanFlags& flags, const GivenQuantities& given,
                PlanReport& report) {
  backend::GpuOptions options = config.backend.gpu;
  report.memory_fraction = options.memory_fraction;
  report.reserve_bytes = options.reserve_bytes;
  report.full_goes_to_cpu = config.backend.gpu_when_full == backend::WhenFull::kCpu;
  const absl::StatusOr<FoundCard> found = ChooseCard(config, flags, given);
  if (!found.ok()) {
    report.no_device_reason = std::string(found.status().message());
    return;
  }
  report.card = found->name;
  report.card_origin = found->origin;
  ReadDeviceSpeed(flags.card.value_or(found->name), given, report);
  const int capability = report.device_speed.capability;
  if (capability != 0 && capability < backend::kGpuCodeMin) {
    report.no_device_reason = fmt::format(
        "{} is sm_{}, for which there is no code; the lowest is sm_{}",
        report.card.empty() ? "this card" : report.card, capability, backend::kGpuCodeMin);
    return;
  }
  options.int8_rows = options.int8_rows && (capability == 0 || capability >= backend::kInt8ScanMin);
  report.device = PlanDevice(report.collections, options, found->memory_bytes);
  report.int8_is_assumed =
      capability == 0 && std::ranges::any_of(report.device->shares, [](const DeviceShare& share) {
        return share.size.int8_rows > 0;
      });
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
  if (flags.client.server) return absl::OkStatus();  // the server may be on another machine
  // Measures with the widest vectors, whose rate is the best. So the floors of collections with
  // narrower vectors stay floors.
  const auto widest = std::ranges::max(report.collections, {}, &PlannedCollection::dim);
  const RealClock clock;
  app::ProcessorLoad load;
  absl::StatusOr<SpeedLimits> speed = MeasureHostSpeed(options, widest.dim, clock);
  if (!speed.ok()) return speed.status();
  report.host_speed = *std::move(speed);
  report.host_speed_from = fmt::format("measured on {}", base::Counted(options.threads, "thread"));
  if (const double others = load.OthersSinceLastCall(); others > app::kOtherLoadMax) {
    report.host_speed_from += fmt::format(
        ";\n   other programs took {:.0f} % of the processors, so less is possible when they rest",
        100 * others);
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanReport> MakeReport(const PlanFlags& flags, const app::Config& config) {
  const absl::StatusOr<GivenQuantities> given = ReadQuantities(flags);
  if (!given.ok()) return given.status();
  const absl::StatusOr<backend::cpu::Int8Options> options =
      backend::MakeCpuOptions(app::KnownTuning(config).Over(config.backend));
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
  const absl::StatusOr<app::ConfigReading> reading =
      ReadConfigFor(flags.config, flags.collections, std::nullopt);
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
  if (const std::uint32_t k_max = reading->config.limits.k_max; flags.k.value_or(0) > k_max) {
    Fail(absl::InvalidArgumentError(fmt::format(
             "-k: {} is not a whole number from 1 to {}, which is limits.k_max", *flags.k, k_max)),
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
            "Plan for a card with this memory: 16GiB (default: that of --card)")
      .Text("--card", flags->card, "NAME",
            "Plan for this card: T4, \"RTX A5000\" (default: this machine's card, if it has one)")
      .Text("--device-bandwidth", flags->device_bandwidth, "RATE",
            "The card's memory bandwidth, if the card is unknown: 300GB/s")
      .Text("--capability", flags->capability, "N.M",
            "Its compute capability, which decides the strategies it runs: 8.6")
      .Text("--host-memory", flags->host_memory, "SIZE",
            "Plan for a host with this much available (default: this one's)")
      .Text("--host-bandwidth", flags->host_bandwidth, "RATE",
            "The host's memory bandwidth: 20GB/s (default: measured, in about a second)")
      .Number("--batch", flags->batch, "N", "The largest batch (default limits.batch_queries_max)",
              1)
      .Number("-k", flags->k, "N", fmt::format("Hits of each query (default {})", kHitsTypical), 1)
      .Real("--price-per-hour", flags->price_per_hour, "PRICE",
            "What the machine costs: adds what a million queries cost")
      .File("--config", flags->config, "FILE", "A JSON file of settings (or SIMILE_CONFIG)");
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kPlanTimeoutSeconds),
                 "Plan what this server has loaded");
  command.Check([flags] { return CheckPlanFlags(*flags); })
      .Footer(
          "simile plan examples/films --card T4 --price-per-hour 1.20\n"
          "Reads headers, sizes and at most 4 MiB of each other file, and uses the settings that "
          "serve would: gpu, limits, tuning. With --server it plans what the server's collections "
          "take now; its machine is known by what you give, as --host-memory.\n"
          "Exit codes: 0 it fits, 1 it does not, or an error.")
      .Run([flags] { return RunPlan(*flags); });
}

}  // namespace simile::cli
