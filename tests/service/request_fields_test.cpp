#include "service/requests/request_fields.h"

#include <string>

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "service/requests/answer_options.h"
#include "simile/v1/lookup.pb.h"

namespace simile::service {
namespace {

std::string FetchError(const std::string& text) {
  v1::FetchRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
  return std::string(ValidateFetch(request, Limits{}).status().message());
}

std::string LookupError(const std::string& text) {
  v1::LookupRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
  return std::string(ValidateLookup(request, Limits{}).status().message());
}

TEST(ValidateFetchTest, AllowsRequestsWithinLimits) {
  EXPECT_EQ(FetchError("collection: 'films' ids: ['a', 'b'] payload { fields: 'title' }"), "");
}

TEST(ValidateFetchTest, NamesWhatIsWrong) {
  EXPECT_EQ(FetchError("ids: 'a'"),
            "collection: empty; name a collection (CollectionService.ListCollections shows them)");
  EXPECT_EQ(FetchError("collection: 'films'"), "ids: 0 given; a call takes 1 to 1,024");
  EXPECT_EQ(FetchError("collection: 'films' ids: ['a', '']"),
            "ids[1]: empty; an id has 1 to 512 bytes");
  EXPECT_EQ(FetchError("collection: 'films' ids: 'a' payload { fields: 'x' "
                       "selection: SELECTION_NONE }"),
            "payload.fields: 1 field named together with SELECTION_NONE; leave one of them out");
  EXPECT_EQ(FetchError("collection: 'films' ids: 'a' reply_bytes_max: 0"),
            "reply_bytes_max: 0; give 1 to 67,108,864");
  EXPECT_EQ(
      FetchError("collection: 'films' ids: 'a' required_filter: '" + std::string(8'193, 'x') + "'"),
      "required_filter: 8,193 bytes; a filter may have 8,192; allow_ids takes long lists of ids");
}

TEST(ValidateFetchTest, RefusesMoreFieldsThanItsBound) {
  std::string text = "collection: 'films' ids: 'a' payload { ";
  for (int field = 0; field < 256; ++field) text += "fields: 'x' ";
  EXPECT_EQ(FetchError(text + "}"), "");
  EXPECT_EQ(FetchError(text + "fields: 'y' }"), "payload.fields: 257 fields named; at most 256");
}

TEST(ValidateLookupTest, AllowsRequestsWithinLimits) {
  EXPECT_EQ(LookupError("collection: 'films' text: 'Toy' limit: 1000"), "");
}

TEST(ValidateLookupTest, NamesWhatIsWrong) {
  EXPECT_EQ(LookupError("collection: '.films' text: 'Toy'"),
            "collection: \".films\" is not a name; a name has letters, digits, '-', '_' and '.', "
            "and does not start with '.'");
  EXPECT_EQ(LookupError("collection: 'films'"), "text: 0 bytes; give 1 to 512");
  EXPECT_EQ(LookupError("collection: 'films' text: '" + std::string(513, 'x') + "'"),
            "text: 513 bytes; give 1 to 512");
  EXPECT_EQ(LookupError("collection: 'films' text: 'Toy' limit: 0"),
            "limit: 0; ask for 1 to 1,000");
  EXPECT_EQ(LookupError("collection: 'films' text: 'Toy' limit: 1001"),
            "limit: 1,001; ask for 1 to 1,000");
  EXPECT_EQ(LookupError("collection: 'films' text: 'Toy' payload { selection: 3 }"),
            "payload.selection: 3 is unknown; set SELECTION_ALL or SELECTION_NONE, or name fields "
            "instead");
}

std::string Error(const std::string& name) {
  return std::string(CheckCollectionName({"name"}, name, Limits{}).message());
}

TEST(CollectionNameTest, AllowsLettersDigitsAndThreeSigns) {
  EXPECT_EQ(Error("films"), "");
  EXPECT_EQ(Error("Films_2.v1-b"), "");
  EXPECT_EQ(Error("-"), "");
  EXPECT_EQ(Error(std::string(128, 'x')), "");
}

TEST(CollectionNameTest, RefusesOtherNames) {
  const std::string rule =
      "; a name has letters, digits, '-', '_' and '.', and does not start with '.'";
  EXPECT_EQ(Error("two words"), "name: \"two words\" is not a name" + rule);
  EXPECT_EQ(Error(".hidden"), "name: \".hidden\" is not a name" + rule);
  EXPECT_EQ(Error("a/../b"), "name: \"a/../b\" is not a name" + rule);
  EXPECT_EQ(Error("caf\xC3\xA9"), "name: \"caf\xC3\xA9\" is not a name" + rule);
  EXPECT_EQ(Error("liveness"),
            "name: \"liveness\" is the name of a health check; choose another one");
  EXPECT_EQ(Error(std::string(129, 'x')), "name: 129 bytes; a name has at most 128");
}

}  // namespace
}  // namespace simile::service
