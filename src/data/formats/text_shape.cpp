#include "data/formats/text_shape.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <absl/status/statusor.h>
#include <absl/strings/match.h>
#include <absl/strings/string_view.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "data/formats/json_reader.h"

namespace simile::data {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
// How the small file begins that Git LFS leaves where the file itself was not fetched.
constexpr std::string_view kGitLfsPointer = "version https://git-lfs.github.com/spec/";

//   tag  in small letters
bool BeginsWithTag(std::string_view text, std::string_view tag) {
  return absl::StartsWithIgnoreCase(absl::string_view(text.data(), text.size()),
                                    absl::string_view(tag.data(), tag.size()));
}

bool IsTable(std::string_view begin) {
  const std::string_view line = begin.substr(0, begin.find('\n'));
  return line.find_first_of(",;\t") != line.npos && line.find_first_of("{[:") == line.npos &&
         line.find_first_not_of(kBlanks) != line.npos;
}

constexpr ObjectsForm kList = {"is one list of objects", ".[]"};
constexpr ObjectsForm kInside = {"is one object with a list of objects inside", "first(.[])[]"};
// An object that has an id of its own keeps it.
constexpr ObjectsForm kByName = {"is one object of objects", "to_entries[] | {id: .key} + .value"};
constexpr ObjectsForm kColumns = {
    "is one object of columns, as pandas writes without orient=\"records\"",
    "(first(.[]) | keys_unsorted[]) as $i | map_values(.[$i])"};
constexpr ObjectsForm kIndented = {"looks indented, an object over several lines", "."};

// The first members of an object, as far as the text goes.
struct Outline {
  struct Member {
    JsonToken value = JsonToken::kEnd;
    JsonToken inside = JsonToken::kEnd;  // what a list or an object begins with
    std::string name_inside;             // of an object's first member

    bool is_object() const { return inside == JsonToken::kKey; }
  };
  std::vector<Member> members;  // the first two
  bool is_followed = false;     // something comes after the object
};

// REQUIRES: the text begins with '{'.
Outline ReadOutline(std::string_view text) {
  constexpr std::size_t kMembersMax = 2;
  constexpr std::size_t kDepthMax = 64;
  JsonReader json("", {.depth_max = kDepthMax, .text_bytes_max = text.size()});
  json.Begin(text);
  Outline outline;
  std::size_t members = 0;
  std::size_t depth = 0;
  bool has_opened = false;  // the last token opened a list or an object
  while (true) {
    const absl::StatusOr<JsonToken> token = json.Next();
    if (!token.ok()) {
      outline.is_followed = depth == 0;
      return outline;
    }
    if (*token == JsonToken::kEnd) return outline;
    const bool closes = *token == JsonToken::kObjectEnd || *token == JsonToken::kListEnd;
    if (closes) --depth;
    if (depth == 1 && *token == JsonToken::kKey && ++members <= kMembersMax) {
      outline.members.emplace_back();
    } else if (depth > 0 && !closes && members >= 1 && members <= kMembersMax) {
      Outline::Member& member = outline.members.back();
      if (depth == 1) member.value = *token;
      if (depth == 2 && has_opened) {
        member.inside = *token;
        if (member.is_object()) member.name_inside = json.text();
      }
    }
    has_opened = *token == JsonToken::kObjectBegin || *token == JsonToken::kListBegin;
    if (has_opened) ++depth;
  }
}

// The form of a file whose one object holds all other objects; null for none.
const ObjectsForm* FindFormOfOne(const Outline& outline) {
  if (outline.members.empty() || outline.is_followed) return nullptr;
  const Outline::Member& first = outline.members.front();
  if (first.value == JsonToken::kListBegin && first.inside == JsonToken::kObjectBegin) {
    return &kInside;
  }
  if (!std::ranges::all_of(outline.members, &Outline::Member::is_object)) return nullptr;
  if (first.name_inside == "0") return &kColumns;
  return outline.members.size() > 1 ? &kByName : nullptr;
}

}  // namespace

std::string_view WithoutBlanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text;
}

TextShape ClassifyText(std::string_view begin) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (begin.starts_with("\xFF\xFE") || begin.starts_with("\xFE\xFF")) return TextShape::kUtf16;
  if (begin.starts_with("\x1F\x8B")) return TextShape::kGzip;
  if (begin.starts_with(kGitLfsPointer)) return TextShape::kGitLfs;
  if (begin.starts_with(kMark)) begin.remove_prefix(kMark.size());
  if (begin.empty()) return TextShape::kEmpty;
  const std::string_view text = WithoutBlanks(begin);
  if (BeginsWithTag(text, "<!doctype html") || BeginsWithTag(text, "<html")) {
    return TextShape::kWebPage;
  }
  if (BeginsWithTag(text, "<?xml") || BeginsWithTag(text, "<error>")) return TextShape::kXml;
  if (IsTable(begin)) return TextShape::kTable;
  begin = text;
  if (begin.empty()) return TextShape::kOther;
  constexpr std::string_view kBeginsJson = "[{\"";
  if (kBeginsJson.find(begin.front()) != kBeginsJson.npos) return TextShape::kOther;
  const std::string_view more = begin.substr(std::min(begin.find('\n'), begin.size()));
  return WithoutBlanks(more).empty() ? TextShape::kOther : TextShape::kLines;
}

absl::Status CheckHoldsData(const BufferedReader& in, TextShape shape) {
  if (shape == TextShape::kUtf16) return Refuse(in, "is UTF-16; save as UTF-8");
  if (shape == TextShape::kGzip) return Refuse(in, "is compressed with gzip; unpack it");
  if (shape == TextShape::kGitLfs) {
    return Refuse(in, "is a pointer of Git LFS; `git lfs pull` fetches the file");
  }
  if (shape == TextShape::kWebPage) {
    return Refuse(in, "is a web page (HTML): a download was answered with a page; fetch the file");
  }
  if (shape == TextShape::kXml) {
    return Refuse(in,
                  "is XML, as stores of files answer with an error; it says which: fetch the "
                  "file again");
  }
  if (shape == TextShape::kEmpty) return Refuse(in, "is empty; write or fetch it again");
  return absl::OkStatus();
}

bool HoldsLinesOfObjects(std::string_view begin) {
  const std::string_view text = WithoutBlanks(begin);
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::size_t last = text.substr(0, end).find_last_not_of(" \t\r");
  return text.starts_with('{') && text[last] == '}' &&
         WithoutBlanks(text.substr(end)).starts_with('{');
}

const ObjectsForm* FindObjectsForm(std::string_view begin) {
  const std::string_view text = WithoutBlanks(begin);
  if (text.empty()) return nullptr;
  const std::string_view rest = text.substr(1);
  if (text.front() == '[') return WithoutBlanks(rest).starts_with('{') ? &kList : nullptr;
  if (text.front() != '{' || HoldsLinesOfObjects(text)) return nullptr;
  if (const ObjectsForm* const form = FindFormOfOne(ReadOutline(text))) return form;
  const std::size_t next = rest.find_first_not_of(" \t\r");
  return next != rest.npos && rest[next] == '\n' ? &kIndented : nullptr;
}

std::string JqCommand(const ObjectsForm& form, std::string_view from, std::string_view to) {
  return fmt::format("`jq -c '{}' {} > {}`", form.filter, from, to);
}

std::string PandasCommand(std::string_view format, std::string_view from, std::string_view to,
                          std::string_view options) {
  return fmt::format("pandas.read_{}({}{}).to_json({}, orient=\"records\", lines=True)", format,
                     base::Quoted(from), options, base::Quoted(to));
}

}  // namespace simile::data
