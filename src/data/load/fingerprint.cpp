#include "data/load/fingerprint.h"

#include <cassert>
#include <memory>

#include <absl/strings/escaping.h>

#include "data/faults.h"
#include "data/load/collection_files.h"
#include "data/load/folder.h"
#include "data/load/plan.h"

namespace simile::data {
namespace {

// The first byte that is hashed. A change to the hashed bytes, or to the dataset that a load makes
// of the same files, takes the next number. Then servers of different builds do not mix their
// answers.
constexpr std::uint8_t kFormat = 1;

std::string_view ToText(const base::StableHash::Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

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

void ContentIdBuilder::AddFile(FileRole role) {
  files_[static_cast<std::size_t>(role)] = File{base::StableHash(), 0};
}

void ContentIdBuilder::AddBytes(FileRole role, std::string_view bytes) {
  std::optional<File>& file = files_[static_cast<std::size_t>(role)];
  assert(file.has_value());
  file->hash.Add(bytes);
  file->bytes += bytes.size();
}

void ContentIdBuilder::AddKept(std::string_view field, std::string_view type,
                               std::string_view separator) {
  if (!kept_) kept_.emplace();
  for (const std::string_view text : {field, type, separator}) {
    const auto size = base::LittleEndian(std::uint64_t{text.size()});
    kept_->Add({size.data(), size.size()});
    kept_->Add(text);
  }
}

// Each file is hashed by itself, because a load reads the headers of all before the rest of any.
std::string ContentIdBuilder::Id() const {
  base::StableHash all;
  const auto add = [&](const auto& bytes) { all.Add({bytes.data(), bytes.size()}); };
  add(base::LittleEndian(kFormat));
  for (std::size_t role = 0; role < files_.size(); ++role) {
    const std::optional<File>& file = files_[role];
    if (!file) continue;
    add(base::LittleEndian(static_cast<std::uint8_t>(role)));
    add(base::LittleEndian(file->bytes));
    all.Add(ToText(file->hash.Digest128()));
  }
  if (kept_) all.Add(ToText(kept_->Digest128()));
  const base::StableHash::Digest digest = all.Digest128();
  const std::string_view text = ToText(digest);
  return absl::BytesToHexString(absl::string_view(text.data(), text.size()));
}

}  // namespace simile::data
