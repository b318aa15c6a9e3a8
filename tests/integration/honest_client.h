#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "integration/client.h"
#include "simile/v1/search.pb.h"

namespace simile::integration {

// How long searches took, each in microseconds.
using SearchTimes = std::vector<double>;

// `1,234 honest searches meanwhile, p50 0.15 ms, p99 2.10 ms, longest 3.21 ms`
// REQUIRES: there is one.
std::string SearchTimesText(SearchTimes times);

// Repeats a search in a thread of its own, while peers attack the server, until the test ends it or
// a call fails. Each call must succeed and pass the check.
class HonestClient {
 public:
  HonestClient(Client client, v1::SearchRequest request,
               std::function<testing::AssertionResult(const v1::SearchResponse&)> check);
  ~HonestClient();

  // Waits for an answer to a search that has not begun yet, or until one has failed.
  void AwaitAnswer() const;
  // After the call under way. Once.
  SearchTimes End();

 private:
  void Run();

  const Client client_;
  const v1::SearchRequest request_;
  const std::function<testing::AssertionResult(const v1::SearchResponse&)> check_;
  SearchTimes times_;
  std::atomic<std::uint64_t> answered_ = 0;
  std::atomic<bool> ends_ = false;
  std::atomic<bool> has_ended_ = false;
  std::thread thread_;
};

}  // namespace simile::integration
