#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "engine/snapshots/snapshot.h"
#include "observe/receipt.h"
#include "service/access/served_snapshots.h"
#include "simile/served_by.h"
#include "simile/v1/types.pb.h"

namespace simile::service {

// What the receipt of an answer is made from, borrowed.
struct ReceiptParts {
  const engine::Snapshot& snapshot;
  const observe::Receipt& receipt;
  // The snapshots of the other collections whose items the queries name; nothing for a collection
  // without content.
  std::span<const std::optional<PermittedSnapshot>> item_snapshots = {};
  bool is_brief = false;
  bool sees_all_rows = true;         // else the receipt has no figure that grows with all rows
  bool sees_all_collections = true;  // else the receipt has no device memory
  std::string_view request_id;
  std::uint64_t total_us = 0;  // since the call arrived
};

inline v1::BackendKind ToBackendKind(const BackendInfo& backend) {
  if (backend.name == "cpu") return v1::BACKEND_KIND_CPU;
  if (backend.name == "gpu") return v1::BACKEND_KIND_GPU;
  return v1::BACKEND_KIND_UNSPECIFIED;
}

// Passes the parts of a receipt to a sink (wire_writer.h).
template <class Sink>
class ReceiptEncoder {
 public:
  ReceiptEncoder(const ReceiptParts& parts, Sink& out) : parts_(parts), out_(out) {}

  void Encode() {
    using Receipt = v1::Receipt;
    out_.Number(Receipt::kBackendFieldNumber,
                static_cast<std::uint64_t>(ToBackendKind(parts_.receipt.served_by->info)));
    out_.Text(Receipt::kSnapshotIdFieldNumber, parts_.snapshot.id);
    out_.Number(Receipt::kExactFieldNumber, 1);
    out_.Number(Receipt::kTotalUsFieldNumber, parts_.total_us);
    for (const auto& of_items : parts_.item_snapshots) {
      if (of_items) EncodeItemSnapshot(*of_items);
    }
    if (!parts_.is_brief) EncodeReceiptDetail();
  }

 private:
  void EncodeItemSnapshot(const PermittedSnapshot& snapshot) {
    out_.Message(v1::Receipt::kItemSnapshotsFieldNumber, [&] {
      out_.Text(v1::ItemSnapshot::kCollectionFieldNumber, snapshot.collection().name());
      out_.Text(v1::ItemSnapshot::kSnapshotIdFieldNumber, snapshot.id());
      out_.Number(v1::ItemSnapshot::kSnapshotVersionFieldNumber, snapshot.version());
    });
  }

  void EncodeReceiptDetail() {
    using Receipt = v1::Receipt;
    const observe::Receipt& receipt = parts_.receipt;
    out_.Text(Receipt::kDeviceFieldNumber, receipt.served_by->info.device);
    for (const std::string_view engine : receipt.engines) {
      out_.Element(Receipt::kEnginesFieldNumber, engine);
    }
    if (parts_.sees_all_rows) {
      out_.Text(Receipt::kReasonFieldNumber, receipt.served_by->reason);
    }
    out_.Number(Receipt::kSnapshotVersionFieldNumber, parts_.snapshot.version);
    out_.Text(Receipt::kRequestIdFieldNumber, parts_.request_id);
    if (parts_.sees_all_rows) EncodeCost();
    out_.Number(Receipt::kQueueUsFieldNumber, receipt.queue_us);
    out_.Number(Receipt::kComputeUsFieldNumber, receipt.compute_us);
    if (!parts_.sees_all_rows || !parts_.sees_all_collections) return;
    out_.Number(Receipt::kDeviceMemoryBytesFieldNumber, receipt.device_bytes);
    out_.Number(Receipt::kDeviceMemoryPeakBytesFieldNumber, receipt.device_bytes_peak);
  }

  // Encodes the figures that grow with all rows of the collection, or with the calls of other
  // callers.
  void EncodeCost() {
    using Receipt = v1::Receipt;
    const observe::Receipt& receipt = parts_.receipt;
    out_.Number(Receipt::kBatchSizeFieldNumber, receipt.batch_size);
    out_.Number(Receipt::kRowsScannedFieldNumber, receipt.cost.rows_scanned);
    out_.Number(Receipt::kRowsRescoredFieldNumber, receipt.cost.rows_rescored);
    out_.Number(Receipt::kRescansFieldNumber, receipt.cost.rescans);
    out_.Number(Receipt::kRoundsFieldNumber, receipt.cost.rounds);
    if (receipt.device_us) out_.PresentNumber(Receipt::kDeviceUsFieldNumber, *receipt.device_us);
  }

  const ReceiptParts& parts_;
  Sink& out_;
};

template <class Sink>
void EncodeReceipt(Sink& out, const ReceiptParts& parts) {
  ReceiptEncoder<Sink>(parts, out).Encode();
}

}  // namespace simile::service
