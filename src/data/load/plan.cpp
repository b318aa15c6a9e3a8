#include "data/load/plan.h"

#include <array>
#include <memory>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/faults.h"
#include "data/formats/buffered_reader.h"
#include "data/formats/vector_format.h"
#include "data/load/collection_files.h"
#include "data/load/folder.h"
#include "data/matrix.h"

namespace simile::data {
namespace {

absl::StatusOr<VectorLayout> ReadLayout(const Folder& folder, const std::string& display_name,
                                        const std::string& tensor, const Limits& limits) {
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = folder.OpenFile(display_name);
  if (!source.ok()) return source.status();
  BufferedReader reader(**source);
  return ReadVectorLayout(reader, tensor, limits);
}

// Opens a file and closes it, so that one that cannot be opened is an error of the plan.
absl::Status CheckOpens(const Folder& folder, const std::string& display_name) {
  return display_name.empty() ? absl::OkStatus() : folder.OpenFile(display_name).status();
}

absl::Status PlanUsers(const Folder& folder, const Limits& limits, DatasetPlan& plan) {
  const CollectionFiles& files = plan.files;
  if (absl::Status status = CheckOpens(folder, files.interactions); !status.ok()) return status;
  if (files.user_vectors.empty()) return absl::OkStatus();
  const absl::StatusOr<VectorLayout> users = ReadLayout(folder, files.user_vectors, "", limits);
  if (!users.ok()) return users.status();
  if (users->dim != plan.dim) {
    const std::string* const transposed = users->row_count == plan.dim   ? &files.user_vectors
                                          : users->dim == plan.row_count ? &files.vectors
                                                                         : nullptr;
    const std::string why =
        transposed == nullptr
            ? "users and items need vectors of one model"
            : fmt::format("{} looks transposed: save the array's transpose, array.T", *transposed);
    return absl::InvalidArgumentError(fmt::format("{}: {}, but {} has {}; {}", files.user_vectors,
                                                  base::Counted(users->dim, "dimension"),
                                                  files.vectors, base::Grouped(plan.dim), why));
  }
  plan.user_count = users->row_count;
  return CheckOpens(folder, files.user_ids);
}

absl::StatusOr<DatasetPlan> PlanFiles(const std::filesystem::path& path, const Limits& limits,
                                      const std::filesystem::path& links_within) {
  const absl::StatusOr<Folder> folder = Folder::Open(path, links_within);
  if (!folder.ok()) return folder.status();
  absl::StatusOr<CollectionFiles> files = DiscoverFiles(*folder, path, limits);
  if (!files.ok()) return files.status();
  DatasetPlan plan;
  plan.files = *std::move(files);
  plan.files.links_within = links_within;
  absl::StatusOr<FolderFingerprint> fingerprint = TakeFingerprint(*folder, plan.files);
  if (!fingerprint.ok()) return fingerprint.status();
  plan.fingerprint = *std::move(fingerprint);
  absl::StatusOr<FolderListing> listing = ListFolder(*folder, plan.files, plan.fingerprint, limits);
  if (!listing.ok()) return listing.status();
  plan.listing = *std::move(listing);
  const absl::StatusOr<VectorLayout> vectors =
      ReadLayout(*folder, plan.files.vectors, plan.files.tensor, limits);
  if (!vectors.ok()) return vectors.status();
  plan.row_count = vectors->row_count;
  plan.dim = vectors->dim;
  plan.vector_bytes = Matrix::BytesFor(plan.row_count, plan.dim);
  if (absl::Status status = CheckOpens(*folder, plan.files.payload); !status.ok()) return status;
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

absl::StatusOr<DatasetPlan> PlanDataset(const std::filesystem::path& path, const Limits& limits,
                                        const std::filesystem::path& links_within) {
  absl::StatusOr<DatasetPlan> plan = PlanFiles(path, limits, links_within);
  if (!plan.ok()) return LoadError(plan.status());
  return plan;
}

}  // namespace simile::data
