#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "data/sample_folder.h"
#include "integration/films_server.h"

namespace simile::integration {
namespace {

constexpr int kCollections = 103;  // more than a page has by default

// c000, c001, ...: in this order also as texts.
std::string FormatName(int index) {
  std::string digits = std::to_string(1'000 + index);
  digits[0] = 'c';
  return digits;
}

class ListPagesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = std::make_unique<ScratchFolder>();
    for (const data::SampleFile& file : data::SampleFiles()) {
      root_->Write("sample/" + file.name, file.bytes);
    }
    server_ = std::make_unique<FilmsServer>([](app::Config& config) {
      config.collections.clear();
      for (int index = kCollections - 1; index >= 0; --index) {
        config.collections.push_back({FormatName(index), root_->path() / "sample"});
      }
      config.changes_allowed = true;
      config.data_root = root_->path();
    });
  }
  static void TearDownTestSuite() {
    server_.reset();
    root_.reset();
  }

  v1::ListCollectionsResponse Page(std::uint32_t size, const std::string& token) const {
    v1::ListCollectionsRequest request;
    request.set_page_size(size);
    request.set_page_token(token);
    v1::ListCollectionsResponse response;
    const Outcome outcome = client_.List(request, response);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    return response;
  }
  // The names on all pages from a token on, with `between` called after the first page.
  template <class Between>
  std::vector<std::string> Names(std::uint32_t size, const Between& between) const {
    std::vector<std::string> names;
    std::string token;
    do {
      const v1::ListCollectionsResponse page = Page(size, token);
      EXPECT_GE(page.collections_size(), 1);
      EXPECT_EQ(page.backend().kind(), v1::BACKEND_KIND_CPU);
      for (const v1::Collection& collection : page.collections()) {
        names.push_back(collection.name());
      }
      if (token.empty()) between();
      token = page.next_page_token();
    } while (!token.empty() && names.size() < 2 * kCollections);
    return names;
  }

  inline static std::unique_ptr<ScratchFolder> root_;
  inline static std::unique_ptr<FilmsServer> server_;
  const Client client_ = server_->NewClient();
};

TEST_F(ListPagesTest, TogetherHaveEveryCollectionOnceByName) {
  std::vector<std::string> all;
  for (int index = 0; index < kCollections; ++index) all.push_back(FormatName(index));
  for (const std::uint32_t size : {1U, 2U, 50U, 102U, 103U, 104U, 1'000U, 0U}) {
    EXPECT_EQ(Names(size, [] {}), all) << size;
  }
}

TEST_F(ListPagesTest, HaveOneHundredCollectionsByDefault) {
  const v1::ListCollectionsResponse first = Page(0, "");
  EXPECT_EQ(first.collections_size(), 100);
  const v1::ListCollectionsResponse second = Page(0, first.next_page_token());
  EXPECT_EQ(second.collections_size(), kCollections - 100);
  EXPECT_EQ(second.next_page_token(), "");
}

TEST_F(ListPagesTest, OfTheExactSizeHaveNoneAfterThem) {
  EXPECT_EQ(Page(kCollections, "").next_page_token(), "");
  EXPECT_NE(Page(kCollections - 1, "").next_page_token(), "");
}

TEST_F(ListPagesTest, NeitherRepeatNorSkipWhenCollectionsComeAndGo) {
  const std::vector<std::string> names = Names(10, [&] {
    ASSERT_TRUE(client_.Unload(FormatName(3)).ok());   // on the first page
    ASSERT_TRUE(client_.Unload(FormatName(9)).ok());   // its last
    ASSERT_TRUE(client_.Unload(FormatName(42)).ok());  // on a later page
    ChangeAnswer answer;
    ASSERT_TRUE(client_.Load("c009x", "sample", answer).ok());
    ASSERT_TRUE(client_.Load("b", "sample", answer).ok());
  });
  std::vector<std::string> expected;
  for (int index = 0; index < kCollections; ++index) {
    if (index != 42) expected.push_back(FormatName(index));
    if (index == 9) expected.push_back("c009x");
  }
  EXPECT_EQ(names, expected);
  // As it was, for the other tests.
  ChangeAnswer answer;
  for (const int index : {3, 9, 42}) {
    ASSERT_TRUE(client_.Load(FormatName(index), "sample", answer).ok());
  }
  ASSERT_TRUE(client_.Unload("c009x").ok());
  ASSERT_TRUE(client_.Unload("b").ok());
}

TEST_F(ListPagesTest, AreContinuedByAnotherServer) {
  const FilmsServer other;
  v1::ListCollectionsRequest request;
  request.set_page_token(Page(1, "").next_page_token());
  v1::ListCollectionsResponse response;
  ASSERT_TRUE(other.NewClient().List(request, response).ok());
  ASSERT_EQ(response.collections_size(), 1);
  EXPECT_EQ(response.collections(0).name(), "films") << "after c000";
}

TEST_F(ListPagesTest, RefuseASizeBeyondTheLimit) {
  v1::ListCollectionsRequest request;
  request.set_page_size(1'001);
  v1::ListCollectionsResponse response;
  const Outcome outcome = client_.List(request, response);
  EXPECT_EQ(outcome.reason, "INVALID_FIELD");
  EXPECT_EQ(outcome.field, "page_size");
  EXPECT_EQ(outcome.message, "page_size: 1,001; give 1 to 1,000, or 0 for 100");
}

TEST_F(ListPagesTest, RefuseATokenThatIsNotTheirs) {
  const std::string token = Page(1, "").next_page_token();
  for (std::string damaged :
       {std::string("x"), token + "!", token.substr(1), std::string(1 << 20, 'A')}) {
    v1::ListCollectionsRequest request;
    request.set_page_token(std::move(damaged));
    v1::ListCollectionsResponse response;
    const Outcome outcome = client_.List(request, response);
    EXPECT_EQ(outcome.code, absl::StatusCode::kInvalidArgument) << testing::PrintToString(outcome);
    EXPECT_EQ(outcome.reason, "INVALID_PAGE_TOKEN");
    EXPECT_EQ(outcome.field, "page_token");
    EXPECT_LT(outcome.message.size(), 500U);
  }
}

TEST(ListBytesTest, CutAPageThatWouldBeTooLarge) {
  const ScratchFolder scratch;
  data::WriteSample(scratch);
  constexpr std::uint32_t kReplyBytes = 2'000;
  const FilmsServer server([&](app::Config& config) {
    config.collections.clear();
    for (int index = 0; index < 20; ++index) {
      config.collections.push_back({FormatName(index), scratch.path()});
    }
    config.limits.reply_bytes_default = kReplyBytes;
  });
  const Client client = server.NewClient();
  v1::ListCollectionsRequest request;
  std::vector<std::string> names;
  int pages = 0;
  do {
    v1::ListCollectionsResponse response;
    const Outcome outcome = client.List(request, response);
    ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    EXPECT_LE(response.ByteSizeLong(), kReplyBytes);
    for (const v1::Collection& collection : response.collections()) {
      names.push_back(collection.name());
    }
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty() && pages < 20);
  EXPECT_EQ(names.size(), 20U);
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_GT(pages, 1);
}

}  // namespace
}  // namespace simile::integration
