#include "doctor/examination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <string>

#include "doctor/gpu_files.h"
#include "doctor/self_check.h"
#include "doctor/symptoms.h"

namespace simile::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// What a process with the fakes finds. The rows that only a whole process shows, and the exit
// codes, are in doctor_program_test.cpp.
class ExaminationTest : public ::testing::Test {
 protected:
  ExaminationTest() {
    setenv("FAKE_CUDA_ERROR", "0", 1);
    setenv("FAKE_NVML_FILE", files_.card_file().c_str(), 1);
    options_.machine = ThisMachine(files_.root());
    options_.machine.variable = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      if (found == variables_.end()) return std::nullopt;
      return found->second;
    };
    options_.nvml_library = files_.nvml_library();
    options_.backend.gpu_searches = {{files_.driver_library(), {files_.plugin()}}};
  }
  ~ExaminationTest() override {
    unsetenv("FAKE_CUDA_ERROR");
    unsetenv("FAKE_NVML_FILE");
  }

  std::vector<Finding> Examine() const {
    std::vector<Finding> findings;
    ExamineGpu(options_, {.began = [](std::string_view) {},
                          .found = [&](Finding found) { findings.push_back(std::move(found)); }});
    for (Finding& found : ExamineSurroundings(options_)) findings.push_back(std::move(found));
    Conclude(findings);
    return findings;
  }
  // The symptoms of all findings that failed.
  static std::vector<std::string> ListFailed(const std::vector<Finding>& findings) {
    std::vector<std::string> symptoms;
    for (const Finding& finding : findings) {
      if (finding.state == State::kFailed) symptoms.push_back(finding.symptom);
    }
    return symptoms;
  }
  static Finding FindFinding(std::string_view probe, const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      if (finding.probe == probe) return finding;
    }
    ADD_FAILURE() << "no finding of " << probe;
    return {};
  }

  const GpuFiles files_;
  std::map<std::string, std::string> variables_;
  Options options_;
};

TEST_F(ExaminationTest, FindsAGpuThatAnswersAsTheCpuDoes) {
  files_.AddAll();
  const std::vector<Finding> findings = Examine();
  EXPECT_THAT(ListFailed(findings), SizeIs(0));
  EXPECT_EQ(FindFinding("driver", findings).text, "570.133.20, CUDA 13.0, 1 device");
  EXPECT_EQ(FindFinding("kernel test", findings).text,
            "64 queries over 5,000 x 384 answered as by the CPU, bit for bit");
  EXPECT_EQ(FindOutcome(findings, backend::Preference::kGpu), Outcome::kGpu);
}

TEST_F(ExaminationTest, NamesThePluginThatTheDriverAndTheCardCanUse) {
  files_.AddAll();
  files_.AddSecondPlugin();
  options_.backend.gpu_searches.front().plugin_paths.push_back(files_.second_plugin());
  EXPECT_EQ(FindFinding("plug-in", Examine()).text, "libsimile_cuda.so of CUDA 13.0");
  setenv("FAKE_CUDA_VERSION", "12040", 1);
  const std::vector<Finding> findings = Examine();
  EXPECT_EQ(
      FindFinding("plug-in", findings).text,
      "libsimile_cuda12.so of CUDA 12.9 (libsimile_cuda.so: the NVIDIA driver runs CUDA 12.4, "
      "the plug-in needs CUDA 13.0 (driver 580 or later))");
  EXPECT_EQ(FindFinding("cuBLAS, memory", findings).text, "loaded; the workspace fits");
  EXPECT_EQ(FindOutcome(findings, backend::Preference::kGpu), Outcome::kGpu);
  unsetenv("FAKE_CUDA_VERSION");
}

TEST_F(ExaminationTest, ReadsThePluginsWhereTheDriverDoesNotWork) {
  files_.AddAll();
  files_.AddSecondPlugin();
  options_.backend.gpu_searches.front().plugin_paths.push_back(files_.second_plugin());
  options_.backend.gpu.blas_libraries = {"libno_blas.so.13"};
  setenv("FAKE_CUDA_ERROR", "100", 1);
  const std::vector<Finding> findings = Examine();
  EXPECT_THAT(ListFailed(findings), ElementsAre("no_device"));
  EXPECT_EQ(FindFinding("plug-in", findings).state, State::kOk);
  EXPECT_EQ(
      FindFinding("plug-in", findings).text,
      "libsimile_cuda.so of CUDA 13.0, libsimile_cuda12.so of CUDA 12.9; not asked, because the "
      "driver does not work");
  EXPECT_EQ(FindFinding("cuBLAS, memory", findings).text,
            "needs the runtime; libno_blas.so.13 is not found");
}

TEST_F(ExaminationTest, NamesThePluginWhoseCublasIsThere) {
  files_.AddAll();
  files_.AddPlugin("no_blas");
  files_.AddSecondPlugin();
  options_.backend.gpu_searches.front().plugin_paths.push_back(files_.second_plugin());
  const std::vector<Finding> findings = Examine();
  EXPECT_EQ(FindFinding("plug-in", findings).text, "libsimile_cuda.so of CUDA 13.0");
  EXPECT_THAT(FindFinding("cuBLAS, memory", findings).text,
              HasSubstr("through libsimile_cuda12.so (libsimile_cuda.so: large batches take "
                        "longer, because cuBLAS cannot be loaded: libcublas.so.13"));
  EXPECT_EQ(FindOutcome(findings, backend::Preference::kGpu), Outcome::kGpu);
}

TEST_F(ExaminationTest, NamesTheFirstFailureAndSkipsWhatFollowsFromIt) {
  files_.AddModule("570.133.20");
  files_.AddFile("/.dockerenv", "");
  const std::vector<Finding> findings = Examine();
  EXPECT_THAT(ListFailed(findings), ElementsAre("container_without_gpu"));
  EXPECT_EQ(FindFinding("driver", findings).state, State::kSkipped);
  EXPECT_EQ(FindFinding("driver", findings).fix, "");
}

TEST_F(ExaminationTest, TellsAPermissionFromACardThatIsGone) {
  files_.AddAll();
  options_.machine.open_node = [](const std::filesystem::path&) { return EACCES; };
  setenv("FAKE_CUDA_ERROR", "100", 1);
  std::vector<Finding> findings = Examine();
  EXPECT_THAT(ListFailed(findings), ElementsAre("node_denied"));
  EXPECT_EQ(FindFinding("device nodes", findings).text, "/dev/nvidia0: Permission denied");
  options_.machine.open_node = [](const std::filesystem::path&) { return ENXIO; };
  EXPECT_THAT(ListFailed(Examine()), ElementsAre("node_dead"));
  // A control group that denies a device says EPERM, where a file's mode says EACCES.
  files_.AddFile("/.dockerenv", "");
  options_.machine.open_node = [](const std::filesystem::path&) { return EPERM; };
  findings = Examine();
  EXPECT_THAT(ListFailed(findings), ElementsAre("access_lost"));
  EXPECT_THAT(FindFinding("device nodes", findings).fix, HasSubstr("recreate the container"));
}

TEST_F(ExaminationTest, TakesAFailureForAWarningWhenTheGpuAnswersAfterAll) {
  files_.AddAll();
  options_.machine.open_node = [](const std::filesystem::path&) { return EACCES; };
  const std::vector<Finding> findings = Examine();
  EXPECT_EQ(FindFinding("device nodes", findings).state, State::kWarning);
  EXPECT_EQ(FindOutcome(findings, backend::Preference::kAuto), Outcome::kGpu);
}

TEST_F(ExaminationTest, TellsWhichVariableHidesTheCards) {
  files_.AddAll();
  setenv("FAKE_CUDA_ERROR", "100", 1);
  for (const char* value : {"", "-1", "1", "GPU-that-is-not-here"}) {
    variables_["CUDA_VISIBLE_DEVICES"] = value;
    const std::vector<Finding> findings = Examine();
    EXPECT_THAT(ListFailed(findings), ElementsAre("hidden"));
    EXPECT_EQ(FindFinding("driver", findings).text,
              std::string("the cards are hidden: CUDA_VISIBLE_DEVICES is \"") + value + "\"");
  }
  variables_ = {{"NVIDIA_VISIBLE_DEVICES", "void"}};
  files_.AddFile("/.dockerenv", "");
  EXPECT_THAT(ListFailed(Examine()), ElementsAre("hidden_from_container"));
}

TEST_F(ExaminationTest, BlamesNoVariableThatShowsACard) {
  files_.AddAll();
  files_.AddFile("/.dockerenv", "");
  setenv("FAKE_CUDA_ERROR", "100", 1);
  // The number of a container's card is the host's.
  variables_["NVIDIA_VISIBLE_DEVICES"] = "3";
  for (const char* value : {"0", "GPU-00000000", "MIG-9d5f1a7c"}) {
    variables_["CUDA_VISIBLE_DEVICES"] = value;
    EXPECT_THAT(ListFailed(Examine()), ElementsAre("no_device")) << value;
  }
}

TEST_F(ExaminationTest, TellsTheGravestOfAllCardsAndOfTheKernelsLog) {
  files_.AddAll();
  files_.DescribeCard("devices=3\nthrottle@0=0x40\necc@2=5\n");
  EXPECT_EQ(FindFinding("card", Examine()).text,
            "card 2 (NVIDIA H200) has had memory errors that could not be corrected (5 counted "
            "since the driver was loaded)");
  files_.AddFile("/dev/kmsg",
                 "3,1,1,-;NVRM: Xid (PCI:0000:03:00): 31, pid=1\n"
                 "3,1,1,-;NVRM: Xid (PCI:0000:03:00): 79, GPU has fallen off the bus\n");
  EXPECT_EQ(FindFinding("card", Examine()).symptom, "fell_off_the_bus");
}

TEST_F(ExaminationTest, PrefersTheCardInUseAmongThoseThatHaveTheSame) {
  files_.AddAll();
  files_.DescribeCard("devices=3\nthrottle=0x40\n");
  EXPECT_THAT(FindFinding("card", Examine()).text, HasSubstr("card 0 (NVIDIA H200)"));
  for (const char* value : {"2,0", "GPU-00000000-0000-0000-0000-000000000002"}) {
    variables_["CUDA_VISIBLE_DEVICES"] = value;
    EXPECT_THAT(FindFinding("card", Examine()).text, HasSubstr("card 2 (NVIDIA H200)"));
  }
  options_.server = ServerState{.gpu_answers = true, .gpu_bus_id = "0000:02:00.0"};
  EXPECT_THAT(FindFinding("card", Examine()).text, HasSubstr("card 1 (NVIDIA H200)"));
}

TEST_F(ExaminationTest, FailsForTheModeOfTheCardInUseAlone) {
  files_.AddAll();
  setenv("FAKE_CUDA_ERROR", "46", 1);
  files_.DescribeCard("devices=2\ncompute_mode@1=2\nprocesses=4242\n");
  std::vector<Finding> findings = Examine();
  EXPECT_EQ(FindFinding("card", findings).state, State::kWarning);
  EXPECT_THAT(FindFinding("driver", findings).text, HasSubstr("; processes on it: 4242)"));
  files_.DescribeCard("devices=2\ncompute_mode@0=2\n");
  EXPECT_THAT(ListFailed(Examine()), ElementsAre("exclusive"));
  EXPECT_EQ(FindFinding("card", Examine()).state, State::kFailed);
}

TEST_F(ExaminationTest, TakesACardAtItsPowerLimitForWell) {
  files_.AddAll();
  files_.DescribeCard("throttle=0x4\n");
  EXPECT_EQ(FindFinding("card", Examine()).state, State::kOk);
}

TEST_F(ExaminationTest, TellsALossBesideItsCause) {
  files_.AddModule("570.133.20");
  options_.server = ServerState{.gpu_lost = true, .reason = "the GPU was lost"};
  EXPECT_THAT(ListFailed(Examine()), ElementsAre("nodes_missing", "lost_by_server"));
}

TEST_F(ExaminationTest, LeavesADeviceAloneThatAServerUsesOrLost) {
  files_.AddAll();
  options_.machine.open_node = [](const std::filesystem::path&) {
    ADD_FAILURE() << "a device was opened";
    return 0;
  };
  setenv("FAKE_CUDA_ERROR", "crash", 1);  // a call of the driver would end this test
  options_.server = ServerState{.gpu_answers = true, .reason = "NVIDIA H200"};
  std::vector<Finding> findings = Examine();
  EXPECT_THAT(ListFailed(findings), SizeIs(0));
  EXPECT_EQ(FindFinding("driver", findings).text, "left alone: the server uses the device");
  EXPECT_EQ(FindFinding("server", findings).text, "the GPU answers: NVIDIA H200");
  EXPECT_EQ(FindOutcome(findings, backend::Preference::kAuto), Outcome::kGpu);

  options_.server = ServerState{.gpu_left_alone = true, .reason = "the GPU was lost 3 times"};
  EXPECT_EQ(FindFinding("driver", Examine()).text, "left alone: it was lost too often");

  options_.server = ServerState{.gpu_lost = true, .reason = "the GPU was lost: 700"};
  findings = Examine();
  EXPECT_THAT(ListFailed(findings), ElementsAre("lost_by_server"));
  EXPECT_EQ(FindFinding("driver", findings).text, "left alone: the server lost the device");
}

TEST_F(ExaminationTest, TakesNoDeviceMemoryInAServer) {
  files_.AddAll();
  options_.server = ServerState{.reason = "the GPU was busy when it started"};
  const std::vector<Finding> findings = Examine();
  EXPECT_EQ(FindFinding("runtime", findings).state, State::kOk);
  EXPECT_EQ(FindFinding("cuBLAS, memory", findings).state, State::kSkipped);
  EXPECT_THAT(ListFailed(findings), ElementsAre("server_on_cpu"));
}

TEST_F(ExaminationTest, AddsTheProbesThatWereNotReached) {
  std::vector<Finding> findings = {{"device nodes", State::kOk, "", "", ""}};
  AddUnfinished("management library", HangAfter(std::chrono::seconds(8)), findings);
  EXPECT_THAT(findings, SizeIs(8));
  EXPECT_EQ(findings[1].symptom, "hang");
  EXPECT_EQ(findings.back().text, "not reached");
}

TEST(ExamineCpuTest, MeasuresAnEngineThatAnswersRight) {
  const Finding finding = ExamineCpu({});
  EXPECT_EQ(finding.state, State::kOk) << finding.text;
  EXPECT_THAT(finding.text, HasSubstr("queries/s at batch 1,000 over 5,000 x 384"));
}

TEST(ExamineCpuTest, SaysWhyTheCpuCannotAnswer) {
  backend::RegistryOptions options;
  options.isa = "of another processor";
  const Finding finding = ExamineCpu(options);
  EXPECT_EQ(finding.symptom, "cpu_broken");
  const std::vector<Finding> findings = {finding};
  EXPECT_EQ(FindOutcome(findings, backend::Preference::kAuto), Outcome::kBroken);
}

TEST(OutcomeTest, IsBrokenWhenADemandedGpuCannotBeUsed) {
  const std::vector<Finding> findings = {Diagnose("device nodes", Symptom::kNoCard, {})};
  EXPECT_EQ(FindOutcome(findings, backend::Preference::kAuto), Outcome::kCpuOnly);
  EXPECT_EQ(FindOutcome(findings, backend::Preference::kGpu), Outcome::kBroken);
}

TEST(OutcomeTest, IsWhatWasAskedForWhereTheConfigurationAsksForTheCpu) {
  std::vector<Finding> findings = {Diagnose("device nodes", Symptom::kNoCard, {}),
                                   Diagnose("configuration", Symptom::kRoutedByConfiguration, {})};
  Conclude(findings);
  EXPECT_EQ(findings[0].state, State::kWarning);
  EXPECT_EQ(FindOutcome(findings, backend::Preference::kCpu), Outcome::kCpuAsked);
  findings.push_back(Diagnose("CPU engine", Symptom::kCpuBroken, {}));
  EXPECT_EQ(FindOutcome(findings, backend::Preference::kCpu), Outcome::kBroken);
}

TEST(FindDifferenceTest, ComparesRowsAndBits) {
  const auto answer = [](Row row, float score) {
    SearchResult result;
    result.Reset(1, 1);
    result.Buffer(0)[0] = {row, score};
    result.SetCount(0, 1);
    return result;
  };
  EXPECT_EQ(FindDifference(answer(7, 0.5F), answer(7, 0.5F)), "");
  EXPECT_EQ(FindDifference(answer(8, 0.5F), answer(7, 0.5F)),
            "query 0, rank 1: row 8 (0x1p-1) instead of row 7 (0x1p-1)");
  EXPECT_NE(FindDifference(answer(7, 0.0F), answer(7, -0.0F)), "");
}

}  // namespace
}  // namespace simile::doctor
