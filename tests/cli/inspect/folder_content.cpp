#include "cli/inspect/folder_content.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

namespace simile::cli {

void FolderContent::Rename(const std::string& from, const std::string& to) {
  const auto found = entries_.find(from);
  if (found == entries_.end()) return;
  entries_[to] = found->second;
  entries_.erase(from);
}

void FolderContent::MakeUnreadable(const std::string& name) {
  const auto found = entries_.find(name);
  if (found != entries_.end() && found->second.kind == Kind::kFile) {
    found->second.kind = Kind::kUnreadable;
  }
}

std::string* FolderContent::FindBytes(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.kind != Kind::kFile) return nullptr;
  return &found->second.bytes;
}

bool FolderContent::Names(std::string_view message) const {
  return std::ranges::any_of(entries_, [message](const auto& entry) {
    return message.starts_with(entry.first) &&
           (message.substr(entry.first.size()).starts_with(": ") ||
            message.substr(entry.first.size()).starts_with("/"));
  });
}

void FolderContent::WriteTo(const std::filesystem::path& folder) const {
  std::filesystem::create_directories(folder);
  for (const auto& [name, entry] : entries_) {
    const std::filesystem::path path = folder / name;
    std::filesystem::create_directories(path.parent_path());
    switch (entry.kind) {
      case Kind::kFile:
      case Kind::kUnreadable:
        std::ofstream(path, std::ios::binary) << entry.bytes;
        if (entry.kind == Kind::kUnreadable) {
          EXPECT_EQ(chmod(path.c_str(), 0), 0);
        }
        break;
      case Kind::kLink:
        std::filesystem::create_symlink(entry.bytes, path);
        break;
      case Kind::kPipe:
        EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
        break;
      case Kind::kFolder:
        std::filesystem::create_directory(path);
        break;
    }
  }
}

}  // namespace simile::cli
