#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data/payload/payload_table.h"
#include "simile/limits.h"

namespace simile::filter {

// A payload of these rows.
inline data::PayloadTable MakeTable(const std::vector<PayloadObject>& rows,
                                    const data::FieldRules& rules = {}) {
  data::PayloadTableBuilder builder(rows.size(), Limits{});
  for (const PayloadObject& row : rows) EXPECT_TRUE(builder.Add(row).ok());
  std::vector<std::string> notes;
  EXPECT_EQ(builder.ChooseTypes(rules, "metadata.jsonl", notes), absl::OkStatus());
  return std::move(builder).Build();
}

inline PayloadValue Text(std::string text) { return {std::move(text)}; }
inline PayloadValue Whole(std::int64_t number) { return {number}; }
inline PayloadValue Real(double number) { return {number}; }
inline PayloadValue Flag(bool flag) { return {flag}; }
inline PayloadValue List(PayloadList elements) { return {std::move(elements)}; }
inline PayloadValue Texts(const std::vector<std::string>& texts) {
  PayloadList list;
  for (const std::string& text : texts) list.push_back({text});
  return {std::move(list)};
}

}  // namespace simile::filter
