#include "cli/query_flags.h"

#include <utility>

#include <fmt/format.h>

#include "cli/collection_flags.h"
#include "cli/input_file.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

absl::StatusOr<v1::Examples::Strategy> ChooseStrategy(const ExampleFlags& flags,
                                                      bool has_positive) {
  if (!flags.strategy) {
    return has_positive ? v1::Examples::STRATEGY_AVERAGE_VECTOR : v1::Examples::STRATEGY_BEST_SCORE;
  }
  if (const auto strategy = StrategyNamed(*flags.strategy)) return *strategy;
  return absl::InvalidArgumentError(
      fmt::format("--strategy {}: give average-vector, best-score or sum-scores", *flags.strategy));
}

// Refuses a flag without the flag that it needs, and flags that exclude each other.
absl::Status CheckCombinations(const QueryFlags& flags) {
  if (flags.group_size && !flags.group_by) {
    return absl::InvalidArgumentError("--group-size needs --group-by FIELD");
  }
  if (flags.candidates && !flags.diversity) {
    return absl::InvalidArgumentError("--candidates needs --diversity LAMBDA");
  }
  if (flags.diversity && flags.group_by) {
    return absl::InvalidArgumentError("--diversity and --group-by cannot be combined; give one");
  }
  return absl::OkStatus();
}

// Adds the flags that decide which items are hits.
void AddHitFlags(Command& command, QueryFlags& flags) {
  command.Collection(flags.collection, "The collection to search (default: the server's only one)")
      .Text("--items-of", flags.items_of, "COLLECTION",
            "The collection of the items to compare with (default: the one to search)")
      .Number("-k", flags.k, "COUNT", "Hits wanted (default 10)")
      .Number("--offset", flags.offset, "COUNT", "Best hits to skip (default 0)")
      .Real("--score-threshold", flags.score_threshold, "SCORE",
            "Leave out hits with a lower score")
      .List("--exclude", flags.exclude_ids, "ID", "Items never to return")
      .File("--allow", flags.allowed_file, "FILE",
            "Return only items whose ids are in this file: a JSON list, or one id a line")
      .Text("--filter", flags.filter, "TEXT",
            "Only items that pass: 'genres:\"Drama\" AND year >= 1990'; see `simile fields`")
      .Text("--required-filter", flags.required_filter, "TEXT",
            "Treat items that do not pass as not in the collection; --filter narrows further")
      .Text("--group-by", flags.group_by, "FIELD",
            "Return the best groups of items that share a keyword or integer of this field")
      .Number("--group-size", flags.group_size, "COUNT", "Items in each group (default 1)", 1)
      .Real("--diversity", flags.diversity, "LAMBDA",
            "Prefer items unlike each other (MMR): 1 ranks by score alone, 0 by difference alone")
      .Number("--candidates", flags.candidates, "COUNT",
              "Best items that --diversity chooses from (default 10 per hit, at least 100)", 1);
}

void AddPageFlags(Command& command, QueryFlags& flags) {
  command
      .Text("--page-token", flags.page_token, "TOKEN",
            "Print this token's page; repeat the other flags unchanged")
      .Text("--expect-snapshot", flags.expected_snapshot, "ID", kExpectSnapshotHelp);
}

// Adds the flags that decide how the call is made.
void AddCallFlags(Command& command, QueryFlags& flags) {
  command
      .Switch("--bulk", flags.bulk, "Let online callers go first: for work that nobody waits for")
      .Switch("--receipt", flags.whole_receipt,
              "Print the whole receipt under the answer, with the time on the GPU; --json prints "
              "all but "
              "that time without this flag too")
      .Check([&flags] { return CheckCombinations(flags); });
  AddClientFlags(command, flags.client, fmt::format("default {:.0f}", kQueryTimeoutSeconds));
}

}  // namespace

void AddQueryFlags(Command& command, QueryFlags& flags) {
  AddHitFlags(command, flags);
  command.Switch("--paged", flags.paged, "Print a token for the next page");
  AddPageFlags(command, flags);
  command.List("--fields", flags.fields, "FIELD", kTableFieldsHelp)
      .Switch("--with-rows", flags.with_rows,
              "Return each item's position in the loaded files, from 0")
      .Switch("--partial", flags.partial,
              "Answer what can be answered, and say for each other query what is wrong with it");
  AddCallFlags(command, flags);
}

void AddExplainedQueryFlags(Command& command, QueryFlags& flags) {
  AddHitFlags(command, flags);
  AddPageFlags(command, flags);
  AddCallFlags(command, flags);
}

absl::StatusOr<v1::SearchOptions> MakeSearchOptions(const QueryFlags& flags) {
  v1::SearchOptions options;
  if (flags.k) options.set_k(*flags.k);
  if (flags.whole_receipt) options.set_receipt_detail(v1::RECEIPT_DETAIL_TIMED);
  if (flags.offset) options.set_offset(*flags.offset);
  if (flags.score_threshold) {
    options.set_score_threshold(static_cast<float>(*flags.score_threshold));
  }
  for (const std::string& id : flags.exclude_ids) options.add_exclude_ids(id);
  if (flags.allowed_file) {
    absl::StatusOr<std::vector<std::string>> ids = ReadIdFile(*flags.allowed_file, Limits{});
    if (!ids.ok()) return ids.status();
    auto& allowed = *options.mutable_allow_ids()->mutable_ids();
    for (std::string& id : *ids) *allowed.Add() = std::move(id);
  }
  if (flags.filter) options.set_filter(*flags.filter);
  if (flags.required_filter) options.set_required_filter(*flags.required_filter);
  if (flags.group_by) options.mutable_group_by()->set_field(*flags.group_by);
  if (flags.group_size) options.mutable_group_by()->set_group_size(*flags.group_size);
  if (flags.diversity) {
    options.mutable_diversity()->set_lambda(static_cast<float>(*flags.diversity));
  }
  if (flags.candidates) options.mutable_diversity()->set_candidates(*flags.candidates);
  options.set_paged(flags.paged);
  if (flags.page_token) options.set_page_token(*flags.page_token);
  options.set_with_rows(flags.with_rows);
  options.set_reply_bytes_max(kReplyBytesMax);
  if (flags.bulk) options.set_priority(v1::PRIORITY_BULK);
  options.set_partial(flags.partial);
  return options;
}

std::string OfCollection(const std::optional<std::string>& items_of) {
  return items_of ? " of " + *items_of : std::string();
}

absl::Status SetCollectionOptions(const QueryFlags& flags, const v1::Collection& collection,
                                  v1::SearchOptions& options) {
  absl::StatusOr<std::string> id = ExpectedSnapshotId(flags.expected_snapshot, collection);
  if (!id.ok()) return id.status();
  options.set_expected_snapshot_id(*std::move(id));
  SelectFields(flags.fields, collection, *options.mutable_payload());
  return absl::OkStatus();
}

void AddUserFlags(Command& command, UserFlags& flags) {
  command.Switch("--exclude-seen", flags.exclude_seen, "Leave out items the user has seen")
      .Real("--user-weight", flags.user_weight, "SHARE",
            "The user's share of the blend with --like: 0 to 1 (default 0.5)")
      .Text("--cold-start", flags.cold_start, "ORDER",
            "For users without a profile: newest or most-popular items")
      .Choices({"newest", "most-popular"})
      .Text("--cold-start-field", flags.cold_start_field, "FIELD",
            "The field that --cold-start orders by, greatest first");
}

absl::Status SetUserOptions(const UserFlags& flags, bool has_like, v1::SearchOptions& options) {
  if (flags.cold_start && has_like) {
    return absl::InvalidArgumentError(
        "--cold-start is for users without a profile, and --like ID needs one");
  }
  if (flags.user_weight && !has_like) {
    return absl::InvalidArgumentError("--user-weight needs --like ID");
  }
  options.set_exclude_seen(flags.exclude_seen);
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

void SetBlend(const UserFlags& flags, const std::optional<std::string>& items_of,
              const std::string& user, const std::string& item, v1::Query& query) {
  v1::Blend& blend = *query.mutable_blend();
  SetItem(items_of, item, blend);
  blend.set_user_id(user);
  if (flags.user_weight) blend.set_user_weight(static_cast<float>(*flags.user_weight));
}

void AddExampleFlags(Command& command, ExampleFlags& flags) {
  command.List("--like", flags.like, "ID", "Items to be like")
      .List("--unlike", flags.unlike, "ID", "Items to be unlike")
      .Text("--strategy", flags.strategy, "NAME",
            "How --like and --unlike make a score: average-vector, best-score or sum-scores")
      .Choices({"average-vector", "best-score", "sum-scores"})
      .Check([&flags] {
        v1::Query query;
        return flags.given() ? TurnIntoExamples(flags, {}, query) : absl::OkStatus();
      });
}

absl::Status TurnIntoExamples(const ExampleFlags& flags, const std::optional<std::string>& items_of,
                              v1::Query& query) {
  if (flags.like.empty() && flags.unlike.empty()) {
    return absl::InvalidArgumentError("--strategy needs --like or --unlike");
  }
  v1::Examples examples;
  if (query.has_id()) examples.add_positive()->set_id(query.id());
  if (query.has_item()) *examples.add_positive()->mutable_item() = query.item();
  if (query.has_vector()) *examples.add_positive()->mutable_vector() = query.vector();
  for (const std::string& id : flags.like) SetItem(items_of, id, *examples.add_positive());
  for (const std::string& id : flags.unlike) SetItem(items_of, id, *examples.add_negative());
  const auto strategy = ChooseStrategy(flags, !examples.positive().empty());
  if (!strategy.ok()) return strategy.status();
  examples.set_strategy(*strategy);
  *query.mutable_examples() = std::move(examples);
  return absl::OkStatus();
}

}  // namespace simile::cli
