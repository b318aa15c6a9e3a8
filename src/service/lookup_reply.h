#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/snapshots/snapshot.h"
#include "filter/text_index.h"
#include "service/call.h"
#include "service/row_encoding.h"
#include "service/wire_writer.h"

namespace simile::service {

// The responses of LookupService in wire form, made as a SearchReply is, of which counted_max is
// explained there.

class FetchReply final : public Reply {
 public:
  FetchReply(engine::SnapshotPtr snapshot, RowShape shape, std::vector<Row> rows,
             std::uint64_t counted_max);

  std::size_t bytes() const override { return sizes_.bytes; }
  std::uint8_t* Write(std::uint8_t* out) const override;

 private:
  template <class Sink>
  void Encode(Sink& out) const;

  engine::SnapshotPtr snapshot_;
  RowShape shape_;
  std::vector<Row> rows_;
  WireSizes sizes_;
};

class LookupReply final : public Reply {
 public:
  LookupReply(engine::SnapshotPtr snapshot, RowShape shape, filter::TextMatches found,
              std::uint64_t counted_max);

  std::size_t bytes() const override { return sizes_.bytes; }
  std::uint8_t* Write(std::uint8_t* out) const override;

 private:
  template <class Sink>
  void Encode(Sink& out) const;

  engine::SnapshotPtr snapshot_;
  RowShape shape_;
  filter::TextMatches found_;
  WireSizes sizes_;
};

}  // namespace simile::service
