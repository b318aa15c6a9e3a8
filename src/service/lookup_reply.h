#pragma once

#include <cstdint>
#include <vector>

#include "engine/snapshots/snapshot.h"
#include "filter/text_index.h"
#include "service/encoded_reply.h"
#include "service/row_encoding.h"

namespace simile::service {

// The responses of LookupService in wire form, made as a SearchReply is, of which counted_max is
// explained there.

class FetchReply final : public EncodedReply {
 public:
  FetchReply(engine::SnapshotPtr snapshot, RowShape shape, std::vector<Row> rows,
             std::uint64_t counted_max);

 private:
  void Encode(ByteCounter& out) const override;
  void Encode(WireWriter& out) const override;
  template <class Sink>
  void EncodeTo(Sink& out) const;

  engine::SnapshotPtr snapshot_;
  RowShape shape_;
  std::vector<Row> rows_;
};

class LookupReply final : public EncodedReply {
 public:
  LookupReply(engine::SnapshotPtr snapshot, RowShape shape, filter::TextMatches found,
              std::uint64_t counted_max);

 private:
  void Encode(ByteCounter& out) const override;
  void Encode(WireWriter& out) const override;
  template <class Sink>
  void EncodeTo(Sink& out) const;

  engine::SnapshotPtr snapshot_;
  RowShape shape_;
  filter::TextMatches found_;
};

}  // namespace simile::service
