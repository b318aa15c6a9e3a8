#pragma once

#include <span>
#include <string_view>

#include "wire_contract/descriptor_walk.h"
#include "wire_contract/finding.h"

namespace simile::wire_contract {

// What one rule finds in a contract, added to findings without the rule's name.
using LintCheck = void (*)(FilesView files, Findings& findings);

struct LintRule {
  std::string_view name;
  std::string_view wants;  // what the rule asks for, a sentence
  LintCheck check;
};

// buf's STANDARD rules, by buf's names (https://buf.build/docs/lint/rules), but for those that one
// package cannot break, and then our own.
std::span<const LintRule> LintRules();

// What all rules find.
Findings Lint(FilesView files);

}  // namespace simile::wire_contract
