#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/input_file.h"
#include "cli/item_text.h"
#include "cli/output_text.h"
#include "cli/payload_text.h"
#include "cli/query_flags.h"
#include "cli/receipt_text.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/wire_names.h"
#include "simile/v1/search.pb.h"

namespace simile::cli {
namespace {

// The answer to an Explain, with its heading, as `explain` prints it.
struct ExplainedAnswer {
  std::string collection;
  std::string heading;         // "in films, like heat-1995"
  std::string backend_reason;  // why the collection has its backend
  v1::ExplainResponse response;
};

using Json = nlohmann::ordered_json;

Json ClauseJson(const v1::FilterClause& clause) {
  return {{"text", clause.text()},
          {"passes", clause.passes()},
          {"values", PayloadJson(clause.values())}};
}

Json StepJson(const v1::DiversityStep& step) {
  Json json = {{"chosen", step.chosen()},
               {"step", step.step()},
               {"marginal_relevance", step.marginal_relevance()},
               {"chosen_marginal_relevance", step.chosen_marginal_relevance()}};
  if (step.nearest_id().empty()) return json;
  json["nearest_id"] = step.nearest_id();
  json["nearest_similarity"] = FloatJson(step.nearest_similarity());
  return json;
}

Json ExplainedItemJson(const v1::Explanation& item) {
  Json reasons = Json::array();
  for (const int reason : item.reasons()) {
    reasons.push_back(ReasonName(static_cast<v1::Explanation::Reason>(reason)));
  }
  Json json = {{"id", item.id()},
               {"returned", item.returned()},
               {"reasons", std::move(reasons)},
               {"text", item.text()}};
  if (item.has_rank()) json["rank"] = item.rank();
  if (item.has_score()) json["score"] = FloatJson(item.score());
  for (const v1::FilterClause& clause : item.clauses()) {
    json["clauses"].push_back(ClauseJson(clause));
  }
  if (item.has_diversity()) json["diversity"] = StepJson(item.diversity());
  for (const v1::GroupPlace& group : item.groups()) {
    json["groups"].push_back({{"keyword", group.keyword()},
                              {"group_rank", group.group_rank()},
                              {"rank_in_group", group.rank_in_group()}});
  }
  return json;
}

// One row per item: its rank and score among all rows, and why it is a hit or not.
std::string ExplanationTable(const ExplainedAnswer& answer, bool whole_receipt,
                             const Terminal& terminal) {
  Table table({{"item", Align::kLeft, true, true},
               {"rank", Align::kRight},
               {"score", Align::kRight},
               {"why", Align::kLeft, true, false, true}});
  for (const v1::Explanation& item : answer.response.explanations()) {
    table.AddRow({item.id(), item.has_rank() ? base::Grouped(item.rank()) : "",
                  item.has_score() ? fmt::format("{:.4f}", item.score()) : "", item.text()});
  }
  const v1::Receipt& receipt = answer.response.receipt();
  std::string text = Bold(Printable(answer.heading), terminal) + '\n' + table.Render(terminal, 2);
  text += NotesText(answer.response.notes(), "explain");
  text += Dim(Printable(ReceiptLine(receipt, answer.backend_reason)), terminal) + '\n';
  if (whole_receipt) text += ReceiptTable(receipt, terminal);
  return text;
}

// The response as one line of JSON, with the field names of simile.v1.ExplainResponse.
std::string ExplanationJson(const ExplainedAnswer& answer) {
  Json explanations = Json::array();
  for (const v1::Explanation& item : answer.response.explanations()) {
    explanations.push_back(ExplainedItemJson(item));
  }
  Json json = {{"collection", answer.collection},
               {"explanations", std::move(explanations)},
               {"score_kind", ScoreKindName(answer.response.score_kind())}};
  if (answer.response.has_score_needed()) {
    json["score_needed"] = FloatJson(answer.response.score_needed());
  }
  json["receipt"] = ReceiptJson(answer.response.receipt());
  AddNotes(answer.response.notes(), json);
  return JsonLine(json);
}

struct ExplainFlags {
  QueryFlags query;
  ExampleFlags examples;
  UserFlags user_options;
  std::vector<std::string> items;  // to explain
  // The query.
  std::optional<std::string> id;
  std::optional<std::string> user;
  std::optional<std::string> vector;
};

// The item to blend the user's profile with; null if there is none.
const std::string* BlendedItem(const ExplainFlags& flags) {
  return flags.user && !flags.examples.like.empty() ? &flags.examples.like.front() : nullptr;
}

absl::Status CheckQuery(const ExplainFlags& flags) {
  const int targets =
      int{flags.id.has_value()} + int{flags.user.has_value()} + int{flags.vector.has_value()};
  if (targets == 0 && !flags.examples.given()) {
    return absl::InvalidArgumentError(
        "give the query: --id ID, --user ID, --vector FILE, or --like and --unlike");
  }
  if (targets > 1) {
    return absl::InvalidArgumentError("--id, --user and --vector cannot be combined; give one");
  }
  if (flags.user && (flags.examples.like.size() > 1 || !flags.examples.unlike.empty() ||
                     flags.examples.strategy)) {
    return absl::InvalidArgumentError(
        "--user is blended with one item: give one --like, without --unlike and --strategy");
  }
  v1::SearchOptions options;
  const UserFlags& of_user = flags.user_options;
  if (!flags.user && (of_user.exclude_seen || of_user.user_weight || of_user.cold_start)) {
    return absl::InvalidArgumentError(
        "--exclude-seen, --user-weight and --cold-start need --user ID");
  }
  return SetUserOptions(of_user, BlendedItem(flags) != nullptr, options);
}

// Sets the query of a search. REQUIRES: not --user without --like, which is a Recommend.
absl::Status SetQuery(const ExplainFlags& flags, v1::Query& query) {
  if (const std::string* const item = BlendedItem(flags)) {
    SetBlend(flags.user_options, flags.query.items_of, *flags.user, *item, query);
    return absl::OkStatus();
  }
  if (flags.id) SetItem(flags.query.items_of, *flags.id, query);
  if (flags.vector) {
    const absl::StatusOr<QueryVectors> vectors = ReadQueryVectors(*flags.vector, Limits{});
    if (!vectors.ok()) return vectors.status();
    if (vectors->rows.size() != 1) {
      return absl::InvalidArgumentError(
          fmt::format("{} has {}; one query is explained at a time, so give one vector",
                      vectors->source, base::Counted(vectors->rows.size(), "vector")));
    }
    const std::vector<float>& row = vectors->rows.front();
    query.mutable_vector()->mutable_values()->Assign(row.begin(), row.end());
  }
  return flags.examples.given() ? TurnIntoExamples(flags.examples, flags.query.items_of, query)
                                : absl::OkStatus();
}

std::string FormatHeading(const std::string& collection, const ExplainFlags& flags) {
  std::string heading = fmt::format("in {}", collection);
  if (flags.user) heading += fmt::format(", for {}", *flags.user);
  if (flags.vector) heading += fmt::format(", nearest to {}", *flags.vector);
  std::vector<std::string> like = flags.examples.like;
  if (flags.id) like.insert(like.begin(), *flags.id);
  if (!like.empty()) heading += fmt::format(", like {}", fmt::join(like, " and "));
  if (!flags.examples.unlike.empty()) {
    heading += fmt::format(", unlike {}", fmt::join(flags.examples.unlike, " and "));
  }
  return heading + OfCollection(flags.query.items_of);
}

absl::StatusOr<v1::ExplainRequest> MakeExplainRequest(const ExplainFlags& flags,
                                                      const v1::Collection& collection) {
  absl::StatusOr<v1::SearchOptions> options = MakeSearchOptions(flags.query);
  if (!options.ok()) return options.status();
  absl::Status status = SetUserOptions(flags.user_options, BlendedItem(flags) != nullptr, *options);
  if (status.ok()) status = SetCollectionOptions(flags.query, collection, *options);
  if (!status.ok()) return status;
  v1::ExplainRequest request;
  for (const std::string& item : flags.items) request.add_ids(item);
  if (flags.user && BlendedItem(flags) == nullptr) {
    v1::RecommendRequest& recommend = *request.mutable_recommend();
    recommend.set_collection(collection.name());
    recommend.add_user_ids(*flags.user);
    *recommend.mutable_options() = *std::move(options);
    return request;
  }
  v1::SearchRequest& search = *request.mutable_search();
  search.set_collection(collection.name());
  *search.mutable_options() = *std::move(options);
  status = SetQuery(flags, *search.add_queries());
  if (!status.ok()) return status;
  return request;
}

int RunExplain(const ExplainFlags& flags) {
  const bool json = flags.query.client.json;
  const Connection connection = Connect(flags.query.client, kQueryTimeoutSeconds);
  const absl::StatusOr<v1::Collection> collection =
      ChooseCollection(connection, flags.query.collection);
  if (!collection.ok()) return Fail(collection.status(), json);
  const absl::StatusOr<v1::ExplainRequest> request = MakeExplainRequest(flags, *collection);
  if (!request.ok()) return Fail(request.status(), json);
  absl::StatusOr<v1::ExplainResponse> response = connection.Explain(*request);
  if (!response.ok()) return Fail(response.status(), json);
  const ExplainedAnswer answer{collection->name(), FormatHeading(collection->name(), flags),
                               collection->backend().reason(), *std::move(response)};
  fmt::print("{}", json ? ExplanationJson(answer)
                        : ExplanationTable(answer, flags.query.whole_receipt, StandardOutput()));
  return kSucceeded;
}

}  // namespace

void AddExplainCommand(CommandLine& line) {
  auto flags = std::make_shared<ExplainFlags>();
  Command command = line.Add("explain", "Say why items are, or are not, among the hits of a query");
  command.List("--item", flags->items, "ID", "The items to explain")
      .Required()
      .ListValue("--id", flags->id, "ID", "The query: items like this one, as of `similar`")
      .ListValue("--user", flags->user, "ID", "The query: items for this user, as of `recommend`")
      .File("--vector", flags->vector, "FILE|NUMBERS|-",
            "The query: items nearest to this vector, as of `search`")
      .Check([flags] { return CheckQuery(*flags); });
  AddExampleFlags(command, flags->examples);
  AddUserFlags(command, flags->user_options);
  AddExplainedQueryFlags(command, flags->query);
  command
      .Footer(
          "simile explain --item heat-1995 --id toy-story-1995 --filter 'year < 1995'\n"
          "simile explain --item heat-1995 --user user_00042 --exclude-seen")
      .Run([flags] { return RunExplain(*flags); });
}

}  // namespace simile::cli
