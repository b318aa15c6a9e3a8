#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend/cuda/device_memory.h"
#include "backend/gpu_memory.h"
#include "backend/gpu_options.h"
#include "kernels/pass.h"
#include "kernels/row_scan.h"

namespace simile::backend::cuda {

// A cuBLAS handle with its own stream and working memory; null without the library. Sums products
// in fp32, as the bound requires.
class BlasHandle {
 public:
  // Throws DeviceError.
  BlasHandle(Device& device, cudaStream_t stream, std::size_t bytes);
  ~BlasHandle();
  BlasHandle(const BlasHandle&) = delete;
  BlasHandle& operator=(const BlasHandle&) = delete;

  cublasHandle_t get() const { return handle_; }

 private:
  Device& device_;
  cublasHandle_t handle_ = nullptr;
  DeviceArray<std::byte> memory_;
};

// A pinned host block of queries or answers. In use while somebody besides the workspace holds it:
// a pass, or a result that reads its answers there.
struct PinnedBlock {
  // Throws DeviceError.
  PinnedBlock(Device& of, std::size_t bytes)
      : device(of),
        memory(MakePinned(of, bytes)),
        mapped(static_cast<std::byte*>(MappedAddress(of, memory.get()))) {}
  // May run on any thread: a result can be the last owner.
  ~PinnedBlock() {
    static_cast<void>(device.Guard([&] { device.Enter(); }));
  }
  PinnedBlock(const PinnedBlock&) = delete;
  PinnedBlock& operator=(const PinnedBlock&) = delete;

  std::byte* get() const { return static_cast<std::byte*>(memory.get()); }

  Device& device;
  PinnedMemory memory;
  std::byte* mapped;  // the address that kernels use
};

// One of the workspace's blocks, in use while this object holds it.
struct HeldBlock {
  unsigned index = 0;
  std::shared_ptr<const PinnedBlock> block;  // null: none is held
};

// Streams, handles and buffers that all segments of a device share, in the order of the stream.
// Nothing is allocated on the device for a batch.
class Workspace {
 public:
  //   number  different for each workspace, because captured graphs hold addresses of its buffers
  // Throws DeviceError.
  Workspace(Device& device, const WorkspaceSize& size, std::uint64_t number);

  const WorkspaceSize& size() const { return size_; }
  std::uint64_t number() const { return number_; }

  // The arguments of a pass with this many slots over a segment of this stride. The caller fills in
  // the segment's part.
  kernels::Pass PassFor(unsigned slots, unsigned stride, unsigned capacity,
                        unsigned best_stride) const;

  // The query and answer blocks: pinned on the host, and on the device.
  const std::shared_ptr<const PinnedBlock>& host_answers(unsigned block) const {
    return host_answers_[block];
  }
  // An answer block that is not in use; if there is none, the first block, which is never lent.
  HeldBlock HoldAnswersToLend() const;
  unsigned free_query_blocks() const;
  unsigned free_answer_blocks() const;  // of the blocks that may be lent
  // REQUIRES: one is free.
  HeldBlock HoldQueries() const;
  // Recorded after a pass whose queries are in this block.
  cudaEvent_t answered_event(unsigned query_block) const {
    return answered_events_[query_block].get();
  }
  std::byte* queries() const { return queries_.get(); }
  std::byte* answers() const { return answers_.get(); }
  std::size_t answer_bytes() const { return answers_.bytes(); }

  cudaStream_t stream(unsigned index) const { return streams_[index].get(); }
  cublasHandle_t blas(unsigned index) const { return blas_[index].get(); }
  cudaEvent_t forked() const { return forked_.get(); }
  cudaEvent_t gated() const { return gated_.get(); }
  cudaEvent_t joined() const { return joined_.get(); }
  // The events around work whose time is asked for.
  cudaEvent_t began() const { return began_.get(); }
  cudaEvent_t ended() const { return ended_.get(); }

  __half* fp16_queries() const { return fp16_queries_.get(); }
  __half* tile(unsigned index) const { return tiles_[index].get(); }
  // The queries of an int8 scan, in place of those in fp16.
  signed char* int8_planes() const { return reinterpret_cast<signed char*>(fp16_queries_.get()); }
  kernels::Int8Query* int8_queries() const { return int8_queries_.get(); }
  float* maxima() const { return maxima_.get(); }
  float* second_maxima() const { return maxima_.get() + MaximaCount(size_) / 2; }
  kernels::GridRounds* rounds() const { return rounds_.get(); }
  unsigned* excluded() const { return excluded_.get(); }
  unsigned* kept_rows() const { return kept_rows_.get(); }
  kernels::Key* thresholds() const { return thresholds_.get(); }

 private:
  const WorkspaceSize size_;
  const std::uint64_t number_;
  std::array<Stream, 2> streams_;
  Event forked_, gated_, joined_;
  Event began_, ended_;
  std::array<BlasHandle, 2> blas_;
  std::array<std::shared_ptr<const PinnedBlock>, kHostQueryBlocks> host_queries_;
  std::array<std::shared_ptr<const PinnedBlock>, kHostAnswerBlocks> host_answers_;
  std::array<Event, kHostQueryBlocks> answered_events_;
  DeviceArray<std::byte> queries_, answers_;
  DeviceArray<__half> fp16_queries_;
  std::array<DeviceArray<__half>, 2> tiles_;
  DeviceArray<kernels::Hit> hits_;
  DeviceArray<kernels::Key> keys_;
  DeviceArray<kernels::Candidates> candidates_;
  DeviceArray<unsigned> kept_rows_;
  DeviceArray<float> gates_;
  DeviceArray<unsigned> hit_counts_;
  DeviceArray<kernels::Key> thresholds_;
  DeviceArray<kernels::Int8Query> int8_queries_;
  DeviceArray<float> maxima_;
  DeviceArray<kernels::GridRounds> rounds_;
  DeviceArray<unsigned> excluded_;
};

}  // namespace simile::backend::cuda
