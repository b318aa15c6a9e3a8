#include "integration/films_server.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <ostream>
#include <sstream>
#include <streambuf>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/await_true.h"
#include "net/loopback.h"

namespace simile::integration {
namespace {

[[noreturn]] void Abort(const absl::Status& status) {
  std::fprintf(stderr, "the server under test does not start: %s\n", status.ToString().c_str());
  std::abort();
}

// Passes a log's errors on to standard error, and nothing else: the audit is written at every level
// and would fill what a test may print.
class ErrorLines final : public std::streambuf {
 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    const std::string_view line(text, static_cast<std::size_t>(size));
    // The level follows the time.
    if (line.substr(0, 32).find("Z error ") != line.npos) std::fwrite(text, 1, line.size(), stderr);
    return size;
  }
};

const observe::Logger& TestLog() {
  static ErrorLines lines;
  static std::ostream sink(&lines);
  static const observe::Logger log({app::LogFormat::kText, app::LogLevel::kError, &sink});
  return log;
}

}  // namespace

void CopyFilms(const std::filesystem::path& folder, int edition) {
  std::filesystem::copy(kFilmsFolder, folder);
  if (edition == 1) return;
  const std::filesystem::path metadata = folder / "metadata.jsonl";
  std::ifstream before(metadata);
  std::string text{std::istreambuf_iterator<char>(before), {}};
  const std::string title = "Feeding Sea Lions";
  text.insert(text.find(title) + title.size(), " " + std::to_string(edition));
  std::ofstream(metadata) << text;
}

std::unique_ptr<app::App> StartWithoutLoading(const FilmsServer::Change& change,
                                              const Clock* clock) {
  app::Config config;
  config.port = 0;
  config.metrics_port = 0;
  config.tuning = app::Tuning::kDefaults;  // the same strategies in every run, and no measurement
  config.collections = {{"films", kFilmsFolder}};
  if (change) change(config);
  auto app = app::App::Create(config, TestLog(), clock);
  if (!app.ok()) Abort(app.status());
  return *std::move(app);
}

FilmsServer::FilmsServer(const Change& change, const Clock* clock)
    : app_(StartWithoutLoading(change, clock)) {
  const absl::Status loaded = app_->LoadCollections({});
  if (!loaded.ok()) Abort(loaded);
}

void AwaitRefusal(const FilmsServer& server) {
  EXPECT_TRUE(
      base::AwaitTrue([&] { return server.NewClient().CheckHealth("") == Health::kUnreachable; }));
}

v1::SearchRequest ToyStory() {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("toy-story-1995");
  return request;
}

v1::SearchRequest SixMegabytes() {
  v1::SearchRequest request = ToyStory();
  request.mutable_options()->set_k(3'000);
  request.mutable_options()->set_with_vectors(true);
  request.mutable_options()->set_reply_bytes_max(64U << 20);
  return request;
}

std::string GetPage(std::uint16_t port, const std::string& path) {
  const base::FileDescriptor connection = net::ConnectTo(port);
  const std::string request = fmt::format("GET {} HTTP/1.0\r\n\r\n", path);
  if (send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
  std::string answer;
  char buffer[4096];
  for (ssize_t got = 0; (got = recv(connection.get(), buffer, sizeof buffer, 0)) > 0;) {
    answer.append(buffer, static_cast<std::size_t>(got));
  }
  return answer;
}

std::string ScrapeMetrics(std::uint16_t port) {
  const std::string answer = GetPage(port, "/metrics");
  const std::size_t body = answer.find("\r\n\r\n");
  return body == std::string::npos ? "" : answer.substr(body + 4);
}

double MetricValue(const std::string& metrics, const std::string& name) {
  const std::string line = "\n" + name + " ";
  const std::size_t place = metrics.find(line);
  if (place == std::string::npos) return -1;
  return std::strtod(metrics.c_str() + place + line.size(), nullptr);
}

testing::AssertionResult AwaitMetric(std::uint16_t port, const std::string& name,
                                     const testing::Matcher<double>& expected) {
  double value = 0;
  const testing::AssertionResult came = base::AwaitTrue([&] {
    value = MetricValue(ScrapeMetrics(port), name);
    return expected.Matches(value);
  });
  if (came) return came;
  std::ostringstream description;
  expected.DescribeTo(&description);
  return testing::AssertionFailure() << fmt::format("{}: {} is {}; expected: {}", came.message(),
                                                    name, value, description.str());
}

}  // namespace simile::integration
