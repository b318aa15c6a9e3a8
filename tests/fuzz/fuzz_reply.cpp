// Any bytes as the choices from which an answer is made: a reply in wire form has exactly as many
// bytes as it says, and protobuf parses them into the message that it would have filled itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "service/hits_of_columns.h"
#include "service/random_answer.h"
#include "service/reference_reply.h"

namespace {

using simile::service::FindDifference;

constexpr std::uint64_t kCountedMax = std::uint64_t{64} << 20;

// Numbers from the input, and zeros after its end, which end every list.
class Numbers {
 public:
  explicit Numbers(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint64_t operator()() {
    std::uint64_t number = 0;
    const std::size_t count = std::min(sizeof number, bytes_.size());
    if (count > 0) std::memcpy(&number, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return number;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

void Check(const simile::service::Reply& reply, const google::protobuf::Message& expected) {
  const std::string difference = FindDifference(reply, expected);
  if (difference.empty()) return;
  std::fprintf(stderr, "%s: %s\n", expected.GetTypeName().c_str(), difference.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace service = simile::service;
  Numbers numbers({data, size});
  const service::RandomAnswer answer([&] { return numbers(); });
  simile::v1::SearchResponse search;
  FillResponse(answer.parts(), search);
  Check(service::SearchReply(answer.parts(), kCountedMax), search);
  if (!service::CompareLayouts(answer.parts()).empty()) std::abort();
  const simile::engine::SnapshotPtr& snapshot = answer.snapshot();
  Check(service::FetchReply(snapshot, answer.shape(), answer.items(), answer.notes(), kCountedMax,
                            kCountedMax),
        MakeFetchResponse(*snapshot, answer.shape(), answer.items(), answer.notes()));
  Check(service::LookupReply(snapshot, answer.shape(), answer.matches(), answer.notes(),
                             kCountedMax, kCountedMax),
        MakeLookupResponse(*snapshot, answer.shape(), answer.matches(), answer.notes()));
  return 0;
}
