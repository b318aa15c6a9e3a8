#include "integration/honest_client.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/message_text.h"

namespace simile::integration {

std::string SearchTimesText(SearchTimes times) {
  std::ranges::sort(times);
  // By nearest rank: of fewer than a hundred, 99 of 100 are all.
  const auto ms = [&](double share) {
    const double rank = std::ceil(share * static_cast<double>(times.size()));
    return times[static_cast<std::size_t>(rank) - 1] / 1e3;
  };
  return fmt::format(
      "{} honest searches meanwhile, p50 {:.2f} ms, p99 {:.2f} ms, longest {:.2f} ms",
      base::Grouped(times.size()), ms(0.5), ms(0.99), ms(1));
}

HonestClient::HonestClient(Client client, v1::SearchRequest request,
                           std::function<testing::AssertionResult(const v1::SearchResponse&)> check)
    : client_(std::move(client)),
      request_(std::move(request)),
      check_(std::move(check)),
      thread_([this] { Run(); }) {}

HonestClient::~HonestClient() {
  if (thread_.joinable()) End();
}

void HonestClient::AwaitAnswer() const {
  const std::uint64_t before = answered_;
  while (answered_ < before + 2 && !has_ended_) std::this_thread::yield();  // one is under way
}

SearchTimes HonestClient::End() {
  ends_ = true;
  thread_.join();
  return std::move(times_);
}

void HonestClient::Run() {
  bool right = true;
  do {
    const auto begin = std::chrono::steady_clock::now();
    v1::SearchResponse response;
    const Outcome outcome = client_.Search(request_, response);
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    times_.push_back(taken.count());
    const testing::AssertionResult checked = outcome.ok() ? check_(response)
                                                          : testing::AssertionFailure()
                                                                << testing::PrintToString(outcome);
    right = checked;
    EXPECT_TRUE(checked);
    ++answered_;
    std::this_thread::yield();
  } while (right && !ends_);
  has_ended_ = true;
}

}  // namespace simile::integration
