#include "data/plan.h"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/buffered_reader.h"
#include "data/discover.h"
#include "data/folder.h"
#include "data/load_error.h"
#include "data/vector_format.h"

namespace simile::data {
namespace {

constexpr std::uint64_t kOffsetBytes = sizeof(std::uint64_t);

std::uint64_t MatrixBytes(const VectorLayout& layout) {
  return layout.row_count * PaddedDim(layout.dim) * sizeof(float);
}

// An id's bytes, its end and its slots; see IdIndex.
std::uint64_t IndexBytes(std::uint64_t id_count, std::uint64_t id_bytes) {
  constexpr std::uint64_t kSlotBytes = 6;
  return id_bytes + id_count * (kOffsetBytes + kSlotBytes);
}

// Memory of the payload, ids and look-up index for a metadata.jsonl of this size. Packing, mainly
// of field names, leaves six tenths of typical lines.
std::uint64_t PayloadBytes(std::uint64_t file_bytes, std::uint64_t row_count) {
  constexpr std::uint64_t kIdBytesTypical = 20;
  constexpr std::uint64_t kTitleBytesTypical = 20;
  const std::uint64_t line_bytes = file_bytes / row_count;
  const std::uint64_t id_bytes = std::min(kIdBytesTypical, line_bytes / 4);
  const std::uint64_t title_bytes = std::min(kTitleBytesTypical, line_bytes / 4);
  return file_bytes / 10 * 6 + row_count * kOffsetBytes +
         IndexBytes(row_count, row_count * id_bytes) + row_count * (title_bytes + kOffsetBytes);
}

// Every text twice, as written and folded, with its offset; and a value and a row for about two
// other fields.
std::uint64_t FilterBytes(std::uint64_t file_bytes, std::uint64_t row_count) {
  constexpr std::uint64_t kRowBytesTypical = 24;
  return file_bytes == 0 ? 0 : file_bytes / 2 * 3 + row_count * kRowBytesTypical;
}

// Memory of users besides their vectors: their ids, and a row number for every interaction, whose
// line takes about a hundred bytes.
std::uint64_t UserSideBytes(std::uint64_t user_count, std::uint64_t id_file_bytes,
                            std::uint64_t interaction_file_bytes) {
  constexpr std::uint64_t kInteractionLineBytesTypical = 100;
  return IndexBytes(user_count, id_file_bytes) + user_count * kOffsetBytes +
         interaction_file_bytes / kInteractionLineBytesTypical * sizeof(Row);
}

absl::StatusOr<VectorLayout> ReadLayout(const Folder& folder, const std::string& display_name,
                                        const std::string& tensor, const Limits& limits) {
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = folder.OpenFile(display_name);
  if (!source.ok()) return source.status();
  BufferedReader reader(**source);
  return ReadVectorLayout(reader, tensor, limits);
}

// The size of a file, 0 when it is absent. Opens it, so that a file that cannot be opened is an
// error of the plan.
absl::StatusOr<std::uint64_t> FileBytes(const Folder& folder, const std::string& display_name) {
  if (display_name.empty()) return std::uint64_t{0};
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = folder.OpenFile(display_name);
  if (!source.ok()) return source.status();
  return (*source)->size();
}

absl::Status PlanUsers(const Folder& folder, const Limits& limits, DatasetPlan& plan) {
  const CollectionFiles& files = plan.files;
  const absl::StatusOr<std::uint64_t> interactions = FileBytes(folder, files.interactions);
  if (!interactions.ok()) return interactions.status();
  if (files.user_vectors.empty()) return absl::OkStatus();
  const absl::StatusOr<VectorLayout> users = ReadLayout(folder, files.user_vectors, "", limits);
  if (!users.ok()) return users.status();
  if (users->dim != plan.dim) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: {}, but {} has {}; users and items need vectors of one model", files.user_vectors,
        base::Counted(users->dim, "dimension"), files.vectors, base::Grouped(plan.dim)));
  }
  const absl::StatusOr<std::uint64_t> ids = FileBytes(folder, files.user_ids);
  if (!ids.ok()) return ids.status();
  plan.user_count = users->row_count;
  plan.user_bytes = MatrixBytes(*users) + UserSideBytes(users->row_count, *ids, *interactions) +
                    (*interactions > 0 ? plan.row_count * sizeof(Row) : 0);  // Profiles::most_seen
  return absl::OkStatus();
}

absl::StatusOr<DatasetPlan> PlanFiles(const std::filesystem::path& path, const Limits& limits) {
  const absl::StatusOr<Folder> folder = Folder::Open(path);
  if (!folder.ok()) return folder.status();
  absl::StatusOr<CollectionFiles> files = DiscoverFiles(*folder, path, limits);
  if (!files.ok()) return files.status();
  DatasetPlan plan;
  plan.files = *std::move(files);
  absl::StatusOr<FolderFingerprint> fingerprint = TakeFingerprint(*folder, plan.files);
  if (!fingerprint.ok()) return fingerprint.status();
  plan.fingerprint = *std::move(fingerprint);
  plan.listing = ListFolder(*folder, plan.files, plan.fingerprint, limits);
  const absl::StatusOr<VectorLayout> vectors =
      ReadLayout(*folder, plan.files.vectors, plan.files.tensor, limits);
  if (!vectors.ok()) return vectors.status();
  plan.row_count = vectors->row_count;
  plan.dim = vectors->dim;
  plan.vector_bytes = MatrixBytes(*vectors);
  const absl::StatusOr<std::uint64_t> payload = FileBytes(*folder, plan.files.payload);
  if (!payload.ok()) return payload.status();
  if (!plan.files.payload.empty()) plan.payload_bytes = PayloadBytes(*payload, plan.row_count);
  plan.filter_bytes = FilterBytes(*payload, plan.row_count);
  if (absl::Status status = PlanUsers(*folder, limits, plan); !status.ok()) return status;
  return plan;
}

}  // namespace

const std::string& FileOf(const CollectionFiles& files, FileRole role) {
  constexpr std::array<std::string CollectionFiles::*, kFileRoleCount> kMembers = {
      &CollectionFiles::settings, &CollectionFiles::vectors,      &CollectionFiles::payload,
      &CollectionFiles::user_ids, &CollectionFiles::user_vectors, &CollectionFiles::interactions};
  return files.*kMembers[static_cast<std::size_t>(role)];
}

absl::StatusOr<DatasetPlan> PlanDataset(const std::filesystem::path& path, const Limits& limits) {
  absl::StatusOr<DatasetPlan> plan = PlanFiles(path, limits);
  if (!plan.ok()) return LoadError(plan.status());
  return plan;
}

}  // namespace simile::data
