#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/load/fingerprint.h"
#include "data/load/folder_files.h"
#include "data/matrix.h"
#include "data/payload/field_rules.h"
#include "data/payload/id_index.h"
#include "data/payload/payload_table.h"
#include "data/seen_sets.h"
#include "simile/limits.h"
#include "simile/query.h"

namespace simile::data {

// The users of a collection: their preferences, as vectors, and the items that they have seen.
// Visitors are named in interactions but are no users; only the items that they have seen are
// known.
struct Profiles {
  IdIndex ids;            // user id <-> user row
  Matrix vectors;         // [user_count, dim] fp32, unit length for cosine
  SeenSets seen;          // item rows by user row
  IdIndex visitor_ids;    // visitor id <-> visitor row
  SeenSets visitor_seen;  // item rows by visitor row
  // The item rows with interactions, by descending number of users and visitors, then by row; a
  // line that names nobody counts by itself.
  std::vector<Row> most_seen;
};

// The contents of a collection's folder, checked and in memory. Immutable once loaded.
struct Dataset {
  Metric metric = Metric::kCosine;
  Matrix vectors;                 // [row_count, dim] fp32, unit length for cosine
  double longest_row = kNormMax;  // no row of vectors is longer
  // The rows of zeros of a cosine collection whose settings say `"on_zero_row": "skip"`, ascending.
  // They keep their row number, id and payload, and no search returns them.
  std::vector<Row> skipped_rows;
  IdIndex ids;           // item id <-> row
  PayloadTable payload;  // row_count rows, or none when there is no metadata.jsonl
  Profiles profiles;     // no users when there is no user_ids.json
  // Payload fields whose text LookupService searches, the most important first.
  std::vector<std::string> lookup_fields;
  // Kept types (KeptTypes) of fields that no row has now. A later load keeps them too.
  std::vector<KeptType> absent_types;
  // What the load changed or left out, one sentence each: how many rows were normalized and how
  // long they were, which interaction lines named unknown items.
  std::vector<std::string> notes;
  // Identifies the content: 32 lower-case hex digits that are the same wherever and whenever the
  // same files are loaded with the same types of fields; see fingerprint.h.
  std::string content_id;
  FolderFingerprint fingerprint;  // of the files that were loaded
  // The folder's files: first the files that were read, by role, then the unread files, by name. At
  // most limits.unread_files_max unread files are listed.
  std::vector<FolderFile> files;
  std::uint64_t unread_files = 0;  // listed or not
};

}  // namespace simile::data
