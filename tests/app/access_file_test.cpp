#include "app/access_file.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/load/user_scope.h"
#include "files/document.h"
#include "files/scratch_folder.h"
#include "service/access/access_policy.h"

namespace simile::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kHash =
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";  // "test"

std::string File(const std::string& principal) { return R"({"principals": [)" + principal + "]}"; }

// A principal with these members besides name, role and token.
std::string Reader(const std::string& members = "") {
  return R"({"name": "ranker", "role": "read", "token_sha256": ")" + kHash + "\"" + members + "}";
}

class AccessFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::shared_ptr<const service::AccessPolicy>> Read(const std::string& text) const {
    folder_.Write("access.json", text);
    return ReadAccessFile(folder_.path() / "access.json");
  }
  std::string Refusal(const std::string& text) const {
    return std::string(Read(text).status().message());
  }

  const ScratchFolder folder_;
};

TEST_F(AccessFileTest, ReadsAPrincipalWithEverything) {
  const auto policy = Read(File(Reader(
      R"(, "certificates": ["spiffe://example.org/ranker"], "collections": ["films", "books"],
         "required_filter": "year >= 1990", "expires": "2027-05-31T12:00:00Z",
         "limits": {"calls_per_second": 0.5, "queries_in_flight": 64, "bytes_in_flight": 1048576})")));
  ASSERT_TRUE(policy.ok()) << policy.status();
  const service::PrincipalPtr principal = (*policy)->FindToken(service::HashToken("test"));
  ASSERT_NE(principal, nullptr);
  EXPECT_EQ(principal->name, "ranker");
  EXPECT_EQ(principal->role, service::Role::kRead);
  EXPECT_THAT(principal->collections, ElementsAre("films", "books"));
  EXPECT_EQ(principal->required_filter, "year >= 1990");
  EXPECT_EQ(std::chrono::system_clock::to_time_t(*principal->expires_at), 1'811'764'800);
  EXPECT_EQ(principal->limits, (service::PrincipalLimits{0.5, 64, 1 << 20}));
  const std::string names[] = {"spiffe://example.org/ranker"};
  EXPECT_EQ((*policy)->FindCertificate(names), principal);
}

TEST_F(AccessFileTest, ReadsWhatTheCommandPrints) {
  service::Principal made;
  made.name = "ops";
  made.role = service::Role::kAdmin;
  made.token_hashes = {service::HashToken("a token")};
  made.collections = {"films"};
  const auto policy = Read(File(AccessEntryText(made)));
  ASSERT_TRUE(policy.ok()) << policy.status();
  const service::PrincipalPtr read = (*policy)->FindToken(service::HashToken("a token"));
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->role, service::Role::kAdmin);
  EXPECT_THAT(read->collections, ElementsAre("films"));
}

TEST_F(AccessFileTest, ReadsTheExamplesOfTheDocumentation) {
  const std::vector<std::string> examples = FencedBlocks(TextOfSource("docs/access.md"), "json");
  EXPECT_FALSE(examples.empty());
  for (const std::string& example : examples) {
    const auto policy = Read(example);
    EXPECT_TRUE(policy.ok()) << policy.status() << example;
  }
}

// An object with a number inside `lists` lists.
std::string Nested(int lists) {
  const auto count = static_cast<std::size_t>(lists);
  return R"({"principals": )" + std::string(count, '[') + "1" + std::string(count, ']') + "}";
}

struct Mistake {
  std::string text;
  std::string message;
};

TEST_F(AccessFileTest, SaysWhatIsWrongAndWhere) {
  const std::string ranker = "access.json: principal \"ranker\": ";
  const Mistake mistakes[] = {
      {"", "access.json: no such file, or an empty one"},
      {"[]", "access.json: a JSON object belongs here"},
      {"{", "access.json: not JSON: "},
      {Nested(100'000), "access.json: more than 32 lists and objects inside one another"},
      {Nested(32), "access.json: more than 32 lists and objects inside one another"},
      {Nested(31), "access.json: principal 1: not an object"},
      {R"({"principals": [1e999]})", "access.json: not JSON: "},
      {"{}", "access.json: no list \"principals\""},
      {R"({"principals": [], "principal": 1})",
       "unknown name \"principal\". Did you mean \"principals\"?"},
      {R"({"principals": []})", "no principal: nobody could call"},
      {File("1"), "access.json: principal 1: not an object"},
      {File("{}"), "access.json: principal 1: name: give a string"},
      {File(R"({"name": "ranker"})"), ranker + "role: give \"read\", \"write\" or \"admin\""},
      {File(R"({"name": "ranker", "role": "root"})"), ranker + "role: give"},
      {File(R"({"name": "ranker", "role": "read"})"),
       ranker + "neither token_sha256 nor certificates; `simile token` makes a token"},
      {File(R"({"name": "ranker", "role": "read", "token_sha256": "secret"})"),
       ranker + "token_sha256: not 64 hexadecimal digits; the token itself must not be here"},
      {File(R"({"name": "ranker", "role": "read", "role": "admin"})"), "\"role\" is given twice"},
      {File(Reader(R"(, "colections": ["films"])")),
       ranker + "unknown name \"colections\". Did you mean \"collections\"?"},
      {File(Reader(R"(, "collections": [])")), ranker + "collections: an empty list"},
      {File(Reader(R"(, "collections": [1])")), ranker + "collections: 1 is not a string"},
      {File(Reader(R"(, "required_filter": "year >")")), ranker + "required_filter: column "},
      {File(Reader(R"(, "required_filter": "")")), ranker + "required_filter: give a filter"},
      {File(Reader(R"(, "required_filter": "year > 1 AND NOT country:DE")")),
       ranker + "required_filter: column 18: country:DE also passes texts that only contain the "
                "value, and a required filter must compare whole values; write country = DE"},
      {File(Reader(R"(, "expires": "tomorrow")")), ranker + "expires: \"tomorrow\" is not a time"},
      {File(Reader(R"(, "expires": 2027)")), ranker + "expires: 2027 is not a string"},
      {File(Reader(R"(, "limits": 5)")), ranker + "limits: not an object"},
      {File(Reader(R"(, "limits": {"calls": 5})")), ranker + "limits: unknown name \"calls\"."},
      {File(Reader(R"(, "limits": {"calls_per_second": 0})")),
       ranker + "limits: calls_per_second: 0 is not a number above 0"},
      {File(Reader(R"(, "limits": {"queries_in_flight": 1.5})")),
       ranker + "limits: queries_in_flight: 1.5 is not a whole number from 1"},
      {File(Reader() + "," + Reader()), "access.json: two principals are named \"ranker\""},
      {File(Reader() + R"(,{"name": "b", "role": "read", "token_sha256": ")" + kHash + "\"}"),
       "access.json: principal \"b\": \"ranker\" has the same token"},
      {File(Reader(R"(, "certificates": ["a", "a"])")),
       ranker + "certificates: \"a\" is given twice"},
      {File(Reader(R"(, "certificates": ["a "])")), ranker + "certificates: \"a \" begins or ends"},
      {File(Reader(R"(, "collections": ["a b"])")), ranker + "collections: \"a b\" is not a name"},
      {File(Reader(R"(, "collections": ["films", ".."])")), ranker + "collections: \"..\" is not"},
      {File(Reader(R"(, "collections": ["liveness"])")), ranker + "collections: \"liveness\" is"},
  };
  for (const Mistake& mistake : mistakes) {
    EXPECT_THAT(Refusal(mistake.text), HasSubstr(mistake.message)) << mistake.text;
  }
}

TEST_F(AccessFileTest, RefusesHashesOfTheSameTokenInEitherLetterCase) {
  std::string upper = kHash;
  absl::AsciiStrToUpper(&upper);
  const std::string b = R"({"name": "b", "role": "read", "token_sha256": ")";
  EXPECT_THAT(Refusal(File(Reader() + "," + b + upper + "\"}")),
              HasSubstr("principal \"b\": \"ranker\" has the same token"));
  EXPECT_THAT(
      Refusal(File(R"({"name": "b", "role": "read", "token_sha256": [")" + kHash + "\", \"" +
                   upper + "\"]}")),
      HasSubstr(
          "principal \"b\": token_sha256: the same hash is given twice, in different letter"));
}

class AccessFileUsersTest : public AccessFileTest {
 protected:
  data::UserScope Users(const std::string& members) const {
    const auto policy = Read(File(Reader(members)));
    EXPECT_TRUE(policy.ok()) << members << policy.status();
    return policy.ok() ? (*policy)->principals().front()->users : data::UserScope();
  }
  data::UserScope ReadUsers(const std::string& rule) const {
    return Users(R"(, "users": )" + rule);
  }
  std::string RefuseRule(const std::string& rule) const {
    return Refusal(File(Reader(R"(, "users": )" + rule)));
  }
};

TEST_F(AccessFileUsersTest, AreAllUnlessRowsAreFiltered) {
  EXPECT_TRUE(Users("").is_all());
  EXPECT_TRUE(Users(R"(, "collections": "films")").is_all());
  EXPECT_EQ(Users(R"(, "required_filter": "tenant = acme")"), data::UserScope::None());
  EXPECT_TRUE(Users(R"(, "required_filter": "tenant = acme", "users": "all")").is_all());
}

TEST_F(AccessFileUsersTest, AreThoseOfTheRule) {
  EXPECT_TRUE(ReadUsers(R"("all")").is_all());
  EXPECT_EQ(ReadUsers(R"("none")"), data::UserScope::None());
  EXPECT_EQ(ReadUsers(R"({"prefix": "acme-"})"), data::UserScope::Of({"acme-"}, {}));
  EXPECT_EQ(ReadUsers(R"({"ids": ["ann", 7, -3]})"), data::UserScope::Of({}, {"ann", "7", "-3"}));
  EXPECT_EQ(ReadUsers(R"({"prefix": ["a-", "b-"], "ids": "ann"})"),
            data::UserScope::Of({"a-", "b-"}, {"ann"}));
}

TEST_F(AccessFileUsersTest, AreRefusedWhereTheRuleIsNone) {
  const std::string where = "access.json: principal \"ranker\": users: ";
  const std::string rules = R"(Give "all", "none", {"prefix": "acme-"} or {"ids": ["ann", "bob"]})";
  std::string many = R"({"prefix": [)";
  for (int i = 0; i < 65; ++i) many += fmt::format("{}\"p{}-\"", i == 0 ? "" : ",", i);
  const Mistake mistakes[] = {
      {R"("alll")", where + R"("alll" is no rule. Did you mean "all"? )" + rules},
      {R"("acme-")", where + R"("acme-" is no rule. )" + rules},
      {"true", where + "true is no rule. " + rules},
      {"[]", where + "[] is no rule. " + rules},
      {"{}", where + "{} is no rule. " + rules},
      {R"({"prefixes": "a"})", where + R"(unknown name "prefixes". Did you mean "prefix"?)"},
      {R"({"prefix": ""})", where + R"(prefix: "" is empty)"},
      {R"({"prefix": []})", where + "prefix: an empty list"},
      {R"({"prefix": null})", where + "prefix: null is not a string"},
      {R"({"ids": [1.5]})", where + "ids: 1.5 is not a string"},
      {R"({"ids": ["a\nb"]})",
       where + R"(ids: "a\nb" is "a\u000ab", which holds a control character)"},
      {R"({"ids": [")" + std::string(513, 'x') + "\"]}",
       "is 513 bytes long; an id has at most 512"},
      {many + "]}", where + "prefix: 65 entries; at most 64 are allowed"},
  };
  for (const Mistake& mistake : mistakes) {
    EXPECT_THAT(RefuseRule(mistake.text), HasSubstr(mistake.message)) << mistake.text;
  }
}

TEST_F(AccessFileUsersTest, AreReadAsTheyAreWritten) {
  for (const data::UserScope& users :
       {data::UserScope(), data::UserScope::None(), data::UserScope::Of({"a-", "b-"}, {}),
        data::UserScope::Of({"a-"}, {"7", "ann"})}) {
    for (const char* const filter : {"", "tenant = acme"}) {
      service::Principal made;
      made.name = "ranker";
      made.token_hashes = {service::HashToken("a token")};
      made.required_filter = filter;
      made.users = users;
      const auto policy = Read(File(AccessEntryText(made)));
      ASSERT_TRUE(policy.ok()) << policy.status();
      EXPECT_EQ((*policy)->principals().front()->users, users);
    }
  }
}

using ::testing::HasSubstr;

std::string HashHex(std::string_view token) {
  const service::TokenHash hash = service::HashToken(token);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(hash.data()), hash.size()));
}

template <class Value>
std::string ErrorText(const absl::StatusOr<Value>& value) {
  return std::string(value.status().message());
}

TEST(AccessValuesTest, TakesTheHashOfAToken) {
  for (int i = 0; i < 10'000; ++i) {
    const std::string token = "token " + std::to_string(i);
    const auto hash = ReadTokenHash(HashHex(token));
    ASSERT_TRUE(hash.ok()) << token << hash.status();
    EXPECT_EQ(*hash, service::HashToken(token));
  }
}

TEST(AccessValuesTest, RefusesWhatCanBeNoHash) {
  const std::string patterns[] = {
      std::string(64, '0'), std::string(64, 'f'), std::string(63, '0') + "7",
      "0123456789abcdef0123456789abcdef0123456789ABCDEF0123456789ABCDEF",
      // The digits of a shorter hash, written twice.
      "098f6bcd4621d373cade4e832627b4f6098f6bcd4621d373cade4e832627b4f6"};
  for (const std::string& text : patterns) {
    EXPECT_THAT(ErrorText(ReadTokenHash(text)), HasSubstr("has a pattern, which no token's hash"))
        << text;
  }
  for (const std::string& text : {std::string(), std::string(63, '1'), HashHex("a") + " ",
                                  HashHex("a") + "\n", "0x" + HashHex("a")}) {
    EXPECT_THAT(ErrorText(ReadTokenHash(text)), HasSubstr("not 64 hexadecimal digits")) << text;
  }
}

TEST(AccessValuesTest, RefusesTheHashOfNothing) {
  EXPECT_EQ(
      ErrorText(ReadTokenHash("E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855")),
      "the hash of an empty text: there was no token when it was made; `printf %s TOKEN | "
      "sha256sum`, or `simile token` with the token itself");
  for (const char* const text : {"\n", "\r\n", " ", "TOKEN", "TOKEN\n", "$TOKEN", "$TOKEN\n"}) {
    EXPECT_THAT(ErrorText(ReadTokenHash(HashHex(text))), HasSubstr("there was no token")) << text;
  }
}

TEST(AccessValuesTest, ReadsTimesThatExistAndThatTheClockCanTell) {
  const auto unix_time = [](std::string_view text) {
    return std::chrono::system_clock::to_time_t(ReadExpiry(text).value());
  };
  EXPECT_EQ(unix_time("2027-05-31"), 1'811'721'600);
  EXPECT_EQ(unix_time("2027-05-31T12:00:00Z"), 1'811'764'800);
  EXPECT_EQ(unix_time("2028-02-29T01:00:00+01:00"), 1'835'395'200);
  EXPECT_EQ(unix_time("2262-04-11"), 9'223'286'400);
  for (const char* const text :
       {"2027-02-30", "2027-02-29", "2027-13-01", "2027-00-10", "2027-04-31T12:00:00Z",
        "2027-05-31T25:00:00Z", "2027-05-31 ", "2027-05-31\n", "31.05.2027", "2027-5-31", "never",
        "2027-05-31T12:00:00", "2027-05-31 12:00:00", ""}) {
    EXPECT_THAT(ErrorText(ReadExpiry(text)), HasSubstr("is not a time as")) << text;
  }
  for (const char* const text : {"9999-12-31", "2262-04-12", "1969-12-31", "0001-01-01"}) {
    EXPECT_THAT(ErrorText(ReadExpiry(text)),
                HasSubstr("is not between 1970 and 2262; leave it out"))
        << text;
  }
}

TEST(AccessValuesTest, TakesNamesThatLookLikeWhatTheyAre) {
  for (const char* const name : {"ranker", "shop de", "spiffe://example.org/x", "Caf\u00e9", "7"}) {
    EXPECT_TRUE(CheckPrincipalName(name).ok()) << name;
  }
  for (const char* const name : {" ranker", "ranker ", "rank\ter", "ranker\n", "rank\u00a0er",
                                 "ranker\u200b", "\ufeffranker", "", "rank\u0085er"}) {
    EXPECT_FALSE(CheckPrincipalName(name).ok()) << name;
  }
  EXPECT_TRUE(CheckPrincipalName(std::string(128, 'x')).ok());
  EXPECT_THAT(std::string(CheckPrincipalName(std::string(129, 'x')).message()),
              HasSubstr("has 129 bytes; give 1 to 128"));
}

}  // namespace
}  // namespace simile::app
