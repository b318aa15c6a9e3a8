#include "data/load/folder_files.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "base/utf8.h"
#include "data/formats/buffered_reader.h"
#include "data/formats/jsonl_reader.h"
#include "data/formats/text_shape.h"
#include "data/formats/vector_format.h"
#include "data/load/collection_files.h"
#include "data/load/folder.h"
#include "data/load/interactions_reader.h"
#include "data/load/plan.h"

namespace simile::data {
namespace {

constexpr std::size_t kEntriesMax = 100'000;  // of one folder
constexpr std::size_t kNotesMax = 8;

bool IsHiddenOrBackup(std::string_view name) {
  return name.starts_with('.') || name.ends_with('~') || name.ends_with(".bak") ||
         (name.starts_with('#') && name.ends_with('#'));
}

// The part of a path after its last '/'.
std::string_view LastPart(std::string_view display_name) {
  const std::size_t slash = display_name.rfind('/');
  return slash == display_name.npos ? display_name : display_name.substr(slash + 1);
}

// The entries of the folder and its two subfolders, by name.
struct Entries {
  std::vector<FolderEntry> all;
  bool complete = true;
};
absl::StatusOr<Entries> ReadEntries(const Folder& folder) {
  Entries entries;
  for (const char* const subfolder : {"", "media/", "users/"}) {
    absl::StatusOr<std::vector<FolderEntry>> found = folder.List(subfolder, kEntriesMax);
    if (!found.ok()) return found.status();
    entries.complete = entries.complete && found->size() < kEntriesMax;
    for (FolderEntry& entry : *found) {
      const std::string& name = entry.display_name;
      if (name == "media" || name == "users" || IsHiddenOrBackup(LastPart(name))) continue;
      entries.all.push_back(std::move(entry));
    }
  }
  std::ranges::sort(entries.all, {}, &FolderEntry::display_name);
  return entries;
}

// The name as text that can be printed and sent: control characters and bytes that are not UTF-8
// become U+FFFD.
std::string ToPrintable(std::string_view name) {
  std::string text;
  while (!name.empty()) {
    const std::size_t length = base::Utf8SequenceLength(name);
    const std::string_view sequence = name.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0 || base::IsControl(sequence)) {
      base::AppendUtf8(text, 0xFFFD);
    } else {
      text += sequence;
    }
    name.remove_prefix(sequence.size());
  }
  return text;
}

// Whether files with this ending usually hold data.
bool HoldsData(std::string_view name) {
  constexpr auto kEndings = std::to_array<std::string_view>(
      {".csv",  ".tsv",   ".json",    ".jsonl", ".ndjson", ".parquet",     ".feather",
       ".avro", ".arrow", ".npy",     ".npz",   ".pt",     ".safetensors", ".pth",
       ".pkl",  ".bin",   ".pickle",  ".h5",    ".hdf5",   ".fvecs",       ".xlsx",
       ".gz",   ".zst",   ".zip",     ".bz2",   ".xz",     ".yaml",        ".yml",
       ".toml", ".db",    ".sqlite3", ".lance", ".f32",    ".sqlite"});
  return std::ranges::any_of(kEndings,
                             [name](std::string_view ending) { return name.ends_with(ending); });
}

// The part that a file looks like by its name: a usual one or another that people give it, with the
// ending of some file of data. Null for none.
const CollectionPart* PartLike(std::string_view display_name) {
  const std::string_view last = LastPart(display_name);
  const std::string name = absl::AsciiStrToLower({last.data(), last.size()});
  if (!HoldsData(name)) return nullptr;
  const std::string_view stem = std::string_view(name).substr(0, name.find('.'));
  for (const CollectionPart& part : CollectionParts()) {
    const bool usual = std::ranges::any_of(part.names, [stem](std::string_view usual_name) {
      return usual_name.substr(0, usual_name.find('.')) == stem;
    });
    if (usual || std::ranges::find(part.others, stem) != part.others.end()) return &part;
  }
  return nullptr;
}

// `name it in collection.json: {"vectors": "embeddings.npy"}`
std::string NamingAdvice(const CollectionPart& part, const std::string& name) {
  return fmt::format("name it in {}: {{\"{}\": {}}}", kCollectionJson, part.key,
                     base::Quoted(name));
}

// REQUIRES: HasPartEnding(part, name).
std::string RenameAdvice(const CollectionPart& part, const std::string& name) {
  return fmt::format("rename {} to {}{}, or {}", name, part.names.front(),
                     part.ending.empty() ? FindVectorFormat(name)->ending : std::string_view(),
                     NamingAdvice(part, name));
}

// What people call a part that is absent.
std::string_view PartNoun(FileRole role) {
  if (role == FileRole::kPayload || role == FileRole::kInteractions) return NameOf(role);
  return "users";
}

// Looks into a few unread files of a folder. Opens no links and nothing but regular files.
class Glances {
 public:
  Glances(const Folder& folder, const Limits& limits) : folder_(folder), limits_(limits) {}

  // The first bytes of a file, after a byte order mark; empty where they cannot be read.
  std::string ReadBegin(const std::string& display_name) {
    const std::unique_ptr<ByteSource> source = Open(display_name);
    if (source == nullptr) return {};
    BufferedReader in(*source);
    if (!in.SkipByteOrderMark().ok()) return {};
    return std::string(in.Peek().value_or(std::string_view()));
  }
  // The object of a file's first line; empty where it cannot be read.
  PayloadObject FirstObject(const std::string& display_name) {
    const std::unique_ptr<ByteSource> source = Open(display_name);
    return source == nullptr ? PayloadObject() : ReadFirstObject(*source, limits_);
  }

 private:
  static constexpr int kGlancesMax = 16;

  // Opens a file. Null where it cannot be opened, or too many files were.
  std::unique_ptr<ByteSource> Open(const std::string& display_name) {
    if (count_ == kGlancesMax || folder_.MeasureFile(display_name) == 0) return nullptr;
    ++count_;
    absl::StatusOr<std::unique_ptr<FileSource>> source = folder_.OpenFile(display_name);
    return source.ok() ? *std::move(source) : nullptr;
  }

  const Folder& folder_;
  const Limits& limits_;
  int count_ = 0;
};

// How to turn a file of JSON into lines, by its first bytes. Empty where the bytes do not tell.
std::string JsonAdvice(std::string_view begin, const std::string& name, std::string_view usual) {
  if (HoldsLinesOfObjects(begin)) return fmt::format("; `mv {} {}`", name, usual);
  const ObjectsForm* const form = FindObjectsForm(begin);
  return form == nullptr ? std::string() : fmt::format("; {}", JqCommand(*form, name, usual));
}

// How a file of another format becomes a part that is read from lines: `; pandas.read_csv(...)...`.
// Empty for formats that need more than one line.
std::string LinesAdvice(const CollectionPart& part, const std::string& name, Glances& glances) {
  const std::string_view usual = part.names.front();
  const bool is_plain = std::ranges::all_of(name, [](char letter) {
    return absl::ascii_isalnum(static_cast<unsigned char>(letter)) ||
           std::string_view("._-/").find(letter) != std::string_view::npos;
  });
  if (name.ends_with(".jsonl")) return fmt::format("; rename it to {}", usual);
  if (!is_plain) return {};
  if (name.ends_with(".jsonl.gz")) return fmt::format("; `gunzip {}`", name);
  if (name.ends_with(".json") || name.ends_with(".ndjson")) {
    return JsonAdvice(glances.ReadBegin(name), name, usual);
  }
  for (const char* const format : {"csv", "parquet"}) {
    if (!name.ends_with(fmt::format(".{}", format))) continue;
    return fmt::format("; {} writes {}", PandasCommand(format, name, usual), usual);
  }
  return {};
}

// Why a file was not read, and whether its owner may think that it was.
struct Unread {
  std::string reason;
  bool is_surprising = false;
  const CollectionPart* absent = nullptr;  // the part that it looks like, which is not there
};

// The part that a .jsonl of another name probably is; null for none.
const CollectionPart* PartOfLines(const std::string& name, const CollectionFiles& files,
                                  Glances& glances) {
  if (files.interactions.empty() && LooksLikeInteraction(glances.FirstObject(name))) {
    return &PartOf(FileRole::kInteractions);
  }
  // A lone .jsonl is the payload more often than not.
  return files.payload.empty() ? &PartOf(FileRole::kPayload) : nullptr;
}

Unread WhyUnread(const FolderEntry& entry, const CollectionFiles& files, Glances& glances) {
  const std::string& name = entry.display_name;
  if (entry.is_folder) return {"of the subfolders only media/ and users/ are looked into"};
  const std::string_view last = LastPart(name);
  if (last.starts_with("collection.") && HoldsData(last)) {
    return {fmt::format("settings are read from {} in the folder itself", kCollectionJson), true};
  }
  const CollectionPart* part = PartLike(name);
  if (part == nullptr && last.ends_with(".jsonl")) part = PartOfLines(name, files, glances);
  if (part == nullptr) return {"no part of a collection has this name"};
  const std::string& read = files.*part->member;
  const std::vector<std::string> usual = UsualNames(*part);
  if (!read.empty()) {
    // An owner who names a file in collection.json knows which file is read.
    const bool is_named = std::ranges::find(usual, LastPart(read)) == usual.end();
    return {fmt::format("{} from {}{}", part->is_read, read,
                        is_named ? fmt::format(", which {} names", kCollectionJson)
                                 : std::string(part->content)),
            !is_named};
  }
  std::string advice;
  if (std::ranges::find(usual, last) != usual.end()) {
    advice = fmt::format(", here or in {}", part->subfolder);
  } else if (HasPartEnding(*part, name)) {
    advice = fmt::format("; rename it, or {}", NamingAdvice(*part, ToPrintable(name)));
  } else if (HasPartEnding(*part, absl::AsciiStrToLower(name))) {
    advice = "; rename it";
  }
  return {fmt::format("{} from {}{}{}", part->is_read, usual.front(), part->content, advice), true,
          part};
}

// The paths of the files, as a folder's entries are named: collection.json may say `./a.npy`.
std::vector<std::string> ListPaths(const std::vector<FolderFile>& files) {
  std::vector<std::string> paths;
  for (const FolderFile& file : files) {
    paths.push_back(std::filesystem::path(file.display_name).lexically_normal().string());
  }
  return paths;
}

// Whether an entry is one of the files, or the folder of one.
bool Holds(const FolderEntry& entry, const std::vector<std::string>& paths) {
  return std::ranges::any_of(paths, [&](std::string_view path) {
    if (!path.starts_with(entry.display_name)) return false;
    path.remove_prefix(entry.display_name.size());
    return path.empty() || (entry.is_folder && path.starts_with('/'));
  });
}

// Adds one sentence for each noun. A file of ids and one of vectors are both "users", since neither
// is read without the other.
void AddLeftOut(const CollectionPart& part, const std::string& name, Glances& glances,
                FolderListing& listing) {
  const std::string_view noun = PartNoun(part.role);
  const bool is_told = std::ranges::any_of(
      listing.left_out, [noun](const std::string& told) { return told.starts_with(noun); });
  if (is_told) return;
  const bool has_lines = HasPartEnding(PartOf(FileRole::kPayload), part.names.front());
  listing.left_out.push_back(
      fmt::format("{}: {} is not read{}", noun, name,
                  has_lines ? LinesAdvice(part, name, glances) : std::string()));
}

void AddUnread(const Folder& folder, const Entries& entries, const CollectionFiles& files,
               const Limits& limits, FolderListing& listing) {
  const std::vector<std::string> read = ListPaths(listing.files);
  Glances glances(folder, limits);
  std::size_t more = 0;
  for (const FolderEntry& entry : entries.all) {
    if (Holds(entry, read)) continue;
    Unread unread = WhyUnread(entry, files, glances);
    const std::string name =
        fmt::format("{}{}", ToPrintable(entry.display_name), entry.is_folder ? "/" : "");
    if (unread.absent != nullptr) AddLeftOut(*unread.absent, name, glances, listing);
    if (unread.is_surprising) {
      if (listing.notes.size() < kNotesMax) {
        listing.notes.push_back(fmt::format("{}: not read: {}", name, unread.reason));
      } else {
        ++more;
      }
    }
    if (listing.unread_files++ < limits.unread_files_max) {
      listing.files.push_back(
          {name, std::nullopt, folder.MeasureFile(entry.display_name), std::move(unread.reason)});
    }
  }
  if (more > 0) {
    listing.notes.push_back(
        fmt::format("{} more that look like a part of the collection are not read",
                    base::Counted(more, "file")));
  }
}

// The folder among the subfolders that looks like a collection; empty for none.
std::string FindCollection(const Folder& folder, const Entries& entries) {
  constexpr int kFoldersMax = 100;
  int folders = 0;
  for (const FolderEntry& entry : entries.all) {
    if (!entry.is_folder || ++folders > kFoldersMax) continue;
    for (const std::string& name : UsualNames(PartOf(FileRole::kVectors))) {
      if (folder.Has(fmt::format("{}/{}", entry.display_name, name))) {
        return fmt::format("{}/{}", ToPrintable(entry.display_name), name);
      }
    }
  }
  return {};
}

}  // namespace

absl::StatusOr<FolderListing> ListFolder(const Folder& folder, const CollectionFiles& files,
                                         const FolderFingerprint& fingerprint,
                                         const Limits& limits) {
  FolderListing listing;
  for (std::size_t i = 0; i < kFileRoleCount; ++i) {
    const FileFingerprint& file = fingerprint.files[i];
    const auto role = static_cast<FileRole>(i);
    if (!file.display_name.empty()) {
      listing.files.push_back({file.display_name, role, file.bytes, {}});
    }
  }
  const absl::StatusOr<Entries> entries = ReadEntries(folder);
  if (!entries.ok()) return entries.status();
  AddUnread(folder, *entries, files, limits, listing);
  if (!entries->complete) {
    listing.notes.push_back(
        fmt::format("the folder has {} entries or more; not all of them were looked at",
                    base::Grouped(kEntriesMax)));
  }
  return listing;
}

std::string AdviceWithoutPart(const Folder& folder, const CollectionPart& part) {
  for (const FolderEntry& entry : ReadEntries(folder).value_or(Entries()).all) {
    const std::string& name = entry.display_name;
    if (entry.is_folder || PartLike(name) != &part || !HasPartEnding(part, name)) continue;
    return fmt::format(": {}", RenameAdvice(part, ToPrintable(name)));
  }
  return {};
}

std::string AdviceWithoutVectors(const Folder& folder, const CollectionFiles& files) {
  const Entries entries = ReadEntries(folder).value_or(Entries());
  const CollectionPart& vectors = PartOf(FileRole::kVectors);
  std::vector<std::string> candidates;
  std::string other_case;
  std::string other_format;
  for (const FolderEntry& entry : entries.all) {
    const std::string& name = entry.display_name;
    const CollectionPart* const like = PartLike(name);
    if (entry.is_folder || name == files.user_vectors || (like != nullptr && like != &vectors)) {
      continue;
    }
    if (HasPartEnding(vectors, name)) {
      candidates.push_back(ToPrintable(name));
    } else if (HasPartEnding(vectors, absl::AsciiStrToLower(name))) {
      if (other_case.empty()) other_case = ToPrintable(name);
    } else if (like == &vectors && other_format.empty()) {
      other_format = ToPrintable(name);
    }
  }
  if (candidates.size() == 1) return RenameAdvice(vectors, candidates.front());
  if (candidates.size() > 1) {
    const std::size_t named_count = std::min<std::size_t>(candidates.size(), 3);
    return fmt::format(
        "there are {}{}: choose one and {}",
        fmt::join(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(named_count),
                  ", "),
        candidates.size() > named_count
            ? fmt::format(" and {} more", candidates.size() - named_count)
            : std::string(),
        NamingAdvice(vectors, candidates.front()));
  }
  if (!other_case.empty()) {
    return fmt::format("rename {} to {}{}", other_case, vectors.names.front(),
                       FindVectorFormat(absl::AsciiStrToLower(other_case))->ending);
  }
  if (!other_format.empty()) {
    return fmt::format("{} is of another format: save the vectors with np.save(\"{}.npy\", x)",
                       other_format, vectors.names.front());
  }
  const std::string collection = FindCollection(folder, entries);
  if (!collection.empty()) {
    return fmt::format("{} is there: give the folder that it is in", collection);
  }
  return fmt::format("another name can be given in {}: \"vectors\"", kCollectionJson);
}

}  // namespace simile::data
