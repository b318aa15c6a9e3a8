#include "cli/collection_text.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "cli/display_text.h"
#include "cli/table.h"
#include "data/wording.h"

namespace simile::cli {
namespace {

// Nothing when the index is built, as it mostly is.
std::string IndexText(const v1::Collection& collection) {
  if (!collection.index_problem().empty()) return ", no index";
  if (collection.index_built() >= 1) return "";
  return fmt::format(", index {:.0f}%", collection.index_built() * 100);
}

std::string StateText(const v1::Collection& collection) {
  switch (collection.state()) {
    case v1::Collection::LOADING:
      return fmt::format("loading {:.0f}%", collection.progress() * 100);
    case v1::Collection::SERVING:
      return "serving" + IndexText(collection);
    case v1::Collection::RELOADING:
      return fmt::format("reloading {:.0f}%", collection.progress() * 100);
    default:
      return "unknown";
  }
}

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
  return fmt::format("{} x {}", data::Grouped(collection.rows()), data::Grouped(collection.dim()));
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
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, data::BytesText(count));
  };
  add("vectors", bytes.vectors());
  add("payload", bytes.payload());
  add("users", bytes.users());
  add("index", bytes.index());
  add("device", bytes.device());
  return fmt::format("{}: {}", data::BytesText(ResidentBytes(bytes)), parts);
}

std::string Joined(const google::protobuf::RepeatedPtrField<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
  return joined;
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
                                   data::Grouped(collection.users()),
                                   data::BytesText(ResidentBytes(collection.bytes()))};
    if (any_on_device) cells.push_back(data::BytesText(collection.bytes().device()));
    cells.push_back(data::Grouped(collection.snapshot_version()));
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
        {memory.kind(), data::BytesText(memory.bytes()), data::BytesText(memory.peak_bytes())});
  }
  return table.Render(terminal, 0);
}

std::string CollectionLine(const v1::Collection& collection) {
  return fmt::format("{}: {} x {} ({}), {}, {}, snapshot {}", Printable(collection.name()),
                     data::Counted(collection.rows(), "row"), data::Grouped(collection.dim()),
                     MetricText(collection), data::Counted(collection.users(), "user"),
                     data::BytesText(ResidentBytes(collection.bytes())),
                     data::Grouped(collection.snapshot_version()));
}

std::string CollectionDetails(const v1::Collection& collection, const Terminal& terminal) {
  Table facts({{}, {}});
  facts.AddRow({"state", StateText(collection)});
  facts.AddRow({"rows", fmt::format("{} of {} dimensions, {}", data::Grouped(collection.rows()),
                                    data::Grouped(collection.dim()), MetricText(collection))});
  facts.AddRow({"users", fmt::format("{}, {}", data::Grouped(collection.users()),
                                     data::Counted(collection.interactions(), "interaction"))});
  facts.AddRow({"memory", BytesDetail(collection.bytes())});
  facts.AddRow(
      {"snapshot", fmt::format("{}, loaded {}", data::Grouped(collection.snapshot_version()),
                               TimeText(collection.loaded_at()))});
  facts.AddRow({"backend", BackendText(collection.backend())});
  facts.AddRow({"engine", fmt::format("{} on {}", collection.backend().engine(),
                                      collection.backend().device())});
  if (!collection.index_problem().empty()) {
    facts.AddRow({"index", Printable(collection.index_problem())});
  }
  if (!collection.lookup_fields().empty()) {
    facts.AddRow({"titles", "found by " + Joined(collection.lookup_fields())});
  }
  std::string text =
      Bold(Printable(collection.name()), terminal) + '\n' + facts.Render(terminal, 2);
  if (!collection.fields().empty()) {
    Table fields({{"field"}, {"type"}, {"rows", Align::kRight}});
    for (const v1::Field& field : collection.fields()) {
      fields.AddRow({field.name(), field.type(), data::Grouped(field.rows())});
    }
    text += '\n' + fields.Render(terminal, 2);
  }
  if (!collection.notes().empty()) text += '\n';
  for (const std::string& note : collection.notes()) {
    text += fmt::format("  note: {}\n", Printable(note));
  }
  return text;
}

}  // namespace simile::cli
