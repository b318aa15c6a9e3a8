#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "data/payload/field_rules.h"
#include "simile/v1/admin.pb.h"
#include "simile/v1/collections.pb.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::cli {

// The words for enum values of the API, in tables and in JSON; "unknown" for a value that only a
// newer server knows.
const char* BackendName(v1::BackendKind kind);               // "cpu"
const char* FieldTypeName(v1::FieldType type);               // "list of keywords"
const char* StateName(v1::Collection::State state);          // "serving"
const char* MetricName(v1::Collection::Metric metric);       // "cosine"
const char* StageName(v1::ChangeProgress::Stage stage);      // "reading"
const char* ScoreKindName(v1::ScoreKind kind);               // "best_score"
std::string ReasonName(v1::Explanation::Reason reason);      // "rank_in_group"
const char* ColdStartOrderName(v1::ColdStart::Order order);  // "most_popular"
const char* QualityName(v1::LookupMatch::Quality quality);   // "prefix"; how a text was found
const char* FileRoleName(v1::CollectionFile::Role role);     // "user_vectors", as collection.json

// Parse a name from a flag or a file, whose words are separated by '-' or '_'; nullopt for an
// unknown name.
std::optional<v1::Examples::Strategy> StrategyNamed(std::string_view name);      // "best-score"
std::optional<v1::ColdStart::Order> ColdStartOrderNamed(std::string_view name);  // "most-popular"

// The field types that the server reports, so that the files are read as the server reads them.
data::KeptTypes ServedTypes(const v1::Collection& collection);

// The first digits of a snapshot's id, enough for people to distinguish two contents.
std::string ShortSnapshotId(const std::string& id);

// `1 (3f9a12c4)`: the count of loads and the short id; empty before the first load.
std::string SnapshotText(std::uint64_t version, const std::string& id);

// The value of a metric's label; empty if it has no such label.
inline std::string LabelOf(const v1::MetricValue& metric, const char* label) {
  const auto found = metric.labels().find(label);
  return found == metric.labels().end() ? "" : found->second;
}

}  // namespace simile::cli
