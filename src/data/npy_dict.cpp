#include "data/npy_dict.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::data {
namespace {

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

absl::StatusOr<NpyDict> ParseNpyDict(std::string_view text) { return NpyDictParser(text).Parse(); }

}  // namespace simile::data
