#include "cli/item_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/display_text.h"
#include "cli/json_line.h"
#include "cli/payload_json.h"
#include "cli/payload_text.h"
#include "cli/table.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

// The numbers of a vector that people see; --json prints all.
constexpr int kVectorNumbersShown = 4;

std::string VectorText(const v1::FloatVector& vector) {
  const int count = vector.values_size();
  std::string text;
  for (int i = 0; i < std::min(count, kVectorNumbersShown); ++i) {
    text += fmt::format("{}{:.4f}", i == 0 ? "" : ", ", vector.values(i));
  }
  return count <= kVectorNumbersShown
             ? text
             : fmt::format("{}, ... ({} numbers; --json prints all)", text, base::Grouped(count));
}

}  // namespace

std::string ItemDetails(const v1::Item& item, const Terminal& terminal) {
  Table facts({{}, {"", Align::kLeft, true}});
  if (item.has_row()) facts.AddRow({"(row)", base::Grouped(item.row())});
  const std::map<std::string, v1::PayloadValue> payload(item.payload().begin(),
                                                        item.payload().end());
  for (const auto& [field, value] : payload) facts.AddRow({field, ValueText(value)});
  if (item.has_vector()) facts.AddRow({"(vector)", VectorText(item.vector())});
  return Bold(Printable(item.id()), terminal) + '\n' + facts.Render(terminal, 2);
}

std::string MatchTable(const v1::LookupResponse& found, const std::vector<std::string>& fields,
                       const Terminal& terminal) {
  std::set<std::string> present;
  bool with_rows = false;
  for (const v1::LookupMatch& match : found.matches()) {
    for (const auto& [field, value] : match.item().payload()) present.insert(field);
    with_rows = with_rows || match.item().has_row();
  }
  const std::vector<std::string> table_fields = fields.empty() ? TableFields(present) : fields;
  const bool with_headings = with_rows || !fields.empty() || !present.contains("title");
  const auto heading = [&](const std::string& text) { return with_headings ? text : ""; };
  std::vector<Table::Column> columns{{heading("id"), Align::kLeft, true}};
  if (with_rows) columns.push_back({heading("row"), Align::kRight});
  for (const std::string& field : table_fields) {
    columns.push_back({heading(field), Align::kLeft, field != "year"});
  }
  Table table(std::move(columns));
  for (const v1::LookupMatch& match : found.matches()) {
    std::vector<std::string> cells{match.item().id()};
    if (with_rows) cells.push_back(base::Grouped(match.item().row()));
    for (const std::string& field : table_fields) {
      cells.push_back(CellText(match.item().payload(), field));
    }
    table.AddRow(std::move(cells));
  }
  return table.empty() ? "" : table.Render(terminal, 2);
}

Json ItemJson(const v1::Item& item) {
  Json json = {{"id", item.id()}};
  if (item.has_row()) json["row"] = item.row();
  json["payload"] = PayloadJson(item.payload());
  if (!item.has_vector()) return json;
  Json numbers = Json::array();
  for (const float number : item.vector().values()) numbers.push_back(FloatJson(number));
  json["vector"] = std::move(numbers);
  return json;
}

}  // namespace simile::cli
