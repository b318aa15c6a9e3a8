#pragma once

#include <cstdint>
#include <string>

#include "simile/v1/collections.pb.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::cli {

// The words for the contract's enums, in tables and in JSON; "unknown" for one that a newer server
// may send.
const char* BackendName(v1::BackendKind kind);               // "cpu"
const char* FieldTypeName(v1::FieldType type);               // "list of keywords"
const char* StateName(v1::Collection::State state);          // "serving"
const char* MetricName(v1::Collection::Metric metric);       // "cosine"
const char* StageName(v1::ChangeProgress::Stage stage);      // "reading"
const char* ScoreKindName(v1::ScoreKind kind);               // "best_score"
const char* ColdStartOrderName(v1::ColdStart::Order order);  // "most_popular"
const char* QualityName(v1::LookupMatch::Quality quality);   // "prefix": how a text was found

// The first digits of a snapshot's id: enough for people to tell two contents apart.
std::string ShortSnapshotId(const std::string& id);

// `1 (3f9a12c4)`: the count of loads and the short id; empty before the first load.
std::string SnapshotText(std::uint64_t version, const std::string& id);

}  // namespace simile::cli
