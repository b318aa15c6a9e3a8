#include "cli/top/top_text.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/output_text.h"
#include "cli/quantity_text.h"
#include "cli/server_text.h"
#include "cli/table.h"

namespace simile::cli::top {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLabelWidth = 11;
constexpr std::size_t kFactsWidthMin = 20;  // a narrower terminal gets lines that are too long
constexpr const char* kBetweenFacts = " \u00b7 ";

std::uint64_t Rounded(double number) {
  return static_cast<std::uint64_t>(std::llround(std::max(number, 0.0)));
}

std::string LatencyText(double seconds) {
  if (std::isinf(seconds)) return "> 30 s";  // the largest bound of the server's histograms
  return ShortTimeText(seconds);
}

// `12 s`, `2 min 5 s`, `3 h 20 min`, `2 d 4 h`
std::string LongTimeText(double seconds) {
  const std::uint64_t whole = Rounded(std::floor(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3'600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 86'400) return fmt::format("{} h {} min", whole / 3'600, whole / 60 % 60);
  return fmt::format("{} d {} h", whole / 86'400, whole / 3'600 % 24);
}

std::string PercentilesText(const Percentiles& percentiles) {
  return fmt::format("{} p50, {} p99", LatencyText(percentiles.p50_s),
                     LatencyText(percentiles.p99_s));
}

std::string PercentText(double ratio) { return fmt::format("{:.0f} %", ratio * 100); }

// Lines of a label and facts; each line has as many facts as fit.
class Sheet {
 public:
  explicit Sheet(const Terminal& terminal) : terminal_(terminal) {}

  void AddFacts(std::string_view label, const std::vector<std::string>& facts) {
    std::string line;
    for (const std::string& fact : facts) {
      const std::string printable = Printable(fact);
      const std::size_t joined_width =
          DisplayWidth(line) + DisplayWidth(kBetweenFacts) + DisplayWidth(printable);
      if (!line.empty() && joined_width > FactsWidth()) {
        AddLine(label, line);
        label = "";
        line.clear();
      }
      line.append(line.empty() ? "" : kBetweenFacts).append(printable);
    }
    if (!line.empty()) AddLine(label, line);
  }
  // Adds a sentence, broken between its words.
  void AddSentence(std::string_view label, const std::string& sentence) {
    for (const std::string& line : Wrapped(Printable(sentence), FactsWidth())) {
      AddLine(label, line);
      label = "";
    }
  }
  void AddTable(const Table& table) {
    if (!table.empty()) text_.append("\n").append(table.Render(terminal_, 0));
  }
  const std::string& text() const { return text_; }

 private:
  std::size_t FactsWidth() const {
    if (terminal_.width == 0) return std::string::npos;
    return std::max(terminal_.width, kLabelWidth + kFactsWidthMin) - kLabelWidth;
  }
  void AddLine(std::string_view label, const std::string& facts) {
    const std::string line = Shortened(facts, FactsWidth());
    text_ += fmt::format("{:<{}}{}\n", label, kLabelWidth, line);
  }

  const Terminal terminal_;
  std::string text_;
};

void AddTraffic(const IntervalStats& stats, Sheet& sheet) {
  std::vector<std::string> facts = {
      RateText(stats.queries_per_s) + " queries", RateText(stats.calls_per_s) + " calls",
      RateText(stats.errors_per_s) + " errors", base::Grouped(stats.in_flight) + " in flight"};
  sheet.AddFacts("traffic", facts);
  if (stats.latency) sheet.AddFacts("latency", {PercentilesText(*stats.latency) + " of searches"});
}

void AddEngine(const IntervalStats& stats, Sheet& sheet) {
  std::vector<std::string> facts = {PercentText(stats.busy_ratio) + " busy",
                                    RateText(stats.batches_per_s) + " batches"};
  if (stats.batch_mean) facts.push_back(fmt::format("{:.1f} queries each", *stats.batch_mean));
  if (stats.batch_latency) facts.push_back(PercentilesText(*stats.batch_latency));
  sheet.AddFacts("engine", facts);
  facts = {fmt::format("{} of {} waiting", base::Grouped(stats.queue_depth),
                       base::Grouped(stats.queue_capacity))};
  if (stats.queue_wait) facts.push_back(PercentilesText(*stats.queue_wait) + " wait");
  sheet.AddFacts("queue", facts);
  facts.clear();
  for (const LaneStats& lane : stats.lanes) {
    if (lane.waiting + lane.running == 0) continue;
    facts.push_back(fmt::format("{} {} waiting, {} running, {} left", lane.name,
                                base::Grouped(lane.waiting), base::Grouped(lane.running),
                                ShortTimeText(lane.wait_s)));
  }
  if (!facts.empty()) sheet.AddFacts("lanes", facts);
}

void AddMachine(const IntervalStats& stats, Sheet& sheet) {
  std::vector<std::string> facts = {base::BytesText(stats.resident_bytes) + " process",
                                    base::BytesText(stats.collection_bytes) + " collections"};
  if (stats.device_bytes > 0 || stats.device_bytes_peak > 0) {
    facts.push_back(fmt::format("{} on the GPU (peak {})", base::BytesText(stats.device_bytes),
                                base::BytesText(stats.device_bytes_peak)));
  }
  sheet.AddFacts("memory", facts);
  sheet.AddFacts("process", {fmt::format("{:.2f} cores busy", stats.cores_used),
                             base::Counted(stats.connections, "connection")});
}

void AddGpu(const GpuStats& gpu, Sheet& sheet) {
  std::vector<std::string> facts;
  if (gpu.utilization_ratio) facts.push_back(PercentText(*gpu.utilization_ratio) + " busy");
  if (gpu.memory_used_bytes && gpu.memory_total_bytes) {
    facts.push_back(fmt::format("{} of {}", base::BytesText(*gpu.memory_used_bytes),
                                base::BytesText(*gpu.memory_total_bytes)));
  }
  if (gpu.temperature_celsius) {
    facts.push_back(fmt::format("{:.0f} \u00b0C", *gpu.temperature_celsius));
  }
  if (gpu.power_watts) facts.push_back(fmt::format("{:.0f} W", *gpu.power_watts));
  for (const std::string& reason : gpu.throttled) facts.push_back("slowed: " + reason);
  if (gpu.ecc_uncorrected_errors.value_or(0) > 0) {
    facts.push_back(base::Counted(*gpu.ecc_uncorrected_errors, "uncorrected ECC error"));
  }
  for (const ReasonStats& xid : gpu.xids) {
    facts.push_back(fmt::format("Xid {}: {}", xid.reason, base::Grouped(xid.total)));
  }
  sheet.AddFacts("gpu " + gpu.number, facts);
}

// Whether loads of collections failed, or happened in the interval.
bool AreLoadsNews(const std::vector<ReasonStats>& reloads) {
  return std::ranges::any_of(reloads, [](const ReasonStats& result) {
    return result.per_s > 0 || result.reason == "failed";
  });
}

// `queue_full 12/s, 1,204 in all`
void AddReasons(std::string_view label, const std::vector<ReasonStats>& reasons, Sheet& sheet) {
  std::vector<std::string> facts;
  facts.reserve(reasons.size());
  for (const ReasonStats& reason : reasons) {
    facts.push_back(fmt::format("{} {}, {} in all", reason.reason, RateText(reason.per_s),
                                base::Grouped(reason.total)));
  }
  sheet.AddFacts(label, facts);
}

Table MethodTable(const IntervalStats& stats) {
  Table table({{"method", Align::kLeft, true},
               {"calls", Align::kRight},
               {"queries", Align::kRight},
               {"errors", Align::kRight},
               {"p50", Align::kRight},
               {"p99", Align::kRight}});
  for (const MethodStats& method : stats.methods) {
    table.AddRow({method.name, RateText(method.calls_per_s),
                  method.queries_per_s > 0 ? RateText(method.queries_per_s) : "",
                  RateText(method.errors_per_s),
                  method.latency ? LatencyText(method.latency->p50_s) : "",
                  method.latency ? LatencyText(method.latency->p99_s) : ""});
  }
  return table;
}

Table CollectionsTable(const IntervalStats& stats) {
  const bool has_device = stats.device_bytes > 0;
  std::vector<Table::Column> columns = {{"collection", Align::kLeft, true},
                                        {"rows", Align::kRight},
                                        {"memory", Align::kRight},
                                        {"loaded", Align::kRight}};
  if (has_device) columns.insert(columns.begin() + 3, {"on the GPU", Align::kRight});
  Table table(std::move(columns));
  for (const CollectionStats& collection : stats.collections) {
    std::vector<std::string> cells = {collection.name, base::Grouped(collection.rows),
                                      base::BytesText(collection.host_bytes),
                                      LongTimeText(collection.age_s) + " ago"};
    if (has_device) {
      cells.insert(cells.begin() + 3,
                   collection.device_bytes > 0 ? base::BytesText(collection.device_bytes) : "");
    }
    table.AddRow(std::move(cells));
  }
  return table;
}

Json PercentilesJson(const std::optional<Percentiles>& percentiles) {
  if (!percentiles) return nullptr;
  return {{"p50_s", percentiles->p50_s}, {"p99_s", percentiles->p99_s}};
}

template <class Value>
Json OrNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json ReasonsJson(const std::vector<ReasonStats>& reasons) {
  Json json = Json::object();
  for (const ReasonStats& reason : reasons) {
    json[reason.reason] = {{"per_s", reason.per_s}, {"total", reason.total}};
  }
  return json;
}

Json MethodsJson(const std::vector<MethodStats>& methods) {
  Json json = Json::array();
  for (const MethodStats& method : methods) {
    json.push_back({{"name", method.name},
                    {"calls_per_s", method.calls_per_s},
                    {"queries_per_s", method.queries_per_s},
                    {"errors_per_s", method.errors_per_s},
                    {"latency", PercentilesJson(method.latency)}});
  }
  return json;
}

Json LanesJson(const std::vector<LaneStats>& lanes) {
  Json json = Json::array();
  for (const LaneStats& lane : lanes) {
    json.push_back({{"name", lane.name},
                    {"waiting", lane.waiting},
                    {"running", lane.running},
                    {"wait_s", lane.wait_s}});
  }
  return json;
}

Json CollectionsJson(const std::vector<CollectionStats>& collections) {
  Json json = Json::array();
  for (const CollectionStats& collection : collections) {
    json.push_back({{"name", collection.name},
                    {"rows", collection.rows},
                    {"age_s", collection.age_s},
                    {"host_bytes", collection.host_bytes},
                    {"device_bytes", collection.device_bytes}});
  }
  return json;
}

Json GpuJson(const std::optional<GpuStats>& gpu) {
  if (!gpu) return nullptr;
  return {{"number", gpu->number},
          {"utilization_ratio", OrNull(gpu->utilization_ratio)},
          {"temperature_celsius", OrNull(gpu->temperature_celsius)},
          {"power_watts", OrNull(gpu->power_watts)},
          {"memory_used_bytes", OrNull(gpu->memory_used_bytes)},
          {"memory_total_bytes", OrNull(gpu->memory_total_bytes)},
          {"ecc_uncorrected_errors", OrNull(gpu->ecc_uncorrected_errors)},
          {"throttled", gpu->throttled},
          {"xids", ReasonsJson(gpu->xids)}};
}

std::string SecondText(std::chrono::system_clock::time_point time, const char* format) {
  return fmt::format(fmt::runtime(format), fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

}  // namespace

std::string TopText(const IntervalStats& stats, const std::string& address,
                    const Terminal& terminal) {
  const std::string interval =
      stats.seconds < 60 ? fmt::format("{:.1f} s", stats.seconds) : LongTimeText(stats.seconds);
  const std::string title =
      fmt::format("simile {} at {}{}up {}{}{}{}over {}", stats.version, address, kBetweenFacts,
                  LongTimeText(stats.uptime_s), kBetweenFacts,
                  SecondText(stats.taken_at, "{:%H:%M:%S} UTC"), kBetweenFacts, interval);
  const std::size_t width = terminal.width == 0 ? std::string::npos : terminal.width;
  Sheet sheet(terminal);
  sheet.AddSentence("backend", BackendText(stats.backend));
  sheet.AddSentence("", EngineText(stats.backend));
  AddTraffic(stats, sheet);
  AddEngine(stats, sheet);
  AddMachine(stats, sheet);
  if (stats.gpu) AddGpu(*stats.gpu, sheet);
  AddReasons("rejected", stats.rejected, sheet);
  AddReasons("fell back", stats.fallbacks, sheet);
  AddReasons("GPU errors", stats.device_errors, sheet);
  if (AreLoadsNews(stats.reloads)) AddReasons("loads", stats.reloads, sheet);
  sheet.AddTable(MethodTable(stats));
  sheet.AddTable(CollectionsTable(stats));
  return Bold(Shortened(Printable(title), width), terminal) + '\n' + sheet.text();
}

std::string TopJson(const IntervalStats& stats) {
  return JsonLine({{"taken_at", SecondText(stats.taken_at, "{:%Y-%m-%dT%H:%M:%SZ}")},
                   {"version", stats.version},
                   {"uptime_s", stats.uptime_s},
                   {"seconds", stats.seconds},
                   {"backend", BackendJson(stats.backend)},
                   {"calls_per_s", stats.calls_per_s},
                   {"queries_per_s", stats.queries_per_s},
                   {"errors_per_s", stats.errors_per_s},
                   {"latency", PercentilesJson(stats.latency)},
                   {"in_flight", stats.in_flight},
                   {"connections", stats.connections},
                   {"methods", MethodsJson(stats.methods)},
                   {"batches_per_s", stats.batches_per_s},
                   {"batch_mean", OrNull(stats.batch_mean)},
                   {"batch_latency", PercentilesJson(stats.batch_latency)},
                   {"busy_ratio", stats.busy_ratio},
                   {"queue_depth", stats.queue_depth},
                   {"queue_capacity", stats.queue_capacity},
                   {"queue_wait", PercentilesJson(stats.queue_wait)},
                   {"lanes", LanesJson(stats.lanes)},
                   {"cores_used", stats.cores_used},
                   {"resident_bytes", stats.resident_bytes},
                   {"collection_bytes", stats.collection_bytes},
                   {"device_bytes", stats.device_bytes},
                   {"device_bytes_peak", stats.device_bytes_peak},
                   {"collections", CollectionsJson(stats.collections)},
                   {"rejected", ReasonsJson(stats.rejected)},
                   {"fallbacks", ReasonsJson(stats.fallbacks)},
                   {"device_errors", ReasonsJson(stats.device_errors)},
                   {"reloads", ReasonsJson(stats.reloads)},
                   {"gpu", GpuJson(stats.gpu)}});
}

std::string FirstLines(const std::string& text, std::size_t lines_max) {
  const auto line_count = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  if (line_count <= lines_max || lines_max == 0) return text;
  std::size_t end = 0;
  for (std::size_t line = 0; line + 1 < lines_max; ++line) end = text.find('\n', end) + 1;
  return fmt::format("{}{} more lines; a taller window shows them\n", text.substr(0, end),
                     line_count - (lines_max - 1));
}

}  // namespace simile::cli::top
