#pragma once

#include <span>

#include "data/payload/id_index.h"
#include "engine/snapshots/snapshot.h"
#include "service/requests/answer_options.h"
#include "simile/v1/types.pb.h"

namespace simile::service {

// What every row of an answer carries besides its id.
struct RowShape {
  PayloadSelection payload;
  bool with_vectors = false;
  bool with_rows = false;
};

// Passes the fields that Hit and Item share to a sink (wire_writer.h), copied from the snapshot as
// they are.
//   Message  v1::Hit or v1::Item
template <class Message, class Sink>
void EncodeRow(Sink& out, const engine::Snapshot& snapshot, const RowShape& shape, Row row) {
  const data::Dataset& dataset = *snapshot.dataset;
  data::IdIndex::Digits digits;
  out.Text(Message::kIdFieldNumber, dataset.ids.Id(row, digits));
  if (!shape.payload.none) {
    const std::span<const data::FieldInfo> fields = dataset.payload.fields();
    const auto encode = [&](std::uint32_t number, auto value) {
      if (!shape.payload.Has(number)) return;
      out.Entry(Message::kPayloadFieldNumber, fields[number].name, value);
    };
    if (shape.payload.all) {
      dataset.payload.VisitEncoded(row, encode);
    } else {
      dataset.payload.VisitEncodedFields(row, encode);
    }
  }
  if (shape.with_vectors) {
    out.Message(Message::kVectorFieldNumber, [&] {
      out.Floats(v1::FloatVector::kValuesFieldNumber, dataset.vectors.view()[row]);
      out.Number(v1::FloatVector::kAsStoredFieldNumber, 1);
    });
  }
  if (shape.with_rows) out.PresentNumber(Message::kRowFieldNumber, row);
}

}  // namespace simile::service
