#include "cli/input_file.h"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::cli {
namespace {

using ::testing::ElementsAre;
using testing::ElementsAre;
using ::testing::EndsWith;
using testing::HasSubstr;
using ::testing::IsEmpty;

class IdFileTest : public testing::Test {
 protected:
  absl::StatusOr<std::vector<std::string>> Read(const std::string& text,
                                                const Limits& limits = {}) {
    scratch_.Write("ids", text);
    return ReadIdFile((scratch_.path() / "ids").string(), limits);
  }
  std::string Refusal(const std::string& text, const Limits& limits = {}) {
    return std::string(Read(text, limits).status().message());
  }

  const ScratchFolder scratch_;
};

TEST_F(IdFileTest, ReadsAJsonListOrLines) {
  EXPECT_THAT(*Read(" [\"heat-1995\", 7]\n"), ElementsAre("heat-1995", "7"));
  EXPECT_THAT(*Read("heat-1995\r\n\n7"), ElementsAre("heat-1995", "7"));
  EXPECT_THAT(*Read("[]"), IsEmpty()) << "a list that allows nothing";
}

TEST_F(IdFileTest, RefusesWhatHoldsNoIds) {
  EXPECT_THAT(Refusal(""), EndsWith("/ids: holds no ids; write [] to allow no item"));
  EXPECT_THAT(Refusal("\n\r\n"), EndsWith("/ids: holds no ids; write [] to allow no item"));
  EXPECT_THAT(Refusal("[\"a\""), EndsWith("/ids: begins as a JSON list and is none; give [\"id\", "
                                          "...], or one id a line"));
  EXPECT_THAT(Refusal("[\"a\", 1.5]"),
              EndsWith("/ids: element 1 is number; an id is a string or an integer"));
}

TEST_F(IdFileTest, RefusesMoreIdsThanACallMayAllow) {
  Limits limits;
  limits.allowed_ids_max = 2;
  EXPECT_THAT(Refusal("a\nb\nc\n", limits), EndsWith("/ids: holds 3 ids; at most 2"));
}

absl::StatusOr<QueryVectors> Parse(const std::string& bytes) {
  return ParseQueryVectors(bytes, "query", Limits{});
}

// A .npy file, version 1.0, of float32 numbers.
std::string Npy(const std::string& shape, const std::vector<float>& numbers) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n";
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  bytes += header;
  std::string data(numbers.size() * sizeof(float), '\0');
  std::memcpy(data.data(), numbers.data(), data.size());
  return bytes + data;
}

std::string FindError(const std::string& bytes) {
  const auto vectors = Parse(bytes);
  return vectors.ok() ? "" : std::string(vectors.status().message());
}

TEST(VectorFileTest, ReadsOneVectorOfJson) {
  const auto vectors = Parse("[1, -0.5, 2e1]");
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  EXPECT_THAT(vectors->rows, ElementsAre(ElementsAre(1.0F, -0.5F, 20.0F)));
  EXPECT_EQ(vectors->dim(), 3U);
}

TEST(VectorFileTest, ReadsSeveralVectorsOfJson) {
  const auto vectors = Parse("[[1, 2], [3, 4]]");
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  EXPECT_THAT(vectors->rows, ElementsAre(ElementsAre(1.0F, 2.0F), ElementsAre(3.0F, 4.0F)));
}

TEST(VectorFileTest, ReadsAnNpyFileOfOneAxisAsOneVector) {
  const auto vectors = Parse(Npy("(3,)", {1, 2, 3}));
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  EXPECT_THAT(vectors->rows, ElementsAre(ElementsAre(1.0F, 2.0F, 3.0F)));
}

TEST(VectorFileTest, ReadsAnNpyFileOfTwoAxes) {
  const auto vectors = Parse(Npy("(2, 2)", {1, 2, 3, 4}));
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  EXPECT_THAT(vectors->rows, ElementsAre(ElementsAre(1.0F, 2.0F), ElementsAre(3.0F, 4.0F)));
}

TEST(VectorFileTest, RefusesAnNpyFileThatIsCutShort) {
  EXPECT_THAT(FindError(Npy("(3,)", {1, 2})), HasSubstr("query: "));
  EXPECT_THAT(FindError(Npy("(3,)", {1, 2}).substr(0, 20)), HasSubstr("query: "));
  EXPECT_THAT(FindError("\x93NUMPY"), HasSubstr("query: "));
}

TEST(VectorFileTest, NamesTheRowAndColumnOfAFault) {
  EXPECT_EQ(FindError("[[1, 2], [3]]"), "query: row 1 has 1 numbers, row 0 has 2");
  EXPECT_EQ(FindError("[[1, 2], 3]"), "query: row 1: number where a list of numbers belongs");
  EXPECT_EQ(FindError(R"([1, "two"])"), "query: row 0, column 1: string where a number belongs");
  EXPECT_EQ(FindError("[[]]"), "query: row 0 has 0 numbers; 1 to 4096 are possible");
}

TEST(VectorFileTest, RefusesInputWithoutAVector) {
  for (const char* bytes : {"", "[]", "{}", "1", "[1, 2", "null", "not json"}) {
    EXPECT_THAT(FindError(bytes), HasSubstr("a vector belongs here")) << bytes;
  }
}

TEST(VectorFileTest, RefusesMoreVectorsThanACallTakes) {
  Limits limits;
  limits.queries_per_call_max = 1;
  const auto vectors = ParseQueryVectors("[[1], [2]]", "query", limits);
  EXPECT_EQ(vectors.status().message(), "query: holds 2 vectors; one call takes at most 1");
  const auto from_npy = ParseQueryVectors(Npy("(2, 1)", {1, 2}), "query", limits);
  EXPECT_EQ(from_npy.status().message(), "query: holds 2 vectors; one call takes at most 1");
}

TEST(VectorFileTest, NamesAMissingFile) {
  const auto vectors = ReadQueryVectors("/nowhere/query.npy", Limits{});
  EXPECT_TRUE(absl::IsNotFound(vectors.status()));
  EXPECT_EQ(vectors.status().message(),
            "/nowhere/query.npy: no such file, and no list of numbers such as 0.1,0.2");
  EXPECT_TRUE(absl::IsNotFound(ReadQueryVectors("0.1,", Limits{}).status()));
}

TEST(VectorFileTest, TakesNumbersInPlaceOfAFile) {
  for (const char* text : {"0.5,-2", "0.5, -2", "[0.5, -2]"}) {
    const auto vectors = ReadQueryVectors(text, Limits{});
    ASSERT_TRUE(vectors.ok()) << text << vectors.status();
    EXPECT_EQ(vectors->rows, (std::vector<std::vector<float>>{{0.5F, -2}})) << text;
    EXPECT_EQ(vectors->source, "the vector");
  }
  EXPECT_EQ(ReadQueryVectors("[[1], [2]]", Limits{})->rows.size(), 2U);
}

TEST(VectorFileTest, NamesTheFileAndThePlaceOfANumberThatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(ParseQueryVectors(Npy("(2, 1)", {1, nan}), "query.npy", Limits{}).status().message(),
            "query.npy: row 1 holds NaN at column 0; vectors must be finite");
  EXPECT_EQ(ParseQueryVectors("[[1, 2], [1, 1e39]]", "query", Limits{}).status().message(),
            "query: row 1 holds 1e+39 at column 1, which float32 cannot hold");
}

}  // namespace
}  // namespace simile::cli
