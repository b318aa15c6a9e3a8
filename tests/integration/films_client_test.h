#pragma once

#include <gtest/gtest.h>

#include "integration/films_server.h"

namespace simile::integration {

// Makes calls that a server of the films must answer.
class FilmsClientTest : public testing::Test {
 protected:
  explicit FilmsClientTest(const FilmsServer& server) : client_(server.NewClient()) {}

  v1::SearchResponse Search(const v1::SearchRequest& request,
                            const CallOptions& options = {}) const {
    v1::SearchResponse response;
    const Outcome outcome = client_.Search(request, response, options);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    return response;
  }
  v1::RecommendResponse Recommend(const v1::RecommendRequest& request) const {
    v1::RecommendResponse response;
    const Outcome outcome = client_.Recommend(request, response);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    return response;
  }

  const Client client_;
};

}  // namespace simile::integration
