// What a reply costs to make, in this process and without a network: the same answer in wire form
// and through messages of the protobuf library, alternating round by round. The two are compared
// before a time is printed.
//
//   reply_bench --collection examples/films
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/timing.h"
#include "data/load/load.h"
#include "service/reference_reply.h"

namespace simile::bench {
namespace {

constexpr std::uint64_t kCountedMax = std::uint64_t{64} << 20;

struct Options {
  std::string collection = "examples/films";
  std::size_t hits = 10;
  std::size_t rounds = 11;
  std::string json_path;
};

// Answers of one query each, whose hits are spread over the collection.
class Answers {
 public:
  Answers(engine::SnapshotPtr snapshot, std::size_t hits_per_answer)
      : snapshot_(std::move(snapshot)) {
    constexpr std::size_t kAnswers = 512;
    constexpr std::size_t kStride = 7'919;
    std::size_t place = 0;
    for (std::size_t i = 0; i < kAnswers; ++i) {
      std::vector<Hit>& hits = hits_.emplace_back();
      for (std::size_t rank = 0; rank < hits_per_answer; ++rank) {
        place = (place + kStride) % snapshot_->row_count();
        hits.push_back({static_cast<Row>(place), 0.5F});
      }
    }
    receipt_.served_by = std::make_shared<const ServedBy>(
        ServedBy{{.name = "cpu", .engine = "int8-amx", .device = "AMD EPYC 9B14, 2 threads"},
                 "no NVIDIA driver on this machine (libcuda.so.1 not found)"});
    receipt_.engines = {"int8-amx"};
    receipt_.batch_size = 8;
    receipt_.queue_us = 12;
    receipt_.compute_us = 94;
    receipt_.cost = {.rows_scanned = 5'000, .rows_rescored = 14, .rescans = 0, .rounds = 0};
  }

  // Calls make(parts) for every answer. Returns the mean time of a call.
  template <class Make>
  double Nanoseconds(const service::RowShape& shape, Make make) const {
    const auto start = std::chrono::steady_clock::now();
    for (const std::vector<Hit>& hits : hits_) {
      service::ResultPage page;
      page.hits = hits;
      page.score_kind = v1::SCORE_KIND_COSINE;
      make(service::SearchReply::Parts{.shape = shape,
                                       .pages = {&page, 1},
                                       .receipt = {.snapshot = *snapshot_,
                                                   .receipt = receipt_,
                                                   .request_id = "4f1c2b7a90de4c51",
                                                   .total_us = 131},
                                       .next_page_token = {},
                                       .notes = {}});
    }
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    return taken.count() / static_cast<double>(hits_.size());
  }

 private:
  const engine::SnapshotPtr snapshot_;
  std::vector<std::vector<Hit>> hits_;
  observe::Receipt receipt_;
};

struct Measured {
  double wire_ns = 0;
  double messages_ns = 0;
  double reply_bytes = 0;
};

Measured Measure(const Answers& answers, const service::RowShape& shape, std::size_t rounds) {
  std::vector<std::uint8_t> out(kCountedMax);
  double bytes = 0;
  const auto wire = [&](const service::SearchReply::Parts& parts) {
    const service::SearchReply reply(parts, kCountedMax);
    reply.Write(out.data());
    bytes = static_cast<double>(reply.bytes());
  };
  const auto messages = [&](const service::SearchReply::Parts& parts) {
    google::protobuf::Arena arena;
    auto& response = *google::protobuf::Arena::CreateMessage<v1::SearchResponse>(&arena);
    FillResponse(parts, response);
    static_cast<void>(response.ByteSizeLong());
    response.SerializeWithCachedSizesToArray(out.data());
  };
  answers.Nanoseconds(shape, [](const service::SearchReply::Parts& parts) {
    v1::SearchResponse expected;
    FillResponse(parts, expected);
    const std::string difference =
        FindDifference(service::SearchReply(parts, kCountedMax), expected);
    if (!difference.empty()) throw std::runtime_error(difference);
  });
  std::vector<double> wire_ns;
  std::vector<double> messages_ns;
  for (std::size_t round = 0; round < rounds; ++round) {
    wire_ns.push_back(answers.Nanoseconds(shape, wire));
    messages_ns.push_back(answers.Nanoseconds(shape, messages));
  }
  return {Median(wire_ns), Median(messages_ns), bytes};
}

engine::SnapshotPtr LoadSnapshot(const std::string& folder) {
  const Limits limits;
  const auto plan = data::PlanDataset(folder, limits);
  if (!plan.ok()) throw std::runtime_error(plan.status().ToString());
  auto dataset = data::LoadDataset(*plan, limits, {});
  if (!dataset.ok()) throw std::runtime_error(dataset.status().ToString());
  auto snapshot = std::make_shared<engine::Snapshot>();
  snapshot->id = dataset->content_id;
  snapshot->version = 1;
  snapshot->dataset = std::make_shared<const data::Dataset>(*std::move(dataset));
  return snapshot;
}

void Run(const Options& options) {
  const engine::SnapshotPtr snapshot = LoadSnapshot(options.collection);
  const Answers answers(snapshot, options.hits);
  nlohmann::json report = {{"hits", options.hits}, {"cases", nlohmann::json::array()}};
  fmt::print("{:<28} {:>8} {:>12} {:>14} {:>7}\n", "reply", "bytes", "wire form", "messages",
             "ratio");
  const std::pair<const char*, service::RowShape> cases[] = {
      {"ids and scores", {{.none = true, .all = false, .field_numbers = {}}, false, false}},
      {"with payload", {{.none = false, .all = true, .field_numbers = {}}, false, false}},
      {"with payload and vectors",
       {{.none = false, .all = true, .field_numbers = {}}, true, false}},
  };
  for (const auto& [name, shape] : cases) {
    const Measured measured = Measure(answers, shape, options.rounds);
    fmt::print("{:<28} {:>8} {:>9.0f} ns {:>11.0f} ns {:>6.1f}x\n", name, measured.reply_bytes,
               measured.wire_ns, measured.messages_ns, measured.messages_ns / measured.wire_ns);
    report["cases"].push_back({{"name", name},
                               {"bytes", measured.reply_bytes},
                               {"wire_ns", measured.wire_ns},
                               {"messages_ns", measured.messages_ns}});
  }
  if (!options.json_path.empty()) std::ofstream(options.json_path) << report.dump(2) << "\n";
}

}  // namespace
}  // namespace simile::bench

int main(int argument_count, char** arguments) {
  simile::bench::Options options;
  CLI::App app("What a reply costs to make, against messages of the protobuf library");
  app.add_option("--collection", options.collection, "Folder of a collection")
      ->capture_default_str();
  app.add_option("--hits", options.hits, "Hits of an answer")->capture_default_str();
  app.add_option("--rounds", options.rounds, "Rounds that are counted")->capture_default_str();
  app.add_option("--json", options.json_path, "Where to write the figures");
  CLI11_PARSE(app, argument_count, arguments);
  try {
    simile::bench::Run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
  return 0;
}
