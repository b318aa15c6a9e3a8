#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/error_details.h"
#include "cli/exit_code.h"
#include "cli/query_flags.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

struct RecommendFlags {
  QueryFlags query;
  std::vector<std::string> users;
  bool exclude_seen = false;
  std::optional<std::string> like;
  std::optional<double> user_weight;
  std::optional<std::string> cold_start;
  std::optional<std::string> cold_start_field;
};

absl::Status SetColdStart(const RecommendFlags& flags, v1::SearchOptions& options) {
  if (!flags.cold_start) {
    if (!flags.cold_start_field) return absl::OkStatus();
    return absl::InvalidArgumentError("--cold-start-field needs --cold-start ORDER");
  }
  v1::ColdStart& cold_start = *options.mutable_cold_start();
  const std::optional<v1::ColdStart::Order> order = ColdStartOrderNamed(*flags.cold_start);
  if (!order) {
    return absl::InvalidArgumentError(
        fmt::format("--cold-start {}: give newest or most-popular", *flags.cold_start));
  }
  cold_start.set_order(*order);
  if (flags.cold_start_field) cold_start.set_field(*flags.cold_start_field);
  return absl::OkStatus();
}

absl::StatusOr<v1::SearchOptions> AllOptions(const RecommendFlags& flags) {
  if (flags.cold_start && flags.like) {
    return absl::InvalidArgumentError(
        "--cold-start is for users without a profile, and --like ID needs one");
  }
  if (flags.user_weight && !flags.like) {
    return absl::InvalidArgumentError("--user-weight needs --like ID");
  }
  if (flags.query.items_of && !flags.like) {
    return absl::InvalidArgumentError("--items-of needs --like ID");
  }
  absl::StatusOr<v1::SearchOptions> options = OptionsOf(flags.query);
  if (!options.ok()) return options;
  options->set_exclude_seen(flags.exclude_seen);
  if (absl::Status status = SetColdStart(flags, *options); !status.ok()) return status;
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

// An unknown user's error with the flag that answers such users.
absl::Status WithColdStartAdvice(const absl::Status& status, const RecommendFlags& flags) {
  const std::string_view reason = base::InfoOf(base::ErrorReason::kUserNotFound).name;
  if (flags.cold_start || DetailsOf(status).reason != reason) return status;
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

  Answer answer = AnswerOf(collection, *response);
  for (v1::SearchResult& recommended : *response->mutable_results()) {
    AnsweredQuery& result = answer.results.emplace_back();
    result.heading = Heading(recommended.user_id(), recommended, flags.exclude_seen);
    result.user_id = recommended.user_id();
    if (!recommended.has_error()) result.seen_count = recommended.seen_count();
    MoveResult(recommended, result);
  }
  return ShowAnswer(std::move(answer), flags.query);
}

// Searches around a blend of each user's profile and the item of --like.
int SearchBlends(const Connection& connection, const v1::Collection& collection,
                 const v1::SearchOptions& options, const RecommendFlags& flags) {
  v1::SearchRequest request;
  request.set_collection(collection.name());
  *request.mutable_options() = options;
  for (const std::string& user : flags.users) {
    v1::Blend& blend = *request.add_queries()->mutable_blend();
    SetItem(flags.query.items_of, *flags.like, blend);
    blend.set_user_id(user);
    if (flags.user_weight) blend.set_user_weight(static_cast<float>(*flags.user_weight));
  }
  absl::StatusOr<v1::SearchResponse> response = connection.Search(request);
  if (!response.ok()) return Fail(response.status(), flags.query.client.json);

  Answer answer = AnswerOf(collection, *response);
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
      .Switch("--exclude-seen", flags->exclude_seen, "Leave out items the user has seen")
      .ListValue("--like", flags->like, "ID", "An item that the hits should also be like")
      .Real("--user-weight", flags->user_weight, "SHARE",
            "The user's share of the blend with --like: 0 to 1 (default 0.5)")
      .Text("--cold-start", flags->cold_start, "ORDER",
            "For users without a profile: newest or most-popular items")
      .Choices({"newest", "most-popular"})
      .Text("--cold-start-field", flags->cold_start_field, "FIELD",
            "The field that --cold-start orders by, greatest first")
      .Check([flags] { return AllOptions(*flags).status(); });
  AddQueryFlags(command, flags->query);
  command.Footer("simile recommend --user user_00042 -k 5 --exclude-seen").Run([flags] {
    return RunRecommend(*flags);
  });
}

}  // namespace simile::cli
