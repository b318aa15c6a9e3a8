#include "data/load/dataset_sample.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/faults.h"
#include "data/formats/buffered_reader.h"
#include "data/formats/byte_source.h"
#include "data/load/folder.h"
#include "data/load/id_list_reader.h"
#include "data/load/interactions_reader.h"
#include "data/load/load.h"
#include "data/matrix.h"
#include "data/payload/id_index.h"
#include "data/payload/payload_reader.h"
#include "data/seen_sets.h"

namespace simile::data {
namespace {

// Blocks of a file that is too large to be read whole. A line that is longer than a block is not
// sampled.
constexpr std::uint64_t kBlockCount = 32;
constexpr std::uint64_t kBlockBytes = kSampleBytesMax / kBlockCount;

// Lines of a file.
struct LineSample {
  std::string lines;  // whole ones
  std::uint64_t file_bytes = 0;

  bool is_whole() const { return lines.size() == file_bytes; }
};

absl::StatusOr<std::string> ReadBytes(ByteSource& source, std::uint64_t count) {
  std::string bytes(count, '\0');
  std::uint64_t done = 0;
  while (done < count) {
    const absl::StatusOr<std::size_t> read = source.Read(std::span(bytes).subspan(done));
    if (!read.ok()) return read.status();
    if (*read == 0) break;
    done += *read;
  }
  bytes.resize(done);
  return bytes;
}

// The whole lines of a block.
std::string_view WholeLines(std::string_view block, bool begins_file) {
  if (!begins_file) block.remove_prefix(std::min(block.find('\n'), block.size() - 1) + 1);
  const std::size_t last = block.rfind('\n');
  return last == std::string_view::npos ? std::string_view() : block.substr(0, last + 1);
}

absl::StatusOr<LineSample> SampleLines(const Folder& folder, const std::string& display_name) {
  absl::StatusOr<std::unique_ptr<FileSource>> source = folder.OpenFile(display_name);
  if (!source.ok()) return source.status();
  LineSample sample;
  sample.file_bytes = (*source)->size();
  if (sample.file_bytes <= kSampleBytesMax) {
    absl::StatusOr<std::string> all = ReadBytes(**source, sample.file_bytes);
    if (!all.ok()) return all.status();
    sample.lines = *std::move(all);
    return sample;
  }
  std::string odd;
  std::uint64_t at = 0;
  for (std::uint64_t block = 0; block < kBlockCount; ++block) {
    const std::uint64_t begin = (sample.file_bytes - kBlockBytes) / (kBlockCount - 1) * block;
    if (absl::Status status = (*source)->Skip(begin - at); !status.ok()) return status;
    const absl::StatusOr<std::string> bytes = ReadBytes(**source, kBlockBytes);
    if (!bytes.ok()) return bytes.status();
    at = begin + bytes->size();
    if (bytes->empty()) break;
    (block % 2 == 0 ? sample.lines : odd) += WholeLines(*bytes, block == 0);
  }
  sample.lines += odd;
  return sample;
}

// Counts how often each of some numbers occurs.
class Occurrences {
 public:
  //   count  numbers that will be added
  explicit Occurrences(std::size_t count) : half_(count / 2) {}

  void Add(std::uint64_t number) {
    ++counts_[number];
    if (++sample_.values == half_) sample_.distinct_in_half = counts_.size();
  }
  // data::DistinctCount of `times` as many numbers.
  std::uint64_t DistinctIn(double times) const {
    DistinctSample sample = sample_;
    sample.distinct = counts_.size();
    for (const auto& [number, count] : counts_) {
      if (count == 1) ++sample.once;
      if (count == 2) ++sample.twice;
    }
    return static_cast<std::uint64_t>(DistinctCount(sample, times));
  }

 private:
  const std::size_t half_;
  DistinctSample sample_;
  std::unordered_map<std::uint64_t, std::uint64_t> counts_;
};

std::uint64_t Scaled(std::uint64_t bytes, double times) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * times);
}

absl::Status SamplePayload(const Folder& folder, const DatasetPlan& plan, const Limits& limits,
                           DatasetSample& sample) {
  const std::string& file = plan.files.payload;
  if (file.empty()) return absl::OkStatus();
  const absl::StatusOr<LineSample> lines = SampleLines(folder, file);
  if (!lines.ok()) return lines.status();
  MemorySource source(file, lines->lines);
  BufferedReader in(source);
  absl::StatusOr<PayloadFile> payload = ReadPayload(in,
                                                    {.id_field = plan.files.id_field,
                                                     .expected = {},
                                                     .fields = plan.field_rules(),
                                                     .keep = Keep::kRows},
                                                    limits);
  sample.is_whole = lines->is_whole();
  sample.is_readable = payload.ok() && payload->table.row_count() > 0;
  if (!sample.is_readable) {
    sample.payload_bytes = lines->file_bytes;
    return absl::OkStatus();
  }
  sample.payload = std::move(payload->table);
  sample.lookup_fields = FindLookupFields(plan.files, sample.payload);
  const double times =
      static_cast<double>(plan.row_count) / static_cast<double>(sample.payload.row_count());
  sample.payload_bytes = PayloadTable::BytesFor(
      plan.row_count, Scaled(sample.payload.packed_bytes(), times), sample.payload.fields().size());
  if (!payload->id_field.empty()) {
    sample.payload_bytes +=
        IdIndex::BytesFor(plan.row_count, Scaled(payload->ids.id_bytes(), times));
  }
  return absl::OkStatus();
}

// The bytes of the ids in user_ids.json. For a large file, its beginning gives the share of bytes
// that are neither punctuation nor space.
absl::StatusOr<std::uint64_t> IdBytes(const Folder& folder, const std::string& display_name,
                                      const Limits& limits) {
  absl::StatusOr<std::unique_ptr<FileSource>> source = folder.OpenFile(display_name);
  if (!source.ok()) return source.status();
  const std::uint64_t file_bytes = (*source)->size();
  const absl::StatusOr<std::string> begin =
      ReadBytes(**source, std::min(file_bytes, kSampleBytesMax));
  if (!begin.ok()) return begin.status();
  if (begin->size() == file_bytes) {
    MemorySource memory(display_name, *begin);
    BufferedReader in(memory);
    const absl::StatusOr<IdIndex> ids = ReadIdList(in, std::nullopt, limits);
    if (ids.ok()) return ids->id_bytes();
  }
  if (begin->empty()) return std::uint64_t{0};  // the load refuses it by name
  const auto of_ids = static_cast<std::uint64_t>(std::ranges::count_if(*begin, [](char byte) {
    return std::string_view("[]{}\",: \t\r\n").find(byte) == std::string_view::npos;
  }));
  return Scaled(file_bytes, static_cast<double>(of_ids) / static_cast<double>(begin->size()));
}

// The memory of the items that users and visitors have seen, as if all lines named known items, and
// each user of the collection were in some line.
absl::StatusOr<std::uint64_t> InteractionBytes(const Folder& folder, const DatasetPlan& plan,
                                               const Limits& limits) {
  const absl::StatusOr<LineSample> lines = SampleLines(folder, plan.files.interactions);
  if (!lines.ok()) return lines.status();
  MemorySource source(plan.files.interactions, lines->lines);
  BufferedReader in(source);
  InteractionsReader reader(in, plan.files.id_field, limits);
  // One hash for each line; a line of nobody has only the item's.
  std::vector<std::uint64_t> item_hashes;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> user_hashes;  // of user, of user and item
  std::uint64_t user_id_bytes = 0;                                   // of all these lines
  Interaction interaction;
  const std::hash<std::string> hash;
  while (true) {
    const absl::StatusOr<bool> found = reader.Next(interaction);
    if (!found.ok() || !*found) break;  // the load names the faults
    const std::uint64_t item = hash(interaction.item_id);
    item_hashes.push_back(item);
    if (interaction.user_id.empty()) continue;
    const std::uint64_t user = hash(interaction.user_id);
    user_hashes.emplace_back(user, user * 31 + item);
    user_id_bytes += interaction.user_id.size();
  }
  if (item_hashes.empty()) return std::uint64_t{0};
  Occurrences items(item_hashes.size());
  for (const std::uint64_t item : item_hashes) items.Add(item);
  Occurrences users(user_hashes.size());
  Occurrences pairs(user_hashes.size());
  for (const auto& [user, pair] : user_hashes) {
    users.Add(user);
    pairs.Add(pair);
  }
  const double times =
      static_cast<double>(lines->file_bytes) / static_cast<double>(lines->lines.size());
  const std::uint64_t named_users = users.DistinctIn(times);
  const std::uint64_t visitors = named_users - std::min(named_users, plan.user_count);
  const std::uint64_t visitor_id_bytes =
      visitors == 0 ? 0 : user_id_bytes / user_hashes.size() * visitors;
  return SeenSets::BytesFor(plan.user_count + visitors, pairs.DistinctIn(times)) +
         IdIndex::BytesFor(visitors, visitor_id_bytes) +
         std::min(plan.row_count, items.DistinctIn(times)) * sizeof(Row);
}

absl::Status SampleUsers(const Folder& folder, const DatasetPlan& plan, const Limits& limits,
                         DatasetSample& sample) {
  if (plan.user_count > 0) {
    const absl::StatusOr<std::uint64_t> ids = IdBytes(folder, plan.files.user_ids, limits);
    if (!ids.ok()) return ids.status();
    sample.user_bytes =
        Matrix::BytesFor(plan.user_count, plan.dim) + IdIndex::BytesFor(plan.user_count, *ids);
  }
  if (plan.files.interactions.empty()) return absl::OkStatus();
  const absl::StatusOr<std::uint64_t> seen = InteractionBytes(folder, plan, limits);
  if (!seen.ok()) return seen.status();
  sample.user_bytes += *seen;
  return absl::OkStatus();
}

double ByChao(const DistinctSample& sample, double times) {
  const auto values = static_cast<double>(sample.values);
  const auto once = static_cast<double>(sample.once);
  const auto twice = static_cast<double>(sample.twice);
  const auto distinct = static_cast<double>(sample.distinct);
  if (once == 0) return distinct;
  const double unseen = twice > 0 ? once * once / (2 * twice) : once * (once - 1) / 2;
  if (unseen == 0) return distinct;
  // Each further value is new with this probability, as long as few of the unseen values are found.
  const double rate = once / (values * unseen + once);
  return distinct - unseen * std::expm1(values * (times - 1) * std::log1p(-rate));
}

double ByHeaps(const DistinctSample& sample, double times) {
  const auto distinct = static_cast<double>(sample.distinct);
  const auto half = static_cast<double>(std::max<std::uint64_t>(sample.distinct_in_half, 1));
  return distinct * std::pow(times, std::clamp(std::log2(distinct / half), 0.0, 1.0));
}

}  // namespace

absl::StatusOr<DatasetSample> SampleDataset(const DatasetPlan& plan, const Limits& limits) {
  const absl::StatusOr<Folder> folder = Folder::Open(plan.files.folder, plan.files.links_within);
  if (!folder.ok()) return LoadError(folder.status());
  DatasetSample sample;
  for (const auto step : {&SamplePayload, &SampleUsers}) {
    if (absl::Status status = step(*folder, plan, limits, sample); !status.ok()) {
      return LoadError(status);
    }
  }
  return sample;
}

double DistinctCount(const DistinctSample& sample, double times) {
  if (sample.distinct == 0 || times <= 1) return static_cast<double>(sample.distinct);
  return std::sqrt(ByChao(sample, times) * ByHeaps(sample, times));
}

}  // namespace simile::data
