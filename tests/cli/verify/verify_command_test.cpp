// `simile verify` against real servers: one that serves the films, and ones that serve films of
// which something was changed.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/live_server.h"
#include "cli/program_run.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"

namespace simile::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const std::string kFilms = SIMILE_SOURCE_DIR "/examples/films";
constexpr std::size_t kRows = 5'000;

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A copy of the films with one file changed.
class ChangedFilms {
 public:
  ChangedFilms(const std::string& file, const std::function<void(std::string& bytes)>& change) {
    std::filesystem::copy(kFilms, folder());
    std::string bytes = ReadAll(folder() / file);
    change(bytes);
    scratch_.Write("films/" + file, bytes);
  }
  std::filesystem::path folder() const { return scratch_.path() / "films"; }

  // Applies another change to the same copy.
  void Change(const std::string& file,
              const std::function<void(std::string& bytes)>& change) const {
    std::string bytes = ReadAll(folder() / file);
    change(bytes);
    scratch_.Write("films/" + file, bytes);
  }

 private:
  const ScratchFolder scratch_;
};

// Where row `row` of the vectors begins in the file: the rows are at its end.
std::size_t RowStart(const std::string& bytes, std::size_t row) {
  const std::size_t row_bytes = bytes.size() / kRows;
  return bytes.size() - (kRows - row) * row_bytes;
}

void RemoveLine(std::string& text, std::size_t line) {
  std::size_t begin = 0;
  for (; line > 0; --line) begin = text.find('\n', begin) + 1;
  text.erase(begin, text.find('\n', begin) + 1 - begin);
}

ProgramRun RunVerify(const LiveServer& server, std::vector<std::string> flags = {},
                     const std::string& folder = kFilms) {
  std::vector<std::string> arguments = {"verify", "--folder", folder};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return server.Run(arguments);
}

TEST(VerifyCommandTest, PassesAGoodServerWithEveryKindOfQuery) {
  const LiveServer server;
  const ProgramRun text = RunVerify(server, {"--samples", "3"});
  EXPECT_EQ(text.exit_code, 0) << text.printed << text.errors;
  EXPECT_THAT(text.printed, HasSubstr("is what its files say"));
  const ProgramRun run = RunVerify(server, {"--samples", "3", "--seed", "2", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.printed << run.errors;
  const json report = json::parse(run.printed);
  EXPECT_EQ(report["rows"]["compared"], kRows);
  EXPECT_EQ(report["snapshot_id"]["served"], report["snapshot_id"]["files"]);
  EXPECT_EQ(report["kinds"].size(), 16U);
  for (const json& kind : report["kinds"]) EXPECT_EQ(kind["asked"], 3) << kind;
}

// One row in five is zeros: a row like any other of dot products, left out of searches by cosine.
TEST(VerifyCommandTest, PassesCollectionsWithRowsOfZeros) {
  const ChangedFilms films("content_vectors.npy", [](std::string& bytes) {
    for (std::size_t row = 0; row < kRows; row += 5) {
      const std::size_t begin = RowStart(bytes, row);
      bytes.replace(begin, RowStart(bytes, row + 1) - begin, RowStart(bytes, row + 1) - begin,
                    '\0');
    }
  });
  for (const char* const settings : {R"({"metric": "dot"})", R"({"on_zero_row": "skip"})"}) {
    films.Change("collection.json", [&](std::string& text) { text = settings; });
    const LiveServer server(films.folder());
    const ProgramRun run = RunVerify(server, {"--samples", "4", "--json"}, films.folder());
    EXPECT_EQ(run.exit_code, 0) << settings << ": " << run.printed << run.errors;
    const json report = json::parse(run.printed);
    for (const json& kind : report["kinds"]) EXPECT_EQ(kind["asked"], 4) << kind;
  }
}

// Fields whose values a folding, a separator or a rounding would take for one another.
TEST(VerifyCommandTest, PassesCollectionsOfNearValues) {
  const std::vector<json> names = {"acme",       "ACME", "Acme ", "acm\u00e9", "acme|labs",
                                   "acme\tlabs", "\x01", "\"\\",  "",          nullptr};
  constexpr std::int64_t kLarge = std::int64_t{1} << 53;
  const ScratchFolder folder;
  std::string metadata;
  std::vector<float> vectors;
  for (std::size_t row = 0; row < 200; ++row) {
    const json& name = names[row % names.size()];
    json tags = json::array({"Drama", "drama "});
    if (!name.is_null()) tags.push_back(name);
    metadata += json({{"id", "row \"" + std::to_string(row)},
                      {"name", name},
                      {"tags", std::move(tags)},
                      {"size", kLarge + static_cast<std::int64_t>(row % 3)}})
                    .dump() +
                '\n';
    for (const std::size_t factor : {3U, 7U, 11U}) {
      vectors.push_back(1 + static_cast<float>(row * factor % 13));
    }
  }
  folder.Write("metadata.jsonl", metadata);
  folder.Write("vectors.npy", NpyFile(vectors, 3));
  const LiveServer server(folder.path());
  const ProgramRun run = RunVerify(server, {"--samples", "100", "--json"}, folder.path());
  EXPECT_EQ(run.exit_code, 0) << run.printed << run.errors;
  const json report = json::parse(run.printed);
  for (const json& kind : report["kinds"]) {
    const bool of_users = kind["kind"] == "user" || kind["kind"] == "recommend" ||
                          kind["kind"] == "blend" || kind["kind"] == "cold start";
    EXPECT_EQ(kind["asked"], of_users ? 0 : 100) << kind;
  }
}

TEST(VerifyCommandTest, NamesAChangedVector) {
  const ChangedFilms films("content_vectors.npy", [](std::string& bytes) {
    bytes[RowStart(bytes, 17)] ^= 1;  // the lowest bit of the first number
  });
  const LiveServer server(films.folder());
  const ProgramRun run = RunVerify(server, {"--samples", "1"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.printed, AllOf(HasSubstr("content (snapshot id)"), HasSubstr("row 17 ("),
                                 HasSubstr("its vector differs in"), HasSubstr("column 0")));
}

TEST(VerifyCommandTest, NamesAWrongPayload) {
  const ChangedFilms films("metadata.jsonl", [](std::string& text) {
    const std::size_t title = text.find("Toy Story 2");
    ASSERT_NE(title, std::string::npos);
    text[title + 10] = '7';
  });
  const LiveServer server(films.folder());
  const ProgramRun run = RunVerify(server, {"--samples", "1", "--json"});
  EXPECT_EQ(run.exit_code, 1);
  const json report = json::parse(run.printed);
  EXPECT_EQ(report["rows"]["different"], 1);
  EXPECT_THAT(report["findings"].dump(), AllOf(HasSubstr("toy-story-2-1999"), HasSubstr("title"),
                                               HasSubstr("Toy Story 7"), HasSubstr("Toy Story 2")));
}

TEST(VerifyCommandTest, NamesALostRow) {
  const ChangedFilms films("metadata.jsonl", [](std::string& text) { RemoveLine(text, 17); });
  films.Change("content_vectors.npy", [](std::string& bytes) {
    const std::size_t row_bytes = RowStart(bytes, 1) - RowStart(bytes, 0);
    bytes.erase(RowStart(bytes, 17), row_bytes);
    const std::size_t shape = bytes.find("5000");
    ASSERT_NE(shape, std::string::npos);
    bytes.replace(shape, 4, "4999");
  });
  const LiveServer server(films.folder());
  const ProgramRun run = RunVerify(server, {"--samples", "1"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.printed, AllOf(HasSubstr("row 17 ("), HasSubstr("the server does not have it"),
                                 HasSubstr("rows: 4999 served, 5000 in the files")));
}

TEST(VerifyCommandTest, StopsAtTheDimensionsOfAnotherCollection) {
  const ScratchFolder other;
  other.Write("content_vectors.npy", NpyFile({1, 0, 0, 1}, 2));
  const LiveServer server;
  const ProgramRun run = server.Run({"verify", "--folder", other.path().string()});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.printed, AllOf(HasSubstr("stored rows  not applicable\n"),
                                 HasSubstr("dimensions: 384 served, 2 in the files"),
                                 Not(HasSubstr("the server does not have it"))));
}

TEST(VerifyCommandTest, SaysWhyNothingWasCompared) {
  const ProgramRun unreachable =
      RunProgram({"verify", "--folder", kFilms, "--server", "127.0.0.1:1"});
  EXPECT_EQ(unreachable.exit_code, 2);
  EXPECT_THAT(unreachable.errors, HasSubstr("127.0.0.1:1"));
  const LiveServer server;
  const ProgramRun missing = server.Run({"verify", "--folder", kFilms + "/none"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.errors, HasSubstr("none"));
}

}  // namespace
}  // namespace simile::cli
