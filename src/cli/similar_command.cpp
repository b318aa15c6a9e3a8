#include "cli/similar_command.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "cli/answer.h"
#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/item_text.h"
#include "cli/output_text.h"
#include "cli/payload_text.h"
#include "cli/query_flags.h"

namespace simile::cli {
namespace {

constexpr std::uint32_t kCandidatesMax = 20;
constexpr const char* kNoTarget =
    "say what to compare with: an id or a title, --id ID,..., --title TEXT, or --like ID,... and "
    "--unlike ID,...";

struct SimilarFlags {
  QueryFlags query;
  ExampleFlags examples;
  std::optional<std::string> item;
  std::vector<std::string> ids;
  std::optional<std::string> title;
  std::optional<std::string> field;
};

// An item whose neighbours are searched.
struct Start {
  std::string id;
  std::string label;  // its name in the heading
};

// Prints the items that an ambiguous title may mean.
void PrintCandidates(const std::string& collection, const std::string& title,
                     const SimilarFlags& flags, const v1::LookupResponse& found) {
  if (flags.query.client.json) {
    fmt::print("{}", CandidatesJson(collection, title, found));
    return;
  }
  const auto listed = static_cast<std::uint64_t>(found.matches_size());
  fmt::print("{} \"{}\"; name one with --id:\n{}", MatchCountText(found.match_count(), collection),
             Printable(title), MatchTable(found, {}, StandardOutput()));
  if (found.match_count() > listed) {
    fmt::print("  and {} more\n", base::Grouped(found.match_count() - listed));
  }
  SuggestNext(NextCommand(fmt::format("similar {}", ListFlag("--id", found.matches(0).item().id())),
                          flags.query.client, flags.query.collection));
}

// Finds the item with this title. If the title is ambiguous, prints the candidates and returns
// nullopt.
absl::StatusOr<std::optional<Start>> StartByTitle(const Connection& connection,
                                                  const v1::Collection& collection,
                                                  const v1::SearchOptions& options,
                                                  const std::string& title,
                                                  const SimilarFlags& flags) {
  v1::LookupRequest request;
  request.set_collection(collection.name());
  request.set_required_filter(options.required_filter());
  request.set_expected_snapshot_id(options.expected_snapshot_id());
  request.set_text(title);
  request.set_field(flags.field.value_or(""));
  request.set_limit(kCandidatesMax);
  const absl::StatusOr<v1::LookupResponse> found = connection.Lookup(request);
  if (!found.ok()) return found.status();
  const TitleChoice choice = ChooseByTitle(*found);
  if (const auto* item = std::get_if<TitleFound>(&choice)) {
    const std::string& id = item->item.id();
    const std::string label = RowLabel(item->item.payload(), id);
    // Shows the id, too: the next command needs it.
    return Start{id, label == id ? id : fmt::format("{}, {}", label, id)};
  }
  if (std::holds_alternative<TitleUnknown>(choice)) {
    return absl::NotFoundError(
        fmt::format("no {} in {} contains \"{}\".{} Try fewer words, or name an item with --id.",
                    flags.field.value_or(LookupFieldsText(collection)), collection.name(), title,
                    base::DidYouMean(found->nearest())));
  }
  PrintCandidates(collection.name(), title, flags, *found);
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
  request.set_partial(options.partial());  // the search reports what is wrong with an id
  for (const std::string& id : ids) request.add_ids(id);
  const absl::StatusOr<v1::FetchResponse> fetched = connection.Fetch(request);
  if (absl::IsNotFound(fetched.status()) && !collection.lookup_fields().empty()) {
    return WithAdvice(fetched.status(), fmt::format("--title TEXT finds an item by its {}.",
                                                    LookupFieldsText(collection)));
  }
  if (!fetched.ok()) return fetched.status();
  std::vector<Start> starts;
  for (const v1::Item& item : fetched->items()) {
    starts.push_back({item.id(), RowLabel(item.payload(), item.id())});
  }
  return starts;
}

// Finds the item that an argument names, by its id or else by its title.
absl::StatusOr<std::optional<Start>> StartByItem(const Connection& connection,
                                                 const v1::Collection& collection,
                                                 v1::SearchOptions options,
                                                 const SimilarFlags& flags) {
  options.set_partial(false);
  const auto by_id = StartsById(connection, collection, options, {*flags.item});
  if (by_id.ok()) return by_id->front();
  if (!absl::IsNotFound(by_id.status()) || collection.lookup_fields().empty()) {
    return by_id.status();
  }
  auto by_title = StartByTitle(connection, collection, options, *flags.item, flags);
  return absl::IsNotFound(by_title.status()) ? by_id.status() : by_title;
}

// "heat-1995"; "3 items"
std::string ExamplesText(const std::vector<std::string>& ids) {
  return ids.size() == 1 ? ids.front() : base::Counted(ids.size(), "item");
}

// "in films, like Toy Story (1995) and heat-1995, unlike 2 items"; "in jobs, like anna-7 of cvs"
std::string FormatHeading(const std::string& collection, const Start* start,
                          const SimilarFlags& flags) {
  const ExampleFlags& examples = flags.examples;
  std::string heading = fmt::format("in {}", collection);
  if (start != nullptr) heading += fmt::format(", like {}", start->label);
  if (!examples.like.empty()) {
    heading +=
        fmt::format("{} {}", start != nullptr ? " and" : ", like", ExamplesText(examples.like));
  }
  if (!examples.unlike.empty())
    heading += fmt::format(", unlike {}", ExamplesText(examples.unlike));
  return heading + OfCollection(flags.query.items_of);
}

//   starts  one query per start; empty: one query for the examples alone
int SearchAround(const Connection& connection, const v1::Collection& collection,
                 const v1::SearchOptions& options, const std::vector<Start>& starts,
                 const SimilarFlags& flags) {
  v1::SearchRequest request;
  request.set_collection(collection.name());
  *request.mutable_options() = options;
  for (const Start& start : starts) {
    SetItem(flags.query.items_of, start.id, *request.add_queries());
  }
  if (starts.empty()) request.add_queries();
  if (flags.examples.given()) {
    for (v1::Query& query : *request.mutable_queries()) {
      absl::Status status = TurnIntoExamples(flags.examples, flags.query.items_of, query);
      if (!status.ok()) return Fail(status, flags.query.client.json);
    }
  }
  absl::StatusOr<v1::SearchResponse> response = connection.Search(request);
  if (!response.ok()) return Fail(response.status(), flags.query.client.json);

  Answer answer = StartAnswer(collection, *response);
  for (int i = 0; i < response->results_size(); ++i) {
    const Start* const start = starts.empty() ? nullptr : &starts[static_cast<std::size_t>(i)];
    AnsweredQuery& result = answer.results.emplace_back();
    result.heading = FormatHeading(collection.name(), start, flags);
    if (start != nullptr) result.id = start->id;
    result.items_of = flags.query.items_of;
    result.like = flags.examples.like;
    result.unlike = flags.examples.unlike;
    MoveResult(*response->mutable_results(i), result);
  }
  return ShowAnswer(std::move(answer), flags.query);
}

absl::Status CheckTarget(const SimilarFlags& flags) {
  const bool by_id = !flags.ids.empty();
  const bool by_title = flags.title.has_value();
  if (by_id && by_title) {
    return absl::InvalidArgumentError("--id and --title cannot be combined; give one");
  }
  if (flags.item && (by_id || by_title)) {
    return absl::InvalidArgumentError(
        fmt::format("{} and {} both name an item; give one{}", base::Quoted(*flags.item),
                    by_id ? "--id" : "--title",
                    by_id ? ". Join several ids by commas" : ". Write a title in quotes"));
  }
  if (flags.field && !by_title && !flags.item) {
    return absl::InvalidArgumentError("--field says where to look for --title; give both");
  }
  if (by_id || by_title || flags.item || flags.examples.given()) return absl::OkStatus();
  // RunSimilar finds out whether a single argument names the collection or the item.
  if (flags.query.collection &&
      flags.query.client.command->collection_given_as == kCollectionArgument) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(kNoTarget);
}

// Chooses the collection. A single argument may name the collection or the item.
absl::StatusOr<v1::Collection> ChooseTargetCollection(const Connection& connection,
                                                      SimilarFlags& flags) {
  const bool has_target = flags.item || flags.title || !flags.ids.empty() || flags.examples.given();
  if (has_target) return ChooseCollection(connection, flags.query.collection);
  auto chosen = ChooseCollection(connection, flags.query.collection, flags.item);
  if (!chosen.ok() || flags.item) return chosen;
  return absl::InvalidArgumentError(fmt::format("{} alone names the collection; {}",
                                                base::Quoted(*flags.query.collection), kNoTarget));
}

int RunSimilar(SimilarFlags& flags) {
  const bool json = flags.query.client.json;
  absl::StatusOr<v1::SearchOptions> options = MakeSearchOptions(flags.query);
  if (!options.ok()) return Fail(options.status(), json);
  const Connection connection = Connect(flags.query.client, kQueryTimeoutSeconds);
  const absl::StatusOr<v1::Collection> collection = ChooseTargetCollection(connection, flags);
  if (!collection.ok()) return Fail(collection.status(), json);
  if (absl::Status set = SetCollectionOptions(flags.query, *collection, *options); !set.ok()) {
    return Fail(set, json);
  }
  const auto source = flags.query.items_of ? connection.Get(*flags.query.items_of) : collection;
  if (!source.ok()) return Fail(source.status(), json);
  v1::SearchOptions of_source = *options;
  if (flags.query.items_of) of_source.clear_expected_snapshot_id();
  if (!flags.ids.empty()) {
    const auto starts = StartsById(connection, *source, of_source, flags.ids);
    if (!starts.ok()) return Fail(starts.status(), json);
    return SearchAround(connection, *collection, *options, *starts, flags);
  }
  if (!flags.title && !flags.item) {
    return SearchAround(connection, *collection, *options, {}, flags);
  }
  const auto start = flags.title ? StartByTitle(connection, *source, of_source, *flags.title, flags)
                                 : StartByItem(connection, *source, of_source, flags);
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
  command.Positional("ITEM", flags->item, "The item to compare with, by its id, else by its title")
      .List("--id", flags->ids, "ID", "Items to compare with, by id")
      .Text("--title", flags->title, "TEXT", "The item to compare with, by title or a part of it")
      .Text("--field", flags->field, "FIELD",
            "The field to search for it (default: all look-up fields of the collection)")
      .Check([flags] { return CheckTarget(*flags); });
  AddExampleFlags(command, flags->examples);
  AddQueryFlags(command, flags->query);
  command
      .Footer(
          "simile similar --title \"Toy Story\" -k 5\n"
          "simile similar --like heat-1995,alien-1979 --unlike batman-1989")
      .Run([flags] { return RunSimilar(*flags); });
}

}  // namespace simile::cli
