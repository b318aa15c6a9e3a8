#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/snapshots/snapshot.h"
#include "filter/text_index.h"
#include "service/encoded_reply.h"
#include "service/row_encoding.h"

namespace simile::service {

// The responses of LookupService in wire form, made as a SearchReply is, of which counted_max is
// explained there.

// The row of an id, or why there is none.
struct FetchedItem {
  Row row = 0;
  std::string id;     // of an unknown one; empty for a row
  std::string error;  // a serialized google.rpc.Status; empty for a row
};

// Drops its notes when it exceeds bytes_max with them.
class FetchReply final : public EncodedReply {
 public:
  //   notes        what of the request had no effect
  //   bytes_max    of the response
  //   counted_max  where counting ends: Reply::is_exact
  FetchReply(engine::SnapshotPtr snapshot, RowShape shape, std::vector<FetchedItem> items,
             std::vector<std::string> notes, std::uint64_t bytes_max, std::uint64_t counted_max);

 private:
  void Encode(ByteCounter& out) const override;
  void Encode(WireWriter& out) const override;
  template <class Sink>
  void EncodeTo(Sink& out) const;

  engine::SnapshotPtr snapshot_;
  RowShape shape_;
  std::vector<FetchedItem> items_;
  std::vector<std::string> notes_;
};

// As FetchReply.
class LookupReply final : public EncodedReply {
 public:
  LookupReply(engine::SnapshotPtr snapshot, RowShape shape, filter::TextMatches found,
              std::vector<std::string> notes, std::uint64_t bytes_max, std::uint64_t counted_max,
              std::string nearest = {});

 private:
  void Encode(ByteCounter& out) const override;
  void Encode(WireWriter& out) const override;
  template <class Sink>
  void EncodeTo(Sink& out) const;

  engine::SnapshotPtr snapshot_;
  RowShape shape_;
  filter::TextMatches found_;
  std::string nearest_;
  std::vector<std::string> notes_;
};

}  // namespace simile::service
