#include "cli/bench/a100_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/table.h"

namespace simile::cli::bench {
namespace {

using Json = nlohmann::ordered_json;

// The targets of the guide.
constexpr double kSingleMsMax = 1;
constexpr double kUserMsMax = 2;
constexpr double kBatch100MsMax = 30;
constexpr double kQueriesPerSecondMin = 1'000;
constexpr double kMemoryGbMax = 2;
constexpr double kGenreShareMin = 0.8;

constexpr double kBytesPerGb = 1e9;

double Share(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

A100Target NotApplicable(std::string name, std::string wanted, std::string why) {
  return {std::move(name), std::move(wanted), std::move(why), TargetOutcome::kNotApplicable};
}

A100Target Compared(std::string name, std::string wanted, std::string measured, bool passed) {
  return {std::move(name), std::move(wanted), std::move(measured),
          passed ? TargetOutcome::kPass : TargetOutcome::kFail};
}

std::string TimesText(const A100Times& times) {
  return fmt::format("{:.3f} ms in the engine, {:.3f} ms a call", times.compute_ms, times.call_ms);
}

const A100Batch* FindBatch(const A100Measurements& measured, std::uint32_t queries) {
  const auto found = std::ranges::find(measured.batches, queries, &A100Batch::queries);
  return found == measured.batches.end() ? nullptr : &*found;
}

A100Target FranchiseTarget(const A100Measurements& measured) {
  const std::string name = "top 3 of the same franchise";
  const std::string wanted = "all";
  const auto& franchises = measured.similarity.franchises;
  if (franchises.empty()) {
    return NotApplicable(name, wanted, "no titles of the listed franchises");
  }
  std::string others;
  for (const A100FranchiseResult& each : franchises) {
    if (!each.same) others += (others.empty() ? "; not: " : ", ") + each.franchise;
  }
  const auto same =
      static_cast<std::uint64_t>(std::ranges::count(franchises, true, &A100FranchiseResult::same));
  return Compared(name, wanted, fmt::format("{} of {}{}", same, franchises.size(), others),
                  same == franchises.size());
}

A100Target GenreTarget(const A100Measurements& measured) {
  const std::string name = "genre match";
  const std::string wanted = fmt::format("{:.0f}% or more", kGenreShareMin * 100);
  std::uint64_t matches = 0;
  std::uint64_t results = 0;
  for (const A100User& user : measured.users) {
    if (user.genres.empty()) continue;
    matches += user.genre_matches;
    results += user.results.size();
  }
  if (results == 0) {
    return NotApplicable(name, wanted,
                         "what users have seen, or its genres, is not known; --folder tells");
  }
  const double share = Share(matches, results);
  return Compared(
      name, wanted,
      fmt::format("{:.1f}% of {}", share * 100, base::Counted(results, "recommendation")),
      share >= kGenreShareMin);
}

A100Target FilterTarget(const A100Measurements& measured) {
  const std::string name = "filter match";
  const std::string wanted = "100%";
  std::uint64_t matches = 0;
  std::uint64_t results = 0;
  for (const A100Filter& filter : measured.filters) {
    matches += filter.matches;
    results += filter.results.size();
  }
  if (results == 0) return NotApplicable(name, wanted, "no payload field to filter by");
  return Compared(
      name, wanted,
      fmt::format("{:.1f}% of {}, {}", Share(matches, results) * 100, base::Counted(results, "hit"),
                  base::Counted(measured.filters.size(), "filter")),
      matches == results);
}

A100Target MemoryTarget(const A100Memory& memory) {
  const std::string name = "memory";
  const std::string wanted = fmt::format("below {:.0f} GB", kMemoryGbMax);
  // Unknown figures are less than any other.
  const auto largest = std::max({memory.peak_reserved_bytes, memory.reserved_bytes,
                                 memory.peak_allocated_bytes, memory.allocated_bytes});
  if (!largest) return NotApplicable(name, wanted, "unknown");
  const double gb = static_cast<double>(*largest) / kBytesPerGb;
  return Compared(name, wanted, fmt::format("{:.3f} GB", gb), gb < kMemoryGbMax);
}

Json GbJson(const std::optional<std::uint64_t>& bytes) {
  return bytes ? Json(static_cast<double>(*bytes) / kBytesPerGb) : Json(nullptr);
}

Json HitsJson(const std::vector<A100Hit>& hits) {
  Json list = Json::array();
  for (const A100Hit& hit : hits) {
    list.push_back({{"rank", hit.rank}, {"title", hit.title}, {"similarity", hit.similarity}});
  }
  return list;
}

Json SimilarityJson(const A100Similarity& similarity) {
  Json franchises = Json::array();
  for (const A100FranchiseResult& each : similarity.franchises) {
    franchises.push_back({{"franchise", each.franchise},
                          {"query", each.query},
                          {"top_3", HitsJson(each.top)},
                          {"same_franchise", each.same}});
  }
  Json beginnings = Json::object();
  for (const Franchise& franchise : Franchises()) {
    beginnings[std::string(franchise.name)] = franchise.beginnings;
  }
  return {{"gpu_time_ms", similarity.times.compute_ms},
          {"call_time_ms", similarity.times.call_ms},
          {"calls", similarity.times.calls},
          {"query", similarity.query},
          {"results", HitsJson(similarity.results)},
          {"franchises", std::move(franchises)},
          {"title_beginnings", std::move(beginnings)}};
}

Json PersonalizationJson(const A100Measurements& measured) {
  if (measured.users.empty()) {
    return {{"avg_gpu_time_ms", nullptr}, {"user_results", Json::array()}};
  }
  Json users = Json::array();
  for (const A100User& user : measured.users) {
    Json json = {{"user_id", user.user_id}, {"results", HitsJson(user.results)}};
    if (!user.genres.empty()) {
      json["genres"] = user.genres;
      json["genre_matches"] = user.genre_matches;
    }
    users.push_back(std::move(json));
  }
  return {{"avg_gpu_time_ms", measured.user_times.compute_ms},
          {"call_time_ms", measured.user_times.call_ms},
          {"calls", measured.user_times.calls},
          {"user_results", std::move(users)}};
}

Json BatchJson(const A100Batch& batch) {
  return {{"total_time_ms", batch.times.call_ms},
          {"gpu_time_ms", batch.times.compute_ms},
          {"time_per_query_ms", batch.times.call_ms / batch.queries},
          {"throughput_qps", ThroughputOf(batch)},
          {"calls", batch.times.calls}};
}

Json FilteringJson(const A100Measurements& measured) {
  if (measured.filters.empty()) return {{"gpu_time_ms", nullptr}, {"filters", Json::array()}};
  Json filters = Json::array();
  for (const A100Filter& filter : measured.filters) {
    filters.push_back(
        {{"filter", filter.text},
         {"rows_passing", filter.rows_passing ? Json(*filter.rows_passing) : Json(nullptr)},
         {"matches", filter.matches},
         {"results", HitsJson(filter.results)}});
  }
  return {{"gpu_time_ms", measured.filter_times.compute_ms},
          {"call_time_ms", measured.filter_times.call_ms},
          {"calls", measured.filter_times.calls},
          {"filters", std::move(filters)}};
}

Json MemoryJson(const A100Memory& memory) {
  return {{"allocated_gb", GbJson(memory.allocated_bytes)},
          {"reserved_gb", GbJson(memory.reserved_bytes)},
          {"total_gb", GbJson(memory.total_bytes)},
          {"free_gb", GbJson(memory.free_bytes)},
          {"peak_allocated_gb", GbJson(memory.peak_allocated_bytes)},
          {"peak_reserved_gb", GbJson(memory.peak_reserved_bytes)},
          {"source", memory.source}};
}

std::string_view OutcomeText(TargetOutcome outcome) {
  switch (outcome) {
    case TargetOutcome::kPass:
      return "pass";
    case TargetOutcome::kFail:
      return "fail";
    case TargetOutcome::kNotApplicable:
      return "not applicable";
  }
  return "";
}

// Rates of the tests that a cost is given for.
std::vector<std::pair<std::string, double>> RatesOf(const A100Measurements& measured) {
  std::vector<std::pair<std::string, double>> rates;
  if (measured.similarity.times.call_ms > 0) {
    rates.emplace_back("single", 1e3 / measured.similarity.times.call_ms);
  }
  for (const A100Batch& batch : measured.batches) {
    rates.emplace_back(fmt::format("batch_{}", batch.queries), ThroughputOf(batch));
  }
  return rates;
}

Json CostJson(const A100Measurements& measured) {
  if (!measured.hourly_price) return nullptr;
  Json per_million = Json::object();
  for (const auto& [name, rate] : RatesOf(measured)) {
    per_million[name] = CostPerMillion(*measured.hourly_price, rate);
  }
  return {{"hourly_price", *measured.hourly_price},
          {"per_million_queries", std::move(per_million)}};
}

}  // namespace

std::span<const Franchise> Franchises() {
  static const std::vector<Franchise> kFranchises = {
      {"Star Wars",
       {"Star Wars", "The Empire Strikes Back", "Return of the Jedi", "Rogue One", "Solo: A Star"}},
      {"Star Trek", {"Star Trek"}},
      {"Harry Potter", {"Harry Potter"}},
      {"Toy Story", {"Toy Story"}},
      {"Indiana Jones", {"Indiana Jones", "Raiders of the Lost Ark"}},
      {"The Lord of the Rings", {"The Lord of the Rings"}},
      {"The Matrix", {"The Matrix"}},
      {"Pirates of the Caribbean", {"Pirates of the Caribbean"}},
      {"Mission: Impossible", {"Mission: Impossible"}},
      {"The Hunger Games", {"The Hunger Games"}},
  };
  return kFranchises;
}

bool IsOf(const Franchise& franchise, std::string_view title) {
  return std::ranges::any_of(franchise.beginnings, [&](std::string_view beginning) {
    return title.starts_with(beginning);
  });
}

double ThroughputOf(const A100Batch& batch) { return batch.queries / batch.times.call_ms * 1e3; }

double CostPerMillion(double hourly_price, double queries_per_s) {
  return hourly_price / 3'600 / queries_per_s * 1e6;
}

std::vector<A100Target> TargetsOf(const A100Measurements& measured) {
  std::vector<A100Target> targets;
  const A100Times& single = measured.similarity.times;
  targets.push_back(Compared("single query", fmt::format("below {:.0f} ms", kSingleMsMax),
                             TimesText(single), single.compute_ms < kSingleMsMax));
  const std::string user_wanted = fmt::format("below {:.0f} ms", kUserMsMax);
  targets.push_back(
      measured.users.empty()
          ? NotApplicable("user", user_wanted, "no users are known: --users or --folder names them")
          : Compared("user", user_wanted, TimesText(measured.user_times),
                     measured.user_times.compute_ms < kUserMsMax));
  if (const A100Batch* batch = FindBatch(measured, 100)) {
    targets.push_back(Compared("batch of 100", fmt::format("below {:.0f} ms", kBatch100MsMax),
                               TimesText(batch->times), batch->times.call_ms < kBatch100MsMax));
    targets.push_back(
        Compared("throughput, batches of 100",
                 fmt::format("above {} queries/s",
                             base::Grouped(static_cast<std::uint64_t>(kQueriesPerSecondMin))),
                 base::Grouped(static_cast<std::uint64_t>(ThroughputOf(*batch))) + " queries/s",
                 ThroughputOf(*batch) > kQueriesPerSecondMin));
  }
  targets.push_back(MemoryTarget(measured.memory));
  targets.push_back(FranchiseTarget(measured));
  targets.push_back(GenreTarget(measured));
  targets.push_back(FilterTarget(measured));
  return targets;
}

Json A100Json(const A100Measurements& measured) {
  Json batches = Json::object();
  for (const A100Batch& batch : measured.batches) {
    batches[fmt::format("batch_{}", batch.queries)] = BatchJson(batch);
  }
  Json targets = Json::array();
  for (const A100Target& target : TargetsOf(measured)) {
    targets.push_back({{"target", target.name},
                       {"wanted", target.wanted},
                       {"measured", target.measured},
                       {"outcome", OutcomeText(target.outcome)}});
  }
  return {{"test_1_similarity", SimilarityJson(measured.similarity)},
          {"test_2_personalization", PersonalizationJson(measured)},
          {"test_3_batch", std::move(batches)},
          {"test_4_filtering", FilteringJson(measured)},
          {"test_5_memory", MemoryJson(measured.memory)},
          {"targets", std::move(targets)},
          {"cost", CostJson(measured)},
          {"collection",
           {{"name", measured.collection}, {"rows", measured.rows}, {"dim", measured.dim}}},
          {"backend", measured.backend},
          {"device", measured.device},
          {"gpu_time_source",
           "the server's receipts (compute_us): time in the engine, on whatever backend is named"}};
}

std::string A100Text(const A100Measurements& measured, const Terminal& terminal) {
  std::string text =
      fmt::format("{}, {} x {}, on {} ({})\n\n", Bold(measured.collection, terminal),
                  base::Grouped(measured.rows), measured.dim, measured.device, measured.backend);
  Table targets({{"target"}, {"wanted"}, {"measured", Align::kLeft, true}, {""}});
  for (const A100Target& target : TargetsOf(measured)) {
    targets.AddRow(
        {target.name, target.wanted, target.measured, std::string(OutcomeText(target.outcome))});
  }
  text += targets.Render(terminal, 0);
  Table rates({{"queries a call"},
               {"queries/s", Align::kRight},
               {measured.hourly_price ? "cost of a million" : "", Align::kRight}});
  for (const auto& [name, rate] : RatesOf(measured)) {
    rates.AddRow({name, base::Grouped(static_cast<std::uint64_t>(rate)),
                  measured.hourly_price
                      ? fmt::format("{:.4f}", CostPerMillion(*measured.hourly_price, rate))
                      : ""});
  }
  text += "\n";
  text += rates.Render(terminal, 0);
  return text + fmt::format("\nmemory: {}\n", measured.memory.source);
}

}  // namespace simile::cli::bench
