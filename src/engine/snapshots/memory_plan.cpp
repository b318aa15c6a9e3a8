#include "engine/snapshots/memory_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/atomic_file.h"
#include "data/load/dataset_sample.h"
#include "filter/payload_index.h"
#include "filter/text_index.h"
#include "simile/row_mask.h"

namespace simile::engine {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{256} << 10;

// The file names that one version of control groups uses.
struct GroupFiles {
  const char* limit;
  const char* used;
  // Keys in memory.stat: of the page cache, and of the part of it that is still to be written.
  std::array<const char*, 2> cache;
  std::array<const char*, 2> unwritten;
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes",
                               "memory.usage_in_bytes",
                               {"total_active_file", "total_inactive_file"},
                               {"total_dirty", "total_writeback"}};
constexpr GroupFiles kVersion2{"memory.max",
                               "memory.current",
                               {"active_file", "inactive_file"},
                               {"file_dirty", "file_writeback"}};

// Joins paths as texts, because the library's operator/ ends the process when memory runs out.
std::string Below(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!name.empty() && !name.starts_with('/')) path += '/';
  return path += name;
}

// The file's text; empty when there is no file or it may not be read. Any other failure to read is
// an error, so that a limit is never overlooked.
absl::StatusOr<std::string> ReadText(const std::string& file) {
  absl::StatusOr<std::string> text = base::ReadWholeFile(file, kFileBytesMax);
  if (absl::IsPermissionDenied(text.status())) return std::string();
  return text;
}

// The number at the front of the text; nothing when there is none, as in "max".
std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  return number;
}

// Removes a line from the front of the text.
std::string_view TakeLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// The number after `key` in lines of "key number".
std::optional<std::uint64_t> NumberAfter(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (line.starts_with(key) && line.substr(key.size()).starts_with(' ')) {
      return ParseNumber(line.substr(key.size()));
    }
  }
  return std::nullopt;
}

// The page cache of a group that the kernel can drop at once.
std::uint64_t CleanCache(std::string_view stat, const GroupFiles& files) {
  std::uint64_t cache = 0;
  for (const char* const key : files.cache) cache += NumberAfter(stat, key).value_or(0);
  std::uint64_t unwritten = 0;
  for (const char* const key : files.unwritten) unwritten += NumberAfter(stat, key).value_or(0);
  return cache - std::min(cache, unwritten);
}

// The bytes that the limit of one control group leaves; nothing when it has no limit.
absl::StatusOr<std::optional<std::uint64_t>> LeftInGroup(const std::string& group,
                                                         const GroupFiles& files) {
  const absl::StatusOr<std::string> limit = ReadText(Below(group, files.limit));
  if (!limit.ok()) return limit.status();
  const absl::StatusOr<std::string> used = ReadText(Below(group, files.used));
  if (!used.ok()) return used.status();
  const auto most = ParseNumber(*limit);
  const auto taken = ParseNumber(*used);
  if (!most || !taken) return std::optional<std::uint64_t>();
  const absl::StatusOr<std::string> stat = ReadText(Below(group, "memory.stat"));
  if (!stat.ok()) return stat.status();
  const std::uint64_t kept = *taken - std::min(*taken, CleanCache(*stat, files));
  return std::optional(*most - std::min(*most, kept));
}

// Lowers `memory` to the bytes that the group at mount/name and its parents leave.
absl::Status ApplyGroupLimits(const std::string& mount, std::string_view name,
                              const GroupFiles& files, HostMemory& memory) {
  for (;;) {
    const auto left = LeftInGroup(Below(mount, name), files);
    if (!left.ok()) return left.status();
    if (*left && **left < memory.available_bytes) {
      memory = {**left, "left by the control group's memory limit"};
    }
    if (name.empty() || name == "/") return absl::OkStatus();
    const std::size_t slash = name.rfind('/');
    name = name.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
}

// Adds the estimated indexes over the payload, extrapolated from the indexes over its sample.
void AddPayloadIndexes(const data::DatasetPlan& plan, const data::DatasetSample& sample,
                       DataBytes& data) {
  const filter::SampledRows rows{sample.payload.row_count(), plan.row_count};
  const filter::IndexEstimate text = filter::EstimateTextIndex(
      filter::TextIndex::Build(sample.payload, sample.lookup_fields), rows);
  const filter::IndexEstimate fields =
      filter::EstimatePayloadIndex(filter::PayloadIndex::Build(sample.payload), rows);
  data.payload += text.bytes + fields.bytes;
  // The text index is built first.
  data.build =
      std::max(fields.build_bytes, text.build_bytes - std::min(text.build_bytes, fields.bytes));
}

}  // namespace

absl::StatusOr<HostMemory> ReadHostMemory(const std::filesystem::path& root) {
  const absl::StatusOr<std::string> machine = ReadText(Below(root.native(), "proc/meminfo"));
  if (!machine.ok()) return machine.status();
  const auto available_kib = NumberAfter(*machine, "MemAvailable:");
  if (!available_kib) return absl::UnavailableError("/proc/meminfo names no MemAvailable");
  HostMemory memory{*available_kib * 1024, "available on the machine"};

  // Lines are "number:controllers:path"; version 2 has one line, "0::path".
  const absl::StatusOr<std::string> groups = ReadText(Below(root.native(), "proc/self/cgroup"));
  if (!groups.ok()) return groups.status();
  const std::string mount = Below(root.native(), "sys/fs/cgroup");
  for (std::string_view left = *groups; !left.empty();) {
    const std::string_view line = TakeLine(left);
    const std::size_t controllers = line.find(':');
    const std::size_t name = line.find(':', controllers + 1);
    if (controllers == std::string_view::npos || name == std::string_view::npos) continue;
    const std::string owned(line.substr(controllers + 1, name - controllers - 1));
    const std::string_view group = line.substr(name + 1);
    absl::Status applied;
    if (owned.empty()) {
      applied = ApplyGroupLimits(mount, group, kVersion2, memory);
    } else if (("," + owned + ",").find(",memory,") != std::string::npos) {
      applied = ApplyGroupLimits(Below(mount, "memory"), group, kVersion1, memory);
    }
    if (!applied.ok()) return applied;
  }
  return memory;
}

absl::StatusOr<DataBytes> PlanData(const data::DatasetPlan& plan, const Limits& limits) {
  const absl::StatusOr<data::DatasetSample> sample = data::SampleDataset(plan, limits);
  if (!sample.ok()) return sample.status();
  DataBytes data;
  data.vectors = plan.vector_bytes;
  data.payload = sample->payload_bytes;
  data.users = sample->user_bytes;
  data.is_sampled = !sample->is_whole;
  if (sample->payload.row_count() > 0) AddPayloadIndexes(plan, *sample, data);
  if (plan.files.on_zero_row == data::OnZeroRow::kSkip) {
    data.payload += RowMask(plan.row_count).bytes();  // Snapshot::searchable
  }
  return data;
}

MemoryPlan PlanMemory(const DataBytes& data, const ResidentPlan& index) {
  MemoryPlan plan;
  plan.resident = {.vectors = data.vectors,
                   .payload = data.payload,
                   .users = data.users,
                   .index = index.host_bytes,
                   .device = index.device_bytes};
  plan.builds_later = index.builds_later;
  plan.index_peak_bytes = data.total() + index.host_bytes + index.host_build_bytes;
  plan.load_peak_bytes = data.total() + data.build;
  return plan;
}

}  // namespace simile::engine
