#include "cli/similar_command.h"

#include <memory>

#include <fmt/format.h>

#include "base/message_text.h"
#include "cli/answer.h"
#include "cli/answer_json.h"
#include "cli/commands.h"
#include "cli/display_text.h"
#include "cli/error_details.h"
#include "cli/exit_code.h"
#include "cli/payload_text.h"
#include "cli/query_flags.h"
#include "cli/table.h"

namespace simile::cli {
namespace {

constexpr std::uint32_t kCandidatesMax = 20;

struct SimilarFlags {
  QueryFlags query;
  ExampleFlags examples;
  std::vector<std::string> ids;
  std::optional<std::string> title;
};

// An item to search around.
struct Start {
  std::string id;
  std::string label;  // its name in the heading
};

std::string CandidatesTable(const std::string& collection, const std::string& title,
                            const v1::LookupResponse& found) {
  Table table({{}, {"", Align::kLeft, true}, {}});
  for (const v1::LookupMatch& match : found.matches()) {
    const PayloadMap& payload = match.item().payload();
    table.AddRow({match.item().id(), FieldText(payload, "title"), FieldText(payload, "year")});
  }
  const auto listed = static_cast<std::uint64_t>(found.matches_size());
  std::string text =
      fmt::format("{} {} match \"{}\"; name one with --id:\n{}", base::Grouped(found.match_count()),
                  collection, Printable(title), table.Render(StandardOutput(), 2));
  if (found.match_count() > listed) {
    text += fmt::format("  and {} more\n", base::Grouped(found.match_count() - listed));
  }
  return text;
}

// Finds the item with this title. When it is ambiguous, prints the candidates and returns nullopt.
absl::StatusOr<std::optional<Start>> StartByTitle(const Connection& connection,
                                                  const v1::Collection& collection,
                                                  const v1::SearchOptions& options,
                                                  const std::string& title, bool json) {
  v1::LookupRequest request;
  request.set_collection(collection.name());
  request.set_required_filter(options.required_filter());
  request.set_expected_snapshot_id(options.expected_snapshot_id());
  request.set_text(title);
  request.set_limit(kCandidatesMax);
  const absl::StatusOr<v1::LookupResponse> found = connection.Lookup(request);
  if (!found.ok()) return found.status();
  const TitleChoice choice = ChooseByTitle(*found);
  if (const auto* item = std::get_if<TitleFound>(&choice)) {
    return Start{item->item.id(), RowLabel(item->item.payload(), item->item.id())};
  }
  if (std::holds_alternative<TitleUnknown>(choice)) {
    return absl::NotFoundError(
        fmt::format("no {} in {} contains \"{}\". Try fewer words, or name an item with --id.",
                    collection.lookup_fields().empty() ? "title" : collection.lookup_fields(0),
                    collection.name(), title));
  }
  fmt::print("{}", json ? CandidatesJson(collection.name(), title, *found)
                        : CandidatesTable(collection.name(), title, *found));
  return std::nullopt;
}

absl::StatusOr<std::vector<Start>> StartsById(const Connection& connection,
                                              const v1::Collection& collection,
                                              const v1::SearchOptions& options,
                                              const std::vector<std::string>& ids) {
  v1::FetchRequest request;
  request.set_collection(collection.name());
  request.set_required_filter(options.required_filter());
  request.set_expected_snapshot_id(options.expected_snapshot_id());
  request.set_reply_bytes_max(kReplyBytesMax);
  for (const std::string& id : ids) request.add_ids(id);
  const absl::StatusOr<v1::FetchResponse> fetched = connection.Fetch(request);
  if (absl::IsNotFound(fetched.status()) && !collection.lookup_fields().empty()) {
    const std::string message(fetched.status().message());
    return base::WithMessage(
        fetched.status(),
        fmt::format("{}{} --title TEXT finds an item by its {}.", message,
                    message.ends_with('?') ? "" : ".", collection.lookup_fields(0)));
  }
  if (!fetched.ok()) return fetched.status();
  std::vector<Start> starts;
  for (const v1::Item& item : fetched->items()) {
    starts.push_back({item.id(), RowLabel(item.payload(), item.id())});
  }
  return starts;
}

// "Toy Story (1995) and 2 items more, unlike 1 item"
std::string LabelOf(const Start* start, const ExampleFlags& examples) {
  std::string label = start != nullptr ? start->label : "";
  if (!examples.like.empty()) {
    const std::string more = base::Counted(examples.like.size(), "item");
    label += start != nullptr ? fmt::format(" and {} more", more) : more;
  }
  if (examples.unlike.empty()) return label;
  return fmt::format("{}{}unlike {}", label, label.empty() ? "" : ", ",
                     base::Counted(examples.unlike.size(), "item"));
}

//   starts  one query each; empty: one query for the examples alone
int SearchAround(const Connection& connection, const v1::Collection& collection,
                 const v1::SearchOptions& options, const std::vector<Start>& starts,
                 const SimilarFlags& flags) {
  v1::SearchRequest request;
  request.set_collection(collection.name());
  *request.mutable_options() = options;
  for (const Start& start : starts) request.add_queries()->set_id(start.id);
  if (starts.empty()) request.add_queries();
  if (flags.examples.given()) {
    for (v1::Query& query : *request.mutable_queries()) {
      absl::Status status = TurnIntoExamples(flags.examples, query);
      if (!status.ok()) return Fail(status, flags.query.client.json);
    }
  }
  absl::StatusOr<v1::SearchResponse> response = connection.Search(request);
  if (!response.ok()) return Fail(response.status(), flags.query.client.json);

  Answer answer = AnswerOf(collection.name(), flags.query.fields, *response);
  for (int i = 0; i < response->results_size(); ++i) {
    const Start* const start = starts.empty() ? nullptr : &starts[static_cast<std::size_t>(i)];
    const std::string label = LabelOf(start, flags.examples);
    AnsweredQuery& result = answer.results.emplace_back();
    const bool like_something = start != nullptr || !flags.examples.like.empty();
    result.heading =
        fmt::format("{} {}{}", collection.name(), like_something ? "like " : "", label);
    if (start != nullptr) result.id = start->id;
    result.like = flags.examples.like;
    result.unlike = flags.examples.unlike;
    MoveResult(*response->mutable_results(i), result);
  }
  return ShowAnswer(answer, flags.query);
}

int RunSimilar(const SimilarFlags& flags) {
  const bool by_id = !flags.ids.empty();
  const bool by_title = flags.title.has_value();
  if (by_id && by_title) {
    Fail(absl::InvalidArgumentError("--id and --title cannot be combined; give one"));
    return kWrongUsage;
  }
  if (!by_id && !by_title && !flags.examples.given()) {
    Fail(
        absl::InvalidArgumentError("say what to compare with: --id ID..., --title TEXT, or --like "
                                   "ID,... and --unlike ID,..."));
    return kWrongUsage;
  }
  const bool json = flags.query.client.json;
  absl::StatusOr<v1::SearchOptions> options = OptionsOf(flags.query);
  if (!options.ok()) return Fail(options.status(), json);
  const Connection connection = Connect(flags.query.client, kQueryTimeoutSeconds);
  const absl::StatusOr<v1::Collection> collection =
      ChooseCollection(connection, flags.query.collection);
  if (!collection.ok()) return Fail(collection.status(), json);
  if (absl::Status set = SetExpectedSnapshot(flags.query, *collection, *options); !set.ok()) {
    return Fail(set, json);
  }
  if (by_id) {
    const auto starts = StartsById(connection, *collection, *options, flags.ids);
    if (!starts.ok()) return Fail(starts.status(), json);
    return SearchAround(connection, *collection, *options, *starts, flags);
  }
  if (!by_title) return SearchAround(connection, *collection, *options, {}, flags);
  const auto start = StartByTitle(connection, *collection, *options, *flags.title, json);
  if (!start.ok()) return Fail(start.status(), json);
  if (!start->has_value()) return kFailed;
  return SearchAround(connection, *collection, *options, {**start}, flags);
}

}  // namespace

TitleChoice ChooseByTitle(const v1::LookupResponse& found) {
  if (found.match_count() == 0 || found.matches().empty()) return TitleUnknown{};
  const bool one_whole = found.whole_match_count() == 1;
  const bool only_match = found.match_count() == 1;
  if (!one_whole && !only_match) return TitleAmbiguous{};
  return TitleFound{found.matches(0).item()};  // whole matches come first
}

void AddSimilarCommand(CommandLine& line) {
  auto flags = std::make_shared<SimilarFlags>();
  Command command = line.Add("similar", "Find the items most like given ones");
  command.Texts("--id", flags->ids, "ID", "Items to compare with, by id")
      .Text("--title", flags->title, "TEXT", "The item to compare with, by title or a part of it");
  AddExampleFlags(command, flags->examples);
  AddQueryFlags(command, flags->query);
  command
      .Footer(
          "simile similar --title \"Toy Story\" -k 5\n"
          "simile similar --like heat-1995,ronin-1998 --unlike batman-1989")
      .Run([flags] { return RunSimilar(*flags); });
}

}  // namespace simile::cli
