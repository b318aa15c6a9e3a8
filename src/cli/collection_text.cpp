#include "cli/collection_text.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/display_text.h"
#include "cli/json_line.h"
#include "cli/table.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

// Empty once the index is built.
std::string IndexText(const v1::Collection& collection) {
  if (!collection.index_problem().empty()) return ", no index";
  if (collection.index_built() >= 1) return "";
  return fmt::format(", index {:.0f}%", collection.index_built() * 100);
}

const char* StateName(v1::Collection::State state) {
  switch (state) {
    case v1::Collection::LOADING:
      return "loading";
    case v1::Collection::SERVING:
      return "serving";
    case v1::Collection::RELOADING:
      return "reloading";
    default:
      return "unknown";
  }
}

std::string StateText(const v1::Collection& collection) {
  const std::string name = StateName(collection.state());
  switch (collection.state()) {
    case v1::Collection::SERVING:
      return name + IndexText(collection);
    case v1::Collection::LOADING:
    case v1::Collection::RELOADING:
      return fmt::format("{} {:.0f}%", name, collection.progress() * 100);
    default:
      return name;
  }
}

// Empty before the first load, when the metric is not known yet.
const char* MetricText(const v1::Collection& collection) {
  switch (collection.metric()) {
    case v1::Collection::COSINE:
      return "cosine";
    case v1::Collection::DOT:
      return "dot";
    default:
      return "";
  }
}

std::string ShapeText(const v1::Collection& collection) {
  return fmt::format("{} x {}", base::Grouped(collection.rows()), base::Grouped(collection.dim()));
}

std::uint64_t ResidentBytes(const v1::Bytes& bytes) {
  return bytes.vectors() + bytes.payload() + bytes.users() + bytes.index();
}

std::string BackendText(const v1::Backend& backend) {
  return backend.reason().empty() ? backend.name()
                                  : fmt::format("{}: {}", backend.name(), backend.reason());
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                     fmt::gmtime(static_cast<std::time_t>(time.seconds())));
}

std::string BytesDetail(const v1::Bytes& bytes) {
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

Json ToJson(const v1::Backend& backend) {
  return {{"name", backend.name()},
          {"device", backend.device()},
          {"engine", backend.engine()},
          {"reason", backend.reason()}};
}

Json ToJson(const v1::Collection& collection) {
  const v1::Bytes& bytes = collection.bytes();
  const std::string metric = MetricText(collection);
  Json fields = Json::array();
  for (const v1::Field& field : collection.fields()) {
    fields.push_back({{"name", field.name()}, {"type", field.type()}, {"rows", field.rows()}});
  }
  Json json = {{"name", collection.name()},
               {"state", StateName(collection.state())},
               {"progress", collection.progress()},
               {"snapshot_version", collection.snapshot_version()},
               {"loaded_at", nullptr},
               {"rows", collection.rows()},
               {"dim", collection.dim()},
               {"metric", metric.empty() ? "unknown" : metric},
               {"users", collection.users()},
               {"interactions", collection.interactions()},
               {"bytes",
                {{"vectors", bytes.vectors()},
                 {"payload", bytes.payload()},
                 {"users", bytes.users()},
                 {"index", bytes.index()},
                 {"device", bytes.device()}}},
               {"fields", std::move(fields)},
               {"lookup_fields", collection.lookup_fields()},
               {"backend", ToJson(collection.backend())},
               {"index_built", collection.index_built()},
               {"index_problem", collection.index_problem()},
               {"notes", collection.notes()}};
  if (collection.has_loaded_at()) {
    json["loaded_at"] =
        fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                    fmt::gmtime(static_cast<std::time_t>(collection.loaded_at().seconds())));
  }
  return json;
}

}  // namespace

std::string CollectionTable(const std::vector<v1::Collection>& collections,
                            const Terminal& terminal) {
  const bool any_on_device =
      std::any_of(collections.begin(), collections.end(),
                  [](const v1::Collection& collection) { return collection.bytes().device() > 0; });
  std::vector<Table::Column> columns{{"collection"},
                                     {"state"},
                                     {"rows x dim", Align::kRight},
                                     {"metric"},
                                     {"users", Align::kRight},
                                     {"memory", Align::kRight}};
  if (any_on_device) columns.push_back({"on the GPU", Align::kRight});
  columns.push_back({"snapshot", Align::kRight});
  columns.push_back({"backend", Align::kLeft, true});
  Table table(std::move(columns));
  for (const v1::Collection& collection : collections) {
    std::vector<std::string> cells{collection.name(),
                                   StateText(collection),
                                   ShapeText(collection),
                                   MetricText(collection),
                                   base::Grouped(collection.users()),
                                   base::BytesText(ResidentBytes(collection.bytes()))};
    if (any_on_device) cells.push_back(base::BytesText(collection.bytes().device()));
    cells.push_back(base::Grouped(collection.snapshot_version()));
    cells.push_back(BackendText(collection.backend()));
    table.AddRow(std::move(cells));
  }
  return table.Render(terminal, 0);
}

std::string DeviceMemoryTable(const v1::Backend& backend, const Terminal& terminal) {
  if (backend.device_memory().empty()) return "";
  Table table({{"GPU memory"}, {"now", Align::kRight}, {"peak", Align::kRight}});
  for (const v1::DeviceMemory& memory : backend.device_memory()) {
    table.AddRow(
        {memory.kind(), base::BytesText(memory.bytes()), base::BytesText(memory.peak_bytes())});
  }
  return table.Render(terminal, 0);
}

std::string CollectionLine(const v1::Collection& collection) {
  return fmt::format("{}: {} x {} ({}), {}, {}, snapshot {}", Printable(collection.name()),
                     base::Counted(collection.rows(), "row"), base::Grouped(collection.dim()),
                     MetricText(collection), base::Counted(collection.users(), "user"),
                     base::BytesText(ResidentBytes(collection.bytes())),
                     base::Grouped(collection.snapshot_version()));
}

std::string CollectionDetails(const v1::Collection& collection, const Terminal& terminal) {
  Table facts({{}, {}});
  facts.AddRow({"state", StateText(collection)});
  facts.AddRow({"rows", fmt::format("{} of {} dimensions, {}", base::Grouped(collection.rows()),
                                    base::Grouped(collection.dim()), MetricText(collection))});
  facts.AddRow({"users", fmt::format("{}, {}", base::Grouped(collection.users()),
                                     base::Counted(collection.interactions(), "interaction"))});
  facts.AddRow({"memory", BytesDetail(collection.bytes())});
  facts.AddRow(
      {"snapshot", fmt::format("{}, loaded {}", base::Grouped(collection.snapshot_version()),
                               TimeText(collection.loaded_at()))});
  facts.AddRow({"backend", BackendText(collection.backend())});
  facts.AddRow({"engine", fmt::format("{} on {}", collection.backend().engine(),
                                      collection.backend().device())});
  if (!collection.index_problem().empty()) {
    facts.AddRow({"index", Printable(collection.index_problem())});
  }
  if (!collection.lookup_fields().empty()) {
    facts.AddRow(
        {"titles", fmt::format("found by {}", fmt::join(collection.lookup_fields(), ", "))});
  }
  std::string text =
      Bold(Printable(collection.name()), terminal) + '\n' + facts.Render(terminal, 2);
  if (!collection.fields().empty()) {
    Table fields({{"field"}, {"type"}, {"rows", Align::kRight}});
    for (const v1::Field& field : collection.fields()) {
      fields.AddRow({field.name(), field.type(), base::Grouped(field.rows())});
    }
    text += '\n' + fields.Render(terminal, 2);
  }
  if (!collection.notes().empty()) text += '\n';
  for (const std::string& note : collection.notes()) {
    text += fmt::format("  note: {}\n", Printable(note));
  }
  return text;
}

std::string CollectionJson(const v1::Collection& collection) {
  return JsonLine(ToJson(collection));
}

std::string CollectionsJson(const v1::ListCollectionsResponse& listed) {
  Json list = Json::array();
  for (const v1::Collection& collection : listed.collections()) list.push_back(ToJson(collection));
  Json backend = ToJson(listed.backend());
  backend["device_memory"] = Json::array();
  for (const v1::DeviceMemory& memory : listed.backend().device_memory()) {
    backend["device_memory"].push_back(
        {{"kind", memory.kind()}, {"bytes", memory.bytes()}, {"peak_bytes", memory.peak_bytes()}});
  }
  return JsonLine({{"collections", std::move(list)}, {"backend", std::move(backend)}});
}

}  // namespace simile::cli
