#include "data/folder_fingerprint.h"

#include <memory>

#include "data/discover.h"
#include "data/file_source.h"
#include "data/folder.h"
#include "data/load_error.h"
#include "data/plan.h"

namespace simile::data {

bool HaveSameBytes(const FileFingerprint& a, const FileFingerprint& b) {
  FileFingerprint other = b;
  other.changed_ns = a.changed_ns;
  return a == other;
}

absl::StatusOr<FolderFingerprint> TakeFingerprint(const Folder& folder,
                                                  const CollectionFiles& files) {
  FolderFingerprint fingerprint;
  for (std::size_t i = 0; i < kFileRoleCount; ++i) {
    const std::string& display_name = FileOf(files, static_cast<FileRole>(i));
    if (display_name.empty()) continue;
    const absl::StatusOr<std::unique_ptr<FileSource>> source = folder.OpenFile(display_name);
    if (!source.ok()) return source.status();
    absl::StatusOr<FileFingerprint> file = (*source)->TakeFingerprint();
    if (!file.ok()) return file.status();
    fingerprint.files[i] = *std::move(file);
  }
  return fingerprint;
}

absl::StatusOr<FolderFingerprint> TakeFingerprint(const std::filesystem::path& path,
                                                  const Limits& limits,
                                                  const std::filesystem::path& links_within) {
  const absl::StatusOr<Folder> folder = Folder::Open(path, links_within);
  if (!folder.ok()) return LoadError(folder.status());
  const absl::StatusOr<CollectionFiles> files = DiscoverFiles(*folder, path, limits);
  if (!files.ok()) return LoadError(files.status());
  absl::StatusOr<FolderFingerprint> fingerprint = TakeFingerprint(*folder, *files);
  if (!fingerprint.ok()) return LoadError(fingerprint.status());
  return fingerprint;
}

}  // namespace simile::data
