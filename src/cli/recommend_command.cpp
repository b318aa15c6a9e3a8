#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/client_flags.h"
#include "cli/collection_choice.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/show_answer.h"
#include "data/wording.h"

namespace simile::cli {
namespace {

struct RecommendFlags {
  QueryFlags query;
  std::vector<std::string> users;
  bool exclude_seen = false;
  std::optional<std::string> like;
  std::optional<double> user_weight;
  std::optional<std::string> fallback;
  std::optional<std::string> fallback_field;
};

absl::Status SetFallback(const RecommendFlags& flags, v1::SearchOptions& options) {
  if (!flags.fallback) {
    if (!flags.fallback_field) return absl::OkStatus();
    return absl::InvalidArgumentError("--fallback-field is what --fallback ORDER orders by");
  }
  v1::Fallback& fallback = *options.mutable_fallback();
  if (*flags.fallback == "newest") {
    fallback.set_order(v1::Fallback::NEWEST);
  } else if (*flags.fallback == "most-popular") {
    fallback.set_order(v1::Fallback::MOST_POPULAR);
  } else {
    return absl::InvalidArgumentError(
        fmt::format("--fallback {}: give newest or most-popular", *flags.fallback));
  }
  if (flags.fallback_field) fallback.set_field(*flags.fallback_field);
  return absl::OkStatus();
}

absl::StatusOr<v1::SearchOptions> AllOptions(const RecommendFlags& flags) {
  if (flags.fallback && flags.like) {
    return absl::InvalidArgumentError(
        "--fallback is for users without a profile; --like ID blends with one");
  }
  if (flags.user_weight && !flags.like) {
    return absl::InvalidArgumentError("--user-weight weighs the user against --like ID");
  }
  absl::StatusOr<v1::SearchOptions> options = OptionsOf(flags.query);
  if (!options.ok()) return options;
  options->set_exclude_seen(flags.exclude_seen);
  if (absl::Status status = SetFallback(flags, *options); !status.ok()) return status;
  return options;
}

// How an answer speaks of its user.
std::string Heading(const std::string& user, const v1::UserRecommendations& recommended,
                    bool exclude_seen) {
  if (!recommended.fallback_order().empty()) {
    return fmt::format("for {}, who has no profile: by {}", user, recommended.fallback_order());
  }
  return fmt::format("for {} ({} seen{})", user, data::Grouped(recommended.seen_count()),
                     exclude_seen ? ", left out" : "");
}

int RecommendToUsers(const Connection& connection, const v1::Collection& collection,
                     const v1::SearchOptions& options, const RecommendFlags& flags) {
  v1::RecommendRequest request;
  request.set_collection(collection.name());
  *request.mutable_options() = options;
  for (const std::string& user : flags.users) request.add_user_ids(user);
  absl::StatusOr<v1::RecommendResponse> response = connection.Recommend(request);
  if (!response.ok()) return Fail(response.status());

  Answer answer = AnswerOf(collection.name(), flags.query.fields, *response);
  for (v1::UserRecommendations& recommended : *response->mutable_results()) {
    AnsweredQuery& result = answer.results.emplace_back();
    result.heading = Heading(recommended.user_id(), recommended, flags.exclude_seen);
    result.user_id = recommended.user_id();
    result.seen_count = recommended.seen_count();
    TakeResult(recommended, result);
  }
  return ShowAnswer(answer, flags.query);
}

// Between the users' tastes and an item.
int SearchBlends(const Connection& connection, const v1::Collection& collection,
                 const v1::SearchOptions& options, const RecommendFlags& flags) {
  v1::SearchRequest request;
  request.set_collection(collection.name());
  *request.mutable_options() = options;
  for (const std::string& user : flags.users) {
    v1::Blend& blend = *request.add_queries()->mutable_blend();
    blend.set_id(*flags.like);
    blend.set_user_id(user);
    if (flags.user_weight) blend.set_user_weight(static_cast<float>(*flags.user_weight));
  }
  absl::StatusOr<v1::SearchResponse> response = connection.Search(request);
  if (!response.ok()) return Fail(response.status());

  Answer answer = AnswerOf(collection.name(), flags.query.fields, *response);
  for (int i = 0; i < response->results_size(); ++i) {
    const std::string& user = flags.users[static_cast<std::size_t>(i)];
    AnsweredQuery& result = answer.results.emplace_back();
    result.heading = fmt::format("for {}, like {}", user, *flags.like);
    result.user_id = user;
    result.like = {*flags.like};
    TakeResult(*response->mutable_results(i), result);
  }
  return ShowAnswer(answer, flags.query);
}

int RunRecommend(const RecommendFlags& flags) {
  const absl::StatusOr<v1::SearchOptions> options = AllOptions(flags);
  if (!options.ok()) return Fail(options.status());
  const Connection connection = Connect(flags.query.client, kQueryTimeoutSeconds);
  const absl::StatusOr<v1::Collection> collection =
      ChooseCollection(connection, flags.query.collection);
  if (!collection.ok()) return Fail(collection.status());
  return flags.like ? SearchBlends(connection, *collection, *options, flags)
                    : RecommendToUsers(connection, *collection, *options, flags);
}

}  // namespace

void AddRecommendCommand(CommandLine& line) {
  auto flags = std::make_shared<RecommendFlags>();
  Command command = line.Add("recommend", "Recommend items to users");
  command.Texts("--user", flags->users, "ID", "Users to recommend to")
      .Required()
      .Switch("--exclude-seen", flags->exclude_seen, "Leave out what the user has seen")
      .Text("--like", flags->like, "ID", "An item to be like as well")
      .Real("--user-weight", flags->user_weight, "SHARE",
            "The user's share against --like: 0 to 1 (default 0.5)")
      .Text("--fallback", flags->fallback, "ORDER",
            "For users without a profile: newest or most-popular items")
      .Text("--fallback-field", flags->fallback_field, "FIELD",
            "What --fallback orders by, greatest first");
  AddQueryFlags(command, flags->query);
  command.Footer("simile recommend --user user_00042 -k 5 --exclude-seen").Run([flags] {
    return RunRecommend(*flags);
  });
}

}  // namespace simile::cli
