#include "cli/backend_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/table.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string BackendText(const v1::BackendStatus& backend) {
  const std::string name = BackendName(backend.kind());
  return backend.reason().empty() ? name : fmt::format("{}: {}", name, backend.reason());
}

std::string BackendText(const v1::Receipt& receipt) {
  return fmt::format("{}: {}", BackendName(receipt.backend()), fmt::join(receipt.engines(), " + "));
}

std::string EngineText(const v1::BackendStatus& backend) {
  return fmt::format("{} on {}", backend.engine(), backend.device());
}

std::string DeviceMemoryTable(const v1::BackendStatus& backend, const Terminal& terminal) {
  if (backend.device_memory().empty()) return "";
  Table table({{"GPU memory"}, {"now", Align::kRight}, {"peak", Align::kRight}});
  for (const v1::DeviceMemory& memory : backend.device_memory()) {
    table.AddRow(
        {memory.kind(), base::BytesText(memory.bytes()), base::BytesText(memory.peak_bytes())});
  }
  return table.Render(terminal, 0);
}

Json BackendJson(const v1::BackendStatus& backend) {
  return {{"kind", BackendName(backend.kind())},
          {"device", backend.device()},
          {"engine", backend.engine()},
          {"reason", backend.reason()}};
}

Json DeviceMemoryJson(const v1::BackendStatus& backend) {
  Json list = Json::array();
  for (const v1::DeviceMemory& memory : backend.device_memory()) {
    list.push_back(
        {{"kind", memory.kind()}, {"bytes", memory.bytes()}, {"peak_bytes", memory.peak_bytes()}});
  }
  return list;
}

}  // namespace simile::cli
