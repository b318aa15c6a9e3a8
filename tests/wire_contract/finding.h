#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace simile::wire_contract {

// What a rule refuses.
struct Finding {
  std::string rule;   // as buf calls it: "FIELD_NO_DELETE"
  std::string where;  // "simile.v1.Query.k"
  std::string text;   // what is wrong there

  bool operator==(const Finding&) const = default;
};
using Findings = std::vector<Finding>;

inline std::ostream& operator<<(std::ostream& out, const Finding& finding) {
  return out << finding.rule << ": " << finding.where << ": " << finding.text;
}

}  // namespace simile::wire_contract
