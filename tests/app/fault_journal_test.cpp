#include "app/gpu/fault_journal.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

backend::GpuFault FaultAt(int second, const std::string& reason = "an error") {
  return {std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000 + second)),
          reason};
}

class FaultJournalTest : public testing::Test {
 protected:
  void Write(std::string_view text) const { scratch_.Write("state/faults.json", text); }
  std::string Text() const {
    std::ifstream stream(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  const ScratchFolder scratch_;
  const std::filesystem::path file_ = scratch_.path() / "state" / "faults.json";
};

TEST_F(FaultJournalTest, IsEmptyWithoutAFile) {
  const auto faults = ReadFaultJournal(file_);
  ASSERT_TRUE(faults.ok()) << faults.status();
  EXPECT_TRUE(faults->empty());
  Write("");
  EXPECT_TRUE(ReadFaultJournal(file_).value().empty());
}

TEST_F(FaultJournalTest, ReadsWhatItWrote) {
  ASSERT_TRUE(AddToFaultJournal(file_, FaultAt(0, "the first \"error\"\n\xff")).ok());
  ASSERT_TRUE(AddToFaultJournal(file_, FaultAt(9)).ok());
  const auto faults = ReadFaultJournal(file_);
  ASSERT_TRUE(faults.ok()) << faults.status();
  EXPECT_THAT(*faults, ElementsAre(FaultAt(0, "the first \"error\"\n\xEF\xBF\xBD"), FaultAt(9)));
  const std::filesystem::directory_iterator files(file_.parent_path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "a temporary file is left";
}

TEST_F(FaultJournalTest, DropsTheOldestAndShortensLongReasons) {
  const std::string long_reason(100'000, 'x');
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(AddToFaultJournal(file_, FaultAt(i, long_reason)).ok());
  }
  const auto faults = ReadFaultJournal(file_);
  ASSERT_TRUE(faults.ok()) << faults.status();
  EXPECT_EQ(faults->size(), 16U);
  EXPECT_EQ(faults->front().at, FaultAt(24).at);
  EXPECT_EQ(faults->back().at, FaultAt(39).at);
}

TEST_F(FaultJournalTest, RefusesAnotherKindOfFileAndLeavesItUnchanged) {
  for (
      const std::string& text :
      {std::string("not JSON"), std::string("[]"), std::string(R"({"faults": []})"),
       std::string(R"({"simile_gpu_faults": 2, "faults": []})"),
       std::string(R"({"simile_gpu_faults": 1, "faults": {}})"),
       std::string(R"({"simile_gpu_faults": 1, "faults": [5]})"),
       std::string(R"({"simile_gpu_faults": 1, "faults": [{"at_ms": -1, "reason": ""}]})"),
       std::string(R"({"simile_gpu_faults": 1, "faults": [{"at_ms": 1e30, "reason": ""}]})"),
       std::string(
           R"({"simile_gpu_faults": 1, "faults": [{"at_ms": 18446744073709551615, "reason": ""}]})"),
       std::string(R"({"simile_gpu_faults": 1, "faults": [{"at_ms": 1, "reason": 7}]})"),
       std::string(100'000, ' ')}) {
    Write(text);
    EXPECT_EQ(ReadFaultJournal(file_).status().code(), absl::StatusCode::kInvalidArgument) << text;
    const absl::Status added = AddToFaultJournal(file_, FaultAt(1));
    EXPECT_EQ(added.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(added.message()), HasSubstr("left as it is"));
    EXPECT_EQ(Text(), text);
  }
}

TEST_F(FaultJournalTest, FailsWhenItCannotBeWritten) {
  scratch_.Write("file", "");
  const absl::Status added = AddToFaultJournal(scratch_.path() / "file" / "faults", FaultAt(1));
  EXPECT_EQ(added.code(), absl::StatusCode::kUnavailable) << added;
}

}  // namespace
}  // namespace simile::app
