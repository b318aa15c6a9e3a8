#include <memory>

#include <fmt/format.h>

#include "cli/client_flags.h"
#include "cli/collection_choice.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/fields_text.h"

namespace simile::cli {
namespace {

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
    fmt::print("{} has no payload; a filter can ask for ids alone\n", collection->name());
  } else {
    fmt::print("{}", FieldsTable(*described, StandardOutput()));
  }
  return kSucceeded;
}

}  // namespace

void AddFieldsCommand(CommandLine& line) {
  auto flags = std::make_shared<FieldsFlags>();
  Command command = line.Add("fields", "Show what a collection can be filtered by");
  command.Text("name", flags->name, "NAME", "The collection (default: the server's only one)")
      .Number("--values", flags->values, "COUNT", "Common values of each field (default 5)");
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kFieldsTimeoutSeconds));
  command.Footer("simile fields films").Run([flags] { return RunFields(*flags); });
}

}  // namespace simile::cli
