#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace simile::doctor {

enum class State : std::uint8_t {
  kOk,
  kWarning,  // the GPU can be used; the fix prevents trouble
  kFailed,   // the GPU cannot be used, for this reason
  kSkipped,  // it follows from an earlier failure, or was not looked at
};

// What one probe found, in words for an operator.
struct Finding {
  std::string probe;  // "driver"
  State state = State::kOk;
  std::string text;     // what was seen
  std::string fix;      // what to do, in lines; empty when there is nothing to do
  std::string symptom;  // its name in the table of symptoms.h; empty when there is none
};

inline Finding OkFinding(std::string_view probe, std::string text) {
  return {std::string(probe), State::kOk, std::move(text), "", ""};
}
inline Finding SkippedFinding(std::string_view probe, std::string text) {
  return {std::string(probe), State::kSkipped, std::move(text), "", ""};
}

}  // namespace simile::doctor
