#include "app/tuning/tuning_cache.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "backend/cpu/calibration.h"
#include "files/scratch_folder.h"

namespace simile::app {
namespace {

using ::testing::HasSubstr;

const TuningKey kAnn{"Ann's processor", 2, "amx+avx512vnni"};
const TuningKey kBob{"Bob's processor", 96, "avx2"};

MeasuredTuning Measured(const TuningKey& key, std::size_t gather_share) {
  MeasuredTuning measured{key, "2026-11-21", {}, std::nullopt};
  measured.findings.block_bytes = 256 * 1'024;
  measured.findings.gather_share = gather_share;
  return measured;
}

class TuningCacheTest : public testing::Test {
 protected:
  void Write(std::string_view text) const { scratch_.Write("cache/tuning.json", text); }
  std::string Text() const {
    std::ifstream stream(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  absl::StatusCode CodeOfReading() const { return ReadTuningCache(file_, kAnn).status().code(); }

  const ScratchFolder scratch_;
  const std::filesystem::path file_ = scratch_.path() / "cache" / "tuning.json";
};

TEST_F(TuningCacheTest, ReadsWhatItWrote) {
  EXPECT_EQ(CodeOfReading(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteTuningCache(file_, Measured(kAnn, 9)).ok());
  const auto read = ReadTuningCache(file_, kAnn);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->date, "2026-11-21");
  EXPECT_EQ(read->key.cpu, kAnn.cpu);
  EXPECT_EQ(read->findings, Measured(kAnn, 9).findings);
  EXPECT_FALSE(read->findings.scan_rows_max.has_value());
}

// So that what root tuned is read by a server without rights.
TEST_F(TuningCacheTest, MayBeReadByAllUsers) {
  const mode_t mask = umask(022);
  const absl::Status written = WriteTuningCache(file_, Measured(kAnn, 9));
  umask(mask);
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_EQ(std::filesystem::status(file_).permissions(), std::filesystem::perms(0644));
}

TEST_F(TuningCacheTest, KeepsWhatWasTunedBesideTheCalibration) {
  MeasuredTuning measured = Measured(kBob, 9);
  measured.tuned = TunedFindings{"2026-11-23", {"films", "songs"}, 48, {}};
  measured.tuned->findings.gather_share = 30;
  measured.tuned->findings.int4_from_code_bytes = std::size_t{1} << 40;
  ASSERT_TRUE(WriteTuningCache(file_, measured).ok());
  const auto read = ReadTuningCache(file_, kBob);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->findings, measured.findings);
  EXPECT_EQ(read->tuned, measured.tuned);
}

TEST_F(TuningCacheTest, IgnoresEntriesWhoseTunedNumbersAreOutOfRange) {
  MeasuredTuning measured = Measured(kBob, 9);
  measured.tuned = TunedFindings{"2026-11-23", {"films"}, 48, {}};
  ASSERT_TRUE(WriteTuningCache(file_, measured).ok());
  const nlohmann::json sound = nlohmann::json::parse(Text());
  for (const nlohmann::json& wrong :
       {nlohmann::json(7), nlohmann::json::object(),
        nlohmann::json({{"measured", 7}, {"collections", nlohmann::json::array()}}),
        nlohmann::json({{"measured", "2026-11-23"}, {"collections", {7}}}),
        nlohmann::json({{"measured", "2026-11-23"}, {"collections", {"films"}}, {"threads", 97}}),
        nlohmann::json({{"measured", "2026-11-23"}, {"collections", {"films"}}, {"threads", 0}}),
        nlohmann::json(
            {{"measured", "2026-11-23"}, {"collections", {"films"}}, {"gather_share", 1}})}) {
    nlohmann::json content = sound;
    content["machines"][0]["tuned"] = wrong;
    Write(content.dump());
    EXPECT_TRUE(absl::IsNotFound(ReadTuningCache(file_, kBob).status())) << wrong;
  }
}

TEST_F(TuningCacheTest, TellsBeforehandWhetherItCanBeWritten) {
  EXPECT_TRUE(CheckTuningCacheWritable(file_).ok());
  EXPECT_FALSE(std::filesystem::exists(file_.parent_path()));
  Write("precious");
  EXPECT_TRUE(absl::IsInvalidArgument(CheckTuningCacheWritable(file_)));
  const absl::Status below_a_file = CheckTuningCacheWritable(file_ / "below" / "tuning.json");
  EXPECT_FALSE(below_a_file.ok());
  EXPECT_THAT(std::string(below_a_file.message()), HasSubstr("cannot be written: "));
}

TEST_F(TuningCacheTest, LeavesNoTemporaryFile) {
  ASSERT_TRUE(WriteTuningCache(file_, Measured(kAnn, 9)).ok());
  const std::filesystem::directory_iterator files(file_.parent_path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(TuningCacheTest, KeepsAnEntryForEachMachine) {
  ASSERT_TRUE(WriteTuningCache(file_, Measured(kAnn, 9)).ok());
  ASSERT_TRUE(WriteTuningCache(file_, Measured(kBob, 30)).ok());
  ASSERT_TRUE(WriteTuningCache(file_, Measured(kAnn, 10)).ok());
  EXPECT_EQ(ReadTuningCache(file_, kAnn)->findings.gather_share, 10U);
  EXPECT_EQ(ReadTuningCache(file_, kBob)->findings.gather_share, 30U);
  EXPECT_EQ(nlohmann::json::parse(Text())["machines"].size(), 2U);
}

TEST_F(TuningCacheTest, DistinguishesThreadsAndKernelsOfOneProcessor) {
  ASSERT_TRUE(WriteTuningCache(file_, Measured(kAnn, 9)).ok());
  TuningKey other = kAnn;
  other.threads = 1;
  EXPECT_TRUE(absl::IsNotFound(ReadTuningCache(file_, other).status()));
  other = kAnn;
  other.kernels = "avx512vnni";
  EXPECT_TRUE(absl::IsNotFound(ReadTuningCache(file_, other).status()));
}

TEST_F(TuningCacheTest, IgnoresFindingsOfAnotherCalibrationVersion) {
  ASSERT_TRUE(WriteTuningCache(file_, Measured(kAnn, 9)).ok());
  nlohmann::json content = nlohmann::json::parse(Text());
  content["machines"][0]["calibration"] = backend::cpu::kCalibrationVersion + 1;
  Write(content.dump());
  EXPECT_EQ(CodeOfReading(), absl::StatusCode::kNotFound);
  // The other release's entry stays.
  ASSERT_TRUE(WriteTuningCache(file_, Measured(kAnn, 9)).ok());
  EXPECT_EQ(nlohmann::json::parse(Text())["machines"].size(), 2U);
}

TEST_F(TuningCacheTest, DropsTheOldestBeyondSixtyFour) {
  for (unsigned threads = 1; threads <= 65; ++threads) {
    TuningKey key = kAnn;
    key.threads = threads;
    ASSERT_TRUE(WriteTuningCache(file_, Measured(key, 9)).ok());
  }
  EXPECT_EQ(nlohmann::json::parse(Text())["machines"].size(), 64U);
  TuningKey oldest = kAnn;
  oldest.threads = 1;
  EXPECT_FALSE(ReadTuningCache(file_, oldest).ok());
  oldest.threads = 2;
  EXPECT_TRUE(ReadTuningCache(file_, oldest).ok());
}

TEST_F(TuningCacheTest, RefusesAnotherKindOfFileAndLeavesItUnchanged) {
  for (const char* text : {"precious", "{", "[]", "{}", R"({"server": {"port": 1}})",
                           R"({"simile_cpu_tuning": 2, "machines": []})",
                           R"({"simile_cpu_tuning": 1, "machines": 7})", "\xff\xfe"}) {
    Write(text);
    EXPECT_EQ(CodeOfReading(), absl::StatusCode::kInvalidArgument) << text;
    const absl::Status written = WriteTuningCache(file_, Measured(kAnn, 9));
    EXPECT_EQ(written.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(written.message()), HasSubstr("left as it is"));
    EXPECT_EQ(Text(), text);
  }
}

TEST_F(TuningCacheTest, WritesIntoAnEmptyFile) {
  Write("");
  EXPECT_EQ(CodeOfReading(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteTuningCache(file_, Measured(kAnn, 9)).ok());
  EXPECT_TRUE(ReadTuningCache(file_, kAnn).ok());
}

// A number of a release with other names is missing, so that it is measured again.
TEST_F(TuningCacheTest, IgnoresUnknownNames) {
  ASSERT_TRUE(WriteTuningCache(file_, Measured(kAnn, 9)).ok());
  nlohmann::json content = nlohmann::json::parse(Text());
  content["machines"][0]["an_older_name"] = 9;
  content["machines"][0].erase("gather_share");
  Write(content.dump());
  const auto read = ReadTuningCache(file_, kAnn);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->findings.gather_share.has_value());
  EXPECT_EQ(read->findings.block_bytes, Measured(kAnn, 9).findings.block_bytes);
}

// With numbers out of range the engine could divide by zero.
TEST_F(TuningCacheTest, IgnoresEntriesOutOfRange) {
  ASSERT_TRUE(WriteTuningCache(file_, Measured(kAnn, 9)).ok());
  const nlohmann::json sound = nlohmann::json::parse(Text());
  for (const nlohmann::json& wrong :
       {nlohmann::json(0), nlohmann::json(-1), nlohmann::json(9.5), nlohmann::json("9"),
        nlohmann::json(1'000'000'000), nlohmann::json(nullptr)}) {
    nlohmann::json content = sound;
    content["machines"][0]["gather_share"] = wrong;
    Write(content.dump());
    EXPECT_EQ(CodeOfReading(), absl::StatusCode::kNotFound) << wrong;
  }
  nlohmann::json content = sound;
  content["machines"] = {1, "two", nullptr, nlohmann::json::array()};
  Write(content.dump());
  EXPECT_EQ(CodeOfReading(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteTuningCache(file_, Measured(kAnn, 9)).ok());
  EXPECT_EQ(CodeOfReading(), absl::StatusCode::kOk);
}

TEST_F(TuningCacheTest, SaysWhenItCannotBeWritten) {
  scratch_.Write("cache", "a file where the folder would be");
  const absl::Status written = WriteTuningCache(file_, Measured(kAnn, 9));
  EXPECT_EQ(written.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(written.message()), HasSubstr("cannot be written: "));
  EXPECT_EQ(CodeOfReading(), absl::StatusCode::kNotFound);
}

TEST(TuningKeyTest, NamesBothKernelsWhenThereAreTwo) {
  backend::cpu::Int8Options options = backend::cpu::OptionsFor("portable");
  options.threads = 3;
  const TuningKey key = MakeTuningKey(options);
  EXPECT_FALSE(key.cpu.empty());
  EXPECT_EQ(key.threads, 3U);
  EXPECT_EQ(key.kernels, "portable");
  options = backend::cpu::OptionsFor("");
  if (options.small != options.large) {
    EXPECT_EQ(MakeTuningKey(options).kernels,
              fmt::format("{}+{}", options.large->isa, options.small->isa));
  }
}

}  // namespace
}  // namespace simile::app
