#include "cli/fields_command.h"

#include <memory>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json_line.h"
#include "cli/table.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string ValuesText(const v1::FieldDescription& field) {
  if (!field.least().empty()) return fmt::format("{} to {}", field.least(), field.greatest());
  std::vector<std::string> values;
  for (const v1::ValueCount& value : field.values()) {
    values.push_back(fmt::format("{} ({})", value.value(), base::Grouped(value.rows())));
  }
  return fmt::format("{}", fmt::join(values, ", "));
}

constexpr double kFieldsTimeoutSeconds = 10;

struct FieldsFlags {
  ClientFlags client;
  std::optional<std::string> name;
  std::optional<std::uint32_t> values;
};

int RunFields(const FieldsFlags& flags) {
  const Connection connection = Connect(flags.client, kFieldsTimeoutSeconds);
  const absl::StatusOr<v1::Collection> collection = ChooseCollection(connection, flags.name);
  if (!collection.ok()) return Fail(collection.status());
  v1::DescribeFieldsRequest request;
  request.set_collection(collection->name());
  if (flags.values) request.set_values_max(*flags.values);
  const absl::StatusOr<v1::DescribeFieldsResponse> described = connection.DescribeFields(request);
  if (!described.ok()) return Fail(described.status());
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
    table.AddRow({field.field().name(), field.field().type(), base::Grouped(field.field().rows()),
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
      values.push_back({{"value", value.value()}, {"rows", value.rows()}});
    }
    fields.push_back({{"name", field.field().name()},
                      {"type", field.field().type()},
                      {"rows", field.field().rows()},
                      {"distinct_values", field.distinct_values()},
                      {"values", std::move(values)},
                      {"least", field.least()},
                      {"greatest", field.greatest()},
                      {"bytes", field.bytes()}});
  }
  return JsonLine({{"collection", collection},
                   {"rows", described.rows()},
                   {"snapshot_version", described.snapshot_version()},
                   {"fields", std::move(fields)}});
}

void AddFieldsCommand(CommandLine& line) {
  auto flags = std::make_shared<FieldsFlags>();
  Command command = line.Add("fields", "Show the fields that --filter can test");
  command.Positional("NAME", flags->name, "The collection (default: the server's only one)")
      .Number("--values", flags->values, "COUNT", "Common values of each field (default 5)");
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kFieldsTimeoutSeconds));
  command.Footer("simile fields films").Run([flags] { return RunFields(*flags); });
}

}  // namespace simile::cli
