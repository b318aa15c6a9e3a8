#include "doctor/visible_cards.h"

#include <algorithm>
#include <vector>

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>

namespace simile::doctor {
namespace {

// The entry at a position; empty when there is none.
std::string EntryAt(std::string_view value, std::size_t position) {
  const std::vector<std::string> entries = absl::StrSplit(std::string(value), ',');
  if (position >= entries.size()) return {};
  return std::string(absl::StripAsciiWhitespace(entries[position]));
}

bool IsUuid(std::string_view entry) { return entry.starts_with("GPU-"); }

}  // namespace

bool HidesAllCards(std::string_view value, std::span<const std::string> uuids) {
  const std::string first = EntryAt(value, 0);
  if (first.starts_with("MIG-")) return false;  // a part of a card, which has a UUID of its own
  if (IsUuid(first)) {
    return !uuids.empty() && std::ranges::none_of(uuids, [&first](const std::string& uuid) {
      return uuid.empty() || uuid.starts_with(first);
    });
  }
  unsigned number = 0;
  if (!absl::SimpleAtoi(first, &number)) return true;
  return !uuids.empty() && number >= uuids.size();
}

std::optional<std::size_t> CardOfDevice(std::string_view value, std::size_t device,
                                        std::span<const std::string> uuids) {
  const std::string entry = EntryAt(value, device);
  unsigned number = 0;
  if (absl::SimpleAtoi(entry, &number)) return number;
  const auto found = std::ranges::find_if(
      uuids, [&entry](const std::string& uuid) { return uuid.starts_with(entry); });
  if (!IsUuid(entry) || found == uuids.end()) return std::nullopt;
  return static_cast<std::size_t>(found - uuids.begin());
}

bool GivesNoCard(std::string_view value) {
  return value.empty() || value == "void" || value == "none";
}

}  // namespace simile::doctor
