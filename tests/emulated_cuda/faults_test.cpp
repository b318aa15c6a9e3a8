#include <cublas_v2.h>
#include <gmock/gmock.h>

#include "emulated_cuda/device_array.h"
#include "emulated_cuda/sample_kernels.h"

namespace emulated_cuda {
namespace {

constexpr int kCount = 64;
constexpr std::size_t kBytes = kCount * sizeof(int);

// A small job as in a server: returns its first error and frees everything.
cudaError_t RunJob() {
  cudaStream_t stream = nullptr;
  int *device = nullptr, *host = nullptr;
  cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  const auto then = [&error](auto&& call) {
    if (error == cudaSuccess) error = call();
  };
  then([&] { return cudaMalloc(&device, kBytes); });
  then([&] { return cudaMallocHost(&host, kBytes); });
  then([&] { return cudaMemsetAsync(device, 0, kBytes, stream); });
  then([&] { return simile::samples::LaunchScale(device, kCount, 1, 5, stream); });
  then([&] { return cudaMemcpyAsync(host, device, kBytes, cudaMemcpyDeviceToHost, stream); });
  then([&] { return cudaStreamSynchronize(stream); });
  if (error == cudaSuccess) {
    EXPECT_EQ(host[7], 5);
  }
  for (const cudaError_t freed : {host == nullptr ? cudaSuccess : cudaFreeHost(host),
                                  device == nullptr ? cudaSuccess : cudaFree(device),
                                  stream == nullptr ? cudaSuccess : cudaStreamDestroy(stream)}) {
    if (error == cudaSuccess) error = freed;
  }
  return error;
}

TEST(FaultTest, EveryCallFailsInTurn) {
  ResetDevice(WithSeed(0));
  ASSERT_EQ(RunJob(), cudaSuccess);
  const std::size_t calls = CallCount();
  EXPECT_EQ(calls, 10U);
  EXPECT_THAT(CallLog(),
              testing::ElementsAre("cudaStreamCreateWithFlags", "cudaMalloc", "cudaMallocHost",
                                   "cudaMemsetAsync", "launch:simile::samples::Scale",
                                   "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaFreeHost",
                                   "cudaFree", "cudaStreamDestroy"));
  for (std::size_t nth = 1; nth <= calls; ++nth) {
    for (const bool sticky : {false, true}) {
      ResetDevice(WithSeed(nth));
      InjectFault({.nth = nth, .error = cudaErrorECCUncorrectable, .sticky = sticky});
      EXPECT_EQ(RunJob(), cudaErrorECCUncorrectable) << "call " << nth;
      EXPECT_EQ(LiveObjects(), 0U) << "call " << nth;
      EXPECT_EQ(cudaGetLastError(), cudaErrorECCUncorrectable);
      EXPECT_EQ(cudaGetLastError(), sticky ? cudaErrorECCUncorrectable : cudaSuccess);
      // A lost device stays lost; any other error affects its call only.
      EXPECT_EQ(RunJob(), sticky ? cudaErrorECCUncorrectable : cudaSuccess);
    }
  }
}

TEST(FaultTest, MatchesOneCallOrKernelByName) {
  ResetDevice(WithSeed(0));
  InjectFault({.nth = 2, .error = cudaErrorMemoryAllocation, .name = "cudaMalloc"});
  EXPECT_EQ(RunJob(), cudaSuccess);
  EXPECT_EQ(RunJob(), cudaErrorMemoryAllocation);
  EXPECT_EQ(RunJob(), cudaSuccess);
  InjectFault({.error = cudaErrorLaunchOutOfResources, .name = "samples::Scale"});
  EXPECT_EQ(RunJob(), cudaErrorLaunchOutOfResources);
  InjectFault({.error = cudaErrorLaunchFailure, .name = "launch"});
  EXPECT_EQ(RunJob(), cudaErrorLaunchFailure);
  EXPECT_EQ(RunJob(), cudaSuccess);
}

TEST(FaultTest, CublasReturnsItsOwnStatus) {
  ResetDevice(WithSeed(0));
  InjectFault({.error = cudaErrorMemoryAllocation, .name = "cublasCreate"});
  cublasHandle_t handle = nullptr;
  EXPECT_EQ(cublasCreate(&handle), CUBLAS_STATUS_ALLOC_FAILED);
  InjectFault({.error = cudaErrorLaunchFailure, .name = "cublasSetStream"});
  ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSetStream(handle, nullptr), CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
}

TEST(FaultTest, AppearsAtTheWaitWhenAsynchronous) {
  ResetDevice(WithSeed(0));
  InjectFault({.error = cudaErrorIllegalAddress, .name = "launch", .asynchronous = true});
  const DeviceArray<int> device(std::vector<int>(kCount, 1));
  EXPECT_EQ(simile::samples::LaunchScale(device.data(), kCount, 2, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(device.data(), 0, kBytes, nullptr), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  void* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, 16), cudaErrorIllegalAddress);
}

TEST(FaultTest, AppearsAtEveryReplayWhenCaptured) {
  ResetDevice(WithSeed(0));
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  const DeviceArray<int> device(std::vector<int>(kCount, 1));
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(simile::samples::LaunchScale(device.data(), kCount, 2, 0, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
  InjectFault({.error = cudaErrorLaunchFailure, .name = "cudaGraphLaunch", .asynchronous = true});
  ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
}

TEST(FaultTest, NothingCompletesAfterTheDeviceHangs) {
  ResetDevice(WithSeed(0));
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  int* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
  InjectFault({.name = "launch", .hang = true});
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  ASSERT_EQ(simile::samples::LaunchScale(device, kCount, 2, 0, stream), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  }
  EXPECT_DEATH(cudaEventSynchronize(event), "cudaEventSynchronize would wait for ever");
  EXPECT_DEATH(cudaFree(device), "cudaFree would wait for ever");
  EndHang();
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace emulated_cuda
