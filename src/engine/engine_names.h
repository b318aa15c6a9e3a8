#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace simile::engine {

// What answered, each once, in the order met. Names live as long as the backend.
class EngineNames {
 public:
  void Add(std::string_view name) {
    if (name.empty() || std::ranges::find(names_, name) != names_.end()) return;
    names_.push_back(name);
  }
  void Add(const EngineNames& others) {
    for (const std::string_view name : others.names_) Add(name);
  }
  // "int8-amx + gather-avx512"; empty when nothing answered.
  std::string Joined() const {
    std::string joined;
    for (const std::string_view name : names_) {
      if (!joined.empty()) joined += " + ";
      joined += name;
    }
    return joined;
  }

 private:
  std::vector<std::string_view> names_;
};

}  // namespace simile::engine
