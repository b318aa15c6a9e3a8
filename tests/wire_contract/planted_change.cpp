#include "wire_contract/planted_change.h"

#include <gtest/gtest.h>

namespace simile::wire_contract {

ProtoSources Edited(ProtoSources sources, const std::vector<Edit>& edits) {
  for (const Edit& edit : edits) {
    std::string& text = sources[edit.file];
    if (edit.before.empty()) {
      text = edit.after;
      continue;
    }
    const auto found = text.find(edit.before);
    EXPECT_NE(found, std::string::npos) << edit.before;
    EXPECT_EQ(text.rfind(edit.before), found) << edit.before << " is there twice";
    if (found != std::string::npos) text.replace(found, edit.before.size(), edit.after);
  }
  return sources;
}

std::set<std::string> RulesOf(const Findings& findings) {
  std::set<std::string> rules;
  for (const Finding& finding : findings) rules.insert(finding.rule);
  return rules;
}

}  // namespace simile::wire_contract
