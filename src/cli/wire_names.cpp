#include "cli/wire_names.h"

#include <algorithm>

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::cli {
namespace {

constexpr const char* kUnknownName = "unknown";
constexpr std::size_t kShortIdDigits = 8;

bool SameWords(std::string_view a, std::string_view b) {
  const auto joined = [](char letter) { return letter == '-' ? '_' : letter; };
  return std::ranges::equal(a, b, {}, joined, joined);
}

}  // namespace

const char* BackendName(v1::BackendKind kind) {
  switch (kind) {
    case v1::BACKEND_KIND_CPU:
      return "cpu";
    case v1::BACKEND_KIND_GPU:
      return "gpu";
    default:
      return kUnknownName;
  }
}

const char* FieldTypeName(v1::FieldType type) {
  switch (type) {
    case v1::FIELD_TYPE_KEYWORD:
      return "keyword";
    case v1::FIELD_TYPE_KEYWORD_LIST:
      return "list of keywords";
    case v1::FIELD_TYPE_INTEGER:
      return "integer";
    case v1::FIELD_TYPE_INTEGER_LIST:
      return "list of integers";
    case v1::FIELD_TYPE_NUMBER:
      return "number";
    case v1::FIELD_TYPE_NUMBER_LIST:
      return "list of numbers";
    case v1::FIELD_TYPE_BOOLEAN:
      return "boolean";
    case v1::FIELD_TYPE_BOOLEAN_LIST:
      return "list of booleans";
    case v1::FIELD_TYPE_TIME:
      return "time";
    case v1::FIELD_TYPE_OTHER:
      return "other";
    default:
      return kUnknownName;
  }
}

const char* StateName(v1::Collection::State state) {
  switch (state) {
    case v1::Collection::STATE_LOADING:
      return "loading";
    case v1::Collection::STATE_SERVING:
      return "serving";
    case v1::Collection::STATE_RELOADING:
      return "reloading";
    case v1::Collection::STATE_FAILED:
      return "failed";
    default:
      return kUnknownName;
  }
}

const char* MetricName(v1::Collection::Metric metric) {
  switch (metric) {
    case v1::Collection::METRIC_COSINE:
      return "cosine";
    case v1::Collection::METRIC_DOT:
      return "dot";
    default:
      return kUnknownName;
  }
}

const char* StageName(v1::ChangeProgress::Stage stage) {
  switch (stage) {
    case v1::ChangeProgress::STAGE_WAITING:
      return "waiting";
    case v1::ChangeProgress::STAGE_READING:
      return "reading";
    case v1::ChangeProgress::STAGE_INDEXING:
      return "indexing";
    case v1::ChangeProgress::STAGE_VERIFYING:
      return "verifying";
    default:
      return kUnknownName;
  }
}

const char* ScoreKindName(v1::ScoreKind kind) {
  switch (kind) {
    case v1::SCORE_KIND_COSINE:
      return "cosine";
    case v1::SCORE_KIND_DOT:
      return "dot";
    case v1::SCORE_KIND_BEST_SCORE:
      return "best_score";
    case v1::SCORE_KIND_SUM_SCORES:
      return "sum_scores";
    case v1::SCORE_KIND_NONE:
      return "none";
    default:
      return kUnknownName;
  }
}

std::string ReasonName(v1::Explanation::Reason reason) {
  constexpr std::string_view kPrefix = "REASON_";
  const std::string& name = v1::Explanation::Reason_Name(reason);
  if (!name.starts_with(kPrefix)) return kUnknownName;
  return absl::AsciiStrToLower(name.substr(kPrefix.size()));
}

const char* ColdStartOrderName(v1::ColdStart::Order order) {
  switch (order) {
    case v1::ColdStart::ORDER_NEWEST:
      return "newest";
    case v1::ColdStart::ORDER_MOST_POPULAR:
      return "most_popular";
    default:
      return kUnknownName;
  }
}

const char* QualityName(v1::LookupMatch::Quality quality) {
  switch (quality) {
    case v1::LookupMatch::QUALITY_WHOLE:
      return "whole";
    case v1::LookupMatch::QUALITY_PREFIX:
      return "prefix";
    case v1::LookupMatch::QUALITY_PART:
      return "part";
    default:
      return kUnknownName;
  }
}

const char* FileRoleName(v1::CollectionFile::Role role) {
  switch (role) {
    case v1::CollectionFile::ROLE_SETTINGS:
      return "settings";
    case v1::CollectionFile::ROLE_VECTORS:
      return "vectors";
    case v1::CollectionFile::ROLE_PAYLOAD:
      return "payload";
    case v1::CollectionFile::ROLE_USER_IDS:
      return "user_ids";
    case v1::CollectionFile::ROLE_USER_VECTORS:
      return "user_vectors";
    case v1::CollectionFile::ROLE_INTERACTIONS:
      return "interactions";
    default:
      return kUnknownName;
  }
}

std::optional<v1::Examples::Strategy> StrategyNamed(std::string_view name) {
  if (SameWords(name, "average_vector")) return v1::Examples::STRATEGY_AVERAGE_VECTOR;
  if (SameWords(name, "best_score")) return v1::Examples::STRATEGY_BEST_SCORE;
  if (SameWords(name, "sum_scores")) return v1::Examples::STRATEGY_SUM_SCORES;
  return std::nullopt;
}

std::optional<v1::ColdStart::Order> ColdStartOrderNamed(std::string_view name) {
  for (const auto order : {v1::ColdStart::ORDER_NEWEST, v1::ColdStart::ORDER_MOST_POPULAR}) {
    if (SameWords(name, ColdStartOrderName(order))) return order;
  }
  return std::nullopt;
}

data::KeptTypes ServedTypes(const v1::Collection& collection) {
  data::KeptTypes served;
  served.may_change = true;  // the caller finds out whether the files differ
  for (const v1::PayloadField& field : collection.fields()) {
    const std::optional<data::FieldType> type = data::ParseFieldType(FieldTypeName(field.type()));
    if (type) served.types.push_back({field.name(), *type, {}, false});
  }
  return served;
}

std::string ShortSnapshotId(const std::string& id) { return id.substr(0, kShortIdDigits); }

std::string SnapshotText(std::uint64_t version, const std::string& id) {
  if (version == 0) return "";
  const std::string count = base::Grouped(version);
  return id.empty() ? count : fmt::format("{} ({})", count, ShortSnapshotId(id));
}

}  // namespace simile::cli
