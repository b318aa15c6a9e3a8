#include "app/tuning/gpu_choice_file.h"

#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/tuning/tuning_cache.h"
#include "base/atomic_file.h"
#include "files/scratch_folder.h"

namespace simile::app {
namespace {

using backend::FinishForm;
using backend::GpuChoices;
using backend::GpuSegmentKey;
using ::testing::HasSubstr;
using ::testing::Not;

const GpuSegmentKey kFilms{"NVIDIA H200", 5'120, 384, true};

GpuChoices Choices() {
  GpuChoices choices;
  choices.passes = {
      {1, 32, "int8_scan_kept", FinishForm::kStepsInRowOrder, true, 0, 1, 25.6e-6, 28.4e-6},
      {32, 32, "", FinishForm::kSteps, false, 0, 1, 41e-6, 41e-6},
      {1'024, 32, "gemm_topk_fp16", FinishForm::kOneLaunch, false, 0, 4, 205e-6, 210e-6}};
  choices.gather_share = 64;
  choices.sufficient_batch = 256;
  return choices;
}

class GpuChoiceFileTest : public testing::Test {
 protected:
  GpuChoiceFile File(const std::string& driver = "570.133.20",
                     std::uint32_t batch_queries_max = 1'024) {
    return {path_, driver, GpuChoiceFile::LoadLog{log_, batch_queries_max}};
  }

  std::string Text() const { return base::ReadWholeFile(path_, 1U << 20).value(); }

  const ScratchFolder scratch_;
  const std::filesystem::path path_ = scratch_.path() / "tuning.json";
  std::ostringstream log_text_;
  const observe::Logger log_{{observe::LogFormat::kJson, observe::LogLevel::kInfo, &log_text_}};
};

TEST_F(GpuChoiceFileTest, ReadsWhatItWroteForTheSameCardDriverAndSize) {
  EXPECT_EQ(File().Read(kFilms), GpuChoices());
  File().Write(kFilms, Choices());
  EXPECT_EQ(File().Read(kFilms), Choices());
  EXPECT_THAT(log_text_.str(), HasSubstr("measured the GPU's passes"));
  EXPECT_THAT(log_text_.str(), HasSubstr("\"faster_than_the_rules\":2"));
  EXPECT_EQ(File("580.159.04").Read(kFilms), GpuChoices()) << "another driver";
  for (const GpuSegmentKey& other : {GpuSegmentKey{"NVIDIA H100", 5'120, 384, true},
                                     GpuSegmentKey{"NVIDIA H200", 5'632, 384, true},
                                     GpuSegmentKey{"NVIDIA H200", 5'120, 768, true},
                                     GpuSegmentKey{"NVIDIA H200", 5'120, 384, false}}) {
    EXPECT_EQ(File().Read(other), GpuChoices());
  }
}

TEST_F(GpuChoiceFileTest, SharesTheFileWithTheProcessor) {
  MeasuredTuning processor{{"Ann's processor", 2, "avx2"}, "2026-11-21", {}, std::nullopt};
  processor.findings.gather_share = 9;
  ASSERT_TRUE(WriteTuningCache(path_, processor).ok());
  File().Write(kFilms, Choices());
  ASSERT_TRUE(WriteTuningCache(path_, processor).ok());
  EXPECT_EQ(File().Read(kFilms), Choices());
  const auto read = ReadTuningCache(path_, processor.key);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, processor);
}

TEST_F(GpuChoiceFileTest, KeepsTheNewestOfThisDriver) {
  const auto key = [](unsigned i) { return GpuSegmentKey{"NVIDIA H200", 1'024 + i, 384, true}; };
  constexpr unsigned kMost = 64;
  for (unsigned i = 0; i < kMost; ++i) {
    const backend::MeasuredChoices measured{key(i), Choices()};
    ASSERT_TRUE(File(i == 5 ? "an old driver" : "now").WriteEntries({&measured, 1}).ok());
  }
  const std::vector<backend::MeasuredChoices> more{{key(kMost), Choices()},
                                                   {key(kMost + 1), Choices()}};
  ASSERT_TRUE(File("now").WriteEntries(more).ok());
  EXPECT_EQ(File("an old driver").Read(key(5)), GpuChoices());
  EXPECT_EQ(File("now").Read(key(0)), GpuChoices());
  for (const unsigned i : {1U, kMost, kMost + 1}) EXPECT_EQ(File("now").Read(key(i)), Choices());
}

// Numbers that this release did not write are all doubtful.
TEST_F(GpuChoiceFileTest, AnEntryThatIsDamagedCountsAsNone) {
  File().Write(kFilms, Choices());
  const std::string whole = Text();
  const auto with = [&](const std::string& old, const std::string& now) {
    std::string text = whole;
    const std::size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    text.replace(at, old.size(), now);
    scratch_.Write("tuning.json", text);
    return File().Read(kFilms);
  };
  EXPECT_EQ(with("\"gather_share\": 64", "\"gather_share\": -64"), GpuChoices());
  EXPECT_EQ(with("\"queries_max\": 1024", "\"queries_max\": 3e99"), GpuChoices());
  EXPECT_EQ(with("\"is_mapped\": true", "\"is_mapped\": 1"), GpuChoices());
  EXPECT_EQ(with("\"hits_max\": 32,", ""), GpuChoices());
  EXPECT_EQ(with("\"finish\": \"steps\"", "\"finish\": \"never\""), GpuChoices());
  EXPECT_EQ(with("\"passes\": [", "\"passes\": 5, \"was\": ["), GpuChoices());
  EXPECT_EQ(with("\"gather_share\": 64", "\"gather_share\": 64"), Choices());
}

TEST_F(GpuChoiceFileTest, AFileOfAnotherKindStaysAsItIs) {
  scratch_.Write("tuning.json", "a letter");
  File().Write(kFilms, Choices());
  EXPECT_THAT(log_text_.str(), HasSubstr("the GPU's times are not kept"));
  EXPECT_EQ(Text(), "a letter");
  EXPECT_EQ(File().Read(kFilms), GpuChoices());
}

TEST_F(GpuChoiceFileTest, WarnsOfALimitThatCosts) {
  File("", 32).Write(kFilms, Choices());
  EXPECT_THAT(log_text_.str(), HasSubstr("limits.batch_queries_max makes the GPU slower"));
  EXPECT_THAT(log_text_.str(),
              HasSubstr("\"limit\":32,\"queries_per_s\":780488,\"best_batch\":1024"));
  log_text_.str("");
  File("", 32).Read(kFilms);
  EXPECT_THAT(log_text_.str(), HasSubstr("limits.batch_queries_max makes the GPU slower"));
  log_text_.str("");
  // Passes of 33 to 1,024 queries are of the class that was timed with 1,024.
  for (const unsigned limit : {33U, 1'000U, 1'024U, 4'096U}) File("", limit).Read(kFilms);
  EXPECT_EQ(log_text_.str(), "");
}

TEST_F(GpuChoiceFileTest, KeepsNothingWithoutAFile) {
  GpuChoiceFile none({}, "", GpuChoiceFile::LoadLog{log_, 1'024});
  none.Write(kFilms, Choices());
  EXPECT_EQ(none.Read(kFilms), GpuChoices());
  EXPECT_THAT(log_text_.str(), Not(HasSubstr("not kept")));
}

}  // namespace
}  // namespace simile::app
