#include "cli/bench/a100_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/table.h"

namespace simile::cli::bench {
namespace {

// The most CPU machines that CardPaysFrom examines. If a card pays only beyond this number, a query
// costs the same on both machines within millionths.
constexpr double kMachinesMax = 1e6;

double MonthCapacity(const RentedMachine& machine) {
  return machine.queries_per_s * kSecondsOfMonth;
}

using Json = nlohmann::ordered_json;

Json GbJson(const std::optional<std::uint64_t>& bytes) {
  return bytes ? Json(static_cast<double>(*bytes) / kBytesPerGb) : Json(nullptr);
}

template <class Value>
Json OrNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json HitsJson(const std::vector<A100Hit>& hits) {
  Json list = Json::array();
  for (const A100Hit& hit : hits) {
    list.push_back({{"rank", hit.rank}, {"title", hit.title}, {"similarity", hit.similarity}});
  }
  return list;
}

// The times of a test. The first field has the name that the guide gives it in this test.
Json TimesJson(const char* name_of_gpu_time, const A100Times& times) {
  return {{name_of_gpu_time, times.gpu_time_ms()},
          {"engine_time_ms", times.compute_ms},
          {"call_time_ms", times.call_ms},
          {"calls", times.calls}};
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
  Json json = TimesJson("gpu_time_ms", similarity.times);
  json.update({{"query", similarity.query},
               {"results", HitsJson(similarity.results)},
               {"best_similarity", OrNull(similarity.best_similarity)},
               {"coherence", OrNull(similarity.coherence)},
               {"franchises", std::move(franchises)},
               {"title_beginnings", std::move(beginnings)}});
  return json;
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
    if (user.decades > 0) json["decades"] = user.decades;
    users.push_back(std::move(json));
  }
  Json json = TimesJson("avg_gpu_time_ms", measured.user_times);
  json["user_results"] = std::move(users);
  return json;
}

Json BatchJson(const A100Batch& batch) {
  return {{"total_time_ms", batch.times.call_ms},
          {"gpu_time_ms", batch.times.gpu_time_ms()},
          {"engine_time_ms", batch.times.compute_ms},
          {"time_per_query_ms", batch.times.call_ms / batch.queries},
          {"throughput_qps", QueriesPerSecond(batch.queries, batch.times)},
          {"calls", batch.times.calls},
          {"fallbacks", batch.fallbacks}};
}

Json FilteringJson(const A100Measurements& measured) {
  if (measured.filters.empty()) return {{"gpu_time_ms", nullptr}, {"filters", Json::array()}};
  Json filters = Json::array();
  for (const A100Filter& filter : measured.filters) {
    filters.push_back({{"filter", filter.text},
                       {"rows_passing", OrNull(filter.rows_passing)},
                       {"matches", filter.matches},
                       {"results", HitsJson(filter.results)}});
  }
  Json json = TimesJson("gpu_time_ms", measured.filter_times);
  json["filters"] = std::move(filters);
  return json;
}

Json MemoryJson(const A100Memory& memory) {
  return {{"base_gb", GbJson(memory.base_bytes)},
          {"allocated_gb", GbJson(memory.allocated_bytes)},
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

// How gpu_time_ms was measured.
std::string TimeSource(const A100Measurements& measured) {
  if (!measured.on_gpu) {
    return "the receipts' compute_us, time in the engine: no GPU answered, so this is the CPU's";
  }
  std::string others;
  for (const A100Kind& kind : ListMeasuredKinds(measured)) {
    if (!kind.times.gpu_ms) others += (others.empty() ? "" : ", ") + kind.name;
  }
  std::string text = "the receipts' device_us, the GPU's own time between two of its events";
  if (!others.empty()) {
    text += fmt::format("; of {} the receipts' compute_us, because not every call has the GPU's",
                        others);
  }
  return text;
}

double TimesFaster(double cpu_ms, double ms) { return ms > 0 ? cpu_ms / ms : 0; }

Json CpuJson(const A100Measurements& measured) {
  if (measured.cpu == nullptr) return nullptr;
  Json kinds = Json::object();
  for (const A100Kind& kind : ListMeasuredKinds(measured)) {
    if (!kind.cpu) continue;
    kinds[kind.name] = {
        {"engine_time_ms", kind.cpu->compute_ms},
        {"call_time_ms", kind.cpu->call_ms},
        {"throughput_qps", QueriesPerSecond(kind.queries, *kind.cpu)},
        {"times_faster", TimesFaster(kind.cpu->call_ms, kind.times.call_ms)},
        {"times_faster_engine", TimesFaster(kind.cpu->compute_ms, kind.times.compute_ms)}};
  }
  return {{"backend", measured.cpu->backend},
          {"device", measured.cpu->device},
          {"kinds", std::move(kinds)},
          {"answers_compared", measured.answers.size()},
          {"answers_different", DifferentAnswers(measured)}};
}

Json RentJson(const MonthRent& rent) {
  return {{"machines", rent.machines}, {"price", rent.price}, {"busy", rent.busy}};
}

// The rent of exactly four machines, even if fewer or more are needed.
MonthRent RentFour(const RentedMachine& machine) {
  MonthRent rent = RentFor(machine, kQueriesOfMonth);
  rent.busy *= static_cast<double>(rent.machines) / 4;
  rent.machines = 4;
  rent.price = 4 * machine.hourly_price * kHoursOfMonth;
  return rent;
}

Json MonthJson(const ComparedMachines& machines) {
  Json json = {{"cpu", nullptr},
               {"one_card", nullptr},
               {"four_cards", nullptr},
               {"card_pays_from", nullptr}};
  if (machines.cpu) json["cpu"] = RentJson(RentFor(*machines.cpu, kQueriesOfMonth));
  if (machines.card) {
    json["one_card"] = RentJson(RentFor(*machines.card, kQueriesOfMonth));
    json["four_cards"] = RentJson(RentFour(*machines.card));
  }
  if (machines.cpu && machines.card)
    json["card_pays_from"] = OrNull(CardPaysFrom(*machines.cpu, *machines.card));
  return json;
}

Json CostJson(const A100Measurements& measured) {
  if (!measured.hourly_price) return nullptr;
  Json per_million = Json::object();
  for (const A100Kind& kind : ListMeasuredKinds(measured)) {
    per_million[kind.name] =
        CostPerMillion({*measured.hourly_price, QueriesPerSecond(kind.queries, kind.times)});
  }
  Json month = Json::object();
  for (const auto& [name, machines] : FindComparedMachines(measured))
    month[name] = MonthJson(machines);
  return {{"hourly_price", *measured.hourly_price},
          {"cpu_hourly_price", OrNull(measured.cpu_hourly_price)},
          {"per_million_queries", std::move(per_million)},
          {"queries_of_month", kQueriesOfMonth},
          {"month", std::move(month)}};
}

std::string MsText(double ms) { return fmt::format("{:.3f}", ms); }

std::string TimesTable(const A100Measurements& measured, const Terminal& terminal) {
  Table table({{"ms"},
               {measured.on_gpu ? "GPU" : "", Align::kRight},
               {"engine", Align::kRight},
               {"call", Align::kRight},
               {"queries/s", Align::kRight},
               {measured.cpu != nullptr ? "CPU call" : "", Align::kRight},
               {measured.cpu != nullptr ? "times faster" : "", Align::kRight},
               {measured.hourly_price ? "cost of a million" : "", Align::kRight}});
  for (const A100Kind& kind : ListMeasuredKinds(measured)) {
    const double rate = QueriesPerSecond(kind.queries, kind.times);
    table.AddRow(
        {kind.name, kind.times.gpu_ms ? MsText(*kind.times.gpu_ms) : "",
         MsText(kind.times.compute_ms), MsText(kind.times.call_ms),
         base::Grouped(static_cast<std::uint64_t>(rate)), kind.cpu ? MsText(kind.cpu->call_ms) : "",
         kind.cpu ? fmt::format("{:.1f}", TimesFaster(kind.cpu->call_ms, kind.times.call_ms)) : "",
         measured.hourly_price
             ? fmt::format("{:.4f}", CostPerMillion({*measured.hourly_price, rate}))
             : ""});
  }
  return table.Render(terminal, 0);
}

// `under 0.1`, `2.5`, `130`.
std::string PercentText(double percent) {
  if (percent < 0.1) return "under 0.1";
  return fmt::format("{:.{}f}", percent, percent < 10 ? 1 : 0);
}

std::string RentText(const MonthRent& rent) {
  return fmt::format("{} ({}, {}{}% busy)",
                     base::Grouped(static_cast<std::uint64_t>(std::llround(rent.price))),
                     base::Counted(rent.machines, "machine"), rent.busy > 1 ? "too few: " : "",
                     PercentText(rent.busy * 100));
}

std::string PaysText(const ComparedMachines& machines) {
  if (!machines.cpu || !machines.card) return "";
  const auto from = CardPaysFrom(*machines.cpu, *machines.card);
  if (!from) return "never";
  return *from == 0 ? "always" : base::Grouped(*from) + " a month";
}

std::string MonthTable(const A100Measurements& measured, const Terminal& terminal) {
  if (!measured.hourly_price) return "";
  Table table({{fmt::format("{} queries a month", base::Grouped(kQueriesOfMonth))},
               {measured.on_gpu && !measured.cpu_hourly_price ? "" : "CPU"},
               {measured.on_gpu ? "one card" : ""},
               {measured.on_gpu ? "four cards" : ""},
               {measured.on_gpu ? "cards pay from" : ""}});
  for (const auto& [name, machines] : FindComparedMachines(measured)) {
    table.AddRow({"at the rate of " + name,
                  machines.cpu ? RentText(RentFor(*machines.cpu, kQueriesOfMonth)) : "",
                  machines.card ? RentText(RentFor(*machines.card, kQueriesOfMonth)) : "",
                  machines.card ? RentText(RentFour(*machines.card)) : "", PaysText(machines)});
  }
  return "\n" + table.Render(terminal, 0);
}

}  // namespace

double CostPerMillion(const RentedMachine& machine) {
  return machine.hourly_price / 3'600 / machine.queries_per_s * 1e6;
}

MonthRent RentFor(const RentedMachine& machine, std::uint64_t queries_of_month) {
  const double needed = static_cast<double>(queries_of_month) / MonthCapacity(machine);
  MonthRent rent;
  rent.machines = static_cast<std::uint64_t>(std::max(1.0, std::ceil(needed)));
  rent.price = static_cast<double>(rent.machines) * machine.hourly_price * kHoursOfMonth;
  rent.busy = needed / static_cast<double>(rent.machines);
  return rent;
}

// Examines only numbers of queries that fill CPU machines. Between two such numbers the CPU rent is
// constant and the card rent can only rise. The search starts where the saving exceeds the rent of
// one card machine, since at most one card machine is partly idle.
std::optional<std::uint64_t> CardPaysFrom(const RentedMachine& cpu, const RentedMachine& card) {
  const double saved = CostPerMillion(cpu) - CostPerMillion(card);
  const double sure = card.hourly_price * kHoursOfMonth / saved * 1e6;  // queries a month
  const double machines = std::ceil(sure / MonthCapacity(cpu));
  if (!(saved > 0) || machines > kMachinesMax) return std::nullopt;
  for (double full = machines; full > 0; --full) {
    const auto queries = static_cast<std::uint64_t>(full * MonthCapacity(cpu));
    if (RentFor(card, queries).price > full * cpu.hourly_price * kHoursOfMonth) return queries + 1;
  }
  return 0;
}

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

bool HasTitle(const Franchise& franchise, std::string_view title) {
  return std::ranges::any_of(franchise.beginnings, [&](std::string_view beginning) {
    return title.starts_with(beginning);
  });
}

double QueriesPerSecond(std::uint32_t queries, const A100Times& times) {
  return queries / times.call_ms * 1e3;
}

std::vector<A100Kind> ListMeasuredKinds(const A100Measurements& measured) {
  std::vector<A100Kind> kinds;
  const auto add = [&](std::string name, std::uint32_t queries, const A100Times& times,
                       const A100Times* cpu) {
    if (times.call_ms <= 0) return;
    A100Kind& kind = kinds.emplace_back(A100Kind{std::move(name), queries, times, std::nullopt});
    if (cpu != nullptr && cpu->call_ms > 0) kind.cpu = *cpu;
  };
  const A100Measurements* cpu = measured.cpu.get();
  add("single", 1, measured.similarity.times, cpu != nullptr ? &cpu->similarity.times : nullptr);
  add("user", 1, measured.user_times, cpu != nullptr ? &cpu->user_times : nullptr);
  add("filter", 1, measured.filter_times, cpu != nullptr ? &cpu->filter_times : nullptr);
  for (std::size_t i = 0; i < measured.batches.size(); ++i) {
    const A100Batch& batch = measured.batches[i];
    const bool beside = cpu != nullptr && i < cpu->batches.size();
    add(fmt::format("batch_{}", batch.queries), batch.queries, batch.times,
        beside ? &cpu->batches[i].times : nullptr);
  }
  return kinds;
}

std::uint64_t DifferentAnswers(const A100Measurements& measured) {
  const std::vector<std::uint64_t>& here = measured.answers;
  const std::vector<std::uint64_t>& there = measured.cpu->answers;
  std::uint64_t different =
      std::max(here.size(), there.size()) - std::min(here.size(), there.size());
  for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i) {
    different += here[i] != there[i] ? 1 : 0;
  }
  return different;
}

std::vector<std::pair<std::string, ComparedMachines>> FindComparedMachines(
    const A100Measurements& measured) {
  std::vector<std::pair<std::string, ComparedMachines>> all;
  for (const A100Kind& kind : ListMeasuredKinds(measured)) {
    if (kind.name != "single" && kind.queries == 1) continue;
    ComparedMachines& machines = all.emplace_back(kind.name, ComparedMachines{}).second;
    const double rate = QueriesPerSecond(kind.queries, kind.times);
    if (measured.hourly_price) {
      (measured.on_gpu ? machines.card : machines.cpu) =
          RentedMachine{*measured.hourly_price, rate};
    }
    if (measured.on_gpu && measured.cpu_hourly_price && kind.cpu) {
      machines.cpu =
          RentedMachine{*measured.cpu_hourly_price, QueriesPerSecond(kind.queries, *kind.cpu)};
    }
  }
  return all;
}

Json A100Json(const A100Measurements& measured) {
  Json batches = Json::object();
  for (const A100Batch& batch : measured.batches) {
    batches[fmt::format("batch_{}", batch.queries)] = BatchJson(batch);
  }
  Json targets = Json::array();
  for (const A100Target& target : CheckTargets(measured)) {
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
          {"cpu", CpuJson(measured)},
          {"cost", CostJson(measured)},
          {"collection",
           {{"name", measured.collection}, {"rows", measured.rows}, {"dim", measured.dim}}},
          {"backend", measured.backend},
          {"device", measured.device},
          {"gpu_time_source", TimeSource(measured)}};
}

std::string A100Text(const A100Measurements& measured, const Terminal& terminal) {
  std::string text =
      fmt::format("{}, {} x {}, on {} ({})\n\n", Bold(measured.collection, terminal),
                  base::Grouped(measured.rows), measured.dim, measured.device, measured.backend);
  Table targets({{"target"}, {"wanted"}, {"measured", Align::kLeft, true}, {""}});
  for (const A100Target& target : CheckTargets(measured)) {
    targets.AddRow(
        {target.name, target.wanted, target.measured, std::string(OutcomeText(target.outcome))});
  }
  text += targets.Render(terminal, 0) + "\n" + TimesTable(measured, terminal);
  text += MonthTable(measured, terminal);
  if (measured.cpu != nullptr) {
    text += fmt::format("\nCPU: {} ({}); {} of {} differ\n", measured.cpu->device,
                        measured.cpu->backend, base::Grouped(DifferentAnswers(measured)),
                        base::Counted(measured.answers.size(), "answer"));
  }
  text += fmt::format("\ntimes: {}\n", TimeSource(measured));
  return text + fmt::format("memory: {}\n", measured.memory.source);
}

}  // namespace simile::cli::bench
