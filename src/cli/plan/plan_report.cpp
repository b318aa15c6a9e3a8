#include "cli/plan/plan_report.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/output_text.h"
#include "cli/plan/known_cards.h"
#include "cli/quantity_text.h"
#include "cli/table.h"
#include "data/load/collection_files.h"

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
std::string FormatHead(const PlannedCollection& each) {
  return fmt::format("{}  {} x {} ({}){}{}", Printable(each.name),
                     base::Counted(each.rows, "vector"), each.dim, data::NameOf(each.metric),
                     each.users > 0 ? fmt::format(", {}", base::Counted(each.users, "user")) : "",
                     each.is_loaded ? ", loaded" : "");
}

std::uint64_t HostReloadBytes(const PlannedCollection& each) {
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
                  BytesText(HostReloadBytes(each))});
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
    fmt::format_to(out, "  {} while callers still page through the replaced generation\n",
                   BytesText(report.host.held_bytes));
  }
  for (const PlannedCollection& each : report.collections) {
    if (each.is_sampled) {
      fmt::format_to(out, "  {}: the payload is estimated from a part of its file\n",
                     Printable(each.name));
    }
    if (each.is_loaded) {
      fmt::format_to(out, "  {}: the temporary memory of a load is not known; give its folder\n",
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

// The names of the collections for which `holds` is false: `films, books`.
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
    text += "  int8 rows are assumed: a card before sm_80 keeps none (--card, --capability)\n";
  }
  if (!plan.fits()) {
    fmt::format_to(out, "  choices  {}\n", fmt::join(report.choices, "\n           "));
    return text;
  }
  if (const int capability = report.device_speed.capability; capability != 0) {
    fmt::format_to(out, "  sm_{}    {}\n", capability,
                   fmt::join(ListStrategies(capability), "\n           "));
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

std::string TimeTable(const PlanReport& report, const Terminal& terminal) {
  const bool priced = report.price_per_hour.has_value();
  std::vector<Table::Column> columns = {{"times", Align::kLeft, true},
                                        {"on"},
                                        {"batch", Align::kRight},
                                        {"what"},
                                        {"takes", Align::kRight},
                                        {"queries", Align::kRight},
                                        {"basis"}};
  if (priced) columns.push_back({"cost of 1M", Align::kRight});
  Table table(columns);
  for (std::size_t i = 0; i < report.collections.size(); ++i) {
    for (const PlanFigure& figure : MakeFigures(report, i)) {
      std::vector<std::string> cells = {report.collections[i].name,
                                        figure.where,
                                        base::Grouped(figure.batch),
                                        figure.what,
                                        figure.seconds > 0 ? ShortTimeText(figure.seconds) : "",
                                        RateText(figure.queries_per_s),
                                        std::string(BasisText(figure.basis))};
      if (priced) {
        cells.push_back(figure.is_served ? DigitsText(figure.CostOfMillion(*report.price_per_hour))
                                         : "");
      }
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
  if (report.device && report.device_speed.limits.bytes_per_s > 0) {
    text += fmt::format("  gpu: {}\n  ({})\n", SpeedText(report.device_speed.limits),
                        report.device_speed_from);
  }
  return text;
}

// Explains the figures' kinds, and names the cards that they are scaled from.
std::string BasisNotes(const PlanReport& report) {
  std::set<std::string> from;
  bool has_floor_of_server = false;
  for (std::size_t i = 0; i < report.collections.size(); ++i) {
    for (const PlanFigure& figure : MakeFigures(report, i)) {
      if (figure.basis == Basis::kScaled && !figure.from.empty()) from.insert(figure.from);
      has_floor_of_server |= figure.is_served && figure.basis == Basis::kFloor;
    }
  }
  std::string text = "  floor: it takes at least this long\n";
  if (!from.empty()) {
    fmt::format_to(
        std::back_inserter(text),
        "  scaled: from what was measured on the {}, with the host's share on an H100's\n",
        fmt::join(from, " and the "));
  }
  if (has_floor_of_server)
    text += "  a server's floor: the engine's floor and the server's measured share\n";
  fmt::format_to(std::back_inserter(text),
                 "  the server's share was measured at k {}, without payload; longer answers take\n"
                 "  more, other hosts differ: `simile bench` measures yours (docs/cards.md)\n",
                 kServedHits);
  return text;
}

Json NumberOrNull(double number) { return number > 0 ? Json(number) : Json(); }

Json FigureJson(const PlanFigure& figure, const std::optional<double>& price) {
  Json json = {{"on", figure.where},
               {"batch", figure.batch},
               {"what", figure.what},
               {"seconds", NumberOrNull(figure.seconds)},
               {"queries_per_s", figure.queries_per_s},
               {"basis", BasisText(figure.basis)},
               {"scaled_from", nullptr},
               {"cost_of_million", nullptr}};
  if (figure.basis == Basis::kScaled && !figure.from.empty()) json["scaled_from"] = figure.from;
  if (price && figure.is_served) json["cost_of_million"] = figure.CostOfMillion(*price);
  return json;
}

Json CollectionPlanJson(const PlanReport& report, std::size_t index) {
  const PlannedCollection& each = report.collections[index];
  const engine::ResidentBytes& bytes = each.memory.resident;
  Json times = Json::array();
  for (const PlanFigure& figure : MakeFigures(report, index)) {
    times.push_back(FigureJson(figure, report.price_per_hour));
  }
  Json json = {{"name", each.name},
               {"rows", each.rows},
               {"dim", each.dim},
               {"metric", data::NameOf(each.metric)},
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
                 {"reload_peak", HostReloadBytes(each)},
                 {"reload_peak_held", each.memory.ReloadPeakBytes(bytes.host(), true)}}},
               {"device", nullptr},
               {"times", std::move(times)}};
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
          {"bandwidth", NumberOrNull(report.device_speed.limits.bytes_per_s)},
          {"products_per_s", NumberOrNull(report.device_speed.limits.products_per_s)},
          {"capability",
           report.device_speed.capability == 0 ? Json() : Json(report.device_speed.capability)},
          {"strategies", ListStrategies(report.device_speed.capability)}};
}

// Adds a floor, the engine's time, and the times of a server.
//   on_device  the batch on the card; null on the host
void AddFigures(const DeviceBatch* on_device, const SpeedFloor& floor, const EngineTime& engine,
                const EngineTime& at_once, std::vector<PlanFigure>& figures) {
  PlanFigure figure{floor.where,
                    floor.batch,
                    floor.is_arithmetic ? "multiplying" : "reading",
                    floor.seconds,
                    floor.queries_per_s(),
                    Basis::kFloor,
                    "",
                    false};
  figures.push_back(figure);
  figure.from = engine.card;
  if (engine.basis != Basis::kFloor) {
    figure.what = "engine";
    figure.seconds = engine.seconds;
    figure.queries_per_s = floor.batch / engine.seconds;
    figure.basis = engine.basis;
    figures.push_back(figure);
  }
  const auto add = [&](std::string what, const ServedTime& served, bool is_served) {
    figure.what = std::move(what);
    figure.seconds = served.seconds;
    figure.queries_per_s = served.queries_per_s;
    figure.basis = served.basis;
    figure.is_served = is_served;
    figures.push_back(figure);
  };
  const bool is_one = floor.batch == 1;
  add("one caller", ServedCalls(on_device, floor.batch, engine), !is_one);
  if (is_one && at_once.seconds > 0) {
    add(fmt::format("{} callers", kCallsAtOnce), ServedAtOnce(on_device, at_once), true);
  }
}

EngineTime OnHost(const SpeedFloor& floor) { return {floor.seconds, Basis::kFloor, ""}; }

// The engine's time for kCallsAtOnce calls, which it answers together. No time if the rate of
// multiplying is unknown.
EngineTime AtOnceOnHost(const PlannedCollection& collection, const SpeedLimits& host) {
  if (host.products_per_s == 0) return {};
  return OnHost(FloorOnHost(collection, kCallsAtOnce, host));
}

}  // namespace

std::vector<PlanFigure> MakeFigures(const PlanReport& report, std::size_t collection) {
  const PlannedCollection& each = report.collections[collection];
  std::vector<PlanFigure> figures;
  const SpeedLimits& host = report.host_speed;
  const DeviceSpeed& gpu = report.device_speed;
  const bool on_device = report.device && report.device->shares[collection].fits;
  for (const std::uint32_t batch : {1U, report.batch_max}) {
    if (host.bytes_per_s > 0 && (batch == 1 || host.products_per_s > 0)) {
      const SpeedFloor floor = FloorOnHost(each, batch, host);
      AddFigures(nullptr, floor, OnHost(floor), AtOnceOnHost(each, host), figures);
    }
    if (on_device && gpu.limits.bytes_per_s > 0 && (batch == 1 || gpu.limits.products_per_s > 0)) {
      const DevicePlan& plan = *report.device;
      const backend::ResidentSize& resident = plan.shares[collection].size;
      const auto of = [&](std::uint32_t queries) {
        return DeviceBatch{each, queries,  report.k,         plan.workspace,
                           gpu,  resident, report.known_card};
      };
      const DeviceBatch here = of(batch);
      AddFigures(&here, FloorOnDevice(each, batch, report.k, plan.workspace, gpu, resident),
                 EngineTimeOnDevice(here), EngineTimeOnDevice(of(kCallsAtOnce)), figures);
    }
    if (report.batch_max == 1) break;
  }
  return figures;
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
    text += Bold(FormatHead(each), terminal) + '\n';
  }
  text += '\n' + HostTable(report, terminal) + HostFitText(report);
  if (report.device) {
    text += '\n' + DeviceTable(report, terminal) + DeviceFitText(report);
  } else {
    fmt::format_to(std::back_inserter(text), "\nno card planned: {}\n  (--card T4 plans for one)\n",
                   Printable(report.no_device_reason));
  }
  text += '\n' + LimitsText(report);
  if (!MakeFigures(report, 0).empty()) {
    text += '\n' + TimeTable(report, terminal) + SpeedSources(report) + BasisNotes(report);
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
