#include "app/tuning/collection_probe.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/split_mix.h"
#include "certificate/rotation.h"
#include "doctor/self_check.h"

namespace simile::app {
namespace {

using backend::cpu::Int8Options;

// The fewest queries of a collection; more where twice the largest batch needs them, so that
// batches of one size differ.
constexpr std::size_t kQueriesMin = 1'024;
// The share of a second row in a query. The mixture is near the data, as real queries are, and no
// row's duplicate.
constexpr double kOtherShare = 0.2;
// Fewer rounds do not count as a measurement.
constexpr std::size_t kRoundsMin = 5;
constexpr std::size_t kRoundsMax = 300;
// A timed search is repeated until it takes about this long. Longer would collect interruptions,
// shorter would measure the clock.
constexpr double kTimedSeconds = 300e-6;
constexpr std::size_t kRepeatsMax = 64;
// A shorter search runs once untimed before it is timed, because idle threads of the other engine
// spin for tens of microseconds after their search.
constexpr double kShortSeconds = 2e-3;

// Fills `query` with the mixture of two rows, at unit length for cosine.
void MixRows(MatrixView rows, std::uint64_t& random, Metric metric, float* query) {
  const auto one = rows[base::ScaleBelow(base::NextSplitMix(random), rows.row_count())];
  const auto other = rows[base::ScaleBelow(base::NextSplitMix(random), rows.row_count())];
  double square = 0;
  for (std::size_t i = 0; i < rows.dim(); ++i) {
    const double mixed = (1 - kOtherShare) * static_cast<double>(one[i]) +
                         kOtherShare * static_cast<double>(other[i]);
    query[i] = static_cast<float>(mixed);
    square += mixed * mixed;
  }
  if (metric != Metric::kCosine || square == 0) return;
  const double scale = 1 / std::sqrt(square);
  for (std::size_t i = 0; i < rows.dim(); ++i) {
    query[i] = static_cast<float>(static_cast<double>(query[i]) * scale);
  }
}

double Median(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::ranges::nth_element(numbers, middle);
  return *middle;
}

}  // namespace

absl::StatusOr<data::Matrix> QueriesLike(MatrixView rows, Metric metric, std::size_t count) {
  auto queries = data::Matrix::Create(count, rows.dim());
  if (!queries.ok()) return queries.status();
  std::uint64_t random = 1;
  for (std::size_t i = 0; i < count; ++i) MixRows(rows, random, metric, queries->MutableRow(i));
  return queries;
}

std::size_t CollectionProbe::RowsToMeasure(const Options& options, std::size_t collection_count,
                                           std::size_t row_count, std::size_t dim) {
  const std::size_t rows_max = options.code_bytes_max / collection_count /
                               std::max<std::size_t>(1, certificate::RotatedDim(dim));
  return std::min(row_count, std::max<std::size_t>(1, rows_max));
}

absl::StatusOr<std::unique_ptr<CollectionProbe>> CollectionProbe::Create(
    std::vector<TunedCollection> collections, const Options& options, const Clock& clock) {
  std::unique_ptr<CollectionProbe> probe(new CollectionProbe(options, clock));
  for (TunedCollection& collection : collections) {
    const std::size_t rows_total = collection.vectors.row_count();
    const std::size_t dim = collection.vectors.dim();
    const std::size_t rows = RowsToMeasure(options, collections.size(), rows_total, dim);
    const MatrixView view = collection.vectors.view().Slice(0, rows);
    auto queries =
        QueriesLike(view, collection.metric, std::max(kQueriesMin, 2 * options.batch_max));
    if (!queries.ok()) return queries.status();
    probe->shapes_.push_back({collection.name, rows, rows_total, dim});
    probe->subjects_.push_back({std::move(collection), *std::move(queries), {}, rows});
  }
  return probe;
}

absl::StatusOr<CollectionProbe::Engine*> CollectionProbe::EngineFor(const EngineSetup& setup) {
  const auto kept = std::ranges::find(engines_, setup, &Engine::setup);
  if (kept != engines_.end()) {
    engines_.splice(engines_.begin(), engines_, kept);
    return &engines_.front();
  }
  if (engines_.size() >= kEnginesMax) engines_.pop_back();
  Int8Options options = options_.engine;
  options.threads = setup.threads;
  options.tuning = setup.tuning;
  options.foreground_bytes_max = std::numeric_limits<std::size_t>::max();
  Engine engine{setup, MakeInt8Backend(options), {}, {}};
  for (const Subject& subject : subjects_) {
    auto index =
        engine.backend->MakeResident({subject.collection.vectors.view().Slice(0, subject.rows),
                                      nullptr, subject.collection.metric, 0});
    if (!index.ok()) return index.status();
    engine.indexes.push_back(*std::move(index));
  }
  engines_.push_front(std::move(engine));
  return &engines_.front();
}

const RowMask* CollectionProbe::MaskFor(Subject& subject, std::size_t rows_for_one) {
  if (rows_for_one == 0) return nullptr;
  const auto [place, added] = subject.masks.try_emplace(rows_for_one, subject.rows);
  if (added) {
    std::uint64_t random = rows_for_one;
    for (std::size_t row = 0; row < subject.rows; ++row) {
      if (base::NextSplitMix(random) % rows_for_one == 0)
        place->second.Allow(static_cast<Row>(row));
    }
  }
  return &place->second;
}

SearchBatch CollectionProbe::NextBatch(const Workload& workload) {
  Subject& subject = subjects_[workload.collection];
  QuerySpec spec;
  spec.k = options_.k;
  spec.mask = MaskFor(subject, workload.rows_for_one);
  specs_.assign(workload.batch, spec);
  if (next_query_ + workload.batch > subject.queries.row_count()) next_query_ = 0;
  const MatrixView queries = subject.queries.view().Slice(next_query_, workload.batch);
  next_query_ += workload.batch;
  return {queries, specs_};
}

absl::Status CollectionProbe::Search(Engine& engine, std::size_t collection,
                                     const SearchBatch& batch) {
  return engine.indexes[collection]->Search(batch, engine.result);
}

double CollectionProbe::Time(Engine& engine, const Workload& workload, const SearchBatch& batch,
                             std::size_t repeats) {
  const Clock::TimePoint start = clock_.Now();
  for (std::size_t i = 0; i < repeats; ++i) {
    if (!Search(engine, workload.collection, batch).ok()) return 0;
  }
  return std::chrono::duration<double>(clock_.Now() - start).count() / static_cast<double>(repeats);
}

CollectionProbe::Repeats CollectionProbe::WarmUp(const std::vector<Engine*>& engines,
                                                 const Workload& workload) {
  const SearchBatch batch = NextBatch(workload);
  double seconds = 0;
  for (Engine* const engine : engines) seconds = Time(*engine, workload, batch, 1);
  const double wanted = seconds > 0 ? kTimedSeconds / seconds : 1;
  const auto count = static_cast<std::size_t>(
      std::clamp(std::ceil(wanted), 1.0, static_cast<double>(kRepeatsMax)));
  return {count, seconds < kShortSeconds};
}

TimedWorkload CollectionProbe::TimeInTurn(const EngineSetup& before, const EngineSetup& after,
                                          const Workload& workload, Clock::TimePoint until,
                                          Clock::TimePoint end) {
  TimedWorkload timed{workload};
  if (clock_.Now() >= end) return timed;
  std::vector<Engine*> engines;
  for (const EngineSetup& setup : {before, after}) {
    const absl::StatusOr<Engine*> engine = EngineFor(setup);
    if (!engine.ok()) return timed;
    if (engines.empty() || engines.front() != *engine) engines.push_back(*engine);
  }
  const Repeats repeats = WarmUp(engines, workload);
  std::vector<std::vector<double>> times(engines.size());
  for (std::size_t rounds = 0; rounds < kRoundsMax; ++rounds) {
    const Clock::TimePoint now = clock_.Now();
    if (now >= end || (rounds >= kRoundsMin && now >= until)) break;
    const SearchBatch batch = NextBatch(workload);
    for (std::size_t i = 0; i < engines.size(); ++i) {
      // The engines alternate in going first, so that neither always finds the other's caches.
      const std::size_t turn = rounds % 2 == 0 ? i : engines.size() - 1 - i;
      if (repeats.are_short) Time(*engines[turn], workload, batch, 1);
      const double seconds = Time(*engines[turn], workload, batch, repeats.count);
      if (seconds <= 0) return timed;
      times[turn].push_back(seconds);
    }
  }
  if (times.front().size() < kRoundsMin) return timed;
  timed.before_s = Median(times.front());
  timed.after_s = Median(times.back());
  return timed;
}

absl::StatusOr<std::size_t> CollectionProbe::CompareAnswers(const EngineSetup& first,
                                                            const EngineSetup& second,
                                                            std::size_t count) {
  constexpr std::size_t kBatches[] = {1, 3, 16, 64, 256};
  constexpr std::size_t kRowsForOne[] = {0, 0, 20};
  std::size_t compared = 0;
  for (std::size_t collection = 0; collection < subjects_.size(); ++collection) {
    next_query_ = 0;
    std::size_t done = 0;
    for (std::size_t i = 0; done < count; ++i) {
      const Workload workload{collection,
                              std::min({kBatches[i % std::size(kBatches)], count - done,
                                        std::max<std::size_t>(1, options_.batch_max)}),
                              kRowsForOne[i % std::size(kRowsForOne)]};
      const absl::StatusOr<Engine*> one = EngineFor(first);
      if (!one.ok()) return one.status();
      const absl::StatusOr<Engine*> other = EngineFor(second);
      if (!other.ok()) return other.status();
      const SearchBatch batch = NextBatch(workload);
      for (Engine* engine : {*one, *other}) {
        if (absl::Status status = Search(*engine, collection, batch); !status.ok()) return status;
      }
      const std::string difference = doctor::FindDifference((*one)->result, (*other)->result);
      if (!difference.empty()) {
        return absl::InternalError(
            fmt::format("{}: another number of threads changes an answer: {}; nothing was "
                        "written. This is a defect, please report it",
                        WorkloadText(workload, shapes_), difference));
      }
      done += workload.batch;
    }
    compared += done;
  }
  return compared;
}

}  // namespace simile::app
