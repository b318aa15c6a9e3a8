#include <gmock/gmock.h>

#include <set>

#include "emulated_cuda/device_array.h"
#include "emulated_cuda/sample_kernels.h"

namespace emulated_cuda {
namespace {

constexpr int kCount = 64;
constexpr std::size_t kBytes = kCount * sizeof(int);

// Two streams that do not wait for the default one, and an event.
class StreamTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override {
    ResetDevice(WithSeed(GetParam()));
    ASSERT_EQ(cudaStreamCreateWithFlags(&first_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&second_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cudaEventDestroy(event_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(second_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(first_), cudaSuccess);
    EXPECT_EQ(LiveObjects(), 0U);
    EXPECT_EQ(TakeReport(), "");
  }

  cudaStream_t first_ = nullptr, second_ = nullptr;
  cudaEvent_t event_ = nullptr;
};

TEST_P(StreamTest, ReadBeforeTheWaitSeesOldData) {
  const DeviceArray<int> device(kCount);
  const PinnedArray<int> host(kCount);
  host[0] = 5;
  ASSERT_EQ(cudaMemsetAsync(device.data(), 1, kBytes, first_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(host.data(), device.data(), kBytes, cudaMemcpyDeviceToHost, first_),
            cudaSuccess);
  EXPECT_EQ(host[0], 5);
  EXPECT_EQ(cudaStreamQuery(first_), cudaErrorNotReady);
  ASSERT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_EQ(host[0], 0x01010101);
  EXPECT_EQ(cudaStreamQuery(first_), cudaSuccess);
}

TEST_P(StreamTest, PollingAloneCompletesTheWork) {
  const DeviceArray<int> device(kCount);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(simile::samples::LaunchScale(device.data(), kCount, 0, i, first_), cudaSuccess);
    ASSERT_EQ(simile::samples::LaunchScale(device.data(), kCount, 0, i, second_), cudaSuccess);
  }
  ASSERT_EQ(cudaEventRecord(event_, first_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);
  int polls = 0;
  while (cudaEventQuery(event_) == cudaErrorNotReady && polls < 100) ++polls;
  while (cudaStreamQuery(second_) == cudaErrorNotReady && polls < 100) ++polls;
  EXPECT_LT(polls, 100);
}

TEST_P(StreamTest, EventsOrderTwoStreams) {
  const DeviceArray<int> device(kCount);
  const PinnedArray<int> host(kCount);
  ASSERT_EQ(cudaMemsetAsync(device.data(), 0, kBytes, first_), cudaSuccess);
  ASSERT_EQ(simile::samples::LaunchScale(device.data(), kCount, 1, 7, first_), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event_, first_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second_, event_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(host.data(), device.data(), kBytes, cudaMemcpyDeviceToHost, second_),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(second_), cudaSuccess);
  EXPECT_EQ(host[kCount - 1], 7);
}

TEST_P(StreamTest, DefaultStreamDoesNotWaitForNonBlockingOnes) {
  const DeviceArray<int> device(std::vector<int>(kCount, 3));
  ASSERT_EQ(simile::samples::LaunchScale(device.data(), kCount, 2, 0, first_), cudaSuccess);
  if (GetParam() == 0) {
    EXPECT_EQ(device.Read()[0], 3);
  }
  ASSERT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_EQ(device.Read()[0], 6);
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(simile::samples::LaunchScale(device.data(), kCount, 2, 0, blocking), cudaSuccess);
  ASSERT_EQ(simile::samples::LaunchScale(device.data(), kCount, 1, 1, nullptr), cudaSuccess);
  ASSERT_EQ(simile::samples::LaunchScale(device.data(), kCount, 2, 0, blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
  EXPECT_EQ(device.Read()[0], 26);
}

TEST_P(StreamTest, PageableMemoryIsReadBeforeTheCallReturns) {
  const DeviceArray<int> device(kCount);
  std::vector<int> host(kCount, 1);
  ASSERT_EQ(cudaMemcpyAsync(device.data(), host.data(), kBytes, cudaMemcpyHostToDevice, first_),
            cudaSuccess);
  host.assign(kCount, 2);
  // To pageable memory the call waits.
  ASSERT_EQ(cudaMemcpyAsync(host.data(), device.data(), kBytes, cudaMemcpyDeviceToHost, first_),
            cudaSuccess);
  EXPECT_EQ(host[0], 1);
}

TEST_P(StreamTest, HostFunctionsRunInOrder) {
  const DeviceArray<int> device(kCount);
  const PinnedArray<int> host(kCount);
  static int* seen = nullptr;
  static int value = 0;
  seen = host.data();
  ASSERT_EQ(cudaMemsetAsync(device.data(), 0, kBytes, first_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(host.data(), device.data(), kBytes, cudaMemcpyDeviceToHost, first_),
            cudaSuccess);
  value = -1;
  ASSERT_EQ(cudaLaunchHostFunc(
                first_, [](void* factor) { value = *seen + *static_cast<int*>(factor); }, &value),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_EQ(value, -1);
}

TEST_P(StreamTest, RefusesInvalidHandles) {
  cudaStream_t gone = nullptr;
  ASSERT_EQ(cudaStreamCreate(&gone), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(gone), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(gone), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamSynchronize(gone), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(event_, gone), cudaErrorInvalidResourceHandle);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StreamTest, testing::Range<std::uint64_t>(0, 20));

TEST(StreamOrderTest, UnorderedStreamsRunInAnyOrderUnderASeed) {
  std::set<int> results;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ResetDevice(WithSeed(seed));
    const DeviceArray<int> device(std::vector<int>(kCount, 1));
    cudaStream_t streams[2] = {};
    for (cudaStream_t& stream : streams) {
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    }
    ASSERT_EQ(simile::samples::LaunchScale(device.data(), kCount, 2, 0, streams[0]), cudaSuccess);
    ASSERT_EQ(simile::samples::LaunchScale(device.data(), kCount, 1, 1, streams[1]), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    results.insert(device.Read()[0]);
  }
  EXPECT_THAT(results, testing::ElementsAre(3, 4));
}

}  // namespace
}  // namespace emulated_cuda
