#include "cli/verify/sample.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/split_mix.h"
#include "certificate/canonical_score.h"
#include "cli/verify/filters.h"
#include "simile/limits.h"

namespace simile::cli {
namespace {

constexpr std::uint32_t kMaxK = 50;
// Bounds the offset, because k and the skipped hits together may not exceed limits.k_max.
constexpr std::size_t kOffsetEnd = Limits{}.k_max - kMaxK;

// A query while it is drawn: the request, the rule of its scores, and the rows that it may return.
struct Drawing {
  Sample sample;
  ScoreRule rule;
  Expectation expected;

  v1::Query& query() { return *sample.request.mutable_queries(0); }
  v1::SearchOptions& options() { return *sample.request.mutable_options(); }
  void Exclude(Row row) { expected.allowed[row] = false; }
};

Drawing Start(SampleDraw& draw) {
  Drawing drawing;
  drawing.sample.request.set_collection(draw.served().name());
  v1::Query& query = *drawing.sample.request.add_queries();
  drawing.expected.k = 1 + draw.Below(std::min<std::size_t>(kMaxK, draw.oracle().row_count()));
  query.set_k(static_cast<std::uint32_t>(drawing.expected.k));
  drawing.expected.allowed.assign(draw.oracle().row_count(), true);
  for (const Row row : draw.dataset().skipped_rows) drawing.Exclude(row);
  drawing.options().mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_NONE);
  drawing.sample.score_kind =
      draw.dataset().metric == Metric::kCosine ? v1::SCORE_KIND_COSINE : v1::SCORE_KIND_DOT;
  return drawing;
}

WeightedVector AsQuery(const SampleDraw& draw, std::span<const float> values) {
  return {.values = draw.oracle().Normalized({values.begin(), values.end()})};
}

// "k 10", or "k 10 from 5" with an offset.
std::string ReachText(const Expectation& expected) {
  return expected.offset == 0 ? fmt::format("k {}", expected.k)
                              : fmt::format("k {} from {}", expected.k, expected.offset + 1);
}

// The hits, with the rows that their ids have in the files. A server that lost a row numbers the
// later rows differently.
//   unknown  set to a sentence if an id is not in the files
std::vector<ReturnedHit> ToReturnedHits(const data::Dataset& dataset,
                                        const google::protobuf::RepeatedPtrField<v1::Hit>& hits,
                                        std::optional<std::string>& unknown) {
  std::vector<ReturnedHit> returned;
  for (const v1::Hit& hit : hits) {
    const std::optional<Row> row = dataset.ids.Find(hit.id());
    if (row) {
      returned.push_back({hit.rank(), *row, hit.score()});
    } else if (!unknown) {
      unknown = fmt::format("rank {} is {}, which is not in the files", hit.rank(),
                            base::Quoted(hit.id()));
    }
  }
  return returned;
}

// Completes a query whose answer is a ranking of rows.
Sample Finish(SampleDraw& draw, Drawing drawing, std::string label) {
  drawing.expected.scores = draw.oracle().Scores(drawing.rule);
  drawing.sample.label = fmt::format("{}, {}", label, ReachText(drawing.expected));
  drawing.sample.check = [&dataset = draw.dataset(), expected = std::move(drawing.expected)](
                             const v1::SearchResult& result) -> std::optional<std::string> {
    std::optional<std::string> unknown;
    const std::vector<ReturnedHit> hits = ToReturnedHits(dataset, result.hits(), unknown);
    return unknown ? unknown : CheckHits(expected, hits);
  };
  return std::move(drawing.sample);
}

// Sets the query to a stored item, which its own answer leaves out.
std::string ByAnyItem(SampleDraw& draw, Drawing& drawing) {
  const Row row = draw.AnyRow();
  const std::string id = draw.dataset().ids.Id(row);
  drawing.query().set_id(id);
  drawing.rule.positive = {{.values = draw.oracle().ItemVector(row)}};
  drawing.Exclude(row);
  return fmt::format("item {}", id);
}

// Sets the query to the stored vector of an item, which the answer then includes.
std::string ByStoredVector(SampleDraw& draw, Drawing& drawing) {
  const Row row = draw.AnyRow();
  const std::span<const float> vector = draw.dataset().vectors.view()[row];
  v1::FloatVector& sent = *drawing.query().mutable_vector();
  *sent.mutable_values() = {vector.begin(), vector.end()};
  sent.set_as_stored(true);
  drawing.rule.positive = {{.values = draw.oracle().ItemVector(row)}};
  return fmt::format("the vector of item {}", draw.dataset().ids.Id(row));
}

std::string ByAnyVector(SampleDraw& draw, Drawing& drawing) {
  const std::vector<float> vector = draw.AnyVector();
  *drawing.query().mutable_vector()->mutable_values() = {vector.begin(), vector.end()};
  drawing.rule.positive = {AsQuery(draw, vector)};
  return "a vector";
}

std::optional<Sample> DrawVector(SampleDraw& draw) {
  Drawing drawing = Start(draw);
  std::string label = ByAnyVector(draw, drawing);
  const std::size_t offset_end = std::min(draw.oracle().row_count(), kOffsetEnd);
  drawing.expected.offset = draw.Below(2) * draw.Below(offset_end);
  drawing.query().set_offset(static_cast<std::uint32_t>(drawing.expected.offset));
  return Finish(draw, std::move(drawing), std::move(label));
}

std::optional<Sample> DrawPackedVector(SampleDraw& draw) {
  Drawing drawing = Start(draw);
  const std::vector<float> vector = draw.AnyVector();
  std::string bytes(vector.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), vector.data(), bytes.size());
  v1::PackedVector& packed = *drawing.query().mutable_packed_vector();
  packed.set_format(v1::PackedVector::FORMAT_F32_LE);
  packed.set_data(std::move(bytes));
  drawing.rule.positive = {AsQuery(draw, vector)};
  return Finish(draw, std::move(drawing), "a packed vector");
}

std::optional<Sample> DrawItem(SampleDraw& draw) {
  Drawing drawing = Start(draw);
  std::string label = ByAnyItem(draw, drawing);
  for (std::size_t left = draw.Below(4); left > 0; --left) {
    const Row row = draw.AnyRow();
    drawing.query().add_exclude_ids(draw.dataset().ids.Id(row));
    drawing.Exclude(row);
  }
  return Finish(draw, std::move(drawing), std::move(label));
}

std::optional<Sample> DrawUser(SampleDraw& draw) {
  const std::optional<Row> user = draw.AnyUser();
  if (!user) return std::nullopt;
  Drawing drawing = Start(draw);
  const std::string id = draw.dataset().profiles.ids.Id(*user);
  drawing.query().set_user_id(id);
  drawing.rule.positive = {{.values = draw.oracle().UserVector(*user)}};
  std::string label = "user " + id;
  if (draw.Below(2) == 0) {
    drawing.options().set_exclude_seen(true);
    for (const Row row : draw.dataset().profiles.seen.Of(*user)) drawing.Exclude(row);
    label += ", what they have seen excluded";
  }
  return Finish(draw, std::move(drawing), std::move(label));
}

std::optional<Sample> DrawRecommend(SampleDraw& draw) {
  std::optional<Sample> sample = DrawUser(draw);
  if (!sample) return std::nullopt;
  sample->recommend = true;
  return sample;
}

// Fills in an example with an item or a vector, and a weight.
void AddExample(SampleDraw& draw, Drawing& drawing, v1::Example& example,
                std::vector<WeightedVector>& vectors) {
  WeightedVector vector;
  if (draw.Below(2) == 0) {
    const Row row = draw.AnyRow();
    example.set_id(draw.dataset().ids.Id(row));
    vector.values = draw.oracle().ItemVector(row);
    drawing.Exclude(row);
  } else {
    const std::vector<float> values = draw.AnyVector();
    *example.mutable_vector()->mutable_values() = {values.begin(), values.end()};
    vector = AsQuery(draw, values);
  }
  const auto weight = static_cast<float>(0.5 + draw.Fraction());
  example.set_weight(weight);
  vector.weight = weight;
  vectors.push_back(std::move(vector));
}

std::optional<Sample> DrawExamples(SampleDraw& draw, v1::Examples::Strategy strategy,
                                   std::string label) {
  Drawing drawing = Start(draw);
  v1::Examples& examples = *drawing.query().mutable_examples();
  examples.set_strategy(strategy);
  const std::size_t positive_count = 1 + draw.Below(3);
  const std::size_t negative_count = draw.Below(3);
  std::vector<WeightedVector> positive;
  std::vector<WeightedVector> negative;
  for (std::size_t i = 0; i < positive_count; ++i) {
    AddExample(draw, drawing, *examples.add_positive(), positive);
  }
  for (std::size_t i = 0; i < negative_count; ++i) {
    AddExample(draw, drawing, *examples.add_negative(), negative);
  }
  if (strategy == v1::Examples::STRATEGY_AVERAGE_VECTOR) {
    drawing.rule.positive = {draw.oracle().Average(positive, negative)};
  } else {
    const bool best = strategy == v1::Examples::STRATEGY_BEST_SCORE;
    drawing.rule.kind = best ? ScoreRule::Kind::kBestScore : ScoreRule::Kind::kSumScores;
    drawing.rule.positive = std::move(positive);
    drawing.rule.negative = std::move(negative);
    drawing.sample.score_kind = best ? v1::SCORE_KIND_BEST_SCORE : v1::SCORE_KIND_SUM_SCORES;
  }
  label += fmt::format(", {} liked and {} disliked", positive_count, negative_count);
  return Finish(draw, std::move(drawing), std::move(label));
}

std::optional<Sample> DrawAverage(SampleDraw& draw) {
  return DrawExamples(draw, v1::Examples::STRATEGY_AVERAGE_VECTOR, "average of examples");
}
std::optional<Sample> DrawBestScore(SampleDraw& draw) {
  return DrawExamples(draw, v1::Examples::STRATEGY_BEST_SCORE, "best score of examples");
}
std::optional<Sample> DrawSumScores(SampleDraw& draw) {
  return DrawExamples(draw, v1::Examples::STRATEGY_SUM_SCORES, "sum of examples");
}

std::optional<Sample> DrawBlend(SampleDraw& draw) {
  const std::optional<Row> user = draw.AnyUser();
  if (!user) return std::nullopt;
  Drawing drawing = Start(draw);
  const Row row = draw.AnyRow();
  const auto user_weight = static_cast<float>(draw.Fraction());
  v1::Blend& blend = *drawing.query().mutable_blend();
  blend.set_id(draw.dataset().ids.Id(row));
  blend.set_user_id(draw.dataset().profiles.ids.Id(*user));
  blend.set_user_weight(user_weight);
  drawing.rule.positive = {draw.oracle().Blend(draw.oracle().ItemVector(row),
                                               draw.oracle().UserVector(*user), user_weight)};
  drawing.Exclude(row);
  std::string label = fmt::format("blend of item {} and user {}", blend.id(), blend.user_id());
  return Finish(draw, std::move(drawing), std::move(label));
}

// Restricts the query to a drawn filter. False if no filter can be drawn.
bool AddFilter(SampleDraw& draw, Drawing& drawing, std::string& label, bool required) {
  const std::optional<DrawnFilter> filter = DrawFilter(draw, required);
  if (!filter) return false;
  if (required) {
    drawing.options().set_required_filter(filter->text);
  } else {
    drawing.query().set_filter(filter->text);
  }
  std::uint64_t passing = 0;
  for (std::size_t row = 0; row < filter->passes.size(); ++row) {
    const bool passes = filter->passes[row];
    if (!passes) drawing.Exclude(static_cast<Row>(row));
    if (passes && draw.oracle().IsSearchable(static_cast<Row>(row))) ++passing;
  }
  drawing.sample.rows_passing = passing;
  label += fmt::format(", {} {}", required ? "required filter" : "filter", filter->text);
  return true;
}

std::optional<Sample> DrawFiltered(SampleDraw& draw) {
  Drawing drawing = Start(draw);
  std::string label = ByAnyItem(draw, drawing);
  if (!AddFilter(draw, drawing, label, false)) return std::nullopt;
  return Finish(draw, std::move(drawing), std::move(label));
}

// Searches by a vector, because an item that fails the required filter would not exist for the
// call.
std::optional<Sample> DrawRequiredFilter(SampleDraw& draw) {
  Drawing drawing = Start(draw);
  std::string label = ByAnyVector(draw, drawing);
  if (!AddFilter(draw, drawing, label, true)) return std::nullopt;
  return Finish(draw, std::move(drawing), std::move(label));
}

// The threshold that scores are compared with; see docs/api.md, "Scores and thresholds".
float ComparedThreshold(const SampleDraw& draw, float threshold) {
  const data::Dataset& dataset = draw.dataset();
  return dataset.metric == Metric::kCosine
             ? certificate::CosineThreshold(threshold, dataset.vectors.dim())
             : threshold;
}

std::optional<Sample> DrawThreshold(SampleDraw& draw) {
  Drawing drawing = Start(draw);
  // Either a row's own vector with threshold 1, which finds equal rows; or the score of some row,
  // so that the threshold divides the collection.
  const bool equal_rows = draw.Below(4) == 0 && draw.dataset().metric == Metric::kCosine;
  std::string label = equal_rows ? ByStoredVector(draw, drawing) : ByAnyItem(draw, drawing);
  const std::vector<ScoreRange> scores = draw.oracle().Scores(drawing.rule);
  const float threshold = equal_rows ? 1.0F : static_cast<float>(scores[draw.AnyRow()].low);
  drawing.query().set_score_threshold(threshold);
  drawing.expected.score_threshold = ComparedThreshold(draw, threshold);
  label += fmt::format(", scores from {:.4g}", threshold);
  return Finish(draw, std::move(drawing), std::move(label));
}

std::optional<Sample> DrawGroups(SampleDraw& draw) {
  std::optional<KeywordFieldRows> field = DrawKeywordField(draw);
  if (!field) return std::nullopt;
  Drawing drawing = Start(draw);
  std::string label = ByAnyItem(draw, drawing);
  const std::size_t group_size = 1 + draw.Below(3);
  v1::GroupBy& group_by = *drawing.query().mutable_group_by();
  group_by.set_field(field->field);
  group_by.set_group_size(static_cast<std::uint32_t>(group_size));
  drawing.expected.scores = draw.oracle().Scores(drawing.rule);
  drawing.sample.label = fmt::format("{}, {} a group by {}, {}", label, group_size,
                                     base::Quoted(field->field), ReachText(drawing.expected));
  drawing.sample.check =
      [&dataset = draw.dataset(), expected = std::move(drawing.expected), field = *std::move(field),
       group_size](const v1::SearchResult& result) -> std::optional<std::string> {
    std::vector<ReturnedGroup> groups;
    for (const v1::HitGroup& group : result.groups()) {
      std::optional<std::string> unknown;
      std::vector<ReturnedHit> hits = ToReturnedHits(dataset, group.hits(), unknown);
      if (unknown) return unknown;
      if (hits.empty()) return fmt::format("group {} has no rows", group.rank());
      groups.push_back({group.rank(), group.keyword(), std::move(hits)});
    }
    return CheckGroups(expected, group_size, field.keywords, groups);
  };
  return std::move(drawing.sample);
}

std::optional<Sample> DrawDiverse(SampleDraw& draw) {
  Drawing drawing = Start(draw);
  std::string label = ByAnyItem(draw, drawing);
  drawing.expected.k = 1 + draw.Below(20);
  drawing.query().set_k(static_cast<std::uint32_t>(drawing.expected.k));
  const auto lambda = static_cast<float>(draw.Fraction());
  const std::size_t candidates = drawing.expected.k + draw.Below(100);
  v1::Diversity& diversity = *drawing.query().mutable_diversity();
  diversity.set_lambda(lambda);
  diversity.set_candidates(static_cast<std::uint32_t>(candidates));
  drawing.expected.scores = draw.oracle().Scores(drawing.rule);
  drawing.sample.label =
      fmt::format("{}, diverse (lambda {:.2f} of {})", label, lambda, candidates);
  drawing.sample.check = [&oracle = draw.oracle(), expected = std::move(drawing.expected),
                          rule = DiversityRule{lambda, candidates}](
                             const v1::SearchResult& result) -> std::optional<std::string> {
    std::optional<std::string> unknown;
    const std::vector<ReturnedHit> hits = ToReturnedHits(oracle.dataset(), result.hits(), unknown);
    return unknown ? unknown : CheckDiverse(expected, rule, oracle, hits);
  };
  return std::move(drawing.sample);
}

std::optional<Sample> DrawPages(SampleDraw& draw) {
  Drawing drawing = Start(draw);
  std::string label = ByAnyItem(draw, drawing);
  constexpr std::uint32_t kPages = 3;
  drawing.options().set_paged(true);
  drawing.sample.pages = kPages;
  label += fmt::format(", {} pages of {}", kPages, drawing.expected.k);
  drawing.expected.k *= kPages;
  return Finish(draw, std::move(drawing), std::move(label));
}

// A user id that the collection does not have.
std::string UnknownUser(const data::Dataset& dataset) {
  std::string id = "nobody";
  while (dataset.profiles.ids.Find(id)) id += '_';
  return id;
}

std::optional<Sample> DrawColdStart(SampleDraw& draw) {
  if (!draw.AnyUser()) return std::nullopt;
  std::optional<OrderedRows> order = DrawOrderedField(draw);
  if (!order) return std::nullopt;
  Drawing drawing = Start(draw);
  drawing.query().set_user_id(UnknownUser(draw.dataset()));
  v1::ColdStart& cold_start = *drawing.options().mutable_cold_start();
  cold_start.set_order(v1::ColdStart::ORDER_MOST_POPULAR);
  cold_start.set_field(order->field);
  drawing.sample.score_kind = v1::SCORE_KIND_NONE;
  drawing.sample.label = fmt::format("a user without a profile, the first {} by {}",
                                     drawing.expected.k, base::Quoted(order->field));
  std::erase_if(order->rows, [&](Row row) { return !draw.oracle().IsSearchable(row); });
  order->rows.resize(std::min(order->rows.size(), drawing.expected.k));
  drawing.sample.check = [&dataset = draw.dataset(), rows = std::move(order->rows)](
                             const v1::SearchResult& result) -> std::optional<std::string> {
    std::optional<std::string> unknown;
    const std::vector<ReturnedHit> hits = ToReturnedHits(dataset, result.hits(), unknown);
    return unknown ? unknown : CheckOrder(rows, hits);
  };
  return std::move(drawing.sample);
}

}  // namespace

std::vector<SampleKind> SampleKinds() {
  return {{"vector", DrawVector},
          {"packed vector", DrawPackedVector},
          {"item", DrawItem},
          {"user", DrawUser},
          {"recommend", DrawRecommend},
          {"average of examples", DrawAverage},
          {"best score", DrawBestScore},
          {"sum of scores", DrawSumScores},
          {"blend", DrawBlend},
          {"filter", DrawFiltered},
          {"required filter", DrawRequiredFilter},
          {"score threshold", DrawThreshold},
          {"groups", DrawGroups},
          {"diversity", DrawDiverse},
          {"pages", DrawPages},
          {"cold start", DrawColdStart}};
}

std::size_t SampleDraw::Below(std::size_t bound) {
  return base::ScaleBelow(base::NextSplitMix(state_), bound);
}

Row SampleDraw::AnyRow() {
  const std::vector<Row>& skipped = dataset().skipped_rows;
  Row row = static_cast<Row>(Below(oracle_.row_count() - skipped.size()));
  for (auto next = skipped.begin(); next != skipped.end() && *next <= row; ++next) ++row;
  return row;
}

double SampleDraw::Fraction() {
  return static_cast<double>(base::NextSplitMix(state_) >> 11) * 0x1p-53;
}

std::optional<Row> SampleDraw::AnyUser() {
  const std::size_t users = dataset().profiles.ids.size();
  if (users == 0) return std::nullopt;
  return static_cast<Row>(Below(users));
}

std::vector<float> SampleDraw::AnyVector() {
  std::vector<float> vector(oracle_.dim());
  for (int part = 0; part < 2; ++part) {
    const std::vector<double> row = oracle_.ItemVector(AnyRow());
    for (std::size_t i = 0; i < vector.size(); ++i) {
      vector[i] += static_cast<float>(row[i] * (1 + 0.2 * (Fraction() - 0.5)));
    }
  }
  return vector;
}

}  // namespace simile::cli
