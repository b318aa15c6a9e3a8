#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "base/await_true.h"
#include "base/signal_process.h"
#include "files/scratch_folder.h"
#include "integration/films_server.h"
#include "integration/raw_call.h"
#include "integration/raw_peer.h"
#include "integration/server_process.h"
#include "integration/stalling_relay.h"
#include "net/http2_frames.h"

namespace simile::integration {
namespace {

// A request for nine megabytes: more than a client's flow-control window (4 MiB) and the buffers of
// the sockets hold.
v1::SearchRequest LargeAnswer() {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("toy-story-1995");
  request.mutable_options()->set_k(kFilmsRows);
  request.mutable_options()->set_with_vectors(true);
  request.mutable_options()->set_reply_bytes_max(64U << 20);
  return request;
}

double InFlight(std::uint16_t metrics_port) {
  return MetricValue(ScrapeMetrics(metrics_port), kInFlight);
}

// A call whose answer is being sent to a client that reads it only after Read().
class HeldCall {
 public:
  HeldCall(std::uint16_t port, std::uint16_t metrics_port) : relay_(port) {
    EXPECT_EQ(client_.CheckHealth(""), Health::kServing);  // connected
    relay_.Stall();
    outcome_ = std::async(std::launch::async, [this] {
      v1::SearchResponse response;
      return client_.Search(LargeAnswer(), response);
    });
    EXPECT_TRUE(AwaitMetric(metrics_port, kInFlight, testing::Ge(1)));
  }

  void Read() { relay_.Flow(); }
  Outcome AwaitEnd() { return outcome_.get(); }

 private:
  StallingRelay relay_;
  const Client client_{relay_.address()};
  std::future<Outcome> outcome_;
};

TEST(DrainTest, WaitsForACallInFlight) {
  FilmsServer server([](app::Config& config) { config.limits.drain_timeout = kDrainTimeout; });
  const std::uint16_t metrics_port = *server.app().metrics_port();
  HeldCall call(server.app().port(), metrics_port);
  std::future<bool> drained =
      std::async(std::launch::async, [&server] { return server.app().Drain(); });
  // The drain has begun when no new connection is accepted; the call is still in flight.
  AwaitRefusal(server);
  EXPECT_EQ(InFlight(metrics_port), 1);
  call.Read();
  const Outcome outcome = call.AwaitEnd();
  EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  EXPECT_TRUE(drained.get());
}

TEST(DrainTest, CutsACallThatTakesTooLong) {
  FilmsServer server(
      [](app::Config& config) { config.limits.drain_timeout = std::chrono::milliseconds(20); });
  const std::uint16_t metrics_port = *server.app().metrics_port();
  HeldCall call(server.app().port(), metrics_port);
  EXPECT_FALSE(server.app().Drain());
  EXPECT_TRUE(AwaitMetric(metrics_port, kInFlight, 0));
  call.Read();
  EXPECT_EQ(call.AwaitEnd().code, absl::StatusCode::kUnavailable);
}

TEST(DrainTest, SendsIdleClientsAwayAtOnce) {
  FilmsServer server;
  const auto channel =
      grpc::CreateChannel(server.app().address(), grpc::InsecureChannelCredentials());
  const auto deadline = std::chrono::system_clock::now() + std::chrono::minutes(1);
  ASSERT_TRUE(channel->WaitForConnected(deadline));
  EXPECT_TRUE(server.app().Drain());
  EXPECT_TRUE(channel->WaitForStateChange(GRPC_CHANNEL_READY, deadline));
}

const std::vector<std::string> kServeFilms = {
    "--collection", std::string("films=") + kFilmsFolder, "--port", "0", "--metrics-port", "0"};

// kDrainTimeout, unless `variable` sets another.
//   variable  empty for none
ServerProcess::Circumstances WithVariable(const std::string& variable) {
  ServerProcess::Circumstances circumstances;
  if (!variable.empty()) circumstances.variables.push_back(variable);
  circumstances.variables.push_back(
      fmt::format("SIMILE_LIMITS_DRAIN_TIMEOUT={}", kDrainTimeout.count()));
  return circumstances;
}

ServerProcess::Circumstances WithDrainDelay(const std::string& milliseconds) {
  return WithVariable("SIMILE_LIMITS_DRAIN_DELAY=" + milliseconds);
}

// What a new client meets at a server that has announced its stop and still takes calls.
void ExpectTakesCallsThoughNotServing(const std::string& address) {
  const Client client(address);
  EXPECT_EQ(client.CheckHealth(""), Health::kNotServing);
  EXPECT_EQ(client.CheckHealth("liveness"), Health::kServing);
  v1::SearchResponse response;
  const Outcome outcome = client.Search(ToyStory(), response);
  EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
}

TEST(DrainDelayTest, TakesCallsUntilItIsOver) {
  ServerProcess server(kServeFilms, WithDrainDelay("5000"));
  const std::string address = server.AwaitListening();
  server.Signal(SIGTERM);
  ASSERT_TRUE(server.AwaitOutput("calls are still taken"));
  ExpectTakesCallsThoughNotServing(address);
  EXPECT_EQ(server.AwaitExit(), 0);
  EXPECT_THAT(server.output(), testing::HasSubstr("no new calls"));
}

TEST(DrainDelayTest, EndsAtOnceOnASecondSignal) {
  ServerProcess server(kServeFilms, WithDrainDelay("600000"));
  const std::string address = server.AwaitListening();
  server.Signal(SIGTERM);
  ASSERT_TRUE(server.AwaitOutput("calls are still taken"));
  ExpectTakesCallsThoughNotServing(address);
  server.Signal(SIGINT);
  EXPECT_EQ(server.AwaitExit(), 128 + SIGINT);
}

constexpr char kParentHasEnded[] = "the process that started the server has ended";

// The program, started with --die-with-parent by a shell that then waits for it.
class ParentTest : public testing::Test {
 protected:
  ParentTest() {
    scratch_.Write("parent", "#!/bin/sh\n" SIMILE_PROGRAM
                             " \"$@\" --die-with-parent &\necho \"server is $!.\"\nwait\n");
    std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
  }

  std::string program() const { return (scratch_.path() / "parent").string(); }

  std::string StartAndAwaitListening() {
    ServerProcess::Circumstances circumstances = WithVariable({});
    circumstances.program = program();
    parent_.emplace(kServeFilms, circumstances);
    return parent_->AwaitListening();
  }

  pid_t ServerPid() const {
    const std::string mark = "server is ";
    const std::string& output = parent_->output();
    return std::stoi(output.substr(output.find(mark) + mark.size()));
  }

  void EndParent() {
    parent_->Signal(SIGKILL);
    EXPECT_TRUE(base::AwaitTrue([this] { return parent_->HasEnded(); }));
  }

  const ScratchFolder scratch_;
  std::optional<ServerProcess> parent_;
};

TEST_F(ParentTest, StopsTheServerByItsEnd) {
  EXPECT_NE(StartAndAwaitListening(), "") << parent_->output();
  EndParent();
  EXPECT_EQ(parent_->AwaitExit(), 128 + SIGKILL);  // its output ends with the server
  EXPECT_THAT(parent_->output(), testing::HasSubstr(kParentHasEnded));
  EXPECT_THAT(parent_->output(), testing::EndsWith("stopped\n"));
}

bool HasOpen(pid_t pid, const std::string& file_name) {
  std::error_code gone_meanwhile;
  const std::filesystem::path descriptors = fmt::format("/proc/{}/fd", pid);
  for (const auto& entry : std::filesystem::directory_iterator(descriptors, gone_meanwhile)) {
    if (std::filesystem::read_symlink(entry, gone_meanwhile).filename() == file_name) return true;
  }
  return false;
}

TEST_F(ParentTest, StopsTheServerByItsEndBeforeTheSettingsAreRead) {
  scratch_.Write("simile.json", "{}");
  ServerProcess::Circumstances circumstances;
  circumstances.program = program();
  circumstances.variables.insert(
      circumstances.variables.end(),
      {"LD_PRELOAD=" SIMILE_HOLD_READS_FILE, "HOLD_READS_OF=/simile.json",
       "HOLD_READS_UNTIL=" + (scratch_.path() / "go").string(),
       "SIMILE_CONFIG=" + (scratch_.path() / "simile.json").string()});
  parent_.emplace(kServeFilms, circumstances);
  ASSERT_TRUE(parent_->AwaitOutput(".\n")) << parent_->output();
  ASSERT_TRUE(base::AwaitTrue([this] { return HasOpen(ServerPid(), "simile.json"); }));
  EndParent();
  scratch_.Write("go", "");
  EXPECT_EQ(parent_->AwaitListening(), "");
  EXPECT_THAT(parent_->output(), testing::HasSubstr(kParentHasEnded));
}

// Linux reports the end of a thread that started a process as the end of its parent.
TEST(ParentThreadTest, DoesNotStopTheServerByItsEnd) {
  std::vector<std::string> arguments = kServeFilms;
  arguments.emplace_back("--die-with-parent");
  std::optional<ServerProcess> server;
  pid_t id = 0;
  std::thread([&] {
    id = gettid();
    server.emplace(arguments);
    EXPECT_NE(server->AwaitListening(), "");
  }).join();
  const std::filesystem::path thread = fmt::format("/proc/self/task/{}", id);
  ASSERT_TRUE(base::AwaitTrue([&] { return !std::filesystem::exists(thread); }));
  // Of two pending signals the server reads SIGTERM last.
  server->Signal(SIGTERM);
  EXPECT_EQ(server->AwaitExit(), 0);
  EXPECT_THAT(server->output(), testing::Not(testing::HasSubstr(kParentHasEnded)));
}

// As when Ctrl-C ends both.
TEST_F(ParentTest, IsNoSecondSignalByItsEnd) {
  const std::string address = StartAndAwaitListening();
  HeldCall call(ParsePort(address), parent_->MetricsPort());
  ASSERT_TRUE(base::SignalProcess(ServerPid(), SIGTERM));
  ASSERT_TRUE(parent_->AwaitOutput("no new calls"));
  EndParent();
  call.Read();
  const Outcome outcome = call.AwaitEnd();
  EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  parent_->AwaitExit();
  EXPECT_THAT(parent_->output(), testing::EndsWith("stopped\n"));
}

// The program after SIGTERM, with a call in flight.
class ProgramDrainTest : public testing::Test {
 protected:
  //   variable  of the environment; empty for none
  explicit ProgramDrainTest(const std::string& variable = {})
      : server_(kServeFilms, WithVariable(variable)) {
    address_ = server_.AwaitListening();
    metrics_port_ = server_.MetricsPort();
    call_.emplace(ParsePort(address_), metrics_port_);
    server_.Signal(SIGTERM);
    EXPECT_TRUE(server_.AwaitOutput("no new calls"));
  }

  ServerProcess server_;
  std::string address_;
  std::uint16_t metrics_port_ = 0;
  std::optional<HeldCall> call_;
};

TEST_F(ProgramDrainTest, EndsWithTheCallThatWasInFlight) {
  EXPECT_EQ(InFlight(metrics_port_), 1);
  call_->Read();
  EXPECT_TRUE(call_->AwaitEnd().ok());
  EXPECT_EQ(server_.AwaitExit(), 0);
}

class ProgramCutTest : public ProgramDrainTest {
 protected:
  ProgramCutTest() : ProgramDrainTest("SIMILE_LIMITS_DRAIN_TIMEOUT=50") {}
};

TEST_F(ProgramCutTest, ExitsWithSuccessAfterCuttingACallWhoseReplyNobodyReads) {
  EXPECT_EQ(server_.AwaitExit(), 0);
  EXPECT_THAT(server_.output(), testing::HasSubstr("calls that took too long were cut off"));
  call_->Read();
  EXPECT_EQ(call_->AwaitEnd().code, absl::StatusCode::kUnavailable);
}

// A SearchStream whose message of 15 MB has come in part when the server stops. The stream stays
// open.
class LargeMessageDrainTest : public testing::TestWithParam<double> {
 protected:
  static constexpr int kQueries = 100;

  // Of vectors, each with 280 ids to exclude of 500 bytes.
  static std::string LargeMessage() {
    v1::SearchStreamRequest request;
    v1::SearchRequest& search = *request.mutable_search();
    search.set_collection("films");
    search.mutable_options()->set_k(1);
    for (int i = 0; i < kQueries; ++i) {
      v1::Query& query = *search.add_queries();
      for (int column = 0; column < kFilmsDim; ++column) {
        query.mutable_vector()->add_values(static_cast<float>(column == i ? 1 : 0));
      }
      for (int id = 0; id < 280; ++id) query.add_exclude_ids(fmt::format("{:0500}", id));
    }
    const std::string bytes = request.SerializeAsString();
    return net::MessagePrefix(static_cast<std::uint32_t>(bytes.size())) + bytes;
  }

  HeldClock clock_;
  // So that the drain ends early only if the stream does.
  FilmsServer server_{[](app::Config& config) { config.limits.drain_timeout = kDrainTimeout; },
                      &clock_};
};

TEST_P(LargeMessageDrainTest, IsAnsweredOrItsStreamEndsWithUnavailable) {
  const std::string message = LargeMessage();
  const auto before = static_cast<std::size_t>(GetParam() * static_cast<double>(message.size()));
  RawPeer peer(server_.app().port(), "127.0.0.9");
  peer.Send(net::kHttp2Preface + net::Settings() +
            net::Frame(net::FrameType::kHeaders, net::kEndHeaders, 1,
                       net::CallHeaders(kSearchStreamMethod)));
  ASSERT_TRUE(peer.SendData(1, message.substr(0, before)));
  ASSERT_TRUE(peer.AnswersPing());  // all of it has arrived
  const bool is_whole = GetParam() == 1;
  if (is_whole) clock_.Hold();  // while it is parsed and answered
  auto drained = std::async(std::launch::async, [this] { return server_.app().Drain(); });
  EXPECT_TRUE(!is_whole || peer.AwaitData(1));
  clock_.Release();
  EXPECT_TRUE(peer.AwaitCallEnd(1));
  EXPECT_EQ(peer.FindStatus(1), absl::StatusCode::kUnavailable);
  const std::string data = peer.JoinData(1);
  EXPECT_EQ(!data.empty(), is_whole);
  if (!data.empty()) {
    v1::SearchStreamResponse response;
    EXPECT_TRUE(response.ParseFromString(data.substr(net::MessagePrefix(0).size())));
    EXPECT_TRUE(response.has_search()) << response.DebugString();
    EXPECT_EQ(response.search().results_size(), kQueries);
  }
  EXPECT_TRUE(drained.get());
}

INSTANTIATE_TEST_SUITE_P(Shares, LargeMessageDrainTest, testing::Values(0.0, 0.5, 1.0),
                         [](const auto& share) {
                           return fmt::format("Came{:.0f}Percent", share.param * 100);
                         });

TEST_F(ProgramDrainTest, EndsAtOnceOnASecondSignal) {
  server_.Signal(SIGTERM);
  EXPECT_EQ(server_.AwaitExit(), 128 + SIGTERM);
  call_->Read();
  EXPECT_EQ(call_->AwaitEnd().code, absl::StatusCode::kUnavailable);
}

TEST_F(ProgramDrainTest, ExitsWithTheNumberOfTheSecondSignal) {
  server_.Signal(SIGINT);
  EXPECT_EQ(server_.AwaitExit(), 128 + SIGINT);
  call_->Read();
  EXPECT_FALSE(call_->AwaitEnd().ok());
}

}  // namespace
}  // namespace simile::integration
