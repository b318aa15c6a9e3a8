#include "engine/query/query_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "base/unasked_work.h"
#include "engine/fake_clock.h"
#include "engine/query/kept_vector.h"
#include "engine/query/resolve.h"
#include "engine/run_tasks.h"
#include "engine/sample_data.h"
#include "filter/payload_rows.h"

namespace simile::engine {
namespace {

using tests::SeededRandom;

constexpr std::size_t kTags = 12;
constexpr std::size_t kSeries = 40;
constexpr std::size_t kUsers = 12;

std::string Tag(std::size_t number) { return "tag-" + std::to_string(number); }
std::string Series(std::size_t number) { return "series " + std::to_string(number); }

void Normalize(float* row, std::size_t dim, double length) {
  double squares = 0;
  for (std::size_t i = 0; i < dim; ++i) squares += double{row[i]} * row[i];
  for (std::size_t i = 0; i < dim; ++i)
    row[i] = static_cast<float>(row[i] / std::sqrt(squares) * length);
}

// Rows around a few centres, some of them copies of an earlier row or its opposite. One collection
// in six consists mostly of copies of its first row.
data::Matrix ClusteredRows(std::size_t row_count, std::size_t dim, bool unit,
                           SeededRandom& random) {
  data::Matrix rows = data::Matrix::Create(row_count, dim).value();
  const data::Matrix centres = engine::RandomMatrix(1 + random.Below(6), dim, random.Bits() | 1);
  const float spread = random.OneIn(2) ? 0.2F : 1.0F;
  const bool crowded = random.OneIn(6);
  for (std::size_t r = 0; r < row_count; ++r) {
    float* const row = rows.MutableRow(r);
    if (r > 0 && random.OneIn(crowded ? 2 : 8)) {
      const float sign = !crowded && random.OneIn(4) ? -1.0F : 1.0F;
      const std::span<const float> other = rows.view()[crowded ? 0 : random.Below(r)];
      for (std::size_t i = 0; i < dim; ++i) row[i] = sign * other[i];
      continue;
    }
    const std::span<const float> centre = centres.view()[random.Below(centres.row_count())];
    for (std::size_t i = 0; i < dim; ++i) row[i] = centre[i] + spread * random.Signed();
    row[0] += 0x1p-10F;  // never all zeros
    Normalize(row, dim, unit ? 1 : 0.25 + static_cast<double>(random.Below(64)) / 8);
  }
  return rows;
}

std::vector<float> RandomVector(std::size_t dim, SeededRandom& random) {
  std::vector<float> values(dim);
  for (float& value : values) value = random.Signed();
  values[0] += 2;
  return values;
}

// Makes some rows zeros, but not the first: rows like any other of dot products, skipped for
// cosine.
void ZeroSome(data::Dataset& dataset, SeededRandom& random) {
  const std::size_t one_in = random.OneIn(2) ? 2 : 20;
  for (std::size_t row = 1; row < dataset.vectors.row_count(); ++row) {
    if (!random.OneIn(one_in)) continue;
    std::fill_n(dataset.vectors.MutableRow(row), dataset.vectors.dim(), 0.0F);
    if (dataset.metric == Metric::kCosine) dataset.skipped_rows.push_back(static_cast<Row>(row));
  }
}

ByItem DrawItem(const data::Dataset& dataset, SeededRandom& random) {
  std::size_t row = random.Below(dataset.ids.size());
  while (std::ranges::binary_search(dataset.skipped_rows, row)) --row;
  return {std::to_string(row)};
}

VectorOrItem DrawTarget(const data::Dataset& dataset, SeededRandom& random) {
  if (random.OneIn(4)) return ByVector{Kept(RandomVector(dataset.vectors.dim(), random))};
  return DrawItem(dataset, random);
}

ByExamples DrawExamples(Strategy strategy, const data::Dataset& dataset, SeededRandom& random) {
  ByExamples examples;
  examples.strategy = strategy;
  const std::size_t count = random.OneIn(4) ? random.Between(1, 12) : 8;
  std::size_t positive = random.Below(count + 1);
  if (strategy == Strategy::kAverageVector) positive = std::max<std::size_t>(positive, 1);
  for (std::size_t i = 0; i < count; ++i) {
    Example example{DrawTarget(dataset, random)};
    if (random.OneIn(3)) example.weight = 0.25F * static_cast<float>(random.Between(1, 20));
    (i < positive ? examples.positive : examples.negative).push_back(std::move(example));
  }
  return examples;
}

decltype(QueryRequest::target) DrawQueryTarget(Kind kind, const data::Dataset& dataset,
                                               SeededRandom& random) {
  const ByUser user{"user-" + std::to_string(random.Below(kUsers)), random.OneIn(2)};
  switch (kind) {
    case Kind::kVector:
      return ByVector{Kept(RandomVector(dataset.vectors.dim(), random))};
    case Kind::kItem:
      return DrawItem(dataset, random);
    case Kind::kUser:
      return user;
    case Kind::kAverage:
      return DrawExamples(Strategy::kAverageVector, dataset, random);
    case Kind::kBestScore:
      return DrawExamples(Strategy::kBestScore, dataset, random);
    case Kind::kSumScores:
      return DrawExamples(Strategy::kSumScores, dataset, random);
    case Kind::kBlend:
      break;
  }
  return ByBlend{DrawTarget(dataset, random), user, static_cast<float>(random.Below(101)) / 100.0F};
}

constexpr const char* kTagFilter = "tags:\"tag-3\"";
constexpr const char* kYearFilter = "year >= 1990";
constexpr const char* kNarrowFilter = "year = 1977";

}  // namespace

std::shared_ptr<const data::Dataset> RandomCollection(SeededRandom& random) {
  auto dataset = std::make_shared<data::Dataset>();
  dataset->metric = random.OneIn(3) ? Metric::kDot : Metric::kCosine;
  const bool unit = dataset->metric == Metric::kCosine;
  const std::size_t row_count = random.OneIn(3) ? random.Between(1, 40) : random.Between(41, 1'500);
  const std::size_t dim = random.Between(2, 70);
  dataset->vectors = ClusteredRows(row_count, dim, unit, random);
  dataset->longest_row = unit ? 1.0 + 0x1p-20 : 8.25;
  dataset->ids = data::IdIndex::OfRowNumbers(row_count);
  const bool with_tags = !random.OneIn(10);
  std::vector<PayloadObject> rows(row_count);
  for (PayloadObject& row : rows) {
    std::vector<std::string> tags;
    for (std::size_t i = random.Below(4); i > 0; --i) tags.push_back(Tag(random.Below(kTags)));
    // In one collection in ten nearly every row has the same single tag.
    if (!with_tags) tags = {Tag(random.OneIn(50) ? random.Below(kTags) : 0)};
    row.emplace_back("tags", filter::Texts(tags));
    // The first row has it, so that the field exists.
    if (&row == rows.data() || !random.OneIn(5))
      row.emplace_back("series", filter::Text(Series(random.Below(kSeries))));
    row.emplace_back("year", filter::Whole(static_cast<std::int64_t>(random.Between(1970, 2010))));
    PayloadList codes;
    for (std::size_t i = random.Below(3); i > 0; --i) {
      codes.push_back(filter::Whole(static_cast<std::int64_t>(random.Below(9))));
    }
    if (&row == rows.data()) codes = {filter::Whole(0)};
    row.emplace_back("codes", filter::List(std::move(codes)));
  }
  dataset->payload = filter::MakeTable(rows);
  std::vector<std::string> users;
  std::vector<std::pair<Row, Row>> seen;
  for (std::size_t user = 0; user < kUsers; ++user) {
    users.push_back("user-" + std::to_string(user));
    for (std::size_t i = random.Below(30); i > 0; --i) {
      seen.emplace_back(static_cast<Row>(user), static_cast<Row>(random.Below(row_count)));
    }
  }
  dataset->profiles.ids = engine::MakeIds(users);
  dataset->profiles.vectors = ClusteredRows(kUsers, dim, unit, random);
  dataset->profiles.seen = data::SeenSets::FromPairs(kUsers, std::move(seen));
  std::vector<std::uint32_t> counts(row_count);
  dataset->profiles.seen.AddCounts(counts);
  dataset->profiles.most_seen = data::SeenSets::ByCount(counts);
  if (random.OneIn(4)) ZeroSome(*dataset, random);
  return dataset;
}

engine::SnapshotPtr SnapshotOn(Backend& backend, std::shared_ptr<const data::Dataset> dataset) {
  auto snapshot = std::make_shared<engine::Snapshot>();
  snapshot->collection = "films";
  snapshot->version = 1;
  snapshot->filters = filter::Filters::Create(*dataset, snapshot->collection);
  snapshot->segments.push_back(
      backend.MakeResident({dataset->vectors.view(), dataset, dataset->metric, 0}).value());
  snapshot->searchable = engine::SearchableRows(*dataset);
  snapshot->dataset = std::move(dataset);
  return snapshot;
}

QueryRequest DrawRequest(Kind kind, const data::Dataset& dataset, SeededRandom& random) {
  QueryRequest request;
  request.target = DrawQueryTarget(kind, dataset, random);
  const std::size_t row_count = dataset.vectors.row_count();
  request.k = static_cast<std::uint32_t>(random.OneIn(8) ? random.Between(1, row_count + 3)
                                                         : random.Between(1, 20));
  if (random.OneIn(4)) request.offset = static_cast<std::uint32_t>(random.Below(30));
  if (random.OneIn(5)) request.score_threshold = 0.6F * random.Signed();
  if (random.OneIn(20)) request.score_threshold = random.OneIn(2) ? 1.0F : -1.0F;
  for (std::size_t i = random.OneIn(3) ? random.Below(20) : 0; i > 0; --i) {
    request.exclude_ids.push_back(std::to_string(random.Below(row_count)));
  }
  const char* const filters[] = {"", "", "", kTagFilter, kYearFilter, kNarrowFilter};
  request.filter = filters[random.Below(std::size(filters))];
  return request;
}

bool FilterPasses(std::string_view filter, const data::Dataset& dataset, Row row) {
  if (filter.empty()) return true;
  bool passes = false;
  for (const PayloadMember& member : dataset.payload.Read(row)) {
    if (filter == kTagFilter && member.first == "tags") {
      for (const PayloadValue& tag : std::get<PayloadList>(member.second.value)) {
        passes = passes || std::get<std::string>(tag.value) == "tag-3";
      }
    }
    if (filter == kTagFilter || member.first != "year") continue;
    const std::int64_t year = std::get<std::int64_t>(member.second.value);
    passes = filter == kYearFilter ? year >= 1990 : year == 1977;
  }
  return passes;
}

std::unique_ptr<engine::SearchTask> MakeTask(const engine::SnapshotPtr& snapshot,
                                             const std::vector<QueryRequest>& requests) {
  auto task = std::make_unique<engine::SearchTask>();
  task->snapshot = snapshot;
  task->deadline = Clock::TimePoint::max();
  base::LongWork work = tests::UnaskedWork();
  // The exclusions of a lone query may also be those that the call shares.
  std::vector<QueryRequest> own = requests;
  std::vector<std::string_view> shared;
  if (requests.size() == 1) {
    for (std::size_t i = 0; i < requests[0].exclude_ids.size(); i += 2)
      shared.push_back(requests[0].exclude_ids[i]);
    std::erase_if(own[0].exclude_ids, [&](const std::string& id) {
      return std::ranges::find(shared, id) != shared.end();
    });
  }
  CallOptions options;
  options.exclude_ids = shared;
  CallReport report{std::vector<QueryReport>(own.size()), {}};
  const absl::Status status = ResolveQueries(*snapshot, own, options, work, *task, report);
  EXPECT_TRUE(status.ok()) << status;
  return task;
}

std::vector<std::vector<engine::QueryResult>> RunBatch(
    const std::vector<std::unique_ptr<engine::SearchTask>>& tasks) {
  const engine::FakeClock clock;
  std::vector<std::vector<engine::QueryResult>> results;
  for (auto& answer : engine::RunTasks(tasks, clock)) {
    EXPECT_TRUE(answer.ok()) << answer.status();
    results.push_back(std::move(answer).value());
  }
  return results;
}

}  // namespace simile::engine
