#pragma once

#include <string>

#include "service/replies/replies.h"
#include "simile/v1/search.pb.h"

namespace simile::service {

// Describes how the hits in columns differ from the hits of the other layout; empty if equal. A
// value that the column converts (12 to 12.0, 12.0 to 12) is equal. Throws if the columns
// contradict each other.
std::string CompareLayouts(v1::SearchResponse with_columns, v1::SearchResponse with_hits);

// Makes both replies from the parts and compares them. Throws also if a reply has another size than
// bytes().
std::string CompareLayouts(SearchReply::Parts parts);

}  // namespace simile::service
