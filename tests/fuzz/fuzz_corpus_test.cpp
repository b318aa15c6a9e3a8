// The corpora of the fuzz targets that no other test reads: a target ends the program where one of
// its files breaks what it promises.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

// What libFuzzer would call, renamed by the build.
extern "C" int FuzzConnection(const std::uint8_t* data, std::size_t size);
extern "C" int FuzzReply(const std::uint8_t* data, std::size_t size);
extern "C" int FuzzRequest(const std::uint8_t* data, std::size_t size);

namespace {

struct FuzzTarget {
  std::string kind;  // the name of its folder of the corpus
  int (*run)(const std::uint8_t* data, std::size_t size);
};
void PrintTo(const FuzzTarget& target, std::ostream* out) { *out << target.kind; }

class FuzzCorpusTest : public testing::TestWithParam<FuzzTarget> {};

TEST_P(FuzzCorpusTest, KeepsThePromisesOfItsTarget) {
  const std::filesystem::path corpus = SIMILE_SOURCE_DIR "/tests/data/corpus";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus / GetParam().kind / "good")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(GetParam().run(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()), 0);
    ++count;
  }
  EXPECT_GE(count, 10);
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpusTest,
                         testing::Values(FuzzTarget{"connection", FuzzConnection},
                                         FuzzTarget{"reply", FuzzReply},
                                         FuzzTarget{"request", FuzzRequest}),
                         [](const auto& target) { return target.param.kind; });

}  // namespace
