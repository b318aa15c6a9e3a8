#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "app/wiring.h"
#include "integration/client.h"
#include "simile/clock.h"

namespace simile::integration {

inline const char kFilmsFolder[] = SIMILE_SOURCE_DIR "/examples/films";
inline constexpr int kFilmsRows = 5'000;
inline constexpr int kFilmsDim = 384;

// The real server in this process, on free ports, serving examples/films as "films".
class FilmsServer {
 public:
  using Change = std::function<void(app::Config& config)>;

  // Loads the films. Aborts the test program when the server does not start.
  //   clock  as App::Create takes it
  explicit FilmsServer(const Change& change = {}, const Clock* clock = nullptr);

  app::App& app() { return *app_; }
  Client NewClient() const { return Client(app_->address()); }

 private:
  std::unique_ptr<app::App> app_;
};

// Copies the films into a folder. Each edition has other content, with the same ids, vectors and
// answers; edition 1 is examples/films itself.
void CopyFilms(const std::filesystem::path& folder, int edition = 1);

// A server that answers but has not loaded its collections.
std::unique_ptr<app::App> StartWithoutLoading(const FilmsServer::Change& change = {},
                                              const Clock* clock = nullptr);

// The real time; while it is held, the time of the moment when it was held. A server that stops
// gives a stream about a second by its clock.
class HeldClock final : public Clock {
 public:
  TimePoint Now() const override {
    const TimePoint::rep held = held_at_;
    return held == kRuns ? real_.Now() : TimePoint(Duration(held));
  }
  std::chrono::system_clock::time_point WallNow() const override { return real_.WallNow(); }
  void Hold() { held_at_ = real_.Now().time_since_epoch().count(); }
  void Release() { held_at_ = kRuns; }

 private:
  static constexpr TimePoint::rep kRuns = -1;
  const RealClock real_;
  std::atomic<TimePoint::rep> held_at_ = kRuns;
};

// A limit on drains that calls in flight never reach, however busy the machine is.
inline constexpr std::chrono::milliseconds kDrainTimeout{300'000};

// Waits until the server accepts no connection: its drain has begun.
void AwaitRefusal(const FilmsServer& server);

// A search for items like Toy Story.
v1::SearchRequest ToyStory();

// A search whose answer has six megabytes: more than a caller's flow-control window takes before it
// reads.
v1::SearchRequest SixMegabytes();

// The whole response to a GET of a page, `/readyz`, from the port of the metrics.
std::string GetPage(std::uint16_t port, const std::string& path);

// The body of GET /metrics.
std::string ScrapeMetrics(std::uint16_t port);

// The value of the metric whose line starts with `name` and its labels as exposed
// (`simile_rows{collection="films"}`); -1 when there is none.
double MetricValue(const std::string& metrics, const std::string& name);

inline constexpr char kInFlight[] = "simile_requests_in_flight";

// Whether the metric, as MetricValue has it, comes to match (`1`, `testing::Ge(2)`) within
// base::kAwaitMax.
//   port  of the metrics
testing::AssertionResult AwaitMetric(std::uint16_t port, const std::string& name,
                                     const testing::Matcher<double>& expected);

}  // namespace simile::integration
