#pragma once

#include <absl/status/statusor.h>

#include "data/buffered_reader.h"
#include "data/load.h"
#include "simile/limits.h"

namespace simile::data {

// Reads collection.json, which says what the file names alone do not:
//   vectors, payload, user_ids, user_vectors, interactions   files inside the folder
//   metric         "cosine" (default) or "dot"
//   id_field       the payload field that holds ids
//   tensor         which tensor of a .safetensors file
//   lookup_fields  the payload fields that a look-up searches, a list
//   field_types    what payload fields are to a filter, an object of type names by field
// What it does not mention stays empty; the folder is not looked at.
// Errors: kInvalidArgument beginning with the file's name; an unknown key is refused with the
//         nearest known one.
absl::StatusOr<CollectionFiles> ReadCollectionJson(BufferedReader& in, const Limits& limits);

}  // namespace simile::data
