#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/field_type.h"
#include "data/id_index.h"
#include "data/matrix.h"
#include "data/payload_table.h"
#include "data/seen_sets.h"
#include "simile/limits.h"
#include "simile/query.h"

namespace simile::data {

// The users of a collection: what they like, as vectors, and what they have seen.
struct Profiles {
  IdIndex ids;     // user id <-> user row
  Matrix vectors;  // [user_count, dim] fp32, unit length for cosine
  SeenSets seen;   // item rows by user row
  // Item rows that somebody has seen, those seen by most users first, then by row.
  std::vector<Row> most_seen;
};

// Everything a collection's folder holds, checked and in memory. Immutable once loaded.
struct Dataset {
  Metric metric = Metric::kCosine;
  Matrix vectors;                 // [row_count, dim] fp32, unit length for cosine
  double longest_row = kNormMax;  // no row of vectors is longer
  IdIndex ids;                    // item id <-> row
  PayloadTable payload;           // row_count rows, or none when there is no metadata.jsonl
  Profiles profiles;              // no users when there is no user_ids.json
  // Payload fields whose text LookupService searches, most telling first.
  std::vector<std::string> lookup_fields;
  // What the owner says that fields are to a filter; of the others the values tell.
  std::vector<NamedFieldType> field_types;
  // What the load did that its owner should know, one sentence each: how many rows were normalized
  // and how far they were from unit length, which interaction lines named unknown items.
  std::vector<std::string> notes;
};

}  // namespace simile::data
