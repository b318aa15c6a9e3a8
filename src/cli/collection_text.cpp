#include "cli/collection_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/output_text.h"
#include "cli/payload_text.h"
#include "cli/progress.h"
#include "cli/quantity_text.h"
#include "cli/server_text.h"
#include "cli/table.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

// The progress of the index or its problem; empty once the index is built.
std::string IndexText(const v1::Collection& collection) {
  if (!collection.index_problem().empty()) return ", no index";
  if (collection.index_built() >= 1) return "";
  return fmt::format(", index {:.0f}%", collection.index_built() * 100);
}

std::string StateText(const v1::Collection& collection) {
  const std::string name = StateName(collection.state());
  if (collection.state() == v1::Collection::STATE_SERVING) return name + IndexText(collection);
  if (!collection.has_progress()) return name;
  return fmt::format("{} {:.0f}%", name, collection.progress().share() * 100);
}

bool IsLoaded(const v1::Collection& collection) { return collection.snapshot_version() > 0; }

std::string ShapeText(const v1::Collection& collection) {
  return fmt::format("{} x {}", base::Grouped(collection.rows()), base::Grouped(collection.dim()));
}

std::uint64_t ResidentBytes(const v1::ResidentBytes& bytes) {
  return bytes.vectors() + bytes.payload() + bytes.users() + bytes.index();
}

std::string BytesDetail(const v1::ResidentBytes& bytes) {
  std::string parts;
  const auto add = [&](const char* name, std::uint64_t count) {
    if (count > 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, base::BytesText(count));
  };
  add("vectors", bytes.vectors());
  add("payload", bytes.payload());
  add("users", bytes.users());
  add("index", bytes.index());
  add("device", bytes.device());
  return fmt::format("{}: {}", base::BytesText(ResidentBytes(bytes)), parts);
}

Json PayloadFieldsJson(const v1::Collection& collection) {
  Json fields = Json::array();
  for (const v1::PayloadField& field : collection.fields()) {
    fields.push_back(
        {{"name", field.name()}, {"type", FieldTypeName(field.type())}, {"rows", field.rows()}});
  }
  return fields;
}

Json BytesJson(const v1::ResidentBytes& bytes) {
  return {{"vectors", bytes.vectors()}, {"payload", bytes.payload()},   {"users", bytes.users()},
          {"index", bytes.index()},     {"host", ResidentBytes(bytes)}, {"device", bytes.device()}};
}

Json SearchTimesJson(const v1::Collection& collection) {
  Json times = Json::array();
  for (const v1::SearchTime& time : collection.search_times()) {
    times.push_back({{"queries", time.queries()}, {"search_us", time.search_us()}});
  }
  return times;
}

bool WasRead(const v1::CollectionFile& file) {
  return file.role() != v1::CollectionFile::ROLE_UNSPECIFIED;
}

Json FilesJson(const v1::Collection& collection) {
  Json files = Json::array();
  for (const v1::CollectionFile& file : collection.files()) {
    Json json = {{"name", file.name()},
                 {"role", nullptr},
                 {"bytes", file.bytes()},
                 {"unread_reason", nullptr}};
    if (WasRead(file)) {
      json["role"] = FileRoleName(file.role());
    } else {
      json["unread_reason"] = file.unread_reason();
    }
    files.push_back(std::move(json));
  }
  return files;
}

std::string UnreadText(const v1::CollectionFile& file) {
  return fmt::format("not read: {}", file.unread_reason());
}

// The folder's files, after a blank line; empty if no file is known.
std::string FilesTable(const v1::Collection& collection, const Terminal& terminal) {
  if (collection.files().empty()) return "";
  Table table({{"file"}, {"size", Align::kRight}, {"read as"}});
  std::uint64_t unread = 0;
  for (const v1::CollectionFile& file : collection.files()) {
    if (!WasRead(file)) ++unread;
    table.AddRow({file.name(), base::BytesText(file.bytes()),
                  WasRead(file) ? FileRoleName(file.role()) : UnreadText(file)});
  }
  std::string text = '\n' + table.Render(terminal, 2);
  if (collection.unread_files() > unread) {
    text += fmt::format("  and {}, not read\n",
                        base::Counted(collection.unread_files() - unread, "more file"));
  }
  return text;
}

// The backend of the server. A caller that is limited to some collections gets it without a reason;
// then returns the first collection's backend.
const v1::BackendStatus& ServerBackend(const v1::ListCollectionsResponse& listed) {
  const v1::BackendStatus& server = listed.backend();
  if (!server.reason().empty() || listed.collections().empty()) return server;
  const v1::BackendStatus& first = listed.collections(0).backend();
  return first.kind() == server.kind() ? first : server;
}

// The backend, with its reason if that differs from the server's.
std::string BackendCell(const v1::Collection& collection, const v1::BackendStatus& server) {
  const v1::BackendStatus& backend = collection.backend();
  return backend.reason() == server.reason() ? BackendName(backend.kind()) : BackendText(backend);
}

// "4.9 ms for 1 query, 11 ms for 8, 55 ms for 64": a selection of the measured sizes.
std::string SearchTimesText(const v1::Collection& collection) {
  constexpr std::array<std::uint32_t, 4> kPrintedSizes = {1, 8, 64, 256};
  std::string text;
  for (const v1::SearchTime& time : collection.search_times()) {
    if (std::ranges::count(kPrintedSizes, time.queries()) == 0) continue;
    const std::string_view noun = time.queries() == 1 ? " query" : text.empty() ? " queries" : "";
    text += fmt::format("{}{} for {}{}", text.empty() ? "" : ", ",
                        ShortTimeText(static_cast<double>(time.search_us()) / 1e6), time.queries(),
                        noun);
  }
  return text;
}

void AddFacts(const v1::Collection& collection, Table& facts) {
  facts.AddRow(
      {"rows", fmt::format("{} of {} dimensions, {}", base::Grouped(collection.rows()),
                           base::Grouped(collection.dim()), MetricName(collection.metric()))});
  if (collection.skipped_rows() > 0) {
    facts.AddRow({"skipped", fmt::format("{} of zeros, which no search returns",
                                         base::Counted(collection.skipped_rows(), "row"))});
  }
  facts.AddRow({"users", fmt::format("{}, {}", base::Grouped(collection.users()),
                                     base::Counted(collection.interactions(), "interaction"))});
  facts.AddRow({"memory", BytesDetail(collection.bytes())});
  if (!collection.loaded_from().empty()) facts.AddRow({"loaded from", collection.loaded_from()});
  if (!collection.folder().empty()) facts.AddRow({"a reload reads", collection.folder()});
  if (collection.has_overlap()) facts.AddRow({"overlap", OverlapText(collection)});
  facts.AddRow(
      {"snapshot", fmt::format("{}, loaded {}", base::Grouped(collection.snapshot_version()),
                               TimeText(collection.loaded_at()))});
  facts.AddRow({"content", collection.snapshot_id()});
  if (!collection.rollback_snapshot_id().empty()) {
    facts.AddRow({"rollback", "returns to " + collection.rollback_snapshot_id()});
  }
  facts.AddRow({"backend", BackendText(collection.backend())});
  facts.AddRow({"engine", EngineText(collection.backend())});
  if (collection.search_times_size() > 0) {
    facts.AddRow({"a search takes", SearchTimesText(collection)});
  }
  if (!collection.index_problem().empty()) facts.AddRow({"index", collection.index_problem()});
  if (!collection.lookup_fields().empty()) {
    facts.AddRow(
        {"titles", fmt::format("found by {}", fmt::join(collection.lookup_fields(), ", "))});
  }
}

// The widest common value in a list of values, in columns.
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

// Narrower terminals leave out the memory, so that values have space.
constexpr std::size_t kWidthWithMemory = 80;
// The widest value in a suggested filter, in columns.
constexpr std::size_t kExampleWidthMax = 40;

}  // namespace

std::string OverlapText(const v1::Collection& collection) {
  return fmt::format("{:.1f} % of sampled answers are those of the snapshot before",
                     100 * collection.overlap());
}

std::string CollectionTable(const v1::ListCollectionsResponse& listed, const Terminal& terminal) {
  const auto any = [&](const auto& has) { return std::ranges::any_of(listed.collections(), has); };
  const bool any_on_device =
      any([](const v1::Collection& collection) { return collection.bytes().device() > 0; });
  const bool any_folder =
      any([](const v1::Collection& collection) { return !collection.folder().empty(); });
  std::vector<Table::Column> columns{{"collection"},
                                     {"state"},
                                     {"rows x dim", Align::kRight},
                                     {"metric"},
                                     {"users", Align::kRight},
                                     {"memory", Align::kRight}};
  if (any_on_device) columns.push_back({"on the GPU", Align::kRight});
  columns.push_back({"snapshot"});
  if (any_folder) columns.push_back({"folder", Align::kLeft, true});
  columns.push_back({"backend", Align::kLeft, true});
  Table table(std::move(columns));
  const v1::BackendStatus& server = ServerBackend(listed);
  for (const v1::Collection& collection : listed.collections()) {
    std::vector<std::string> cells{collection.name(), StateText(collection)};
    // Before its first load nothing is known of a collection.
    const auto add = [&](const std::string& text) {
      cells.push_back(IsLoaded(collection) ? text : "");
    };
    add(ShapeText(collection));
    add(MetricName(collection.metric()));
    add(base::Grouped(collection.users()));
    add(base::BytesText(ResidentBytes(collection.bytes())));
    if (any_on_device) add(base::BytesText(collection.bytes().device()));
    add(SnapshotText(collection.snapshot_version(), collection.snapshot_id()));
    if (any_folder) cells.push_back(collection.folder());
    add(BackendCell(collection, server));
    table.AddRow(std::move(cells));
  }
  std::string text = table.Render(terminal, 0);
  for (const v1::Collection& collection : listed.collections()) {
    if (collection.load_error().empty()) continue;
    text += fmt::format("{} did not load: {}\n", Printable(collection.name()),
                        Printable(collection.load_error()));
  }
  return text + Dim(Printable(BackendText(server)), terminal) + '\n';
}

std::string NotesText(const v1::Collection& collection) {
  std::set<std::string> printed;
  for (const v1::CollectionFile& file : collection.files()) {
    if (!WasRead(file)) printed.insert(fmt::format("{}: {}", file.name(), UnreadText(file)));
  }
  std::string text;
  for (const std::string& note : collection.notes()) {
    if (printed.contains(note)) continue;
    text += fmt::format("{}  note: {}\n", text.empty() ? "\n" : "", Printable(note));
  }
  return text;
}

std::string CollectionLine(const v1::Collection& collection) {
  return fmt::format("{}: {} x {} ({}), {}, {}, snapshot {}", Printable(collection.name()),
                     base::Counted(collection.rows(), "row"), base::Grouped(collection.dim()),
                     MetricName(collection.metric()), base::Counted(collection.users(), "user"),
                     base::BytesText(ResidentBytes(collection.bytes())),
                     SnapshotText(collection.snapshot_version(), collection.snapshot_id()));
}

std::string CollectionDetails(const v1::Collection& collection, const Terminal& terminal) {
  Table facts({{}, {}});
  const std::string progress = ProgressText(collection.progress());
  facts.AddRow({"state", StateText(collection) + (progress.empty() ? "" : ": " + progress)});
  if (!collection.load_error().empty()) facts.AddRow({"why", Printable(collection.load_error())});
  if (IsLoaded(collection)) AddFacts(collection, facts);
  std::string text =
      Bold(Printable(collection.name()), terminal) + '\n' + facts.Render(terminal, 2);
  if (!collection.fields().empty()) {
    Table fields({{"field"}, {"type"}, {"rows", Align::kRight}});
    for (const v1::PayloadField& field : collection.fields()) {
      fields.AddRow({field.name(), FieldTypeName(field.type()), base::Grouped(field.rows())});
    }
    text += '\n' + fields.Render(terminal, 2);
  }
  return text + FilesTable(collection, terminal) + NotesText(collection);
}

Json CollectionJson(const v1::Collection& collection) {
  Json json = {{"name", collection.name()},
               {"state", StateName(collection.state())},
               {"progress", nullptr},
               {"load_error", collection.load_error()},
               {"snapshot_id", collection.snapshot_id()},
               {"snapshot_version", collection.snapshot_version()},
               {"rollback_snapshot_id", collection.rollback_snapshot_id()},
               {"loaded_at", nullptr},
               {"folder", collection.folder()},
               {"loaded_from", collection.loaded_from()},
               {"overlap", collection.has_overlap() ? Json(collection.overlap()) : Json()},
               {"rows", collection.rows()},
               {"dim", collection.dim()},
               {"metric", MetricName(collection.metric())},
               {"users", collection.users()},
               {"interactions", collection.interactions()},
               {"bytes", BytesJson(collection.bytes())},
               {"fields", PayloadFieldsJson(collection)},
               {"lookup_fields", collection.lookup_fields()},
               {"backend", BackendJson(collection.backend())},
               {"index_built", collection.index_built()},
               {"index_problem", collection.index_problem()},
               {"search_times", SearchTimesJson(collection)},
               {"files", FilesJson(collection)},
               {"unread_files", collection.unread_files()},
               {"skipped_rows", collection.skipped_rows()},
               {"notes", collection.notes()}};
  if (collection.has_progress()) json["progress"] = ProgressJson(collection.progress());
  if (collection.has_loaded_at()) json["loaded_at"] = Rfc3339Text(collection.loaded_at());
  return json;
}

std::string CollectionsJson(const v1::ListCollectionsResponse& listed) {
  Json list = Json::array();
  for (const v1::Collection& collection : listed.collections()) {
    list.push_back(CollectionJson(collection));
  }
  Json backend = BackendJson(listed.backend());
  backend["device_memory"] = DeviceMemoryJson(listed.backend());
  return JsonLine({{"collections", std::move(list)}, {"backend", std::move(backend)}});
}

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

}  // namespace simile::cli
