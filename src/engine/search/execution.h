#pragma once

#include <algorithm>
#include <string_view>

#include "observe/receipt.h"
#include "simile/hits.h"
#include "simile/served_by.h"

namespace simile::engine {

// The names of the engines that answered: each once, in the order of their first answer.
class EngineNames {
 public:
  // REQUIRES: the name lives as long as the backend. "" adds nothing.
  void Add(std::string_view name) {
    if (name.empty() || std::ranges::find(names_, name) != names_.end()) return;
    names_.push_back(name);
  }
  void Add(const EngineNames& others) {
    for (const std::string_view name : others.names_) Add(name);
  }
  // Empty when nothing was searched.
  const observe::Receipt::Names& names() const { return names_; }

 private:
  observe::Receipt::Names names_;
};

// How an answer was computed: its cost, the engines, and the fallback backend. Every step of a
// query adds its part; the receipt is built from the sum.
struct Execution {
  QueryCost cost;
  EngineNames engines;
  FallbackBackend fallback;  // the first fallback that answered any part; null for none

  void AddFallback(const FallbackBackend& other) {
    if (fallback == nullptr) fallback = other;
  }
  // Adds one search of a batch.
  void AddSearch(const SearchResult& result, std::size_t search) {
    cost += result.Cost(search);
    engines.Add(result.Engine(search));
    AddFallback(result.fallback());
  }
  void Add(const Execution& other) {
    cost += other.cost;
    engines.Add(other.engines);
    AddFallback(other.fallback);
  }
};

}  // namespace simile::engine
