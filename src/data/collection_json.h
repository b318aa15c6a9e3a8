#pragma once

#include <string_view>

#include <absl/status/statusor.h>

#include "data/buffered_reader.h"
#include "data/plan.h"
#include "simile/limits.h"
#include "simile/query.h"

namespace simile::data {

// Reads collection.json, the settings that file names cannot express:
//   vectors, payload, user_ids, user_vectors, interactions   files inside the folder
//   metric         "cosine" (default) or "dot"
//   on_zero_row    what a row of zeros is for cosine: "refuse" (default) or "skip"
//   id_field       the payload field that holds ids
//   tensor         which tensor of a file that names several
//   lookup_fields  the payload fields that a look-up searches, a list
//   field_types    the types of payload fields in filters, an object of type names by field
//   separators     what separates the keywords of texts, an object of texts by field: {"genres":
//   "|"}
// Settings that it does not mention stay empty; the folder is not read.
// Errors: kInvalidArgument beginning with the file's name; an unknown key is refused with the
//         nearest known one.
absl::StatusOr<CollectionFiles> ReadCollectionJson(BufferedReader& in, const Limits& limits);

// "cosine" or "dot", as collection.json has it.
std::string_view NameOf(Metric metric);

}  // namespace simile::data
