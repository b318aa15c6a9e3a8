#include "cli/fields_command.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "cli/client_flags.h"
#include "cli/collection_flags.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/output_text.h"
#include "cli/payload_text.h"
#include "cli/table.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

// Of a common value among others.
constexpr std::size_t kValueWidthMax = 40;

std::string ValuesText(const v1::FieldDescription& field) {
  if (field.has_least()) {
    return fmt::format("{} to {}", ValueText(field.least()), ValueText(field.greatest()));
  }
  std::vector<std::string> values;
  for (const v1::ValueCount& value : field.values()) {
    values.push_back(fmt::format("{} ({})", Shortened(ValueText(value.value()), kValueWidthMax),
                                 base::Grouped(value.rows())));
  }
  return fmt::format("{}", fmt::join(values, ", "));
}

constexpr double kFieldsTimeoutSeconds = 10;
// Of one field, without --values.
constexpr std::uint32_t kValuesOfOneField = 100;
// Narrower terminals show the values instead of their memory.
constexpr std::size_t kWidthWithMemory = 80;
// Of a value in the filter that is suggested.
constexpr std::size_t kExampleWidthMax = 40;

struct FieldsFlags {
  ClientFlags client;
  std::optional<std::string> name;
  std::optional<std::string> field;
  std::optional<std::uint32_t> values;
  std::optional<std::string> expected_snapshot;
};

// The id of an item that passes the filter; empty where none is found.
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

//   filter  empty: none to suggest
void SuggestFilter(const Connection& connection, const v1::Collection& collection,
                   const std::string& filter, const FieldsFlags& flags) {
  if (filter.empty() || !StandardError().is_terminal) return;
  const std::string id = IdThatPasses(connection, collection, filter);
  if (id.empty()) return;
  SuggestNext(
      NextCommand(fmt::format("similar {} --filter {}", ListFlag("--id", id), ShellWord(filter)),
                  flags.client, flags.name));
}

// The error of a field that was named alone, and is neither a collection nor a field.
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

std::string FieldsTable(const v1::DescribeFieldsResponse& described, const Terminal& terminal) {
  const bool with_memory = terminal.width == 0 || terminal.width >= kWidthWithMemory;
  std::vector<Table::Column> columns{{"field"},
                                     {"type"},
                                     {"rows", Align::kRight},
                                     {"different", Align::kRight},
                                     {"most common, or range", Align::kLeft, true}};
  if (with_memory) columns.push_back({"memory", Align::kRight});
  Table table(std::move(columns));
  for (const v1::FieldDescription& field : described.fields()) {
    std::vector<std::string> cells{
        field.field().name(), FieldTypeName(field.field().type()),
        base::Grouped(field.field().rows()),
        field.distinct_values() == 0 ? "" : base::Grouped(field.distinct_values()),
        ValuesText(field)};
    if (with_memory) cells.push_back(base::BytesText(field.bytes()));
    table.AddRow(std::move(cells));
  }
  return table.Render(terminal, 0);
}

std::string FieldValuesTable(const v1::FieldDescription& field, const Terminal& terminal) {
  std::string text =
      fmt::format("{}: {}, in {}", Bold(Printable(field.field().name()), terminal),
                  FieldTypeName(field.field().type()), base::Counted(field.field().rows(), "row"));
  if (field.has_least()) return fmt::format("{}, {}\n", text, Printable(ValuesText(field)));
  const auto listed = static_cast<std::uint64_t>(field.values_size());
  const std::uint64_t different = std::max(field.distinct_values(), listed);
  if (different == 0) return text + '\n';
  text += fmt::format(", {}\n", base::Counted(different, "different value"));
  Table table({{"value", Align::kLeft, true}, {"rows", Align::kRight}});
  for (const v1::ValueCount& value : field.values()) {
    table.AddRow({ValueText(value.value()), base::Grouped(value.rows())});
  }
  text += table.Render(terminal, 2);
  if (different > listed) {
    text += fmt::format("  and {} more; --values shows more\n", base::Grouped(different - listed));
  }
  return text;
}

std::string FilterExample(const v1::DescribeFieldsResponse& described) {
  const auto plain = [](std::string_view text) {
    return text.find_first_of("\"'\\") == std::string_view::npos;
  };
  const v1::ValueCount* best = nullptr;
  std::string name;
  for (const v1::FieldDescription& field : described.fields()) {
    if (!plain(field.field().name())) continue;
    for (const v1::ValueCount& value : field.values()) {
      const std::string& text = value.value().string_value();
      if (!value.value().has_string_value() || !plain(text)) continue;
      if (DisplayWidth(text) > kExampleWidthMax) continue;
      if (best != nullptr && best->rows() >= value.rows()) continue;
      best = &value;
      name = field.field().name();
    }
  }
  if (best == nullptr) return "";
  const bool bare = std::ranges::all_of(
      name, [](unsigned char letter) { return std::isalpha(letter) != 0 || letter == '_'; });
  return fmt::format("{}:\"{}\"", bare ? name : fmt::format("\"{}\"", name),
                     best->value().string_value());
}

std::string FieldsJson(const std::string& collection, const v1::DescribeFieldsResponse& described) {
  Json fields = Json::array();
  for (const v1::FieldDescription& field : described.fields()) {
    Json values = Json::array();
    for (const v1::ValueCount& value : field.values()) {
      values.push_back({{"value", PayloadValueJson(value.value())}, {"rows", value.rows()}});
    }
    fields.push_back({{"name", field.field().name()},
                      {"type", FieldTypeName(field.field().type())},
                      {"rows", field.field().rows()},
                      {"distinct_values", field.distinct_values()},
                      {"values", std::move(values)},
                      {"least", PayloadValueJson(field.least())},
                      {"greatest", PayloadValueJson(field.greatest())},
                      {"bytes", field.bytes()}});
  }
  return JsonLine({{"collection", collection},
                   {"rows", described.rows()},
                   {"snapshot_id", described.snapshot_id()},
                   {"snapshot_version", described.snapshot_version()},
                   {"fields", std::move(fields)}});
}

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
