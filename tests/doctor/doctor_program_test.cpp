// `simile doctor` as a program, on machines of fakes: each symptom with its exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/program_run.h"
#include "doctor/gpu_files.h"
#include "integration/server_process.h"
#include "simile/clock.h"

namespace simile::doctor {
namespace {

using cli::ProgramRun;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

std::vector<std::string> Joined(std::vector<std::string> first,
                                const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Runs `simile doctor` on the machine. Later variables win.
ProgramRun Doctor(const GpuFiles& files, const std::vector<std::string>& variables = {},
                  const std::vector<std::string>& flags = {}) {
  // execve passes both; getenv returns the first.
  return cli::RunProgram(Joined({"doctor", "--root", files.root()}, flags), "",
                         Joined(variables, files.variables()), files.program());
}

// A node that exists, and that no card answers behind: opening a socket is refused alike.
void ReplaceBySocket(const std::string& path) {
  std::filesystem::remove(path);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(path).parent_path());  // paths are short
  std::strncpy(address.sun_path, std::filesystem::path(path).filename().c_str(),
               sizeof(address.sun_path) - 1);
  const int node = socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(bind(node, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  close(node);
  std::filesystem::current_path(here);
}

// A machine, what is wrong with it, and what doctor must say.
struct Case {
  const char* name;
  std::function<void(const GpuFiles& files)> prepare;
  std::vector<std::string> variables;
  std::vector<std::string> flags;
  const char* symptom;
  int exit_code;
  const char* text;  // in the finding
};

void PrintTo(const Case& test_case, std::ostream* to) { *to << test_case.name; }

void All(const GpuFiles& files) { files.AddAll(); }

// A working machine whose card says this.
std::function<void(const GpuFiles&)> Card(const std::string& lines) {
  return [lines](const GpuFiles& files) {
    files.AddAll();
    files.DescribeCard(lines);
  };
}

std::function<void(const GpuFiles&)> InContainer(
    const std::function<void(const GpuFiles&)>& prepare) {
  return [prepare](const GpuFiles& files) {
    prepare(files);
    files.AddFile("/.dockerenv", "");
  };
}

std::function<void(const GpuFiles&)> With(const std::string& path, const std::string& text) {
  return [path, text](const GpuFiles& files) {
    files.AddAll();
    files.AddFile(path, text);
  };
}

// A working machine whose kernel's log has this Xid.
std::function<void(const GpuFiles&)> Xid(const std::string& xid) {
  return With("/dev/kmsg", "3,1,1,-;NVRM: Xid (PCI:0000:3b:00): " + xid + "\n");
}

std::function<void(const GpuFiles&)> Plugin(const std::string& kind) {
  return [kind](const GpuFiles& files) {
    files.AddAll();
    files.AddPlugin(kind);
  };
}

void TwoPlugins(const GpuFiles& files) {
  files.AddAll();
  files.AddSecondPlugin();
}

// A T4 host's card and driver, which a container sees although it was not given them.
void HostsDriver(const GpuFiles& files) {
  files.AddCard();
  files.AddModule("570.133.20");
}

void ManagementWithoutCuda(const GpuFiles& files) {
  files.AddNodes();
  files.AddModule("570.86.15");
  files.AddManagement();
  files.DescribeCard("init=18\nlibrary=570.133.20\n");
}

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"Healthy", All, {}, {}, "", 0, ""},
      {"NoCard", [](const GpuFiles&) {}, {}, {}, "no_card", 1, "no NVIDIA card"},
      {"NoDriver",
       [](const GpuFiles& files) { files.AddCard(); },
       {},
       {},
       "no_driver",
       1,
       "PCI 0000:3b:00.0"},
      {"ContainerWithoutGpu",
       InContainer(HostsDriver),
       {},
       {},
       "container_without_gpu",
       1,
       "its host has driver 570.133.20"},
      {"PodWithoutGpu",
       [](const GpuFiles& files) { files.AddFile("/run/secrets/kubernetes.io/token", ""); },
       {},
       {},
       "pod_without_gpu",
       1,
       "this pod"},
      {"HiddenFromContainer",
       InContainer(HostsDriver),
       {"NVIDIA_VISIBLE_DEVICES=void"},
       {},
       "hidden_from_container",
       1,
       "NVIDIA_VISIBLE_DEVICES is \"void\""},
      {"NodesMissing", HostsDriver, {}, {}, "nodes_missing", 1, "/dev/nvidia0 is missing"},
      {"UvmMissing",
       [](const GpuFiles& files) {
         files.AddAll();
         files.Remove("/dev/nvidia-uvm");
       },
       {"FAKE_CUDA_ERROR=999"},
       {},
       "uvm_missing",
       1,
       "nvidia-uvm is missing"},
      {"NodeDead",
       [](const GpuFiles& files) {
         files.AddAll();
         ReplaceBySocket(files.root() + "/dev/nvidia0");
       },
       {"FAKE_CUDA_ERROR=100"},
       {},
       "node_dead",
       1,
       "/dev/nvidia0: No such device or address"},
      {"AccessLost",
       InContainer(Card("init=999\n")),
       {"FAKE_CUDA_ERROR=100"},
       {},
       "access_lost",
       1,
       "NVML error 999: Unknown Error"},
      {"VersionMismatchByManagement",
       ManagementWithoutCuda,
       {},
       {},
       "version_mismatch",
       1,
       "kernel module 570.86.15, library 570.133.20"},
      {"VersionMismatchByDriver",
       [](const GpuFiles& files) {
         files.AddNodes();
         files.AddModule("570.86.15");
         files.AddManagement();
         files.AddDriver();
       },
       {"FAKE_CUDA_ERROR=803"},
       {},
       "version_mismatch",
       1,
       "kernel module 570.86.15, library 570.133.20"},
      {"ModuleNotLoaded",
       Card("init=9\n"),
       {"FAKE_CUDA_ERROR=100"},
       {},
       "module_not_loaded",
       1,
       "Driver Not Loaded"},
      {"ManagementMissing",
       [](const GpuFiles& files) {
         files.AddNodes();
         files.AddDriver();
         files.AddPlugin("working");
       },
       {},
       {},
       "management_missing",
       0,
       "libnvidia-ml.so.1 not found"},
      {"ManagementFailed",
       Card("init=4\n"),
       {"FAKE_CUDA_ERROR=999"},
       {},
       "management_failed",
       1,
       "NVML error 4"},
      {"ManagementFailedButGpuWorks",
       Card("init=4\n"),
       {},
       {},
       "management_failed",
       0,
       "NVML error 4"},
      {"FellOffTheBus",
       Card("handle=15\n"),
       {"FAKE_CUDA_ERROR=999"},
       {},
       "fell_off_the_bus",
       1,
       "GPU is lost"},
      {"FellOffTheBusInTheLog",
       Xid("79, GPU has fallen off the bus"),
       {},
       {},
       "fell_off_the_bus",
       0,
       "Xid 79"},
      {"ResetRequired",
       Card("read=16\n"),
       {"FAKE_CUDA_ERROR=999"},
       {},
       "reset_required",
       1,
       "GPU requires reset"},
      {"MemoryErrorsCounted", Card("ecc=2\n"), {}, {}, "memory_errors", 0, "2 counted"},
      {"MemoryErrorsInTheLog", Xid("48, DBE"), {}, {}, "memory_errors", 0, "Xid 48"},
      {"MemoryErrorStopsTheDriver", All, {"FAKE_CUDA_ERROR=214"}, {}, "memory_errors", 1, "cuInit"},
      {"ApplicationFault", Xid("13, Graphics Exception"), {}, {}, "application_fault", 0, "Xid 13"},
      {"OtherXid", Xid("119, GSP"), {}, {}, "xid", 0, "Xid 119"},
      {"Throttled", Card("throttle=0x40\n"), {}, {}, "throttled", 0, "hw_thermal_slowdown"},
      {"NoDriverLibrary",
       [](const GpuFiles& files) {
         files.AddNodes();
         files.AddManagement();
       },
       {},
       {},
       "no_driver_library",
       1,
       "libcuda.so.1, the driver's library for programs, is not found"},
      {"DriverLibraryBroken",
       [](const GpuFiles& files) {
         files.AddNodes();
         files.AddManagement();
         std::ofstream(files.driver_library()) << "not a library";
       },
       {},
       {},
       "driver_library_broken",
       1,
       "libcuda.so.1 cannot be loaded"},
      {"StubLibrary", All, {"FAKE_CUDA_ERROR=34"}, {}, "stub_library", 1, "stub"},
      {"DriverTooOld",
       All,
       {"FAKE_GPU_PROBE_ERROR=35"},
       {},
       "driver_too_old",
       1,
       "driver 570.133.20 is too old for this build's GPU plug-in (CUDA 13.0), which needs 580"},
      {"DriverTooOldForTheFirstPlugin", TwoPlugins, {"FAKE_CUDA_VERSION=12040"}, {}, "", 0, ""},
      {"DriverTooOldForBothPlugins",
       TwoPlugins,
       {"FAKE_CUDA_VERSION=11080"},
       {},
       "driver_too_old",
       1,
       "(CUDA 12.9), which needs 525"},
      {"ForwardCompatibility",
       All,
       {"FAKE_CUDA_ERROR=804"},
       {},
       "forward_compatibility",
       1,
       "cuda-compat"},
      {"Hidden",
       All,
       {"FAKE_CUDA_ERROR=100", "CUDA_VISIBLE_DEVICES=-1"},
       {},
       "hidden",
       1,
       "CUDA_VISIBLE_DEVICES is \"-1\""},
      {"NoDevice", All, {"FAKE_CUDA_ERROR=100"}, {}, "no_device", 1, "CUDA_ERROR_NO_DEVICE"},
      {"NoCodeForCard", All, {"FAKE_GPU_OPEN_ERROR=209"}, {}, "no_code_for_card", 1, "H200"},
      {"PtxTooNew", All, {"FAKE_GPU_OPEN_ERROR=222"}, {}, "ptx_too_new", 1, "570.133.20"},
      {"Exclusive",
       Card("compute_mode=3\nprocesses=4242\n"),
       {"FAKE_GPU_OPEN_ERROR=46"},
       {},
       "exclusive",
       1,
       "; processes on it: 4242"},
      {"Prohibited",
       Card("compute_mode=2\n"),
       {"FAKE_CUDA_ERROR=100"},
       {},
       "exclusive",
       1,
       "prohibited"},
      {"FabricManager", All, {"FAKE_GPU_PROBE_ERROR=802"}, {}, "fabric_manager", 1, "fabric"},
      {"Mps", All, {"FAKE_GPU_PROBE_ERROR=805"}, {}, "mps", 1, "MPS"},
      {"DriverError", All, {"FAKE_CUDA_ERROR=304"}, {}, "driver_error", 1, "cuInit: CUDA_ERROR"},
      {"AfterSleep", All, {"FAKE_CUDA_ERROR=999"}, {}, "after_sleep", 1, "after the machine slept"},
      {"PluginMissing",
       [](const GpuFiles& files) {
         files.AddAll();
         std::filesystem::remove(files.plugin());
       },
       {},
       {},
       "plugin_missing",
       1,
       "libsimile_cuda.so"},
      {"PluginOfAnotherBuild",
       Plugin("other_build"),
       {},
       {},
       "plugin_unusable",
       1,
       "0.0.1-of-yesterday"},
      {"NoSuchDevice", All, {}, {"--gpu-device", "3"}, "no_such_device", 1, "0, NVIDIA H200"},
      {"BlasUnusable", Plugin("no_blas"), {}, {}, "blas_unusable", 0, "libcublas.so.13"},
      {"DoesNotFit",
       All,
       {"FAKE_GPU_OPEN_ERROR=full"},
       {},
       "does_not_fit",
       1,
       "300.0 MiB are needed and 12.0 MiB are free"},
      {"OpenFailed", All, {"FAKE_GPU_OPEN_ERROR=other"}, {}, "open_failed", 1, "cannot be opened"},
      {"KernelTestFailed",
       All,
       {"FAKE_GPU_SEARCHES=failed"},
       {},
       "driver_error",
       1,
       "cudaErrorInvalidValue"},
      {"WrongAnswers", All, {"FAKE_GPU_SEARCHES=wrong"}, {}, "wrong_answers", 1, "query 0, rank 1"},
      {"Crash", All, {"FAKE_CUDA_ERROR=crash"}, {}, "crash", 1, "signal 6"},
      {"LostTooOften",
       [](const GpuFiles& files) {
         files.AddAll();
         files.WriteJournal({8, 5, 2});
       },
       {},
       {},
       "lost_too_often",
       1,
       "the GPU was lost 3 times in the last 10 minutes"},
      {"LostRecently",
       [](const GpuFiles& files) {
         files.AddAll();
         files.WriteJournal({40, 2});
       },
       {},
       {},
       "lost_recently",
       0,
       "1 time"},
      {"RoutedByConfiguration",
       All,
       {"USE_GPU=false"},
       {},
       "routed_by_configuration",
       0,
       "environment USE_GPU"},
      {"ToolkitMissing",
       With("/usr/bin/dockerd", ""),
       {},
       {},
       "toolkit_missing",
       0,
       "not nvidia-container-toolkit"},
      {"RuntimeNotRegistered",
       [](const GpuFiles& files) {
         files.AddAll();
         files.AddFile("/usr/bin/dockerd", "");
         files.AddFile("/usr/bin/nvidia-ctk", "");
       },
       {},
       {},
       "runtime_not_registered",
       0,
       "does not know the runtime nvidia"},
      {"ToolkitOld",
       [](const GpuFiles& files) {
         files.AddAll();
         files.AddFile("/usr/bin/dockerd", "");
         files.AddFile("/usr/bin/nvidia-ctk", "");
         files.AddFile("/var/lib/dpkg/status",
                       "Package: nvidia-container-toolkit\nVersion: 1.17.4-1\n");
       },
       {},
       {},
       "toolkit_old",
       0,
       "1.17.4-1"},
      {"DemandedGpuFails", HostsDriver, {}, {"--backend", "gpu"}, "nodes_missing", 2, ""},
      {"DemandedGpuWorks", All, {}, {"--backend", "gpu"}, "", 0, ""},
  };
  return cases;
}

class DoctorProgramTest : public ::testing::TestWithParam<Case> {};

TEST_P(DoctorProgramTest, NamesTheSymptom) {
  const Case& expected = GetParam();
  const GpuFiles files;
  expected.prepare(files);
  const ProgramRun run = Doctor(files, expected.variables, Joined(expected.flags, {"--json"}));
  EXPECT_EQ(run.exit_code, expected.exit_code) << run.printed << run.errors;
  EXPECT_EQ(run.errors, "");
  const Json json = Json::parse(run.printed);
  EXPECT_EQ(json.at("exit_code"), expected.exit_code);
  std::vector<Json> found;
  for (const Json& finding : json.at("findings")) {
    const bool has_fix = finding.at("fix") != "";
    EXPECT_EQ(has_fix, finding.at("state") == "failed" || finding.at("state") == "warning")
        << finding;
    if (has_fix) found.push_back(finding);
  }
  if (std::string(expected.symptom).empty()) {
    EXPECT_TRUE(found.empty()) << run.printed;
    return;
  }
  ASSERT_EQ(found.size(), 1U) << run.printed;
  EXPECT_EQ(found.front().at("symptom"), expected.symptom);
  EXPECT_THAT(found.front().at("text").get<std::string>(), HasSubstr(expected.text));
}

INSTANTIATE_TEST_SUITE_P(Machines, DoctorProgramTest, ::testing::ValuesIn(Cases()),
                         [](const auto& tested) { return std::string(tested.param.name); });

// A T4 host with a driver and Docker, but without the container toolkit: what doctor prints in a
// container there, and on the host itself.
TEST(DoctorTextTest, ExplainsAHostWithoutTheContainerToolkitInsideAndOutside) {
  const GpuFiles inside;
  HostsDriver(inside);
  inside.AddFile("/.dockerenv", "");
  const ProgramRun in_container = Doctor(inside);
  EXPECT_EQ(in_container.exit_code, 1);
  EXPECT_THAT(
      in_container.printed,
      AllOf(HasSubstr(" FAIL  device nodes        this container was started without a GPU: "
                      "it has no /dev/nvidia*; its host has driver 570.133.20\n"
                      "       fix                 `docker run --gpus all`, or `runtime: "
                      "nvidia` in compose"),
            HasSubstr("the host lacks the toolkit: there, install "
                      "nvidia-container-toolkit"),
            HasSubstr("Serving on the CPU meanwhile: "), HasSubstr(" Exit code 1.\n")));

  const GpuFiles outside;
  outside.AddAll();
  outside.AddFile("/usr/bin/dockerd", "");
  outside.DescribeCard("name=NVIDIA T4\nmemory_total=16106127360\n");
  const ProgramRun on_host = Doctor(outside);
  EXPECT_EQ(on_host.exit_code, 0);
  EXPECT_THAT(on_host.printed,
              AllOf(HasSubstr(" ok    card                NVIDIA T4, 40 C, "),
                    HasSubstr(" warn  containers          Docker is here, but not "
                              "nvidia-container-toolkit: no container can get this card\n"
                              "       fix                 install nvidia-container-toolkit"),
                    HasSubstr("The GPU answers. Exit code 0.\n")));
}

TEST(DoctorTextTest, ExplainsAMismatchOfVersionsForComposeAndForPlainDocker) {
  const GpuFiles files;
  ManagementWithoutCuda(files);
  const ProgramRun run = Doctor(files);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.printed,
              AllOf(HasSubstr(" FAIL  management library  kernel module 570.86.15, library "
                              "570.133.20: the driver was changed"),
                    HasSubstr("where `runtime: nvidia` refuses to start, "
                              "compose.gpu-reservations.yaml does"),
                    HasSubstr("Plain Docker: `docker rm`, then `docker run --gpus all`")));
}

// How long doctor may take when a call hangs, which it gives up after 8 s: ten seconds in all, or
// on a busy machine ten times what it takes beside those 8 s where nothing hangs.
Clock::Duration HangingMax() {
  const GpuFiles files;
  files.AddAll();
  const RealClock clock;
  const Clock::TimePoint began = clock.Now();
  Doctor(files);
  const Clock::Duration usual = clock.Now() - began;
  return std::chrono::seconds(8) + std::max<Clock::Duration>(std::chrono::seconds(2), 10 * usual);
}

TEST(DoctorTextTest, EndsWithinTenSecondsWhenACallHangs) {
  const Clock::Duration hanging_max = HangingMax();
  // The last closes its pipe first, as a process does whose end hangs in the kernel.
  for (const char* hang : {"", "hang", "silent_hang"}) {
    const GpuFiles files;
    files.AddAll();
    std::vector<std::string> variables;
    if (std::string(hang).empty()) {
      files.DescribeCard("init=hang\n");
    } else {
      variables = {std::string("FAKE_CUDA_ERROR=") + hang};
    }
    const auto began = std::chrono::steady_clock::now();
    const ProgramRun run = Doctor(files, variables);
    EXPECT_LE(std::chrono::steady_clock::now() - began, hanging_max);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.printed, HasSubstr("no answer within 8 s: the driver or the card hangs"));
    EXPECT_THAT(run.printed, HasSubstr(" --    kernel test         not reached\n"));
    EXPECT_THAT(run.printed, HasSubstr("Serving on the CPU meanwhile: "));
  }
}

TEST(DoctorTextTest, RefusesFlagsThatDoNotGoTogether) {
  const GpuFiles files;
  const ProgramRun both = cli::RunProgram({"doctor", "--server", "127.0.0.1:1", "--backend", "cpu"},
                                          "", files.variables());
  EXPECT_EQ(both.exit_code, 64);
  EXPECT_THAT(both.errors, HasSubstr("--server asks a server, which has its own settings"));
  EXPECT_EQ(Doctor(files, {}, {"--timeout", "3"}).exit_code, 64);
}

// A server on a machine of fakes, and `simile doctor --server` beside it.
class DoctorServerTest : public ::testing::Test {
 protected:
  std::vector<std::string> Serve(const std::vector<std::string>& more) const {
    return Joined({"--collection", "films=" SIMILE_SOURCE_DIR "/examples/films", "--port", "0",
                   "--metrics-port", "0", "--log-level", "error"},
                  more);
  }
  integration::ServerProcess::Circumstances On(const std::vector<std::string>& variables) const {
    integration::ServerProcess::Circumstances circumstances;
    circumstances.program = files_.program();
    circumstances.variables = Joined(variables, files_.variables());
    return circumstances;
  }
  static ProgramRun Ask(const std::string& address, const std::vector<std::string>& more = {}) {
    return cli::RunProgram(Joined({"doctor", "--server", address}, more));
  }

  const GpuFiles files_;
};

TEST_F(DoctorServerTest, FindsNothingAgainstAServerWhoseGpuAnswers) {
  files_.AddAll();
  integration::ServerProcess server(Serve({"--allow-admin"}), On({}));
  const std::string address = server.AwaitListening();
  ASSERT_NE(address, "") << server.output();
  const ProgramRun run = Ask(address);
  EXPECT_EQ(run.exit_code, 0) << run.printed << run.errors;
  EXPECT_THAT(run.printed, AllOf(HasSubstr("left alone: the server uses the device"),
                                 HasSubstr(" ok    server              the GPU answers: "),
                                 HasSubstr(" ok    collections         1 collection on the GPU\n"),
                                 HasSubstr(" ok    work "),
                                 HasSubstr("The GPU answers everything at " + address)));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
}

TEST_F(DoctorServerTest, SaysThatTheServerLostItsGpu) {
  files_.AddAll();
  integration::ServerProcess server(Serve({"--allow-admin"}), On({"FAKE_GPU_SEARCHES=lost"}));
  const std::string address = server.AwaitListening();
  ASSERT_NE(address, "") << server.output();
  const ProgramRun run = Ask(address);
  EXPECT_EQ(run.exit_code, 1) << run.printed << run.errors;
  EXPECT_THAT(run.printed, AllOf(HasSubstr(" FAIL  server              the GPU was lost"),
                                 HasSubstr("left alone: the server lost the device")));
}

TEST_F(DoctorServerTest, DoesNotSayEverythingWhenTheCpuDidABatch) {
  files_.AddAll();
  for (const auto& [outcome, reason] :
       {std::pair("failed", "1 (call_failed)"), std::pair("late", "1 (late)")}) {
    integration::ServerProcess server(Serve({"--allow-admin"}),
                                      On({std::string("FAKE_GPU_SEARCHES=ok,") + outcome}));
    const std::string address = server.AwaitListening();
    ASSERT_NE(address, "") << server.output();
    EXPECT_EQ(cli::RunProgram({"similar", "--id", "toy-story-1995", "--server", address}).exit_code,
              0);
    const ProgramRun run = Ask(address);
    EXPECT_EQ(run.exit_code, 0) << run.printed << run.errors;
    EXPECT_THAT(run.printed, AllOf(HasSubstr(" warn  work "), HasSubstr(reason),
                                   HasSubstr("The GPU answers, but not everything, at ")));
  }
}

TEST_F(DoctorServerTest, SaysWhichCollectionDoesNotFit) {
  files_.AddAll();
  integration::ServerProcess server(Serve({"--allow-admin"}), On({"FAKE_GPU_LOADS=full"}));
  const std::string address = server.AwaitListening();
  ASSERT_NE(address, "") << server.output();
  const ProgramRun run = Ask(address);
  EXPECT_EQ(run.exit_code, 1) << run.printed << run.errors;
  EXPECT_THAT(run.printed, HasSubstr(" FAIL  collections         films is answered by the CPU: "));
}

TEST_F(DoctorServerTest, SaysThatTheConfigurationAsksForTheCpu) {
  files_.AddAll();
  integration::ServerProcess server(Serve({"--allow-admin", "--backend", "cpu"}), On({}));
  const std::string address = server.AwaitListening();
  ASSERT_NE(address, "") << server.output();
  const ProgramRun run = Ask(address);
  EXPECT_EQ(run.exit_code, 0) << run.printed << run.errors;
  EXPECT_THAT(run.printed,
              AllOf(HasSubstr("the configuration asks for the CPU (backend.preference = cpu"),
                    HasSubstr("The CPU answers, as its configuration asks, at ")));
}

TEST_F(DoctorServerTest, TellsTheReasonOfAServerWithoutAdmin) {
  files_.AddAll();
  integration::ServerProcess server(Serve({}), On({"FAKE_GPU_OPEN_ERROR=46"}));
  const std::string address = server.AwaitListening();
  ASSERT_NE(address, "") << server.output();
  const ProgramRun run = Ask(address);
  EXPECT_EQ(run.exit_code, 1) << run.printed << run.errors;
  EXPECT_THAT(run.printed, AllOf(HasSubstr("the device cannot be opened"),
                                 HasSubstr("A server that runs with --allow-admin also tells")));
}

// And it ends without destructors, which would run while the driver is called.
TEST_F(DoctorServerTest, AnswersWithinTenSecondsWhenAProbeHangsInTheServer) {
  files_.AddAll();
  std::filesystem::remove(files_.plugin());  // so that the start does not call the driver
  integration::ServerProcess server(Serve({"--allow-admin"}), On({"FAKE_CUDA_ERROR=hang"}));
  const std::string address = server.AwaitListening();
  ASSERT_NE(address, "") << server.output();
  const Clock::Duration hanging_max = HangingMax();
  const auto began = std::chrono::steady_clock::now();
  const ProgramRun run = Ask(address);
  EXPECT_LE(std::chrono::steady_clock::now() - began, hanging_max);
  EXPECT_EQ(run.exit_code, 1) << run.printed << run.errors;
  EXPECT_THAT(run.printed, HasSubstr("no answer within 8 s"));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
}

TEST_F(DoctorServerTest, ExitsWithTwoWhenThereIsNoServer) {
  const ProgramRun run = Ask("127.0.0.1:1", {"--timeout", "1"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.errors, "");
}

}  // namespace
}  // namespace simile::doctor
