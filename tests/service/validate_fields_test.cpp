#include "service/validate_fields.h"

#include <string>

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "simile/v1/lookup.pb.h"

namespace simile::service {
namespace {

std::string FetchError(const std::string& text) {
  v1::FetchRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
  return std::string(ValidateFetch(request, Limits{}).message());
}

std::string LookupError(const std::string& text) {
  v1::LookupRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
  return std::string(ValidateLookup(request, Limits{}).message());
}

TEST(ValidateFetchTest, AllowsRequestsWithinLimits) {
  EXPECT_EQ(FetchError("collection: 'films' ids: ['a', 'b'] payload_fields: 'title'"), "");
}

TEST(ValidateFetchTest, NamesWhatIsWrong) {
  EXPECT_EQ(FetchError("ids: 'a'"),
            "collection: empty; name a collection (CollectionService.List shows them)");
  EXPECT_EQ(FetchError("collection: 'films'"), "ids: 0 given; a call takes 1 to 1,024");
  EXPECT_EQ(FetchError("collection: 'films' ids: ['a', '']"),
            "ids[1]: empty; an id has 1 to 512 bytes");
  EXPECT_EQ(FetchError("collection: 'films' ids: 'a' payload_fields: 'x' without_payload: true"),
            "payload_fields: set together with without_payload; set only one of them");
}

TEST(ValidateFetchTest, RefusesMoreFieldsThanItsBound) {
  std::string text = "collection: 'films' ids: 'a' ";
  for (int field = 0; field < 257; ++field) text += "payload_fields: 'x' ";
  EXPECT_EQ(FetchError(text), "payload_fields: 257 fields named; at most 256");
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
}

}  // namespace
}  // namespace simile::service
