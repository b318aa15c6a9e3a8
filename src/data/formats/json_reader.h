#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <absl/container/inlined_vector.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/formats/buffered_reader.h"
#include "simile/payload.h"

namespace simile::data {

enum class JsonToken : std::uint8_t {
  kObjectBegin,
  kObjectEnd,
  kListBegin,
  kListEnd,
  kKey,      // text() is the name; its value comes next
  kString,   // text()
  kInteger,  // integer(): no fraction, no exponent, fits 64 bits
  kNumber,   // number()
  kTrue,
  kFalse,
  kNull,
  kEnd,  // the value is complete and nothing follows it
};

// The name of a token in messages: "a string", "a list".
std::string_view Describe(JsonToken token);

struct JsonBounds {
  std::size_t depth_max = 16;              // lists and objects inside one another
  std::size_t text_bytes_max = 64U << 10;  // of one string or number, decoded
};

// A strict pull parser for one JSON value (RFC 8259). Hand-written because no library combines
// constant memory on any input, line and column in every error, and streams of any length. It
// refuses comments, trailing commas, NaN, invalid UTF-8, lone surrogates and numbers that do not
// fit; a byte order mark is ignored at the beginning of a stream. Callers refuse duplicate names
// (ReadJsonObject does). Reusable.
class JsonReader {
 public:
  JsonReader(std::string display_name, const JsonBounds& bounds)
      : display_name_(std::move(display_name)), bounds_(bounds) {}

  // Restarts on text, borrowed until the next Begin. `line` is the number of its first line.
  void Begin(std::string_view text, std::uint64_t line = 1);
  // Restarts on a stream, borrowed until the next Begin. REQUIRES: nothing of it was read yet.
  void Begin(BufferedReader& stream);

  // The next token. Errors: kInvalidArgument `FILE: line L, column C: ...`, columns counted in
  // characters from 1; the stream's own.
  absl::StatusOr<JsonToken> Next();

  const std::string& text() const { return text_; }
  std::int64_t integer() const { return integer_; }
  double number() const { return number_; }

  // Whether all of the text was read, also where an error ended the reading.
  // REQUIRES: Begin on a text.
  bool is_at_end() const { return cursor_ == end_; }

  // An error at the last token.
  absl::Status ErrorAtToken(std::string_view what) const { return Error(token_place_, what); }

 private:
  enum class Expect : std::uint8_t { kValue, kValueOrEnd, kKeyOrEnd, kCommaOrEnd, kNothing };
  enum class Container : std::uint8_t { kObject, kList };
  struct Place {
    std::uint64_t line = 1;
    std::uint64_t column = 1;
  };

  absl::StatusOr<JsonToken> ReadKey();
  absl::StatusOr<JsonToken> ReadValue();
  absl::StatusOr<JsonToken> Open(Container container);
  JsonToken Close();
  absl::StatusOr<JsonToken> ReadWord();
  absl::Status WordError() const;
  absl::StatusOr<JsonToken> ReadNumber();
  absl::StatusOr<JsonToken> ConvertNumber(bool whole);
  absl::Status ReadDigits();
  absl::Status ReadText();
  absl::Status ReadEscape();
  absl::Status ReadUnicodeEscape(Place place);
  absl::StatusOr<std::uint32_t> ReadHexDigits();
  absl::Status ReadUtf8Sequence();
  void ReadPlainRun();

  int Peek() { return cursor_ != end_ || Refill() ? static_cast<unsigned char>(*cursor_) : -1; }
  bool Refill();
  char Advance();
  void SkipSpace();
  void AfterValue() { expect_ = open_.empty() ? Expect::kNothing : Expect::kCommaOrEnd; }

  absl::Status Error(Place place, std::string_view what) const;
  absl::Status ErrorHere(std::string_view what) const { return Error(place_, what); }
  // `expected WHAT, found 'x'` here.
  absl::Status Expected(std::string_view what);
  std::string DescribeNext();
  absl::Status RefuseMore();

  const std::string display_name_;
  const JsonBounds bounds_;
  const char* cursor_ = nullptr;
  const char* end_ = nullptr;
  BufferedReader* stream_ = nullptr;
  absl::Status stream_status_;

  Expect expect_ = Expect::kValue;
  absl::InlinedVector<Container, 16> open_;
  Place place_;
  Place token_place_;
  std::string text_;
  std::int64_t integer_ = 0;
  double number_ = 0;
};

// Reads one JSON object, the whole input of the reader, with names in their order.
// Errors: kInvalidArgument with file, line and column: syntax, a name twice in one object,
//         something other than an object.
absl::StatusOr<PayloadObject> ReadJsonObject(JsonReader& reader);

// The value of a name, or nullptr. Cost: linear.
const PayloadValue* FindMember(const PayloadObject& object, std::string_view name);

// The value of a field, or nullptr: a member of this name, or else the member of an object that the
// name leads to, as meta.id does.
const PayloadValue* FindField(const PayloadObject& object, std::string_view name);

// The name of a value's type in messages: "a string", "a list", "null".
std::string_view Describe(const PayloadValue& value);

}  // namespace simile::data
