#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/message_text.h"
#include "cli/bench/a100_report.h"

namespace simile::cli::bench {
namespace {

// The targets of the guide.
constexpr double kSingleMsMax = 1;
constexpr double kUserMsMax = 2;
constexpr double kFilterMsMax = 1;
constexpr double kBatch100MsMax = 30;
constexpr double kQueriesPerSecondMin = 1'000;
constexpr double kBaseGbMax = 2;
constexpr double kPeakGbMax = 5;
constexpr double kHeadroomMin = 0.9;
constexpr double kSimilarityMin = 0.9;
constexpr double kCoherenceMin = 0.85;
constexpr double kGenreShareMin = 0.8;
constexpr std::uint32_t kDecadesMin = 2;  // our number: the guide asks for "diverse" periods

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
  const std::string rest =
      fmt::format("{:.3f} ms in the engine, {:.3f} ms a call", times.compute_ms, times.call_ms);
  return times.gpu_ms ? fmt::format("{:.3f} ms on the GPU, {}", *times.gpu_ms, rest) : rest;
}

std::string BelowMs(double ms) { return fmt::format("below {:.0f} ms", ms); }

A100Target TimeTarget(std::string name, double most_ms, const A100Times& times) {
  return Compared(std::move(name), BelowMs(most_ms), TimesText(times),
                  times.gpu_time_ms() < most_ms);
}

const A100Batch* FindBatch(const A100Measurements& measured, std::uint32_t queries) {
  const auto found = std::ranges::find(measured.batches, queries, &A100Batch::queries);
  return found == measured.batches.end() ? nullptr : &*found;
}

void AddTimeTargets(const A100Measurements& measured, std::vector<A100Target>& targets) {
  targets.push_back(TimeTarget("single query", kSingleMsMax, measured.similarity.times));
  targets.push_back(measured.users.empty()
                        ? NotApplicable("user", BelowMs(kUserMsMax),
                                        "no users are known: --users or --folder names them")
                        : TimeTarget("user", kUserMsMax, measured.user_times));
  targets.push_back(
      measured.filters.empty()
          ? NotApplicable("filtered query", BelowMs(kFilterMsMax), "no payload field to filter by")
          : TimeTarget("filtered query", kFilterMsMax, measured.filter_times));
}

void AddBatchTargets(const A100Measurements& measured, std::vector<A100Target>& targets) {
  const A100Batch* hundred = FindBatch(measured, 100);
  if (hundred == nullptr) return;
  const double rate = QueriesPerSecond(100, hundred->times);
  targets.push_back(Compared("batch of 100", BelowMs(kBatch100MsMax), TimesText(hundred->times),
                             hundred->times.call_ms < kBatch100MsMax));
  targets.push_back(Compared(
      "throughput, batches of 100",
      fmt::format("above {} queries/s",
                  base::Grouped(static_cast<std::uint64_t>(kQueriesPerSecondMin))),
      base::Grouped(static_cast<std::uint64_t>(rate)) + " queries/s", rate > kQueriesPerSecondMin));
  const A100Batch* thousand = FindBatch(measured, 1'000);
  if (thousand == nullptr) return;
  const double at_100 = hundred->times.call_ms / 100;
  const double at_1000 = thousand->times.call_ms / 1'000;
  targets.push_back(Compared("linear to 1,000", "a query at 1,000 not above one at 100",
                             fmt::format("{:.4f} ms for {:.4f} ms", at_1000, at_100),
                             at_1000 <= at_100));
}

A100Target MemoryErrorsTarget(const A100Measurements& measured) {
  std::uint64_t calls = 0;
  std::uint64_t fallbacks = 0;
  for (const A100Batch& batch : measured.batches) {
    calls += batch.times.calls;
    fallbacks += batch.fallbacks;
  }
  return Compared(
      "no out-of-memory", "the server's backend answers every batch",
      fmt::format("{} of {} calls", base::Grouped(calls - fallbacks), base::Grouped(calls)),
      fallbacks == 0);
}

std::string GbText(std::uint64_t bytes) {
  return fmt::format("{:.3f} GB", static_cast<double>(bytes) / kBytesPerGb);
}

A100Target MemoryTarget(std::string name, double most_gb, std::optional<std::uint64_t> bytes) {
  std::string wanted = fmt::format("below {:.0f} GB", most_gb);
  if (!bytes) return NotApplicable(std::move(name), std::move(wanted), "unknown");
  return Compared(std::move(name), std::move(wanted), GbText(*bytes),
                  static_cast<double>(*bytes) < most_gb * kBytesPerGb);
}

void AddMemoryTargets(const A100Memory& memory, std::vector<A100Target>& targets) {
  targets.push_back(MemoryTarget("base memory", kBaseGbMax, memory.base_bytes));
  // std::max works with an unknown figure: nullopt is less than any value.
  const auto peak = std::max(memory.peak_reserved_bytes, memory.peak_allocated_bytes);
  targets.push_back(MemoryTarget("peak memory", kPeakGbMax, peak));
  const std::string wanted = fmt::format("above {:.0f}%", kHeadroomMin * 100);
  if (!peak || !memory.total_bytes || *memory.total_bytes == 0) {
    targets.push_back(NotApplicable("headroom at peak", wanted, "unknown"));
    return;
  }
  const double left = 1 - Share(*peak, *memory.total_bytes);
  targets.push_back(Compared("headroom at peak", wanted,
                             fmt::format("{:.1f}% of {}", left * 100, GbText(*memory.total_bytes)),
                             left > kHeadroomMin));
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

// A target that depends on the vectors alone, because the answers are exact.
A100Target VectorsTarget(std::string name, std::string wanted, std::optional<double> share,
                         std::string_view of, const std::function<bool(double)>& passes) {
  if (!share) {
    return NotApplicable(std::move(name), std::move(wanted),
                         "scores of this metric are not percentages");
  }
  return Compared(std::move(name), std::move(wanted),
                  fmt::format("{:.1f}%, {}: a property of the vectors", *share * 100, of),
                  passes(*share));
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

A100Target PeriodsTarget(const A100Measurements& measured) {
  const std::string name = "diverse periods";
  const std::string wanted = fmt::format("{} decades or more a user", kDecadesMin);
  std::uint64_t users = 0;
  std::uint64_t diverse = 0;
  std::uint64_t decades = 0;
  for (const A100User& user : measured.users) {
    if (user.decades == 0) continue;
    ++users;
    decades += user.decades;
    diverse += user.decades >= kDecadesMin ? 1 : 0;
  }
  if (users == 0) {
    return NotApplicable(name, wanted, "no users are known, or items have no integer field year");
  }
  return Compared(name, wanted,
                  fmt::format("{} of {}, {:.1f} decades on average", diverse,
                              base::Counted(users, "user"), Share(decades, users)),
                  diverse == users);
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

}  // namespace

std::vector<A100Target> CheckTargets(const A100Measurements& measured) {
  std::vector<A100Target> targets;
  AddTimeTargets(measured, targets);
  AddBatchTargets(measured, targets);
  targets.push_back(MemoryErrorsTarget(measured));
  AddMemoryTargets(measured.memory, targets);
  targets.push_back(FranchiseTarget(measured));
  targets.push_back(VectorsTarget("similarity", fmt::format("above {:.0f}%", kSimilarityMin * 100),
                                  measured.similarity.best_similarity, "the best hit's mean",
                                  [](double share) { return share > kSimilarityMin; }));
  targets.push_back(VectorsTarget("coherence", fmt::format("{:.0f}% or more", kCoherenceMin * 100),
                                  measured.similarity.coherence, "the hits' mean with each other",
                                  [](double share) { return share >= kCoherenceMin; }));
  targets.push_back(GenreTarget(measured));
  targets.push_back(PeriodsTarget(measured));
  targets.push_back(FilterTarget(measured));
  return targets;
}

}  // namespace simile::cli::bench
