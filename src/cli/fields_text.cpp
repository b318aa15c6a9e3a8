#include "cli/fields_text.h"

#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/json_line.h"
#include "cli/table.h"
#include "data/wording.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string ValuesText(const v1::FieldDescription& field) {
  if (!field.least().empty()) return fmt::format("{} to {}", field.least(), field.greatest());
  std::vector<std::string> values;
  for (const v1::ValueCount& value : field.values()) {
    values.push_back(fmt::format("{} ({})", value.value(), data::Grouped(value.rows())));
  }
  return fmt::format("{}", fmt::join(values, ", "));
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
    table.AddRow({field.field().name(), field.field().type(), data::Grouped(field.field().rows()),
                  field.distinct_values() == 0 ? "" : data::Grouped(field.distinct_values()),
                  ValuesText(field), data::BytesText(field.bytes())});
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

}  // namespace simile::cli
