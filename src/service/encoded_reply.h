#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "service/call.h"
#include "service/wire_writer.h"

namespace simile::service {

// A response that is encoded by passing its parts to the sinks of wire_writer.h.
class EncodedReply : public Reply {
 public:
  std::size_t bytes() const final { return sizes_.bytes; }
  bool is_exact() const final { return is_exact_; }
  std::uint8_t* Write(std::uint8_t* out) const final {
    WireWriter writer(sizes_, out);
    Encode(writer);
    return writer.end();
  }

 protected:
  // The same calls for both.
  virtual void Encode(ByteCounter& out) const = 0;
  virtual void Encode(WireWriter& out) const = 0;

  // Counts the bytes. To be called by the constructor of the reply, again after it dropped a part.
  //   counted_max  where counting ends: Reply::is_exact
  void Count(std::uint64_t counted_max) {
    sizes_.bytes = 0;
    sizes_.messages.clear();
    ByteCounter counter(sizes_, counted_max);
    Encode(counter);
    is_exact_ = !counter.is_full();
    sizes_.bytes = std::min(sizes_.bytes, counted_max + 1);
  }
  // Counts the bytes. A reply of more than bytes_max loses its notes and is counted again.
  void CountWithin(std::uint64_t bytes_max, std::uint64_t counted_max,
                   std::vector<std::string>& notes) {
    Count(counted_max);
    if (bytes() <= bytes_max || notes.empty()) return;
    notes.clear();
    Count(counted_max);
  }

 private:
  WireSizes sizes_;
  bool is_exact_ = true;
};

}  // namespace simile::service
