#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "certificate/padded_rows.h"
#include "certificate/seeded_random.h"
#include "simile/hits.h"
#include "simile/segment.h"

namespace simile::tests {

// Scales a vector to this length, in double.
void ScaleTo(std::span<float> vector, double length);

// Random rows of unit length.
std::shared_ptr<PaddedRows> UnitRows(std::size_t row_count, std::size_t dim, SeededRandom& random);

// The same, but every second row is the first one with changes that bounds of cheap scores do not
// separate: each of these may be among the best for any of them.
std::shared_ptr<PaddedRows> NearlyEqualRows(std::size_t row_count, std::size_t dim,
                                            SeededRandom& random);

// A segment over rows that it owns.
SegmentRows MakeSegment(const std::shared_ptr<PaddedRows>& rows, Row first_row = 0);

// Specs for `count` queries with this k and nothing else.
std::vector<QuerySpec> Specs(std::size_t count, std::uint32_t k);

// A mask over all rows up to `end` that lets one in `one_in` pass, or none for 0.
RowMask DrawRowMask(Row end, std::size_t one_in, SeededRandom& random);

// Expects the same rows and score bits for every query; `what` is for the message.
void ExpectSameAnswers(const SearchResult& actual, const SearchResult& expected,
                       const std::string& what);

}  // namespace simile::tests
