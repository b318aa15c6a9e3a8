#include "observe/metrics_text.h"

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace simile::observe {

std::string MetricsText(const std::vector<std::shared_ptr<prometheus::Collectable>>& collectables) {
  std::string text;
  for (const auto& collectable : collectables) {
    text += prometheus::TextSerializer().Serialize(collectable->Collect());
  }
  return text;
}

}  // namespace simile::observe
