#include "data/text_shape.h"

#include <algorithm>

#include <absl/strings/match.h>
#include <absl/strings/string_view.h>

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

}  // namespace

std::string_view WithoutBlanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text;
}

TextShape TextShapeOf(std::string_view begin) {
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

}  // namespace simile::data
