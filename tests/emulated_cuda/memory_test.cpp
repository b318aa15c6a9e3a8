#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>

#include "emulated_cuda/device_array.h"
#include "emulated_cuda/sample_kernels.h"
#include "emulated_cuda/sanitizer.h"

namespace emulated_cuda {
namespace {

TEST(DeviceMemoryTest, StartsAsPoison) {
  for (const std::uint64_t seed : {0U, 2U}) {
    ResetDevice(WithSeed(seed));
    for (const float value : DeviceArray<float>(100).Read()) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(DeviceMemoryTest, EndsTheProcessWhenTheHostTouchesIt) {
  const auto touch = [] {
    ResetDevice(WithSeed(0));
    int* values = nullptr;
    EXPECT_EQ(cudaMalloc(&values, 64), cudaSuccess);
    *static_cast<volatile int*>(values) = 1;
  };
  EXPECT_DEATH(touch(), kAddressSanitizer ? "SEGV" : "host code touched device memory");
}

TEST(DeviceMemoryTest, RefusesAllocationsBeyondItsSize) {
  Options options = WithSeed(0);
  options.memory_bytes = 10240;
  ResetDevice(options);
  void *first = nullptr, *second = nullptr, *third = nullptr;
  ASSERT_EQ(cudaMalloc(&first, 10000), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&second, 257), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&second, std::size_t{0} - 1), cudaErrorMemoryAllocation);
  std::size_t free_bytes = 1, total_bytes = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
  EXPECT_EQ(free_bytes, 0U);
  EXPECT_EQ(total_bytes, options.memory_bytes);
  ASSERT_EQ(cudaFree(first), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&second, 1000), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&third, 77), cudaSuccess);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(third) % 256, 0U);
  EXPECT_THAT(Allocations(), testing::ElementsAre(1000, 77));
  EXPECT_EQ(DeviceBytesInUse(), 1077U);
  EXPECT_EQ(LiveObjects(), 2U);
  EXPECT_EQ(cudaFree(second), cudaSuccess);
  EXPECT_EQ(cudaFree(third), cudaSuccess);
  EXPECT_EQ(cudaFree(third), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(LiveObjects(), 0U);
}

TEST(DeviceMemoryTest, CopiesStayWithinAllocations) {
  ResetDevice(WithSeed(0));
  const DeviceArray<int> a(16), b(16);
  std::vector<int> host(17);
  EXPECT_EQ(cudaMemcpy(a.data(), host.data(), 68, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(a.data(), host.data(), 64, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(a.data() + 1, 0, 64), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(b.data(), a.data() + 8, 64, cudaMemcpyDeviceToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(a.data(), 0, 64), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(b.data(), a.data(), 64, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(b.Read(), std::vector<int>(16, 0));
}

TEST(HostMemoryTest, CountsPinnedAndRegisteredBytes) {
  ResetDevice(WithSeed(0));
  std::vector<int> mine(1000);
  EXPECT_EQ(cudaHostRegister(mine.data(), 4000, cudaHostRegisterReadOnly), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(mine.data() + 10, 4, 0), cudaErrorHostMemoryAlreadyRegistered);
  {
    const PinnedArray<int> pinned(8);
    EXPECT_EQ(PinnedBytesInUse(), 4032U);
    EXPECT_EQ(LiveObjects(), 2U);
  }
  int* device = nullptr;
  EXPECT_EQ(cudaHostGetDevicePointer(&device, mine.data() + 5, 0), cudaSuccess);
  EXPECT_EQ(device, mine.data() + 5);
  EXPECT_EQ(cudaHostUnregister(mine.data()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(mine.data()), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaHostGetDevicePointer(&device, mine.data(), 0), cudaErrorInvalidValue);
  int* pinned = nullptr;
  EXPECT_EQ(cudaHostAlloc(&pinned, 16, cudaHostAllocPortable | cudaHostAllocMapped), cudaSuccess);
  EXPECT_EQ(cudaHostAlloc(&pinned, 16, 64), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(LiveObjects(), 0U);
  EXPECT_EQ(PinnedBytesInUse(), 0U);
}

TEST(HostMemoryTest, IsReadByKernelsOnlyWhenRegistered) {
  alignas(16) static int values[128] = {};
  values[0] = 42;
  for (const bool registered : {true, false}) {
    ResetDevice(WithSeed(1));
    if (registered) {
      ASSERT_EQ(cudaHostRegister(values, sizeof(values), 0), cudaSuccess);
    }
    const DeviceArray<int> out(128);
    ASSERT_EQ(simile::samples::LaunchReverse(values, 128, out.data(), 1, nullptr), cudaSuccess);
    if (registered) {
      EXPECT_EQ(out.Read()[127], 42);
    } else {
      EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
      EXPECT_THAT(TakeReport(), testing::HasSubstr("cp.async reads outside of any allocation"));
    }
  }
}

TEST(HostMemoryTest, IsReportedWhenUnregisteredUnderACopy) {
  ResetDevice(WithSeed(0));
  std::vector<int> mine(16, 1);
  const DeviceArray<int> to(16);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaHostRegister(mine.data(), 64, 0), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(to.data(), mine.data(), 64, cudaMemcpyHostToDevice, stream),
            cudaSuccess);
  ASSERT_EQ(cudaHostUnregister(mine.data()), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_THAT(TakeReport(), testing::HasSubstr("freed or unregistered before it ran"));
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorIllegalAddress);
}

}  // namespace
}  // namespace emulated_cuda
