#include "engine/snapshots/memory_plan.h"

#include "data/dataset_sample.h"
#include "filter/payload_index.h"
#include "filter/text_index.h"
#include "simile/row_mask.h"

namespace simile::engine {
namespace {

// Adds the indexes over the payload, from the same over its sample.
void AddPayloadIndexes(const data::DatasetPlan& plan, const data::DatasetSample& sample,
                       DataBytes& data) {
  const filter::SampledRows rows{sample.payload.row_count(), plan.row_count};
  const filter::IndexEstimate text = filter::EstimateTextIndex(
      filter::TextIndex::Build(sample.payload, sample.lookup_fields), rows);
  const filter::IndexEstimate fields =
      filter::EstimatePayloadIndex(filter::PayloadIndex::Build(sample.payload), rows);
  data.payload += text.bytes + fields.bytes;
  // The text index comes first.
  data.build =
      std::max(fields.build_bytes, text.build_bytes - std::min(text.build_bytes, fields.bytes));
}

}  // namespace

absl::StatusOr<DataBytes> PlanData(const data::DatasetPlan& plan, const Limits& limits) {
  const absl::StatusOr<data::DatasetSample> sample = data::SampleDataset(plan, limits);
  if (!sample.ok()) return sample.status();
  DataBytes data;
  data.vectors = plan.vector_bytes;
  data.payload = sample->payload_bytes;
  data.users = sample->user_bytes;
  data.is_sampled = !sample->is_whole;
  if (sample->payload.row_count() > 0) AddPayloadIndexes(plan, *sample, data);
  if (plan.files.on_zero_row == data::OnZeroRow::kSkip) {
    data.payload += RowMask(plan.row_count).bytes();  // Snapshot::searchable
  }
  return data;
}

MemoryPlan PlanMemory(const DataBytes& data, const ResidentPlan& index) {
  MemoryPlan plan;
  plan.resident = {.vectors = data.vectors,
                   .payload = data.payload,
                   .users = data.users,
                   .index = index.host_bytes,
                   .device = index.device_bytes};
  plan.builds_later = index.builds_later;
  plan.index_peak_bytes = data.total() + index.host_bytes + index.host_build_bytes;
  plan.load_peak_bytes = data.total() + data.build;
  return plan;
}

}  // namespace simile::engine
