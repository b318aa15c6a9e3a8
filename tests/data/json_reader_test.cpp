// Streams in small pieces, bounds and reuse. The bad files of the corpus cover syntax.
#include "data/formats/json_reader.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "data/formats/byte_source.h"
#include "data/formats/jsonl_reader.h"
#include "simile/limits.h"

namespace simile::data {
namespace {

// A source that returns a few bytes at a time, so that every token is cut at every place.
class DripSource final : public ByteSource {
 public:
  DripSource(std::string_view bytes, std::size_t step)
      : ByteSource("drip.json", bytes.size()), rest_(bytes), step_(step) {}
  absl::StatusOr<std::size_t> Read(std::span<char> into) override {
    const std::size_t count = rest_.copy(into.data(), std::min(into.size(), step_));
    rest_.remove_prefix(count);
    return count;
  }
  absl::Status Skip(std::uint64_t count) override {
    rest_.remove_prefix(count);
    return absl::OkStatus();
  }
  absl::Status ReadAt(std::uint64_t, std::span<char>) override { return absl::OkStatus(); }

 private:
  std::string_view rest_;
  const std::size_t step_;
};

constexpr std::string_view kSample =
    "{\"text\": \"caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80 \\ud83d\\ude00 \\\"\", \"n\": [-12, "
    "3.5e-3, true, "
    "false, null],\n \"o\": {\"deep\": {}}}";

TEST(JsonReaderTest, ReadsAStreamCutAnywhereAsItReadsText) {
  JsonReader whole("drip.json", {});
  whole.Begin(kSample);
  const absl::StatusOr<PayloadObject> expected = ReadJsonObject(whole);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (std::size_t step = 1; step <= kSample.size(); ++step) {
    DripSource source(kSample, step);
    BufferedReader stream(source);
    JsonReader reader("drip.json", {});
    reader.Begin(stream);
    const absl::StatusOr<PayloadObject> object = ReadJsonObject(reader);
    ASSERT_TRUE(object.ok()) << object.status();
    ASSERT_EQ(*object, *expected) << step;
  }
}

TEST(JsonReaderTest, NamesTheSamePlaceHoweverAStreamIsCut) {
  const std::string text = "{\n  \"caf\xc3\xa9\": [1, 2,, 3]}";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    DripSource source(text, step);
    BufferedReader stream(source);
    JsonReader reader("drip.json", {});
    reader.Begin(stream);
    EXPECT_EQ(std::string(ReadJsonObject(reader).status().message()),
              "drip.json: line 2, column 17: expected a value, found ','");
  }
}

// A source that fails after its first bytes.
class BreakingSource final : public ByteSource {
 public:
  BreakingSource() : ByteSource("broken.json", 100) {}
  absl::StatusOr<std::size_t> Read(std::span<char> into) override {
    if (std::exchange(broken_, true)) return absl::DataLossError("broken.json: cannot be read");
    constexpr std::string_view kFirst = "[\"a\", \"b";
    return kFirst.copy(into.data(), into.size());
  }
  absl::Status Skip(std::uint64_t) override { return absl::OkStatus(); }
  absl::Status ReadAt(std::uint64_t, std::span<char>) override { return absl::OkStatus(); }

 private:
  bool broken_ = false;
};

TEST(JsonReaderTest, ReturnsTheStreamsError) {
  BreakingSource source;
  BufferedReader stream(source);
  JsonReader reader("broken.json", {});
  reader.Begin(stream);
  absl::StatusOr<JsonToken> token = reader.Next();
  while (token.ok() && *token != JsonToken::kEnd) token = reader.Next();
  EXPECT_EQ(token.status(), absl::DataLossError("broken.json: cannot be read"));
}

TEST(JsonReaderTest, BoundsAStringHoweverLongTheStream) {
  const std::string text = "[\"" + std::string(5'000'000, 'x') + "\"]";
  MemorySource source("long.json", text);
  BufferedReader stream(source);
  JsonReader reader("long.json", {.text_bytes_max = 1000});
  reader.Begin(stream);
  ASSERT_EQ(*reader.Next(), JsonToken::kListBegin);
  EXPECT_EQ(std::string(reader.Next().status().message()),
            "long.json: line 1, column 2: a string is longer than 1,000 bytes");
  EXPECT_LE(reader.text().capacity(), 4096U);
}

TEST(JsonReaderTest, BoundsANumberHoweverLongTheStream) {
  const std::string text = "[" + std::string(5'000'000, '7') + "]";
  MemorySource source("long.json", text);
  BufferedReader stream(source);
  JsonReader reader("long.json", {.text_bytes_max = 1000});
  reader.Begin(stream);
  ASSERT_EQ(*reader.Next(), JsonToken::kListBegin);
  EXPECT_FALSE(reader.Next().ok());
  EXPECT_LE(reader.text().capacity(), 4096U);
}

TEST(JsonReaderTest, RestartsAfterAnError) {
  JsonReader reader("a.json", {});
  reader.Begin("[[[");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(reader.Next().ok());
  ASSERT_FALSE(reader.Next().ok());
  reader.Begin("7", 9);
  EXPECT_EQ(*reader.Next(), JsonToken::kInteger);
  EXPECT_EQ(reader.integer(), 7);
  EXPECT_EQ(*reader.Next(), JsonToken::kEnd);
  reader.Begin("7 8", 9);
  ASSERT_TRUE(reader.Next().ok());
  EXPECT_EQ(std::string(reader.Next().status().message()),
            "a.json: line 9, column 3: nothing may follow the value, found '8'");
}

absl::Status ReadLines(std::string_view text, const Limits& limits = {}) {
  MemorySource source("lines.jsonl", text);
  BufferedReader in(source);
  JsonlReader lines(in, limits);
  PayloadObject object;
  while (true) {
    const absl::StatusOr<bool> found = lines.Next(object);
    if (!found.ok() || !*found) return found.status();
  }
}

TEST(JsonlReaderTest, ReadsALineOfUpTo64KiB) {
  const auto line = [](std::size_t bytes) {
    return "{\"a\":\"" + std::string(bytes - 8, 'x') + "\"}";
  };
  EXPECT_TRUE(ReadLines(line(65'536) + "\n" + line(65'536)).ok());
  EXPECT_EQ(std::string(ReadLines("{}\n" + line(65'537) + "\n").message()),
            "lines.jsonl: line 2 is longer than 65,536 bytes (limits.jsonl_line_bytes_max)");
  EXPECT_EQ(std::string(ReadLines(std::string(3'000'000, ' ')).message()),
            "lines.jsonl: line 1 is longer than 65,536 bytes (limits.jsonl_line_bytes_max)");
}

TEST(JsonlReaderTest, ReadsALineLongerThanTheBufferWhereThatIsAllowed) {
  Limits limits;
  limits.jsonl_line_bytes_max = 1U << 20;
  const std::string long_text(600'000, 'x');
  for (const char* const members : {R"("a": [{"b": 1}], )", R"("a": {"b": 1}, "c": {"d": 1}, )"}) {
    const std::string line = "{" + (members + ("\"text\": \"" + long_text)) + "\"}\n";
    EXPECT_TRUE(ReadLines(line + line, limits).ok()) << members;
    EXPECT_TRUE(ReadLines(line, limits).ok()) << members;
  }
}

TEST(JsonlReaderTest, ReadsLinesAcrossTheBuffersEnd) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += fmt::format("{{\"id\":\"item-{}\",\"n\":{}}}\n", i, i);
  ASSERT_GT(text.size(), 512U << 10);
  MemorySource source("lines.jsonl", text);
  BufferedReader in(source);
  JsonlReader lines(in, Limits{});
  PayloadObject object;
  for (std::int64_t i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(*lines.Next(object));
    ASSERT_EQ(std::get<std::int64_t>(FindMember(object, "n")->value), i);
  }
  EXPECT_FALSE(*lines.Next(object));
}

}  // namespace
}  // namespace simile::data
