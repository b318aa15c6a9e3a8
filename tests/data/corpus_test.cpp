// Every bad file of the corpus is refused with exactly the message in its expected.tsv, and every
// good one loads. make_corpus.py describes each file.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/strings/str_split.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "data/load/folder.h"
#include "data/load/load.h"
#include "data/read_kind.h"
#include "files/document.h"

namespace simile::data {
namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = fs::path(SIMILE_SOURCE_DIR) / "tests/data/corpus";

// A status as expected.tsv writes it: the code's name, a tab, the message with its lines joined by
// ` | `.
std::string Written(const absl::Status& status) {
  const std::vector<std::string> lines = absl::StrSplit(status.message(), "\n  ");
  return fmt::format("{}\t{}", absl::StatusCodeToString(status.code()), fmt::join(lines, " | "));
}

std::vector<std::string> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::map<std::string, std::string> ReadExpected(const std::string& kind) {
  std::ifstream file(kCorpus / kind / "expected.tsv");
  std::map<std::string, std::string> expected;
  for (std::string line; std::getline(file, line);) {
    const std::size_t tab = line.find('\t');
    expected.emplace(line.substr(0, tab), line.substr(tab + 1));
  }
  return expected;
}

absl::Status ReadOne(const std::string& kind, const std::string& outcome, const std::string& name) {
  if (kind == "folders") {
    const absl::StatusOr<DatasetPlan> plan = PlanDataset(kCorpus / kind / outcome / name, Limits{});
    if (!plan.ok()) return plan.status();
    const absl::Status loaded = LoadDataset(*plan, Limits{}, nullptr).status();
    EXPECT_EQ(CheckDataset(*plan, Limits{}, nullptr).status(), loaded) << name;
    return loaded;
  }
  const absl::StatusOr<Folder> folder = Folder::Open(kCorpus / kind / outcome);
  if (!folder.ok()) return folder.status();
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = folder->OpenFile(name);
  if (!source.ok()) return source.status();
  return ReadKind(kind, **source);
}

class CorpusTest : public testing::TestWithParam<std::string> {};

TEST_P(CorpusTest, RefusesEveryBadFileWithItsMessage) {
  const std::map<std::string, std::string> expected = ReadExpected(GetParam());
  const std::vector<std::string> names = NamesIn(kCorpus / GetParam() / "bad");
  for (const std::string& name : names) {
    const absl::Status status = ReadOne(GetParam(), "bad", name);
    const std::string written = Written(status);
    const auto found = expected.find(name);
    if (found == expected.end()) {
      ADD_FAILURE() << "expected.tsv has no line for it; now it gives:\n"
                    << name << '\t' << written;
    } else {
      EXPECT_EQ(written, found->second) << name;
    }
    // The other kinds are read by themselves, not as a part of a load.
    if (GetParam() == "folders") {
      EXPECT_EQ(base::ReasonOf(status), base::ErrorReason::kInvalidFiles) << name;
    }
  }
  EXPECT_EQ(names.size(), expected.size()) << "expected.tsv names files that are not there";
  std::cout << names.size() << " bad files of kind " << GetParam() << " refused\n";
}

TEST_P(CorpusTest, LoadsEveryGoodFile) {
  const std::vector<std::string> names = NamesIn(kCorpus / GetParam() / "good");
  EXPECT_GE(names.size(), 3U);
  for (const std::string& name : names) {
    const absl::Status status = ReadOne(GetParam(), "good", name);
    EXPECT_TRUE(status.ok()) << name << ": " << status;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, CorpusTest,
                         testing::Values("npy", "safetensors", "jsonl", "ids", "interactions",
                                         "collection_json", "folders"),
                         [](const auto& kind) { return kind.param; });

TEST(CollectionJsonDocumentTest, TheExamplesOfTheDocumentsAreRead) {
  const std::vector<std::string> of_guide = FencedBlocks(TextOfSource("docs/guide.md"), "json");
  ASSERT_THAT(of_guide, testing::SizeIs(1));
  std::vector<std::string> of_access = FencedBlocks(TextOfSource("docs/access.md"));
  std::erase_if(of_access, [](const std::string& block) { return block[0] != '{'; });
  ASSERT_THAT(of_access, testing::SizeIs(1));
  for (const std::string& example : {of_guide[0], of_access[0]}) {
    MemorySource source("collection.json", example);
    EXPECT_EQ(ReadKind("collection_json", source), absl::OkStatus()) << example;
  }
}

}  // namespace
}  // namespace simile::data
