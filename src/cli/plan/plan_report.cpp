#include "cli/plan/plan_report.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/display_text.h"
#include "cli/json_line.h"
#include "cli/table.h"
#include "cli/time_text.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;
using base::BytesText;

std::string BytesOrDash(std::uint64_t bytes) { return bytes == 0 ? "-" : BytesText(bytes); }

std::string BandwidthText(double bytes_per_s) {
  return bytes_per_s >= 1e12 ? fmt::format("{:.2f} TB/s", bytes_per_s / 1e12)
                             : fmt::format("{:.1f} GB/s", bytes_per_s / 1e9);
}

// Three digits without an exponent: `0.00000333`, `0.333`, `1234`.
std::string DigitsText(double number) {
  const int whole = static_cast<int>(std::floor(std::log10(number)));
  return fmt::format("{:.{}f}", number, std::clamp(2 - whole, 0, 12));
}

// `films  5,000 vectors x 384 (cosine), 500 users`
std::string HeadOf(const PlannedCollection& each) {
  return fmt::format("{}  {} x {} ({}){}{}", Printable(each.name),
                     base::Counted(each.rows, "vector"), each.dim,
                     each.metric == Metric::kCosine ? "cosine" : "dot",
                     each.users > 0 ? fmt::format(", {}", base::Counted(each.users, "user")) : "",
                     each.is_loaded ? ", loaded" : "");
}

std::uint64_t ReloadOf(const PlannedCollection& each) {
  return each.memory.ReloadPeakBytes(each.memory.resident.host(), false);
}

std::string HostTable(const PlanReport& report, const Terminal& terminal) {
  Table table({{"host", Align::kLeft, true},
               {"vectors", Align::kRight},
               {"payload", Align::kRight},
               {"users", Align::kRight},
               {"index", Align::kRight},
               {"at rest", Align::kRight},
               {"reload peak", Align::kRight}});
  for (const PlannedCollection& each : report.collections) {
    const engine::ResidentBytes& bytes = each.memory.resident;
    table.AddRow({each.name, BytesText(bytes.vectors), BytesOrDash(bytes.payload),
                  BytesOrDash(bytes.users), BytesOrDash(bytes.index), BytesText(bytes.host()),
                  BytesText(ReloadOf(each))});
  }
  table.AddRow({"program", "", "", "", "", BytesText(kProgramBytes), BytesText(kProgramBytes)});
  if (report.pinned_bytes > 0) {
    const std::string pinned = BytesText(report.pinned_bytes);
    table.AddRow({"pinned for the GPU", "", "", "", "", pinned, pinned});
  }
  table.AddRow({"together", "", "", "", "", BytesText(report.host.rest_bytes),
                BytesText(report.host.reload_bytes)});
  return table.Render(terminal, 0);
}

bool HostFits(const PlanReport& report) {
  return report.host.reload_bytes <= report.host_available_bytes.value_or(UINT64_MAX);
}

std::string HostFitText(const PlanReport& report) {
  std::string text;
  auto out = std::back_inserter(text);
  if (!report.host_available_bytes) {
    text += "  how much may be taken is not known; give --host-memory\n";
  } else {
    const std::uint64_t available = *report.host_available_bytes;
    const char* const fit = HostFits(report)                      ? "fits"
                            : report.host.rest_bytes <= available ? "fits, but for a reload"
                                                                  : "does not fit";
    fmt::format_to(out, "  {}: {} may be taken\n  ({})\n", fit, BytesText(available),
                   report.host_available_from);
  }
  if (report.device && report.device->fits()) {
    text +=
        "  the index is built only when the CPU must answer; a load reserves it\n"
        "  what the GPU's driver takes on the host is not planned\n";
  }
  if (report.host.held_bytes > report.host.reload_bytes) {
    fmt::format_to(out, "  {} where callers still page through what a reload replaces\n",
                   BytesText(report.host.held_bytes));
  }
  for (const PlannedCollection& each : report.collections) {
    if (each.is_sampled) {
      fmt::format_to(out, "  {}: the payload is estimated from a part of its file\n",
                     Printable(each.name));
    }
    if (each.is_loaded) {
      fmt::format_to(out,
                     "  {}: without what a load takes for a moment; give its folder for that\n",
                     Printable(each.name));
    }
  }
  return text;
}

std::string DeviceTable(const PlanReport& report, const Terminal& terminal) {
  const DevicePlan& plan = *report.device;
  Table table({{"device", Align::kLeft, true},
               {"fp16 rows", Align::kRight},
               {"fp32 rows", Align::kRight},
               {"int8 rows", Align::kRight},
               {"other", Align::kRight},
               {"at rest", Align::kRight},
               {"reload peak", Align::kRight}});
  for (std::size_t i = 0; i < plan.shares.size(); ++i) {
    const backend::ResidentSize& size = plan.shares[i].size;
    table.AddRow(
        {report.collections[i].name, BytesText(size.fp16_rows),
         size.rows == 0 ? "on host" : BytesText(size.rows),
         size.int8_rows == 0 ? "none" : BytesText(size.int8_rows),
         BytesText(size.row_numbers + size.filters), BytesText(size.total()),
         plan.shares[i].reload_fits ? BytesText(size.total() + plan.shares[i].second_bytes) : "-"});
  }
  table.AddRow({"workspace", "", "", "", "", BytesText(plan.workspace_bytes),
                BytesText(plan.workspace_bytes)});
  table.AddRow({"together", "", "", "", "", BytesText(plan.needed_bytes),
                plan.fits() ? BytesText(plan.reload_bytes) : "-"});
  return table.Render(terminal, 0);
}

// Which collections do not, by name: `films, books`.
std::string NamesWithout(const PlanReport& report, bool DeviceShare::*holds) {
  std::string names;
  for (std::size_t i = 0; i < report.collections.size(); ++i) {
    if (report.device->shares[i].*holds) continue;
    if (!names.empty()) names += ", ";
    names += Printable(report.collections[i].name);
  }
  return names;
}

std::string DeviceFitText(const PlanReport& report) {
  const DevicePlan& plan = *report.device;
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "  {}: {} x {:.2f} - {} reserved = {} may be taken\n  ({}{}{})\n",
                 plan.fits() ? "fits" : "does not fit", BytesText(plan.memory_bytes),
                 report.memory_fraction, BytesText(report.reserve_bytes),
                 BytesText(plan.budget_bytes), Printable(report.card),
                 report.card.empty() ? "" : ", ", report.card_origin);
  if (report.int8_is_assumed) {
    text += "  int8 rows are assumed: a card before sm_80 keeps none (gpu.int8)\n";
  }
  if (!plan.fits()) {
    fmt::format_to(out, "  choices  {}\n", fmt::join(report.choices, "\n           "));
    return text;
  }
  const std::string names = NamesWithout(report, &DeviceShare::reload_fits);
  if (!names.empty()) {
    fmt::format_to(out, "  no second generation fits beside {}: a reload {}\n", names,
                   report.full_goes_to_cpu ? "goes to the CPU (gpu.when_full = cpu)"
                                           : "is refused (gpu.when_full = refuse)");
  }
  return text;
}

std::string LimitsText(const PlanReport& report) {
  std::string text =
      fmt::format("limits  batch {} (limits.batch_queries_max), k {} (limits.k_max)\n",
                  base::Grouped(report.batch_max), base::Grouped(report.k_max));
  const PlannedCollection& first = report.collections.front();
  const auto k_most = static_cast<std::uint32_t>(std::min<std::uint64_t>(report.k_max, first.rows));
  for (const std::uint32_t k : {report.k, k_most}) {
    fmt::format_to(std::back_inserter(text), "  queries of one pass at k {}: {} on the CPU",
                   base::Grouped(k),
                   base::Grouped(HostPassQueries(first, k, report.batch_max, report.threads)));
    if (report.device) {
      fmt::format_to(std::back_inserter(text), ", at most {} on the GPU",
                     base::Grouped(backend::PassQueriesMax(report.device->workspace, k)));
    }
    text += '\n';
    if (k_most <= report.k) break;
  }
  return text;
}

std::string FloorTable(const PlanReport& report, const Terminal& terminal) {
  const bool priced = report.price_per_hour.has_value();
  std::vector<Table::Column> columns = {{"at best", Align::kLeft, true}, {"on"},
                                        {"batch", Align::kRight},        {"takes", Align::kRight},
                                        {"queries", Align::kRight},      {"bound by"}};
  if (priced) columns.push_back({"cost of 1M queries", Align::kRight});
  Table table(columns);
  for (std::size_t i = 0; i < report.collections.size(); ++i) {
    for (const SpeedFloor& floor : FloorsOf(report, i)) {
      std::vector<std::string> cells = {
          report.collections[i].name,      floor.where,
          base::Grouped(floor.batch),      ShortTimeText(floor.seconds),
          RateText(floor.queries_per_s()), floor.is_arithmetic ? "arithmetic" : "memory"};
      if (priced) cells.push_back(DigitsText(floor.CostOfMillion(*report.price_per_hour)));
      table.AddRow(std::move(cells));
    }
  }
  return table.Render(terminal, 0);
}

// `29.2 GB/s from memory, 181.3 GB/s from caches, 2.81 T multiply-adds/s`
std::string SpeedText(const SpeedLimits& speed) {
  std::string text = fmt::format("{} from memory", BandwidthText(speed.bytes_per_s));
  text += speed.cached.empty()
              ? ", caches not counted"
              : fmt::format(", {} from caches", BandwidthText(speed.cached.front().bytes_per_s));
  return text + (speed.products_per_s == 0 ? ", multiplying not counted"
                                           : fmt::format(", {} T multiply-adds/s",
                                                         DigitsText(speed.products_per_s / 1e12)));
}

std::string SpeedSources(const PlanReport& report) {
  std::string text;
  if (report.host_speed.bytes_per_s > 0) {
    text +=
        fmt::format("  cpu: {}\n  ({})\n", SpeedText(report.host_speed), report.host_speed_from);
  }
  if (report.device && report.device_speed.bytes_per_s > 0) {
    text += fmt::format("  gpu: {}\n  ({})\n", SpeedText(report.device_speed),
                        report.device_speed_from);
  }
  return text + "  without network, payload and waiting; `simile bench` measures a server\n";
}

Json NumberOrNull(double number) { return number > 0 ? Json(number) : Json(); }

Json FloorJson(const SpeedFloor& floor, const std::optional<double>& price) {
  Json json = {{"on", floor.where},
               {"batch", floor.batch},
               {"seconds", floor.seconds},
               {"queries_per_s", floor.queries_per_s()},
               {"bound_by", floor.is_arithmetic ? "arithmetic" : "memory"},
               {"cost_of_million", nullptr}};
  if (price) json["cost_of_million"] = floor.CostOfMillion(*price);
  return json;
}

Json CollectionPlanJson(const PlanReport& report, std::size_t index) {
  const PlannedCollection& each = report.collections[index];
  const engine::ResidentBytes& bytes = each.memory.resident;
  Json floors = Json::array();
  for (const SpeedFloor& floor : FloorsOf(report, index)) {
    floors.push_back(FloorJson(floor, report.price_per_hour));
  }
  Json json = {{"name", each.name},
               {"rows", each.rows},
               {"dim", each.dim},
               {"metric", each.metric == Metric::kCosine ? "cosine" : "dot"},
               {"users", each.users},
               {"loaded", each.is_loaded},
               {"sampled", each.is_sampled},
               {"host",
                {{"vectors", bytes.vectors},
                 {"payload", bytes.payload},
                 {"users", bytes.users},
                 {"index", bytes.index},
                 {"rest", bytes.host()},
                 {"load_peak", each.memory.peak_bytes()},
                 {"reload_peak", ReloadOf(each)},
                 {"reload_peak_held", each.memory.ReloadPeakBytes(bytes.host(), true)}}},
               {"device", nullptr},
               {"floors", std::move(floors)}};
  if (report.device) {
    const DeviceShare& share = report.device->shares[index];
    json["device"] = {{"fp16_rows", share.size.fp16_rows},
                      {"fp32_rows", share.size.rows},
                      {"int8_rows", share.size.int8_rows},
                      {"row_numbers", share.size.row_numbers},
                      {"filters", share.size.filters},
                      {"rest", share.size.total()},
                      {"fits", share.fits},
                      {"reload_fits", share.reload_fits}};
  }
  return json;
}

Json DeviceJson(const PlanReport& report) {
  if (!report.device) return nullptr;
  const DevicePlan& plan = *report.device;
  return {{"name", report.card},
          {"origin", report.card_origin},
          {"memory", plan.memory_bytes},
          {"memory_fraction", report.memory_fraction},
          {"reserve", report.reserve_bytes},
          {"available", plan.budget_bytes},
          {"workspace", plan.workspace_bytes},
          {"needed", plan.needed_bytes},
          {"rest", plan.rest_bytes},
          {"reload_peak", plan.reload_bytes},
          {"fits", plan.fits()},
          {"int8_assumed", report.int8_is_assumed},
          {"choices", report.choices},
          {"bandwidth", NumberOrNull(report.device_speed.bytes_per_s)},
          {"products_per_s", NumberOrNull(report.device_speed.products_per_s)}};
}

}  // namespace

std::vector<SpeedFloor> FloorsOf(const PlanReport& report, std::size_t collection) {
  const PlannedCollection& each = report.collections[collection];
  std::vector<SpeedFloor> floors;
  const SpeedLimits& host = report.host_speed;
  const SpeedLimits& gpu = report.device_speed;
  const bool on_device = report.device && report.device->shares[collection].fits;
  for (const std::uint32_t batch : {1U, report.batch_max}) {
    if (host.bytes_per_s > 0 && (batch == 1 || host.products_per_s > 0)) {
      floors.push_back(FloorOnHost(each, batch, host));
    }
    if (on_device && gpu.bytes_per_s > 0 && (batch == 1 || gpu.products_per_s > 0)) {
      floors.push_back(FloorOnDevice(each, batch, report.k, report.device->workspace, gpu,
                                     report.device->shares[collection].size));
    }
    if (report.batch_max == 1) break;
  }
  return floors;
}

bool Fits(const PlanReport& report) {
  if (!HostFits(report)) return false;
  if (!report.device) return true;
  return report.device->fits() &&
         (report.full_goes_to_cpu ||
          std::ranges::all_of(report.device->shares, &DeviceShare::reload_fits));
}

std::string PlanText(const PlanReport& report, const Terminal& terminal) {
  std::string text;
  for (const PlannedCollection& each : report.collections) {
    text += Bold(HeadOf(each), terminal) + '\n';
  }
  text += '\n' + HostTable(report, terminal) + HostFitText(report);
  if (report.device) {
    text += '\n' + DeviceTable(report, terminal) + DeviceFitText(report);
  } else {
    fmt::format_to(std::back_inserter(text),
                   "\nno card planned: {}\n  (--device-memory 16GiB plans for one)\n",
                   Printable(report.no_device_reason));
  }
  text += '\n' + LimitsText(report);
  if (!FloorsOf(report, 0).empty()) {
    text += '\n' + FloorTable(report, terminal) + SpeedSources(report);
  }
  return text;
}

std::string PlanJson(const PlanReport& report) {
  Json collections = Json::array();
  for (std::size_t i = 0; i < report.collections.size(); ++i) {
    collections.push_back(CollectionPlanJson(report, i));
  }
  const auto& available = report.host_available_bytes;
  return JsonLine({{"collections", std::move(collections)},
                   {"host",
                    {{"program", kProgramBytes},
                     {"pinned", report.pinned_bytes},
                     {"rest", report.host.rest_bytes},
                     {"reload_peak", report.host.reload_bytes},
                     {"reload_peak_held", report.host.held_bytes},
                     {"available", available ? Json(*available) : Json()},
                     {"fits", available ? Json(HostFits(report)) : Json()},
                     {"bandwidth", NumberOrNull(report.host_speed.bytes_per_s)},
                     {"products_per_s", NumberOrNull(report.host_speed.products_per_s)}}},
                   {"device", DeviceJson(report)},
                   {"limits", {{"batch", report.batch_max}, {"k", report.k_max}}},
                   {"fits", Fits(report)}});
}

}  // namespace simile::cli
