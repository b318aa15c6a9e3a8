#include <memory>

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
};

int RunRecommend(const RecommendFlags& flags) {
  const Connection connection = Connect(flags.query.client, kQueryTimeoutSeconds);
  const absl::StatusOr<v1::Collection> collection =
      ChooseCollection(connection, flags.query.collection);
  if (!collection.ok()) return Fail(collection.status());

  v1::RecommendRequest request;
  request.set_collection(collection->name());
  *request.mutable_options() = OptionsOf(flags.query);
  request.mutable_options()->set_exclude_seen(flags.exclude_seen);
  for (const std::string& user : flags.users) request.add_user_ids(user);
  absl::StatusOr<v1::RecommendResponse> response = connection.Recommend(request);
  if (!response.ok()) return Fail(response.status());

  Answer answer;
  answer.collection = collection->name();
  answer.fields = flags.query.fields;
  answer.receipt = response->receipt();
  for (v1::UserRecommendations& recommended : *response->mutable_results()) {
    AnsweredQuery& result = answer.results.emplace_back();
    result.heading = fmt::format("for {} ({} seen{})", recommended.user_id(),
                                 data::Grouped(recommended.seen_count()),
                                 flags.exclude_seen ? ", left out" : "");
    result.user_id = recommended.user_id();
    result.seen_count = recommended.seen_count();
    result.rows_passing = RowsPassing(recommended);
    result.hits.Swap(recommended.mutable_hits());
  }
  return ShowAnswer(answer, flags.query);
}

}  // namespace

void AddRecommendCommand(CommandLine& line) {
  auto flags = std::make_shared<RecommendFlags>();
  Command command = line.Add("recommend", "Recommend items to users");
  command.Texts("--user", flags->users, "ID", "Users to recommend to")
      .Required()
      .Switch("--exclude-seen", flags->exclude_seen, "Leave out what the user has seen");
  AddQueryFlags(command, flags->query);
  command.Footer("simile recommend --user user_00042 -k 5 --exclude-seen").Run([flags] {
    return RunRecommend(*flags);
  });
}

}  // namespace simile::cli
