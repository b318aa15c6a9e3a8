#include "app/gpu/fault_journal.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"

namespace simile::app {
namespace {

using backend::GpuFault;
using Json = nlohmann::ordered_json;
using Milliseconds = std::chrono::milliseconds;

constexpr const char* kJournalFormat = "simile_gpu_faults";
constexpr int kJournalVersion = 1;
constexpr std::size_t kJournalBytesMax = 64U << 10;
constexpr std::size_t kFaultsMax = 16;
constexpr std::size_t kReasonBytesMax = 1'024;
constexpr std::uint64_t kAtMsMax = 9'000'000'000'000;  // the year 2255, within the clock's range

absl::Status NotAJournal(const std::filesystem::path& file) {
  return absl::InvalidArgumentError(fmt::format(
      "{}: not a journal of GPU faults of this release; it is left as it is", file.string()));
}

}  // namespace

absl::StatusOr<std::vector<GpuFault>> ReadFaultJournal(const std::filesystem::path& file) {
  const absl::StatusOr<std::string> text = base::ReadWholeFile(file, kJournalBytesMax);
  if (absl::IsInvalidArgument(text.status())) return NotAJournal(file);
  if (!text.ok()) return text.status();
  std::vector<GpuFault> faults;
  if (text->empty()) return faults;
  const Json content = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const bool is_ours = content.is_object() && content.contains(kJournalFormat) &&
                       content.at(kJournalFormat) == kJournalVersion &&
                       content.contains("faults") && content.at("faults").is_array();
  if (!is_ours) return NotAJournal(file);
  for (const Json& entry : content.at("faults")) {
    const bool is_fault = entry.is_object() && entry.contains("at_ms") &&
                          entry.at("at_ms").is_number_unsigned() && entry.contains("reason") &&
                          entry.at("reason").is_string();
    if (!is_fault) return NotAJournal(file);
    const auto at_ms = entry.at("at_ms").get<std::uint64_t>();
    if (at_ms > kAtMsMax) return NotAJournal(file);
    faults.push_back({std::chrono::system_clock::time_point(Milliseconds(at_ms)),
                      entry.at("reason").get<std::string>()});
  }
  return faults;
}

absl::Status AddToFaultJournal(const std::filesystem::path& file, const GpuFault& fault) {
  absl::StatusOr<std::vector<GpuFault>> faults = ReadFaultJournal(file);
  if (!faults.ok()) return faults.status();
  faults->push_back(fault);
  if (faults->size() > kFaultsMax) {
    faults->erase(faults->begin(), faults->end() - static_cast<std::ptrdiff_t>(kFaultsMax));
  }
  Json list = Json::array();
  for (const GpuFault& each : *faults) {
    const auto at = std::chrono::duration_cast<Milliseconds>(each.at.time_since_epoch());
    list.push_back({{"at_ms", static_cast<std::uint64_t>(at.count())},
                    {"reason", each.reason.substr(0, kReasonBytesMax)}});
  }
  const Json content = {{kJournalFormat, kJournalVersion}, {"faults", std::move(list)}};
  constexpr int kIndent = 1;
  return base::ReplaceFile(file,
                           content.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n",
                           {.create_folders = true});
}

}  // namespace simile::app
