#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "data/payload/id_index.h"

namespace simile::data {

// An index of these ids, in this order.
inline IdIndex MakeIndex(std::initializer_list<std::string_view> ids) {
  IdIndex::Builder builder(ids.size());
  for (const std::string_view id : ids) EXPECT_TRUE(builder.Add(id).ok());
  return std::move(builder).Build();
}

}  // namespace simile::data
