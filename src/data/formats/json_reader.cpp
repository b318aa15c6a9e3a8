#include "data/formats/json_reader.h"

#include <array>
#include <charconv>
#include <string>
#include <system_error>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/utf8.h"

namespace simile::data {
namespace {

constexpr int kEndOfInput = -1;

bool IsDigit(int byte) { return byte >= '0' && byte <= '9'; }
bool IsLetter(int byte) { return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'); }

std::string DescribeByte(int byte) {
  if (byte == kEndOfInput) return "the end";
  if (byte == '\n') return "the end of the line";
  if (byte == '\'') return "a single quote; JSON takes double quotes";
  if (byte > 0x20 && byte < 0x7F) return fmt::format("'{}'", static_cast<char>(byte));
  return fmt::format("byte 0x{:02x}", byte);
}

absl::StatusOr<PayloadValue> ReadValue(JsonReader& reader, JsonToken token);

// Finds names that occur twice in an object: by a linear search while there are few names, then by
// a hash set.
class NamesSeen {
 public:
  bool Add(const PayloadObject& object, const std::string& name) {
    constexpr std::size_t kLinearMax = 16;
    if (object.size() < kLinearMax) return FindMember(object, name) == nullptr;
    if (names_.empty()) {
      for (const auto& member : object) names_.insert(member.first);
    }
    return names_.insert(name).second;
  }

 private:
  std::unordered_set<std::string> names_;
};

// Reads an object after its '{'.
absl::StatusOr<PayloadObject> ReadObject(JsonReader& reader) {
  PayloadObject object;
  NamesSeen seen;
  while (true) {
    const absl::StatusOr<JsonToken> key = reader.Next();
    if (!key.ok()) return key.status();
    if (*key == JsonToken::kObjectEnd) return object;
    std::string name = reader.text();
    if (!seen.Add(object, name)) {
      return reader.ErrorAtToken(fmt::format("{} occurs twice in one object", base::Quoted(name)));
    }
    const absl::StatusOr<JsonToken> token = reader.Next();
    if (!token.ok()) return token.status();
    absl::StatusOr<PayloadValue> value = ReadValue(reader, *token);
    if (!value.ok()) return value.status();
    object.emplace_back(std::move(name), *std::move(value));
  }
}

// Reads a list after its '['.
absl::StatusOr<PayloadList> ReadList(JsonReader& reader) {
  PayloadList list;
  while (true) {
    const absl::StatusOr<JsonToken> token = reader.Next();
    if (!token.ok()) return token.status();
    if (*token == JsonToken::kListEnd) return list;
    absl::StatusOr<PayloadValue> value = ReadValue(reader, *token);
    if (!value.ok()) return value.status();
    list.push_back(*std::move(value));
  }
}

// Recursion is bounded by the reader's depth_max.
absl::StatusOr<PayloadValue> ReadValue(JsonReader& reader, JsonToken token) {
  switch (token) {
    case JsonToken::kObjectBegin: {
      absl::StatusOr<PayloadObject> object = ReadObject(reader);
      if (!object.ok()) return object.status();
      return PayloadValue{*std::move(object)};
    }
    case JsonToken::kListBegin: {
      absl::StatusOr<PayloadList> list = ReadList(reader);
      if (!list.ok()) return list.status();
      return PayloadValue{*std::move(list)};
    }
    case JsonToken::kString:
      return PayloadValue{reader.text()};
    case JsonToken::kInteger:
      return PayloadValue{reader.integer()};
    case JsonToken::kNumber:
      return PayloadValue{reader.number()};
    case JsonToken::kTrue:
      return PayloadValue{true};
    case JsonToken::kFalse:
      return PayloadValue{false};
    default:
      return PayloadValue{};
  }
}

}  // namespace

std::string_view Describe(JsonToken token) {
  constexpr std::array<std::string_view, 12> kNames = {
      "an object", "an object", "a list", "a list", "a name", "a string",
      "a number",  "a number",  "true",   "false",  "null",   "nothing"};
  static_assert(kNames.size() == static_cast<std::size_t>(JsonToken::kEnd) + 1);
  return kNames[static_cast<std::size_t>(token)];
}

void JsonReader::Begin(std::string_view text, std::uint64_t line) {
  cursor_ = text.data();
  end_ = text.data() + text.size();
  stream_ = nullptr;
  stream_status_ = absl::OkStatus();
  expect_ = Expect::kValue;
  open_.clear();
  place_ = {.line = line, .column = 1};
}

void JsonReader::Begin(BufferedReader& stream) {
  Begin(std::string_view());
  stream_ = &stream;
  stream_status_ = stream.SkipByteOrderMark();
}

bool JsonReader::Refill() {
  if (stream_ == nullptr || !stream_status_.ok()) return false;
  const absl::StatusOr<std::string_view> bytes = stream_->ReadSome();
  if (!bytes.ok()) {
    stream_status_ = bytes.status();
    return false;
  }
  cursor_ = bytes->data();
  end_ = bytes->data() + bytes->size();
  return cursor_ != end_;
}

char JsonReader::Advance() {
  const char byte = *cursor_++;
  if (byte == '\n') {
    ++place_.line;
    place_.column = 1;
  } else if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80) {
    ++place_.column;
  }
  return byte;
}

void JsonReader::SkipSpace() {
  for (int byte = Peek(); byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
       byte = Peek()) {
    Advance();
  }
}

absl::Status JsonReader::Error(Place place, std::string_view what) const {
  // A failed stream looks like an early end, but its own error has the reason.
  if (!stream_status_.ok()) return stream_status_;
  return absl::InvalidArgumentError(
      fmt::format("{}: line {}, column {}: {}", display_name_, place.line, place.column, what));
}

absl::Status JsonReader::Expected(std::string_view what) {
  return ErrorHere(fmt::format("expected {}, found {}", what, DescribeNext()));
}

// What comes next, by name.
std::string JsonReader::DescribeNext() {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const int byte = Peek();
  if (std::string_view(cursor_, static_cast<std::size_t>(end_ - cursor_))
          .starts_with(kByteOrderMark)) {
    return "a byte order mark, which belongs at the beginning of a file alone; remove it";
  }
  return DescribeByte(byte);
}

// The error about what follows the value. A text is a line of a file.
absl::Status JsonReader::RefuseMore() {
  if (Peek() == '{' && stream_ == nullptr) {
    return ErrorHere("a second object begins here; put each object on a line of its own");
  }
  if (Peek() == ',') return ErrorHere("the comma after the value is one too many");
  return ErrorHere(fmt::format("nothing may follow the value, found {}", DescribeNext()));
}

absl::StatusOr<JsonToken> JsonReader::Next() {
  SkipSpace();
  token_place_ = place_;
  switch (expect_) {
    case Expect::kValue:
      return ReadValue();
    case Expect::kValueOrEnd:
      return Peek() == ']' ? Close() : ReadValue();
    case Expect::kKeyOrEnd:
      return Peek() == '}' ? Close() : ReadKey();
    case Expect::kCommaOrEnd: {
      const bool in_object = open_.back() == Container::kObject;
      if (Peek() == (in_object ? '}' : ']')) return Close();
      if (Peek() != ',') return Expected(in_object ? "',' or '}'" : "',' or ']'");
      Advance();
      SkipSpace();
      if (Peek() == (in_object ? '}' : ']')) {
        return ErrorHere(fmt::format("the comma before {} is one too many", DescribeByte(Peek())));
      }
      token_place_ = place_;
      return in_object ? ReadKey() : ReadValue();
    }
    case Expect::kNothing:
      break;
  }
  if (Peek() != kEndOfInput || !stream_status_.ok()) {
    return RefuseMore();
  }
  return JsonToken::kEnd;
}

absl::StatusOr<JsonToken> JsonReader::ReadKey() {
  if (Peek() != '"') return Expected("a name in double quotes");
  if (absl::Status status = ReadText(); !status.ok()) return status;
  SkipSpace();
  if (Peek() != ':') return Expected("':'");
  Advance();
  expect_ = Expect::kValue;
  return JsonToken::kKey;
}

absl::StatusOr<JsonToken> JsonReader::ReadValue() {
  const int byte = Peek();
  if (byte == '{') return Open(Container::kObject);
  if (byte == '[') return Open(Container::kList);
  if (byte == '"') {
    if (absl::Status status = ReadText(); !status.ok()) return status;
    AfterValue();
    return JsonToken::kString;
  }
  if (byte == '-' || IsDigit(byte)) return ReadNumber();
  if (IsLetter(byte)) {
    text_.clear();
    return ReadWord();
  }
  return Expected("a value");
}

absl::StatusOr<JsonToken> JsonReader::Open(Container container) {
  if (open_.size() == bounds_.depth_max) {
    return ErrorHere(fmt::format("nested deeper than {} levels", bounds_.depth_max));
  }
  Advance();
  open_.push_back(container);
  expect_ = container == Container::kObject ? Expect::kKeyOrEnd : Expect::kValueOrEnd;
  return container == Container::kObject ? JsonToken::kObjectBegin : JsonToken::kListBegin;
}

JsonToken JsonReader::Close() {
  Advance();
  const Container closed = open_.back();
  open_.pop_back();
  AfterValue();
  return closed == Container::kObject ? JsonToken::kObjectEnd : JsonToken::kListEnd;
}

// Appends the word to text_, which may hold a sign.
absl::StatusOr<JsonToken> JsonReader::ReadWord() {
  constexpr std::size_t kWordBytesMax = 16;
  while (IsLetter(Peek()) && text_.size() < kWordBytesMax) text_ += Advance();
  AfterValue();
  if (text_ == "true") return JsonToken::kTrue;
  if (text_ == "false") return JsonToken::kFalse;
  if (text_ == "null") return JsonToken::kNull;
  return WordError();
}

absl::Status JsonReader::WordError() const {
  const std::string_view unsigned_text =
      std::string_view(text_).substr(text_.starts_with('-') ? 1 : 0);
  for (const std::string_view number : {"NaN", "nan", "Infinity", "inf", "Inf"}) {
    if (unsigned_text != number) continue;
    return ErrorAtToken(fmt::format(
        "{} is not a JSON value; write null, or leave the field out, where a number is missing",
        text_));
  }
  return ErrorAtToken(fmt::format(
      "{} is not a JSON value; strings need double quotes, missing values are null", text_));
}

absl::Status JsonReader::ReadDigits() {
  if (!IsDigit(Peek())) return Expected("a digit");
  while (IsDigit(Peek()) && text_.size() < bounds_.text_bytes_max) text_ += Advance();
  return absl::OkStatus();
}

absl::StatusOr<JsonToken> JsonReader::ReadNumber() {
  text_.clear();
  bool whole = true;
  if (Peek() == '-') text_ += Advance();
  if (IsLetter(Peek())) return ReadWord();
  const bool leading_zero = Peek() == '0';
  const std::size_t first_digit = text_.size();
  if (absl::Status status = ReadDigits(); !status.ok()) return status;
  if (leading_zero && text_.size() > first_digit + 1) {
    return ErrorAtToken("a number must not begin with 0");
  }
  if (Peek() == '.') {
    whole = false;
    text_ += Advance();
    if (absl::Status status = ReadDigits(); !status.ok()) return status;
  }
  if (Peek() == 'e' || Peek() == 'E') {
    whole = false;
    text_ += Advance();
    if (Peek() == '+' || Peek() == '-') text_ += Advance();
    if (absl::Status status = ReadDigits(); !status.ok()) return status;
  }
  AfterValue();
  return ConvertNumber(whole);
}

absl::StatusOr<JsonToken> JsonReader::ConvertNumber(bool whole) {
  constexpr std::size_t kDigitsMax = 40;
  const std::string digits =
      text_.size() <= kDigitsMax ? text_ : text_.substr(0, kDigitsMax) + "...";
  const char* const end = text_.data() + text_.size();
  if (whole) {
    if (std::from_chars(text_.data(), end, integer_).ec == std::errc()) return JsonToken::kInteger;
    return ErrorAtToken(
        fmt::format("{} does not fit a 64-bit integer; write it as a string", digits));
  }
  if (std::from_chars(text_.data(), end, number_).ec == std::errc()) return JsonToken::kNumber;
  return ErrorAtToken(
      fmt::format("{} does not fit a 64-bit floating-point number; write it as a string", digits));
}

absl::Status JsonReader::ReadText() {
  Advance();
  text_.clear();
  while (true) {
    const int byte = Peek();
    if (byte == '"') break;
    absl::Status status;
    if (byte == kEndOfInput) {
      return ErrorHere("a string is not closed; expected '\"'");
    } else if (byte == '\\') {
      status = ReadEscape();
    } else if (byte < 0x20) {
      return ErrorHere(
          fmt::format("a string holds a bare control character; write \\u{:04x}", byte));
    } else if (byte < 0x80) {
      ReadPlainRun();
    } else {
      status = ReadUtf8Sequence();
    }
    if (!status.ok()) return status;
    if (text_.size() > bounds_.text_bytes_max) {
      return ErrorAtToken(
          fmt::format("a string is longer than {} bytes", base::Grouped(bounds_.text_bytes_max)));
    }
  }
  Advance();
  return absl::OkStatus();
}

// Reads a run of printable ASCII, most of a typical string, at once. Reads at most one byte beyond
// the bound, so that a string's memory is bounded.
void JsonReader::ReadPlainRun() {
  const char* const first = cursor_;
  std::size_t left = bounds_.text_bytes_max + 1 - text_.size();
  while (cursor_ != end_ && left > 0 && *cursor_ >= 0x20 && *cursor_ != '"' && *cursor_ != '\\') {
    ++cursor_;
    --left;
  }
  text_.append(first, cursor_);
  place_.column += static_cast<std::uint64_t>(cursor_ - first);
}

absl::Status JsonReader::ReadUtf8Sequence() {
  const Place place = place_;
  char sequence[4];
  std::size_t length = 0;
  do {
    sequence[length++] = Advance();
  } while (base::Utf8SequenceLength({sequence, length}) == 0 && length < 4 &&
           Peek() != kEndOfInput && (Peek() & 0xC0) == 0x80);
  if (base::Utf8SequenceLength({sequence, length}) != length) {
    return Error(place, fmt::format("byte 0x{:02x} begins no valid UTF-8 character; save as UTF-8",
                                    static_cast<unsigned char>(sequence[0])));
  }
  text_.append(sequence, length);
  return absl::OkStatus();
}

absl::Status JsonReader::ReadEscape() {
  const Place place = place_;
  Advance();
  const int byte = Peek();
  if (byte == 'u') return ReadUnicodeEscape(place);
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const std::size_t at =
      byte == kEndOfInput ? kEscapes.npos : kEscapes.find(static_cast<char>(byte));
  if (at == kEscapes.npos) {
    return Expected("an escape after '\\' (one of \" \\ / b f n r t u)");
  }
  text_ += kMeanings[at];
  Advance();
  return absl::OkStatus();
}

absl::Status JsonReader::ReadUnicodeEscape(Place place) {
  const auto lone = [&](std::uint32_t code) {
    return Error(place, fmt::format("\\u{:04x} is half of a surrogate pair; write the whole "
                                    "character, or leave it out",
                                    code));
  };
  Advance();
  const absl::StatusOr<std::uint32_t> first = ReadHexDigits();
  if (!first.ok()) return first.status();
  if (*first < 0xD800 || *first > 0xDFFF) {
    base::AppendUtf8(text_, *first);
    return absl::OkStatus();
  }
  if (*first > 0xDBFF || Peek() != '\\') return lone(*first);
  Advance();
  if (Peek() != 'u') return lone(*first);
  Advance();
  const absl::StatusOr<std::uint32_t> second = ReadHexDigits();
  if (!second.ok()) return second.status();
  if (*second < 0xDC00 || *second > 0xDFFF) return lone(*first);
  base::AppendUtf8(text_, 0x10000 + ((*first - 0xD800) << 10) + (*second - 0xDC00));
  return absl::OkStatus();
}

absl::StatusOr<std::uint32_t> JsonReader::ReadHexDigits() {
  std::uint32_t code = 0;
  for (int digit = 0; digit < 4; ++digit) {
    const int byte = Peek();
    if (!IsDigit(byte) && !(byte >= 'a' && byte <= 'f') && !(byte >= 'A' && byte <= 'F')) {
      return Expected("four hexadecimal digits after \\u");
    }
    const int value = IsDigit(byte) ? byte - '0' : (byte | 0x20) - 'a' + 10;
    code = code << 4 | static_cast<std::uint32_t>(value);
    Advance();
  }
  return code;
}

absl::StatusOr<PayloadObject> ReadJsonObject(JsonReader& reader) {
  const absl::StatusOr<JsonToken> first = reader.Next();
  if (!first.ok()) return first.status();
  if (*first != JsonToken::kObjectBegin) {
    return reader.ErrorAtToken(
        fmt::format("expected an object {{...}}, found {}", Describe(*first)));
  }
  absl::StatusOr<PayloadObject> object = ReadObject(reader);
  if (!object.ok()) return object;
  if (const absl::StatusOr<JsonToken> end = reader.Next(); !end.ok()) return end.status();
  return object;
}

const PayloadValue* FindMember(const PayloadObject& object, std::string_view name) {
  for (const auto& [key, value] : object) {
    if (key == name) return &value;
  }
  return nullptr;
}

const PayloadValue* FindField(const PayloadObject& object, std::string_view name) {
  if (const PayloadValue* const member = FindMember(object, name)) return member;
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return nullptr;
  const PayloadValue* const value = FindMember(object, name.substr(0, dot));
  const auto* const inside = value == nullptr ? nullptr : std::get_if<PayloadObject>(&value->value);
  return inside == nullptr ? nullptr : FindField(*inside, name.substr(dot + 1));
}

std::string_view Describe(const PayloadValue& value) {
  constexpr std::array<std::string_view, 7> kNames = {
      "null", "true or false", "an integer", "a number", "a string", "a list", "an object"};
  return kNames[value.value.index()];
}

}  // namespace simile::data
