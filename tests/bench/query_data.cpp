#include "bench/query_data.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/unasked_work.h"
#include "bench/synthetic_rows.h"
#include "certificate/seeded_random.h"
#include "data/load/load.h"
#include "data/payload/payload_table.h"
#include "filter/field_summary.h"

namespace simile::bench {
namespace {

using tests::SeededRandom;

constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kGenres = 20;
constexpr std::size_t kUsers = 500;
constexpr std::size_t kSeenByUser = 200;

absl::StatusOr<engine::SnapshotPtr> SnapshotOf(std::shared_ptr<const data::Dataset> dataset,
                                               Backend& backend) {
  auto snapshot = std::make_shared<engine::Snapshot>();
  snapshot->collection = "bench";
  snapshot->version = 1;
  snapshot->filters = filter::Filters::Create(*dataset, snapshot->collection);
  auto segment = backend.MakeResident({dataset->vectors.view(), dataset, dataset->metric, 0});
  if (!segment.ok()) return segment.status();
  snapshot->segments.push_back(*std::move(segment));
  snapshot->dataset = std::move(dataset);
  return snapshot;
}

// One to three genres a row, the first ones more common.
std::vector<PayloadValue> DrawGenres(SeededRandom& random) {
  PayloadList genres;
  for (std::size_t i = random.Between(1, 3); i > 0; --i) {
    const std::size_t genre = random.Below(random.Between(1, kGenres));
    genres.push_back({fmt::format("Genre {}", genre)});
  }
  return genres;
}

absl::StatusOr<data::PayloadTable> DrawPayload(std::size_t row_count, SeededRandom& random) {
  data::PayloadTableBuilder builder(row_count, Limits{});
  for (std::size_t row = 0; row < row_count; ++row) {
    absl::Status status =
        builder.Add({{"genres", {DrawGenres(random)}},
                     {"year", {static_cast<std::int64_t>(random.Between(1920, 2025))}}});
    if (!status.ok()) return status;
  }
  std::vector<std::string> notes;
  absl::Status typed = builder.ChooseTypes({}, "drawn rows", notes);
  if (!typed.ok()) return typed;
  return std::move(builder).Build();
}

absl::StatusOr<data::Profiles> DrawUsers(const SyntheticRows& rows, std::size_t row_count,
                                         backend::cpu::ThreadPool& pool, SeededRandom& random) {
  data::Profiles users;
  data::IdIndex::Builder ids(kUsers);
  std::vector<std::pair<Row, Row>> seen;
  for (std::size_t user = 0; user < kUsers; ++user) {
    if (absl::Status status = ids.Add(fmt::format("user_{}", user)); !status.ok()) return status;
    for (std::size_t i = 0; i < kSeenByUser; ++i) {
      seen.emplace_back(static_cast<Row>(user), static_cast<Row>(random.Below(row_count)));
    }
  }
  users.ids = std::move(ids).Build();
  users.seen = data::SeenSets::FromPairs(kUsers, std::move(seen));
  auto vectors = rows.Draw(SyntheticRows::kFirstQuery, kUsers, pool);
  if (!vectors.ok()) return vectors.status();
  users.vectors = *std::move(vectors);
  return users;
}

std::string IdAt(const engine::Snapshot& snapshot, std::size_t place) {
  const data::IdIndex& ids = snapshot.dataset->ids;
  // Consecutive places are far apart in the collection.
  return std::string(ids.Id(static_cast<Row>(place * 7'919 % ids.size())));
}

// The most common values of a field of keywords.
std::vector<std::string> CommonValues(const engine::Snapshot& snapshot, std::string_view field,
                                      std::size_t count) {
  std::vector<std::string> values;
  const filter::Field* const found = snapshot.filters->payload().Find(field);
  if (found == nullptr) return values;
  base::LongWork work = tests::UnaskedWork();
  const auto summary = filter::Summarize(*found, count, work);
  for (const auto& value : summary->most_common)
    values.push_back(std::get<std::string>(value.value));
  return values;
}

}  // namespace

absl::StatusOr<engine::SnapshotPtr> LoadCollection(const std::string& folder, Backend& backend) {
  const absl::StatusOr<data::DatasetPlan> plan = data::PlanDataset(folder, Limits{});
  if (!plan.ok()) return plan.status();
  absl::StatusOr<data::Dataset> dataset = data::LoadDataset(*plan, Limits{}, {});
  if (!dataset.ok()) return dataset.status();
  return SnapshotOf(std::make_shared<const data::Dataset>(*std::move(dataset)), backend);
}

absl::StatusOr<engine::SnapshotPtr> DrawCollection(std::size_t row_count, std::size_t dim,
                                                   Backend& backend,
                                                   backend::cpu::ThreadPool& pool) {
  SeededRandom random(kSeed);
  const SyntheticRows rows(Spread::kClustered, dim, kSeed, 1);
  auto dataset = std::make_shared<data::Dataset>();
  auto vectors = rows.Draw(0, row_count, pool);
  if (!vectors.ok()) return vectors.status();
  dataset->vectors = *std::move(vectors);
  dataset->longest_row = 1.0 + 0x1p-20;
  dataset->ids = data::IdIndex::OfRowNumbers(row_count);
  auto payload = DrawPayload(row_count, random);
  if (!payload.ok()) return payload.status();
  dataset->payload = *std::move(payload);
  auto users = DrawUsers(rows, row_count, pool, random);
  if (!users.ok()) return users.status();
  dataset->profiles = *std::move(users);
  return SnapshotOf(std::move(dataset), backend);
}

std::vector<std::string> MixedFilters(const engine::Snapshot& snapshot, std::size_t count) {
  constexpr std::size_t kGenresUsed = 8;
  const std::vector<std::string> genres = CommonValues(snapshot, "genres", kGenresUsed);
  std::vector<std::string> filters(count);
  for (std::size_t i = 0; i < count; ++i) {
    filters[i] = fmt::format("genres:\"{}\" AND year >= {}", genres[i % genres.size()], 1930 + i);
  }
  return filters;
}

std::vector<std::string> ConditionFilters(const engine::Snapshot& snapshot) {
  const std::vector<std::string> genres = CommonValues(snapshot, "genres", 4);
  return {fmt::format("genres = \"{}\"", genres[0]),
          fmt::format("NOT genres = \"{}\"", genres[0]),
          fmt::format("genres IN [\"{}\", \"{}\", \"{}\"]", genres[1], genres[2], genres[3]),
          fmt::format("genres:\"{}\"", genres[1]),
          "year = 1990",
          "year >= 1990",
          "year IN [1950, 1960, 1970]",
          "has(genres)"};
}

std::vector<engine::QueryRequest> MixedRequests(const engine::Snapshot& snapshot,
                                                const std::vector<std::string>& filters) {
  const std::size_t count = filters.size();
  std::vector<engine::QueryRequest> requests(count);
  for (std::size_t i = 0; i < count; ++i) {
    requests[i].target = engine::ByItem{IdAt(snapshot, i)};
    requests[i].k = static_cast<std::uint32_t>(5 + i);
    requests[i].filter = filters[i];
    for (std::size_t j = 0; j <= i; ++j) {
      requests[i].exclude_ids.push_back(IdAt(snapshot, 1'000 + i * count + j));
    }
  }
  return requests;
}

std::vector<engine::QueryRequest> UserRequests(const engine::Snapshot& snapshot,
                                               std::size_t count) {
  const data::IdIndex& users = snapshot.dataset->profiles.ids;
  std::vector<engine::QueryRequest> requests(std::min(count, users.size()));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].target = engine::ByUser{std::string(users.Id(static_cast<Row>(i)))};
  }
  return requests;
}

std::vector<engine::QueryRequest> ExampleRequests(const engine::Snapshot& snapshot,
                                                  std::optional<engine::Strategy> strategy,
                                                  std::size_t count) {
  constexpr std::size_t kExamples = 8;
  constexpr std::size_t kPositive = 5;
  std::vector<engine::QueryRequest> requests(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!strategy) {
      requests[i].target = engine::ByItem{IdAt(snapshot, i)};
      continue;
    }
    engine::ByExamples examples;
    examples.strategy = *strategy;
    for (std::size_t j = 0; j < kExamples; ++j) {
      auto& side = j < kPositive ? examples.positive : examples.negative;
      side.push_back({engine::ByItem{IdAt(snapshot, i * kExamples + j)}});
    }
    requests[i].target = std::move(examples);
  }
  return requests;
}

}  // namespace simile::bench
