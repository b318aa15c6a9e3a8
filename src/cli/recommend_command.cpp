#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/query_flags.h"

namespace simile::cli {
namespace {

struct RecommendFlags {
  QueryFlags query;
  UserFlags user;
  std::vector<std::string> users;
  std::optional<std::string> like;
};

absl::StatusOr<v1::SearchOptions> AllOptions(const RecommendFlags& flags) {
  if (flags.query.items_of && !flags.like) {
    return absl::InvalidArgumentError("--items-of needs --like ID");
  }
  absl::StatusOr<v1::SearchOptions> options = MakeSearchOptions(flags.query);
  if (!options.ok()) return options;
  absl::Status status = SetUserOptions(flags.user, flags.like.has_value(), *options);
  if (!status.ok()) return status;
  return options;
}

// `newest by year`, `most popular by the users who have seen them`
std::string ColdStartText(const v1::ColdStart& cold_start) {
  const bool newest = cold_start.order() == v1::ColdStart::ORDER_NEWEST;
  return fmt::format(
      "{} by {}", newest ? "newest" : "most popular",
      cold_start.field().empty() ? "the users who have seen them" : cold_start.field());
}

// The heading above one user's hits.
std::string Heading(const std::string& user, const v1::SearchResult& recommended,
                    bool exclude_seen) {
  if (recommended.has_error()) return fmt::format("for {}", user);
  if (recommended.has_cold_start()) {
    const std::string seen =
        recommended.seen_count() == 0
            ? ""
            : fmt::format(" ({} seen{})", base::Grouped(recommended.seen_count()),
                          exclude_seen ? ", left out" : "");
    return fmt::format("for {}, who has no profile{}: {}", user, seen,
                       ColdStartText(recommended.cold_start()));
  }
  return fmt::format("for {} ({} seen{})", user, base::Grouped(recommended.seen_count()),
                     exclude_seen ? ", left out" : "");
}

// Adds the flag that answers users without a profile to the error of an unknown user.
absl::Status WithColdStartAdvice(const absl::Status& status, const RecommendFlags& flags) {
  const std::string_view reason = base::InfoOf(base::ErrorReason::kUserNotFound).name;
  if (flags.user.cold_start || ParseDetails(status).reason != reason) return status;
  return WithAdvice(status,
                    "--cold-start newest, or most-popular, answers users without a profile.");
}

int RecommendToUsers(const Connection& connection, const v1::Collection& collection,
                     const v1::SearchOptions& options, const RecommendFlags& flags) {
  v1::RecommendRequest request;
  request.set_collection(collection.name());
  *request.mutable_options() = options;
  for (const std::string& user : flags.users) request.add_user_ids(user);
  absl::StatusOr<v1::RecommendResponse> response = connection.Recommend(request);
  if (!response.ok()) {
    return Fail(WithColdStartAdvice(response.status(), flags), flags.query.client.json);
  }

  Answer answer = StartAnswer(collection, *response);
  for (v1::SearchResult& recommended : *response->mutable_results()) {
    AnsweredQuery& result = answer.results.emplace_back();
    result.heading = Heading(recommended.user_id(), recommended, flags.user.exclude_seen);
    result.user_id = recommended.user_id();
    if (!recommended.has_error()) result.seen_count = recommended.seen_count();
    MoveResult(recommended, result);
  }
  return ShowAnswer(std::move(answer), flags.query);
}

// Searches, for each user, near a blend of the user's profile and the item of --like.
int SearchBlends(const Connection& connection, const v1::Collection& collection,
                 const v1::SearchOptions& options, const RecommendFlags& flags) {
  v1::SearchRequest request;
  request.set_collection(collection.name());
  *request.mutable_options() = options;
  for (const std::string& user : flags.users) {
    SetBlend(flags.user, flags.query.items_of, user, *flags.like, *request.add_queries());
  }
  absl::StatusOr<v1::SearchResponse> response = connection.Search(request);
  if (!response.ok()) return Fail(response.status(), flags.query.client.json);

  Answer answer = StartAnswer(collection, *response);
  for (int i = 0; i < response->results_size(); ++i) {
    const std::string& user = flags.users[static_cast<std::size_t>(i)];
    AnsweredQuery& result = answer.results.emplace_back();
    result.heading =
        fmt::format("for {}, like {}{}", user, *flags.like, OfCollection(flags.query.items_of));
    result.user_id = user;
    result.items_of = flags.query.items_of;
    result.like = {*flags.like};
    MoveResult(*response->mutable_results(i), result);
  }
  return ShowAnswer(std::move(answer), flags.query);
}

int RunRecommend(const RecommendFlags& flags) {
  const bool json = flags.query.client.json;
  absl::StatusOr<v1::SearchOptions> options = AllOptions(flags);
  if (!options.ok()) return Fail(options.status(), json);
  const Connection connection = Connect(flags.query.client, kQueryTimeoutSeconds);
  const absl::StatusOr<v1::Collection> collection =
      ChooseCollection(connection, flags.query.collection);
  if (!collection.ok()) return Fail(collection.status(), json);
  if (absl::Status set = SetCollectionOptions(flags.query, *collection, *options); !set.ok()) {
    return Fail(set, json);
  }
  return flags.like ? SearchBlends(connection, *collection, *options, flags)
                    : RecommendToUsers(connection, *collection, *options, flags);
}

}  // namespace

void AddRecommendCommand(CommandLine& line) {
  auto flags = std::make_shared<RecommendFlags>();
  Command command = line.Add("recommend", "Recommend items to users");
  command.List("--user", flags->users, "ID", "Users to recommend to")
      .Required()
      .ListValue("--like", flags->like, "ID", "An item that the hits should also be like")
      .Check([flags] { return AllOptions(*flags).status(); });
  AddUserFlags(command, flags->user);
  AddQueryFlags(command, flags->query);
  command.Footer("simile recommend --user user_00042 -k 5 --exclude-seen").Run([flags] {
    return RunRecommend(*flags);
  });
}

}  // namespace simile::cli
