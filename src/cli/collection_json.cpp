#include "cli/collection_json.h"

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/json_line.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

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

const char* MetricName(v1::Collection::Metric metric) {
  switch (metric) {
    case v1::Collection::COSINE:
      return "cosine";
    case v1::Collection::DOT:
      return "dot";
    default:
      return "unknown";
  }
}

Json ToJson(const v1::Backend& backend) {
  return {{"name", backend.name()},
          {"device", backend.device()},
          {"engine", backend.engine()},
          {"reason", backend.reason()}};
}

Json ToJson(const v1::Collection& collection) {
  const v1::Bytes& bytes = collection.bytes();
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
               {"metric", MetricName(collection.metric())},
               {"users", collection.users()},
               {"interactions", collection.interactions()},
               {"bytes",
                {{"vectors", bytes.vectors()},
                 {"payload", bytes.payload()},
                 {"users", bytes.users()},
                 {"index", bytes.index()},
                 {"device", bytes.device()}}},
               {"fields", std::move(fields)},
               {"lookup_fields", Json::array()},
               {"backend", ToJson(collection.backend())},
               {"index_built", collection.index_built()},
               {"index_problem", collection.index_problem()},
               {"notes", Json::array()}};
  if (collection.has_loaded_at()) {
    json["loaded_at"] =
        fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                    fmt::gmtime(static_cast<std::time_t>(collection.loaded_at().seconds())));
  }
  for (const std::string& field : collection.lookup_fields())
    json["lookup_fields"].push_back(field);
  for (const std::string& note : collection.notes()) json["notes"].push_back(note);
  return json;
}

}  // namespace

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
