#include "service/access/access_control.h"

#include <chrono>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "engine/fake_clock.h"
#include "service/access/call_access.h"
#include "service/changes/served_collections.h"
#include "service/grpc/method.h"

namespace simile::service {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::string_view kMethod = "simile.v1.SearchService/Search";

Principal Named(const std::string& name, Role role) {
  Principal principal;
  principal.name = name;
  principal.role = role;
  principal.token_hashes = {HashToken("token of " + name)};
  return principal;
}

class AccessControlTest : public ::testing::Test {
 protected:
  void Set(std::vector<Principal> principals) {
    access_.SetPolicy(std::make_shared<const AccessPolicy>(std::move(principals)));
  }
  absl::Status Admit(Role needed, const std::string& authorization, Caller& caller,
                     const std::vector<std::string>& names = {}) {
    const auto certificate_names = [&] { return names; };
    return access_.Admit(kMethod, needed, {authorization, false, certificate_names}, caller);
  }
  absl::Status Admit(Role needed, const std::string& authorization,
                     const std::vector<std::string>& names = {}) {
    Caller caller;
    return Admit(needed, authorization, caller, names);
  }

  engine::FakeClock clock_;
  AccessControl access_{clock_};
};

TEST_F(AccessControlTest, TakesAllCallsWithoutAPolicy) {
  Caller caller;
  EXPECT_TRUE(Admit(Role::kAdmin, "", caller).ok());
  EXPECT_EQ(caller.principal, nullptr);
}

TEST_F(AccessControlTest, LetsEachRoleDoWhatItIncludes) {
  Set({Named("reader", Role::kRead), Named("writer", Role::kWrite), Named("admin", Role::kAdmin)});
  const std::vector<std::pair<std::string, Role>> principals = {
      {"reader", Role::kRead}, {"writer", Role::kWrite}, {"admin", Role::kAdmin}};
  for (const auto& [name, role] : principals) {
    for (const Role needed : {Role::kNone, Role::kRead, Role::kWrite, Role::kAdmin}) {
      const absl::Status status = Admit(needed, "Bearer token of " + name);
      EXPECT_EQ(status.ok(), role >= needed) << name << " for " << NameOf(needed);
      if (!status.ok()) {
        EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
        EXPECT_THAT(std::string(status.message()), HasSubstr("needs"));
      }
    }
  }
}

TEST_F(AccessControlTest, RefusesWhoIsNotKnown) {
  Set({Named("reader", Role::kRead)});
  for (const std::string authorization :
       {"", "Bearer", "Bearer ", "Bearer  ", "Basic dXNlcg==", "Bearer token of reade",
        "Bearer token of reader2", "token of reader"}) {
    EXPECT_EQ(Admit(Role::kRead, authorization).code(), absl::StatusCode::kUnauthenticated)
        << authorization;
  }
  EXPECT_TRUE(Admit(Role::kRead, "bearer token of reader").ok());
  EXPECT_TRUE(Admit(Role::kNone, "Bearer wrong").ok());  // health checks
}

TEST_F(AccessControlTest, EndsAnAccessAtItsTime) {
  Principal reader = Named("reader", Role::kRead);
  reader.expires_at = clock_.WallNow();
  Set({reader});
  const absl::Status status = Admit(Role::kRead, "Bearer token of reader");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the access of reader ended at 2023-11-14 22:13:20 UTC"));
  reader.expires_at = clock_.WallNow() + 1s;
  Set({reader});
  EXPECT_TRUE(Admit(Role::kRead, "Bearer token of reader").ok());
}

TEST_F(AccessControlTest, TakesTheTokenBeforeTheCertificate) {
  Principal loader;
  loader.name = "loader";
  loader.role = Role::kWrite;
  loader.certificate_names = {"loader.example.org"};
  Set({Named("reader", Role::kRead), loader});
  const std::vector<std::string> names = {"loader.example.org"};
  Caller caller;
  ASSERT_TRUE(Admit(Role::kWrite, "", caller, names).ok());
  EXPECT_EQ(caller.principal->name, "loader");
  ASSERT_TRUE(Admit(Role::kRead, "Bearer token of reader", caller, names).ok());
  EXPECT_EQ(caller.principal->name, "reader");
  EXPECT_FALSE(Admit(Role::kRead, "Bearer wrong", names).ok());
  EXPECT_FALSE(Admit(Role::kRead, "", {"other.example.org"}).ok());
}

TEST_F(AccessControlTest, CountsCallsBySecond) {
  Principal reader = Named("reader", Role::kRead);
  reader.limits.calls_per_second = 4;
  Set({reader});
  const auto admit = [&] { return Admit(Role::kRead, "Bearer token of reader"); };
  for (int call = 0; call < 4; ++call) EXPECT_TRUE(admit().ok());
  const absl::Status refused = admit();
  EXPECT_EQ(base::ReasonOf(refused), base::ErrorReason::kCallerLimit);
  EXPECT_EQ(base::ReadRetryAfter(refused), 250ms);
  clock_.Advance(250ms);
  EXPECT_TRUE(admit().ok());
  EXPECT_FALSE(admit().ok());
  Set({reader});  // read again: no fresh allowance
  EXPECT_FALSE(admit().ok());
  clock_.Advance(1h);
  for (int call = 0; call < 4; ++call) EXPECT_TRUE(admit().ok());
  EXPECT_FALSE(admit().ok());
}

TEST_F(AccessControlTest, HoldsQueriesAndBytesUntilTheCallEnds) {
  Principal reader = Named("reader", Role::kRead);
  reader.limits.queries_in_flight = 10;
  reader.limits.bytes_in_flight = 1'000;
  Set({reader});
  Caller caller;
  ASSERT_TRUE(Admit(Role::kRead, "Bearer token of reader", caller).ok());
  {
    CallAccess first(caller);
    EXPECT_TRUE(first.HoldBytes(600).ok());
    EXPECT_TRUE(first.HoldQueries(10).ok());
    CallAccess second(caller);
    EXPECT_FALSE(second.HoldBytes(401).ok());
    EXPECT_TRUE(second.HoldBytes(400).ok());
    const absl::Status refused = second.HoldQueries(1);
    EXPECT_EQ(std::string(refused.message()), "reader may have 10 queries in flight, and has 10");
    EXPECT_TRUE(base::ReadRetryAfter(refused).has_value());
  }
  EXPECT_EQ(caller.use->bytes(), 0U);
  EXPECT_EQ(caller.use->queries(), 0U);
  CallAccess third(caller);
  EXPECT_TRUE(third.HoldQueries(10).ok());
  CallAccess larger(caller);
  const absl::Status never = larger.HoldQueries(11);
  EXPECT_EQ(std::string(never.message()),
            "11 queries; reader may have 10 in flight: send less a call");
  EXPECT_FALSE(base::ReadRetryAfter(never).has_value());
}

TEST_F(AccessControlTest, AsksAgainWhoACallerOfAStreamIs) {
  Set({Named("reader", Role::kRead)});
  Caller caller;
  ASSERT_TRUE(Admit(Role::kRead, "Bearer token of reader", caller).ok());
  EXPECT_TRUE(access_.AdmitAgain(kMethod, Role::kRead, caller).ok());
  // The principal stays, its token does not.
  Principal exchanged = Named("reader", Role::kRead);
  exchanged.token_hashes = {HashToken("another token of reader")};
  Set({exchanged});
  EXPECT_EQ(access_.AdmitAgain(kMethod, Role::kRead, caller).code(),
            absl::StatusCode::kUnauthenticated);
  exchanged.token_hashes.push_back(HashToken("token of reader"));
  Set({exchanged});
  EXPECT_TRUE(access_.AdmitAgain(kMethod, Role::kRead, caller).ok());
  Set({Named("other", Role::kRead)});
  EXPECT_EQ(access_.AdmitAgain(kMethod, Role::kRead, caller).code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, BindsToCollections) {
  Principal reader = Named("reader", Role::kRead);
  reader.collections = {"films", "books"};
  Set({reader});
  Caller caller;
  ASSERT_TRUE(Admit(Role::kRead, "Bearer token of reader", caller).ok());
  const CallAccess access(caller);
  const auto films = access.Permit("films");
  ASSERT_TRUE(films.ok());
  EXPECT_EQ(std::string(access.Permit("users").status().message()),
            "reader may not use the collection \"users\"; it may use films, books");
  EXPECT_TRUE(CallAccess().Permit("users").ok());
  for (const char* folder : {"", "films", "films/2026-11"}) {
    EXPECT_TRUE(films->CheckFolder(folder).ok()) << folder;
  }
  for (const char* folder : {"books", "films-old", "./films", "/films"}) {
    EXPECT_EQ(base::ReasonOf(films->CheckFolder(folder)), base::ErrorReason::kPermissionDenied)
        << folder;
  }
  EXPECT_TRUE(CallAccess().Permit("films")->CheckFolder("books").ok());
}

template <class Key>
concept OpensSnapshots = requires(const ServedSnapshots& served, const Key& key) {
  served.Pin(key);
};
template <class Key>
concept OpensStatuses = requires(const ServedCollections& served, const Key& key) {
  served.Status(key);
};
template <class Snapshot>
concept ShowsRowsByThemselves = requires(const Snapshot& snapshot) {
  snapshot.dataset;
};

// Code that a handler without regard for rights would contain: none of it compiles.
static_assert(OpensSnapshots<PermittedCollection> && OpensStatuses<PermittedCollection>);
static_assert(!OpensSnapshots<std::string> && !OpensStatuses<std::string>);
static_assert(ShowsRowsByThemselves<engine::Snapshot> && !ShowsRowsByThemselves<PermittedSnapshot>);
static_assert(!std::is_constructible_v<PermittedCollection, std::string, PrincipalPtr>);
static_assert(!std::is_default_constructible_v<PermittedCollection>);
static_assert(!std::is_default_constructible_v<PermittedServer>);
static_assert(
    !std::is_constructible_v<PermittedSnapshot, PermittedCollection, engine::SnapshotPtr>);
// A row of the table of methods without a role.
static_assert(MethodRow{}.role == Role::kAdmin);

TEST_F(AccessControlTest, PermitsChangesToTheRoleThatMayMakeThem) {
  Set({Named("reader", Role::kRead), Named("writer", Role::kWrite)});
  Caller reader;
  Caller writer;
  ASSERT_TRUE(Admit(Role::kRead, "Bearer token of reader", reader).ok());
  ASSERT_TRUE(Admit(Role::kRead, "Bearer token of writer", writer).ok());
  EXPECT_EQ(std::string(CallAccess(reader).Permit("films")->CheckMayChange().message()),
            "reader has the role read; changes need write");
  EXPECT_TRUE(CallAccess(writer).Permit("films")->CheckMayChange().ok());
  EXPECT_TRUE(CallAccess().Permit("films")->CheckMayChange().ok());
}

TEST_F(AccessControlTest, PermitsTheWholeServerToThoseForWhomAllRowsExist) {
  Principal some_rows = Named("some-rows", Role::kAdmin);
  some_rows.required_filter = "year >= 1990";
  Principal some_collections = Named("some-collections", Role::kAdmin);
  some_collections.collections = {"films"};
  Set({some_rows, some_collections, Named("all", Role::kAdmin)});
  for (const char* name : {"some-rows", "some-collections", "all"}) {
    Caller caller;
    ASSERT_TRUE(Admit(Role::kAdmin, std::string("Bearer token of ") + name, caller).ok());
    const CallAccess access(caller);
    EXPECT_EQ(access.PermitServer().ok(), std::string_view(name) == "all") << name;
    EXPECT_EQ(access.Permit("films")->sees_all_rows(), std::string_view(name) != "some-rows");
  }
  EXPECT_TRUE(CallAccess().PermitServer().ok());
}

}  // namespace
}  // namespace simile::service
