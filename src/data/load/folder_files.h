#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "data/load/fingerprint.h"
#include "simile/limits.h"

namespace simile::data {

class Folder;
struct CollectionFiles;
struct CollectionPart;
struct FolderEntry;

// A file of a collection's folder, as a load finds it.
struct FolderFile {
  std::string display_name;      // relative to the folder; a subfolder's ends with '/'
  std::optional<FileRole> role;  // of a file that is read
  std::uint64_t bytes = 0;
  std::string unread_reason;  // of an unread file: "no part of a collection has this name"
};

// What a collection's folder and its media/ and users/ subfolders hold. Hidden files and editors'
// backups are left out.
struct FolderListing {
  // First the files that are read, by role, then the unread files, by name. At most
  // limits.unread_files_max unread files are listed.
  std::vector<FolderFile> files;
  std::uint64_t unread_files = 0;  // listed or not
  // One sentence each about unread files that look like a part of the collection: metadata.csv.
  std::vector<std::string> notes;
  // A sentence for each absent part that an unread file looks like: `payload: metadata.csv is not
  // read`, and how to turn the file into one that is read.
  std::vector<std::string> left_out;
};

// Lists the files of the folder, and says why files are not read. Opens at most 16 unread files to
// see what they hold; never links, pipes or devices.
//   fingerprint  of the files that are read
// Cost: reads the names, at most 100,000 of each folder.
// Errors: as Folder::List.
absl::StatusOr<FolderListing> ListFolder(const Folder& folder, const CollectionFiles& files,
                                         const FolderFingerprint& fingerprint,
                                         const Limits& limits);

// What to do when the folder has no vectors under a usual name: `rename embeddings.npy to
// content_vectors.npy, or name it in collection.json: {"vectors": "embeddings.npy"}`.
std::string AdviceWithoutVectors(const Folder& folder, const CollectionFiles& files);

// Likewise, about the first file that looks like another part: `: rename users.json to
// user_ids.json, or ...`; empty when there is none.
std::string AdviceWithoutPart(const Folder& folder, const CollectionPart& part);

}  // namespace simile::data
