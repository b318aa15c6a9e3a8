#include "cli/id_file.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
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

}  // namespace
}  // namespace simile::cli
