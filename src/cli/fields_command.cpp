#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "cli/client_flags.h"
#include "cli/collection_flags.h"
#include "cli/collection_text.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/output_text.h"

namespace simile::cli {
namespace {

constexpr double kFieldsTimeoutSeconds = 10;
// How many values of one field are printed without --values.
constexpr std::uint32_t kValuesOfOneField = 100;

struct FieldsFlags {
  ClientFlags client;
  std::optional<std::string> name;
  std::optional<std::string> field;
  std::optional<std::uint32_t> values;
  std::optional<std::string> expected_snapshot;
};

// The id of an item that passes the filter; empty if none is found.
std::string IdThatPasses(const Connection& connection, const v1::Collection& collection,
                         const std::string& filter) {
  v1::SearchRequest request;
  request.set_collection(collection.name());
  const int dim = static_cast<int>(collection.dim());
  request.add_queries()->mutable_vector()->mutable_values()->Resize(dim, 1);
  request.mutable_options()->set_k(1);
  request.mutable_options()->set_filter(filter);
  request.mutable_options()->mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_NONE);
  const absl::StatusOr<v1::SearchResponse> found = connection.Search(request);
  if (!found.ok() || found->results().empty() || found->results(0).hits().empty()) return "";
  return found->results(0).hits(0).id();
}

//   filter  empty: suggests nothing
void SuggestFilter(const Connection& connection, const v1::Collection& collection,
                   const std::string& filter, const FieldsFlags& flags) {
  if (filter.empty() || !StandardError().is_terminal) return;
  const std::string id = IdThatPasses(connection, collection, filter);
  if (id.empty()) return;
  SuggestNext(
      NextCommand(fmt::format("similar {} --filter {}", ListFlag("--id", id), ShellWord(filter)),
                  flags.client, flags.name));
}

// The error of a single argument that is neither a collection nor a field.
absl::Status NeitherNor(const Connection& connection, const std::string& name,
                        const absl::Status& no_field) {
  const absl::Status no_collection = connection.Get(name).status();
  if (!absl::IsNotFound(no_collection)) return no_field;
  return base::WithMessage(
      no_collection,
      fmt::format("no collection {}, and {}", base::Quoted(name), std::string(no_field.message())));
}

int RunFields(FieldsFlags& flags) {
  const Connection connection = Connect(flags.client, kFieldsTimeoutSeconds);
  const bool named_two = flags.field.has_value();
  const absl::StatusOr<v1::Collection> collection =
      ChooseCollection(connection, flags.name, flags.field);
  if (!collection.ok()) return Fail(collection.status(), flags.client.json);
  absl::StatusOr<std::string> expected = ExpectedSnapshotId(flags.expected_snapshot, *collection);
  if (!expected.ok()) return Fail(expected.status(), flags.client.json);
  v1::DescribeFieldsRequest request;
  request.set_collection(collection->name());
  request.set_expected_snapshot_id(*std::move(expected));
  request.set_field(flags.field.value_or(""));
  if (flags.values || flags.field) {
    request.set_values_max(flags.values.value_or(kValuesOfOneField));
  }
  const absl::StatusOr<v1::DescribeFieldsResponse> described = connection.DescribeFields(request);
  if (absl::IsInvalidArgument(described.status()) && flags.field && !named_two) {
    return Fail(NeitherNor(connection, *flags.field, described.status()), flags.client.json);
  }
  if (!described.ok()) return Fail(described.status(), flags.client.json);
  if (flags.client.json) {
    fmt::print("{}", FieldsJson(collection->name(), *described));
  } else if (described->fields().empty()) {
    fmt::print("{} has no payload; filters can test ids only\n", collection->name());
  } else if (flags.field && described->fields_size() == 1) {
    fmt::print("{}", FieldValuesTable(described->fields(0), StandardOutput()));
    SuggestFilter(connection, *collection, FilterExample(*described), flags);
  } else {
    fmt::print("{}", FieldsTable(*described, StandardOutput()));
    SuggestFilter(connection, *collection, FilterExample(*described), flags);
  }
  return kSucceeded;
}

}  // namespace

void AddFieldsCommand(CommandLine& line) {
  auto flags = std::make_shared<FieldsFlags>();
  Command command = line.Add("fields", "Show the fields that --filter can test");
  command.Collection(flags->name, "The collection (default: the server's only one)")
      .Positional("FIELD", flags->field,
                  "List the values of this field, the most common ones first")
      .Number("--values", flags->values, "COUNT",
              fmt::format("Common values of each field (default 5; of one FIELD {})",
                          kValuesOfOneField))
      .Text("--expect-snapshot", flags->expected_snapshot, "ID", kExpectSnapshotHelp);
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kFieldsTimeoutSeconds));
  command.Footer("simile fields films\nsimile fields films genres").Run([flags] {
    return RunFields(*flags);
  });
}

}  // namespace simile::cli
