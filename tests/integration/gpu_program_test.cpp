#include <dlfcn.h>

#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/gpu/fault_journal.h"
#include "files/scratch_folder.h"
#include "integration/expected_answers.h"
#include "integration/films_server.h"
#include "integration/gpu_machine.h"
#include "integration/server_process.h"

namespace simile::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> ServeFilms(const std::vector<std::string>& more = {},
                                    const std::string& log_level = "error") {
  std::vector<std::string> arguments = {"--collection",   std::string("films=") + kFilmsFolder,
                                        "--port",         "0",
                                        "--metrics-port", "0",
                                        "--log-level",    log_level};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

ServerProcess::Circumstances On(const GpuMachine& machine,
                                const std::vector<std::string>& more = {}) {
  ServerProcess::Circumstances circumstances;
  circumstances.program = machine.program();
  circumstances.variables = more;
  const std::vector<std::string> usual = machine.variables();
  circumstances.variables.insert(circumstances.variables.end(), usual.begin(), usual.end());
  return circumstances;
}

v1::Receipt Search(const std::string& address) {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("toy-story-1995");
  v1::SearchResponse response;
  const Outcome outcome = Client(address).Search(request, response);
  EXPECT_TRUE(outcome.ok()) << ::testing::PrintToString(outcome);
  EXPECT_EQ(response.results(0).hits_size(), 10);
  return response.receipt();
}

// Checks that the program serves, and names this backend and reason in its first line and receipts.
void ExpectServes(const ServerProcess::Circumstances& circumstances, v1::BackendKind backend,
                  const std::string& reason) {
  ServerProcess server(ServeFilms(), circumstances);
  const std::string address = server.AwaitListening();
  ASSERT_NE(address, "") << server.output();
  const std::string first_line = server.output().substr(0, server.output().find('\n'));
  EXPECT_THAT(first_line, HasSubstr(backend == kGpu ? "  gpu engine (" : "  cpu engine ("));
  EXPECT_THAT(first_line, HasSubstr("): " + reason));
  const v1::Receipt receipt = Search(address);
  EXPECT_EQ(receipt.backend(), backend);
  EXPECT_THAT(receipt.reason(), StartsWith(reason));
  EXPECT_THAT(first_line, HasSubstr(receipt.reason()));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
}

TEST(GpuProgramTest, ServesOnTheCpuWithoutADriver) {
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr) {
    GTEST_SKIP() << "this machine has a driver";
  }
  const GpuMachine machine("working");
  ServerProcess::Circumstances circumstances = On(machine);
  circumstances.variables = {"SIMILE_GPU_FAULT_JOURNAL="};
  ExpectServes(circumstances, kCpu, "no NVIDIA driver on this machine (libcuda.so.1 not found)");
}

TEST(GpuProgramTest, ServesOnTheCpuWithoutAPlugin) {
  ExpectServes(On(GpuMachine("")), kCpu,
               "an NVIDIA driver is here, but no GPU plug-in is beside the server "
               "(libsimile_cuda.so, libsimile_cuda12.so)");
}

TEST(GpuProgramTest, ServesOnTheGpuWithoutCublasAndSaysSo) {
  ExpectServes(On(GpuMachine("no_blas")), kGpu,
               "NVIDIA H200 (139 GiB), CUDA 13.0; large batches take longer, because cuBLAS "
               "cannot be loaded: ");
}

TEST(GpuProgramTest, ServesOnTheCpuWithAPluginOfAnotherBuild) {
  ExpectServes(On(GpuMachine("other_build")), kCpu,
               "libsimile_cuda.so is from another build (it is 0.0.1-of-yesterday with interface ");
}

TEST(GpuProgramTest, ServesOnTheCpuWhenConfiguredTo) {
  const GpuMachine machine("working");
  ExpectServes(On(machine, {"USE_GPU=false"}), kCpu, "the configuration asks for the CPU");
}

TEST(GpuProgramTest, ServesOnTheGpuWhenThereIsOne) {
  const GpuMachine machine("working");
  ExpectServes(On(machine, {"USE_GPU=true"}), kGpu, "NVIDIA H200 (139 GiB), CUDA 13.0");
}

// Two servers of the films: the one that is asked, and the one that the command starts.
TEST(GpuProgramTest, BenchComparesTheGpuWithTheCpu) {
  const GpuMachine machine("working");
  ServerProcess server(ServeFilms(), On(machine));
  const std::string address = server.AwaitListening();
  ASSERT_NE(address, "") << server.output();
  ServerProcess::Circumstances bench;
  bench.command = "bench";
  ServerProcess comparison({"--server", address, "--compare", "cpu", "--folder", kFilmsFolder},
                           bench);
  EXPECT_EQ(comparison.AwaitExit(), 0) << comparison.output();
  EXPECT_THAT(comparison.output(), HasSubstr("films, 5,000 x 384, k 10\n  gpu: "));
  // Columns are as wide as the times that were measured.
  EXPECT_THAT(comparison.output(),
              testing::ContainsRegex("queries a call +cpu, ms +gpu, ms +times faster"));
  EXPECT_THAT(comparison.output(), HasSubstr("all equal to the bit"));
}

// Whether the slow device measures a class of passes in the time differs from machine to machine.
TEST(GpuProgramTest, TuneMeasuresTheGpuThatServeUses) {
  if (std::string_view(SIMILE_EMULATED_GPU_FILE).empty()) {
    GTEST_SKIP() << "built without the emulated device";
  }
  const GpuMachine machine(GpuMachine::kEmulatedEngine);
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "tuning.json").string();
  ServerProcess::Circumstances tune = On(machine, {"SIMILE_BACKEND_TUNING=auto"});
  tune.command = "tune";
  ServerProcess measured(
      {std::string("films=") + kFilmsFolder, "--batch", "4", "--duration", "1s", "--output", file},
      tune);
  ASSERT_EQ(measured.AwaitExit(), 0) << measured.output();
  EXPECT_THAT(measured.output(), HasSubstr("Emulated CUDA device\n"));
  EXPECT_THAT(measured.output(), testing::ContainsRegex("films, queries at once +queries/s +ms"));
  EXPECT_THAT(measured.output(), HasSubstr("wrote " + file));
}

// The real engine, from the wire to its kernels and back.
TEST(GpuProgramTest, AnswersFilmsQueriesOnTheEmulatedDevice) {
  if (std::string_view(SIMILE_EMULATED_GPU_FILE).empty()) {
    GTEST_SKIP() << "built without the emulated device";
  }
  const GpuMachine machine(GpuMachine::kEmulatedEngine);
  ServerProcess server(ServeFilms(), On(machine));
  const std::string address = server.AwaitListening();
  ASSERT_NE(address, "") << server.output();
  EXPECT_THAT(server.output(), HasSubstr("  gpu engine (fp16-sm90 on Emulated CUDA device): "));

  const auto similar = ExpectedSimilar();
  v1::SearchRequest search;
  search.set_collection("films");
  search.mutable_options()->set_k(20);
  search.mutable_options()->set_with_rows(true);
  for (const ExpectedAnswer& answer : similar) search.add_queries()->set_id(answer.id);
  v1::SearchResponse found;
  ASSERT_TRUE(Client(address).Search(search, found).ok());
  EXPECT_EQ(found.receipt().backend(), kGpu);
  // Which kernels run depends on the batches that this machine's emulation is fast enough for.
  EXPECT_THAT(
      found.receipt().engines(),
      testing::Each(testing::AnyOf(testing::StartsWith("fp16-"), testing::StartsWith("int8-"))));
  ASSERT_EQ(found.results_size(), static_cast<int>(similar.size()));
  for (std::size_t i = 0; i < similar.size(); ++i) {
    EXPECT_TRUE(SameAnswer(found.results(static_cast<int>(i)).hits(), similar[i]));
  }

  const auto recommended = ExpectedFilteredRecommendations(true);
  v1::RecommendRequest recommend;
  recommend.set_collection("films");
  recommend.mutable_options()->set_k(20);
  recommend.mutable_options()->set_with_rows(true);
  recommend.mutable_options()->set_exclude_seen(true);
  for (const std::size_t i : {0U, 1U, 2U}) {
    recommend.clear_user_ids();
    recommend.add_user_ids(recommended[i].id);
    recommend.mutable_options()->set_filter(recommended[i].filter);
    v1::RecommendResponse response;
    ASSERT_TRUE(Client(address).Recommend(recommend, response).ok());
    EXPECT_EQ(response.receipt().backend(), kGpu);
    EXPECT_TRUE(SameAnswer(response.results(0).hits(), recommended[i]));
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
}

TEST(GpuProgramTest, RefusesToStartWhenTheRequiredGpuCannotBeUsed) {
  const GpuMachine machine("no_device");
  ServerProcess server(ServeFilms({"--backend", "gpu"}), On(machine));
  EXPECT_EQ(server.AwaitListening(), "");
  EXPECT_EQ(server.AwaitExit(), 1);
  EXPECT_THAT(server.output(),
              StartsWith("error: the configuration asks for the GPU, which cannot be used: the "
                         "NVIDIA driver reports no usable device"));
}

TEST(GpuProgramTest, StaysOnTheCpuAfterLosingTheGpuAndStopsCleanly) {
  const GpuMachine machine("working");
  // The first search verifies the films before they are published.
  ServerProcess server(ServeFilms(), On(machine, {"FAKE_GPU_SEARCHES=ok,ok,lost"}));
  const std::string address = server.AwaitListening();
  ASSERT_NE(address, "") << server.output();
  EXPECT_EQ(Search(address).backend(), kGpu);
  EXPECT_EQ(Search(address).backend(), kCpu);
  EXPECT_THAT(Search(address).reason(), StartsWith("the GPU was lost and is left alone"));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
  EXPECT_EQ(app::ReadFaultJournal(machine.journal()).value().size(), 1U);
}

TEST(GpuProgramTest, ExitsForARestartThreeTimesAndThenStaysOnTheCpu) {
  const GpuMachine machine("working");
  const std::vector<std::string> restart = {"--on-gpu-fault", "restart"};
  const auto circumstances = On(machine, {"FAKE_GPU_SEARCHES=ok,lost"});
  for (std::size_t times = 1; times <= 3; ++times) {
    ServerProcess server(ServeFilms(restart), circumstances);
    const std::string address = server.AwaitListening();
    ASSERT_NE(address, "") << server.output();
    EXPECT_THAT(server.output(), HasSubstr("  gpu engine (cuda-fake on NVIDIA H200): "));
    EXPECT_EQ(Search(address).backend(), kCpu) << "the call that lost the GPU is answered";
    EXPECT_EQ(server.AwaitExit(), 75);
    EXPECT_EQ(Client(address).CheckHealth(""), Health::kUnreachable);
    EXPECT_EQ(app::ReadFaultJournal(machine.journal()).value().size(), times);
  }
  ServerProcess server(ServeFilms(restart), circumstances);
  const std::string address = server.AwaitListening();
  ASSERT_NE(address, "") << server.output();
  EXPECT_THAT(server.output(), HasSubstr("): the GPU was lost 3 times in the last 10 minutes"));
  const std::chrono::duration<double> lost_at =
      app::ReadFaultJournal(machine.journal()).value().back().at.time_since_epoch();
  EXPECT_NEAR(MetricValue(ScrapeMetrics(server.MetricsPort()), "simile_gpu_lost_timestamp_seconds"),
              lost_at.count(), 1e-3);
  EXPECT_EQ(Search(address).backend(), kCpu);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
}

// A server that has lost its GPU and waits for its drain delay before it exits for a restart.
class GpuDrainTest : public ::testing::Test {
 protected:
  GpuDrainTest() {
    EXPECT_EQ(Search(address_).backend(), kCpu) << server_.output();
    EXPECT_TRUE(server_.AwaitOutput("calls are still taken"));
  }

  const GpuMachine machine_{"working"};
  ServerProcess server_{
      ServeFilms({"--on-gpu-fault", "restart"}, "info"),
      On(machine_, {"FAKE_GPU_SEARCHES=ok,lost", "SIMILE_LIMITS_DRAIN_DELAY=2000"})};
  const std::string address_ = server_.AwaitListening();
};

// Load balancers are given their time before a restart, too: the CPU answers meanwhile.
TEST_F(GpuDrainTest, TakesCallsBeforeARestart) {
  EXPECT_EQ(Client(address_).CheckHealth(""), Health::kNotServing);
  EXPECT_EQ(Search(address_).backend(), kCpu);
  EXPECT_EQ(server_.AwaitExit(), 75);
}

TEST_F(GpuDrainTest, EndsForGoodWhenASignalComesBeforeTheRestart) {
  server_.Signal(SIGTERM);
  EXPECT_EQ(server_.AwaitExit(), 0);
}

TEST(GpuProgramTest, ExitsForARestartWhenTheGpuIsLostDuringALoad) {
  const GpuMachine machine("working");
  ServerProcess server(ServeFilms({"--on-gpu-fault", "restart"}),
                       On(machine, {"FAKE_GPU_LOADS=lost"}));
  EXPECT_EQ(server.AwaitExit(), 75) << server.output();
}

}  // namespace
}  // namespace simile::integration
