#include "data/formats/vector_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/formats/buffered_reader.h"

namespace simile::data {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionBytes = 2;
constexpr std::string_view kSaveSo =
    "save with np.save(file, np.ascontiguousarray(x).astype(np.float32))";

// The format of a file that is not .npy, by its first bytes; empty when unknown.
std::string_view GuessFormat(std::string_view start) {
  struct Known {
    std::string_view start;
    std::string_view what;
  };
  static constexpr std::array<Known, 6> kKnown = {{
      {"PK\x03\x04", "a zip archive, as np.savez writes"},
      {"\x80\x02", "a Python pickle"},
      {"\x80\x03", "a Python pickle"},
      {"\x80\x04", "a Python pickle"},
      {"\x80\x05", "a Python pickle"},
      {"\x89HDF", "an HDF5 file"},
  }};
  for (const Known& known : kKnown) {
    if (start.starts_with(known.start)) return known.what;
  }
  return "";
}

// The field of a structured type that holds a vector of floats in each record: `v` of
// [('id', '<i8'), ('v', '<f4', (384,))]. Empty for none.
std::string_view FieldOfVectors(std::string_view descr) {
  constexpr std::string_view kBegin = "('";
  constexpr std::string_view kNext = "', '";
  for (std::size_t at = descr.find(kBegin); at != descr.npos;) {
    const std::size_t next = descr.find(kBegin, at + kBegin.size());
    const std::string_view field = descr.substr(at + kBegin.size(), next - at - kBegin.size());
    const std::size_t end = field.find(kNext);
    if (end != field.npos) {
      const std::string_view type = field.substr(end + kNext.size());
      const bool has_axes = type.find("', (") != type.npos;
      if (has_axes && type.substr(1).starts_with('f')) return field.substr(0, end);
    }
    at = next;
  }
  return {};
}

// How the records of a structured type become vectors. Each of its floats may be a dimension.
std::string RecordsAdvice(std::string_view descr) {
  const std::string_view field = FieldOfVectors(descr);
  if (field.empty()) {
    return "save the fields that are floats as columns, with np.save(file, np.stack([x[name] for "
           "name in x.dtype.names if x.dtype[name].kind == \"f\"], axis=1).astype(np.float32))";
  }
  return fmt::format("save one field, with np.save(file, x[{}].astype(np.float32))",
                     base::Quoted(field));
}

// Reads magic, version, length and the text of the dictionary.
absl::StatusOr<std::string> ReadHeaderText(BufferedReader& in, const Limits& limits) {
  if (in.size() == 0) return Refuse(in, fmt::format("is empty; {}", kSaveSo));
  std::string start(std::min<std::uint64_t>(in.size(), kMagic.size() + kVersionBytes), '\0');
  if (absl::Status status = in.ReadExact(start); !status.ok()) return status;
  if (!start.starts_with(kMagic)) {
    // A part of the magic is a truncated file; other bytes are another format.
    if (kMagic.starts_with(start)) return Refuse(in, "is cut short within its first bytes");
    const std::string_view guess = GuessFormat(start);
    return Refuse(
        in, fmt::format("is no .npy file{}{}; {}", guess.empty() ? "" : " but ", guess, kSaveSo));
  }
  if (start.size() < kMagic.size() + kVersionBytes) {
    return Refuse(in, "is cut short within its first bytes");
  }
  const auto major = static_cast<unsigned char>(start[kMagic.size()]);
  const auto minor = static_cast<unsigned char>(start[kMagic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    return Refuse(
        in, fmt::format("is .npy version {}.{}; versions 1.0, 2.0 and 3.0 are read", major, minor));
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  if (in.bytes_left() < length_bytes) return Refuse(in, "is cut short within its first bytes");
  return ReadSizedHeader(in, length_bytes, limits.npy_header_bytes_max);
}

// Refuses a type that is not served, and says which are.
absl::Status RefuseType(const BufferedReader& in, std::string_view descr) {
  if (descr.starts_with('[')) {
    return Refuse(in, fmt::format("holds records (a structured type); {}", RecordsAdvice(descr)));
  }
  if (descr == "|O") {
    return Refuse(in,
                  "holds pickled Python objects, which are never read; save with np.save(file, "
                  "np.stack(x).astype(np.float32))");
  }
  if (descr.starts_with('>')) {
    return Refuse(in,
                  fmt::format("holds big-endian numbers ({}); {}", base::Quoted(descr), kSaveSo));
  }
  return Refuse(in, fmt::format("holds numbers of type {}; float16, float32 and float64 are "
                                "served; {}",
                                base::Quoted(descr), kSaveSo));
}

absl::StatusOr<ElementType> ParseElementType(const BufferedReader& in, std::string_view descr) {
  // '<' is little-endian. '=' (native) and '|' (irrelevant) mean the same on the machines that
  // write such files.
  if (descr.size() == 3 && (descr[0] == '<' || descr[0] == '=' || descr[0] == '|')) {
    if (descr.substr(1) == "f2") return ElementType::kFloat16;
    if (descr.substr(1) == "f4") return ElementType::kFloat32;
    if (descr.substr(1) == "f8") return ElementType::kFloat64;
  }
  return RefuseType(in, descr);
}

// NumPy's own bound on the axes of an array.
constexpr std::size_t kAxesMax = 64;

bool IsDigit(char letter) { return letter >= '0' && letter <= '9'; }

class NpyDictParser {
 public:
  explicit NpyDictParser(std::string_view text) : text_(text) {}

  absl::StatusOr<NpyDict> Parse() {
    if (absl::Status status = Expect('{'); !status.ok()) return status;
    while (!Accept('}')) {
      if (absl::Status status = ReadMember(); !status.ok()) return status;
      if (Accept(',')) continue;
      if (absl::Status status = Expect('}'); !status.ok()) return status;
      break;
    }
    SkipSpace();
    if (at_ != text_.size()) return Error("nothing may follow the dictionary");
    for (const std::string_view key : {"descr", "fortran_order", "shape"}) {
      if (!HasKey(key)) return Error(fmt::format("the dictionary lacks '{}'", key));
    }
    return dict_;
  }

 private:
  absl::Status ReadMember() {
    SkipSpace();
    const std::size_t start = at_;
    std::string key;
    if (absl::Status status = ReadString(key); !status.ok()) return status;
    if (HasKey(key)) {
      return ErrorAt(start, fmt::format("key {} occurs twice", base::Quoted(key)));
    }
    keys_.push_back(key);
    if (absl::Status status = Expect(':'); !status.ok()) return status;
    SkipSpace();
    if (key == "descr") return Peek() == '[' ? ReadStructuredType() : ReadString(dict_.descr);
    if (key == "fortran_order") return ReadBoolean(dict_.fortran_order);
    if (key == "shape") return ReadShape();
    return ErrorAt(start, fmt::format("key {} is not one of a .npy header's: descr, fortran_order, "
                                      "shape",
                                      base::Quoted(key)));
  }

  absl::Status ReadString(std::string& value) {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Expected("a string in quotes");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return Error("a string is not closed");
    value = text_.substr(at_ + 1, end - at_ - 1);
    if (value.find('\\') != std::string::npos) return Error("a string holds a backslash");
    at_ = end + 1;
    return absl::OkStatus();
  }

  absl::Status ReadBoolean(bool& value) {
    for (const bool candidate : {false, true}) {
      const std::string_view word = candidate ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      value = candidate;
      return absl::OkStatus();
    }
    return Expected("True or False");
  }

  absl::Status ReadShape() {
    if (absl::Status status = Expect('('); !status.ok()) return status;
    while (!Accept(')')) {
      if (dict_.shape.size() == kAxesMax) return Error(fmt::format("more than {} axes", kAxesMax));
      if (absl::Status status = ReadSize(); !status.ok()) return status;
      if (Accept(',')) continue;
      // To Python, (5) is a number; a tuple of one is (5,).
      if (dict_.shape.size() == 1) return Expected("','");
      if (absl::Status status = Expect(')'); !status.ok()) return status;
      break;
    }
    return absl::OkStatus();
  }

  absl::Status ReadSize() {
    SkipSpace();
    if (Peek() == '-') return Error("a size is negative");
    if (!IsDigit(Peek())) return Expected("a size");
    std::uint64_t size = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
    if (error != std::errc()) return Error("a size does not fit 64 bits");
    const auto after = static_cast<std::size_t>(end - text_.data());
    if (after - at_ > 1 && Peek() == '0') return Error("a size must not begin with 0");
    at_ = after;
    if (Peek() == 'L') ++at_;  // how Python 2 wrote long integers
    dict_.shape.push_back(size);
    return absl::OkStatus();
  }

  // [('x', '<f4'), ...]: finds only its end, because the caller refuses it.
  absl::Status ReadStructuredType() {
    const std::size_t start = at_;
    std::size_t depth = 0;
    do {
      if (Peek() == '[') ++depth;
      if (Peek() == ']') --depth;
      ++at_;
    } while (depth > 0 && at_ < text_.size());
    if (depth > 0) return Error("a list is not closed");
    dict_.descr = text_.substr(start, at_ - start);
    return absl::OkStatus();
  }

  bool HasKey(std::string_view key) const {
    return std::find(keys_.begin(), keys_.end(), key) != keys_.end();
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void SkipSpace() {
    while (Peek() == ' ' || Peek() == '\t' || Peek() == '\n' || Peek() == '\r') ++at_;
  }
  bool Accept(char letter) {
    SkipSpace();
    if (Peek() != letter) return false;
    ++at_;
    return true;
  }
  absl::Status Expect(char letter) {
    return Accept(letter) ? absl::OkStatus() : Expected(fmt::format("'{}'", letter));
  }

  absl::Status Expected(std::string_view what) const {
    const std::string found =
        at_ < text_.size() ? base::Quoted(text_.substr(at_, 1)) : std::string("the end");
    return Error(fmt::format("expected {}, found {}", what, found));
  }
  absl::Status Error(std::string_view what) const { return ErrorAt(at_, what); }
  static absl::Status ErrorAt(std::size_t at, std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("column {}: {}", at + 1, what));
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  NpyDict dict_;
  std::vector<std::string> keys_;
};

}  // namespace

bool BeginsNpy(std::string_view bytes) { return bytes.starts_with(kMagic); }

absl::StatusOr<VectorLayout> ReadNpyHeader(BufferedReader& in, const Limits& limits) {
  const absl::StatusOr<std::string> read = ReadHeaderText(in, limits);
  if (!read.ok()) return read.status();
  const std::string& header = *read;
  if (!header.ends_with('\n'))
    return Refuse(in, "header does not end with a newline; NumPy writes one");
  const auto foreign = std::find_if(header.begin(), header.end(), [](char letter) {
    return static_cast<unsigned char>(letter) >= 0x80 || letter == '\0';
  });
  if (foreign != header.end()) {
    return Refuse(in,
                  fmt::format("header, column {}: byte 0x{:02x} is no ASCII text",
                              foreign - header.begin() + 1, static_cast<unsigned char>(*foreign)));
  }
  const absl::StatusOr<NpyDict> dict = ParseNpyDict(header);
  if (!dict.ok()) {
    return Refuse(in, fmt::format("header, {}", std::string(dict.status().message())));
  }
  const absl::StatusOr<ElementType> type = ParseElementType(in, dict->descr);
  if (!type.ok()) return type.status();
  absl::StatusOr<VectorLayout> layout =
      MakeVectorLayout(in.display_name(), *type, dict->shape, limits);
  if (!layout.ok()) return layout.status();
  absl::Status status = CheckDataBytes(
      in, fmt::format("shape {} of {} needs", ShapeText(dict->shape), ElementName(layout->type)),
      layout->bytes());
  if (!status.ok()) return status;
  layout->by_column = dict->fortran_order;
  return layout;
}

absl::StatusOr<NpyDict> ParseNpyDict(std::string_view text) { return NpyDictParser(text).Parse(); }

}  // namespace simile::data
