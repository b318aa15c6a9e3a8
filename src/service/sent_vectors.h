#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace simile::service {

// Data of packed vectors that the message of a large request does not have. It stays in the
// received bytes, so its floats are copied only once, into the matrix that is searched.
class SentVectors {
 public:
  SentVectors() = default;
  //   data   [queries] empty if the message has the data
  //   owner  keeps the bytes alive
  //   held   bytes of memory that the owner takes
  SentVectors(std::vector<std::string_view> data, std::shared_ptr<const void> owner,
              std::uint64_t held)
      : data_(std::move(data)), owner_(std::move(owner)), held_(held) {}

  // Empty when the message has the data of the query.
  std::string_view Of(std::size_t query) const {
    return query < data_.size() ? data_[query] : std::string_view();
  }
  bool empty() const { return data_.empty(); }
  std::uint64_t held_bytes() const { return held_; }

 private:
  std::vector<std::string_view> data_;
  std::shared_ptr<const void> owner_;
  std::uint64_t held_ = 0;
};

}  // namespace simile::service
