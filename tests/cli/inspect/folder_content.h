#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace simile::cli {

// What is in a collection's folder, in memory, so that tests can change it before it is written.
class FolderContent {
 public:
  void Put(const std::string& name, std::string bytes) {
    entries_[name] = {Kind::kFile, std::move(bytes)};
  }
  void PutLink(const std::string& name, std::string target) {
    entries_[name] = {Kind::kLink, std::move(target)};
  }
  void PutPipe(const std::string& name) { entries_[name] = {Kind::kPipe, ""}; }
  void PutFolder(const std::string& name) { entries_[name] = {Kind::kFolder, ""}; }
  void Remove(const std::string& name) { entries_.erase(name); }
  // Does nothing when there is no such entry.
  void Rename(const std::string& from, const std::string& to);
  // A file that its owner may not read. Root reads it all the same.
  void MakeUnreadable(const std::string& name);

  // The bytes of a file, to be changed; null when it is absent or no regular file.
  std::string* FindBytes(const std::string& name);
  // Whether a message begins with the name of an entry, or of a file below it, and a colon.
  bool Names(std::string_view message) const;

  void WriteTo(const std::filesystem::path& folder) const;

 private:
  enum class Kind : std::uint8_t { kFile, kUnreadable, kLink, kPipe, kFolder };
  struct Entry {
    Kind kind = Kind::kFile;
    std::string bytes;  // of a link, its target
  };
  std::map<std::string, Entry> entries_;  // by the path relative to the folder
};

}  // namespace simile::cli
