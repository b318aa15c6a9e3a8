#include "cli/fields_command.h"

#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json_line.h"
#include "cli/payload_json.h"
#include "cli/snapshot_flag.h"
#include "cli/table.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string ValuesText(const v1::FieldDescription& field) {
  if (field.has_least()) {
    return fmt::format("{} to {}", ValueText(field.least()), ValueText(field.greatest()));
  }
  std::vector<std::string> values;
  for (const v1::ValueCount& value : field.values()) {
    values.push_back(fmt::format("{} ({})", ValueText(value.value()), base::Grouped(value.rows())));
  }
  return fmt::format("{}", fmt::join(values, ", "));
}

constexpr double kFieldsTimeoutSeconds = 10;

struct FieldsFlags {
  ClientFlags client;
  std::optional<std::string> name;
  std::optional<std::uint32_t> values;
  std::optional<std::string> expected_snapshot;
};

int RunFields(const FieldsFlags& flags) {
  const Connection connection = Connect(flags.client, kFieldsTimeoutSeconds);
  const absl::StatusOr<v1::Collection> collection = ChooseCollection(connection, flags.name);
  if (!collection.ok()) return Fail(collection.status(), flags.client.json);
  absl::StatusOr<std::string> expected = ExpectedSnapshotId(flags.expected_snapshot, *collection);
  if (!expected.ok()) return Fail(expected.status(), flags.client.json);
  v1::DescribeFieldsRequest request;
  request.set_collection(collection->name());
  request.set_expected_snapshot_id(*std::move(expected));
  if (flags.values) request.set_values_max(*flags.values);
  const absl::StatusOr<v1::DescribeFieldsResponse> described = connection.DescribeFields(request);
  if (!described.ok()) return Fail(described.status(), flags.client.json);
  if (flags.client.json) {
    fmt::print("{}", FieldsJson(collection->name(), *described));
  } else if (described->fields().empty()) {
    fmt::print("{} has no payload; filters can test ids only\n", collection->name());
  } else {
    fmt::print("{}", FieldsTable(*described, StandardOutput()));
  }
  return kSucceeded;
}

}  // namespace

std::string FieldsTable(const v1::DescribeFieldsResponse& described, const Terminal& terminal) {
  Table table({{"field"},
               {"type"},
               {"rows", Align::kRight},
               {"different", Align::kRight},
               {"most common, or range", Align::kLeft, true},
               {"memory", Align::kRight}});
  for (const v1::FieldDescription& field : described.fields()) {
    table.AddRow({field.field().name(), FieldTypeName(field.field().type()),
                  base::Grouped(field.field().rows()),
                  field.distinct_values() == 0 ? "" : base::Grouped(field.distinct_values()),
                  ValuesText(field), base::BytesText(field.bytes())});
  }
  return table.Render(terminal, 0);
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
  command.Positional("NAME", flags->name, "The collection (default: the server's only one)")
      .Number("--values", flags->values, "COUNT", "Common values of each field (default 5)")
      .Text("--expect-snapshot", flags->expected_snapshot, "ID", kExpectSnapshotHelp);
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kFieldsTimeoutSeconds));
  command.Footer("simile fields films").Run([flags] { return RunFields(*flags); });
}

}  // namespace simile::cli
