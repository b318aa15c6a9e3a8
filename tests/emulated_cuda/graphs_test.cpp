#include <cublas_v2.h>
#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "emulated_cuda/device_array.h"
#include "emulated_cuda/sample_kernels.h"

namespace emulated_cuda {
namespace {

constexpr int kCount = 64;
constexpr std::size_t kBytes = kCount * sizeof(int);

// Two streams and two events, for captures that fork and join.
class GraphTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override {
    ResetDevice(WithSeed(GetParam()));
    for (cudaStream_t* stream : {&main_, &side_}) {
      ASSERT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
    }
    ASSERT_EQ(cudaEventCreate(&fork_), cudaSuccess);
    ASSERT_EQ(cudaEventCreate(&join_), cudaSuccess);
  }
  void TearDown() override {
    for (const cudaEvent_t event : {fork_, join_}) EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    for (const cudaStream_t stream : {main_, side_}) {
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    }
    EXPECT_EQ(LiveObjects(), 0U);
    EXPECT_EQ(TakeReport(), "");
  }

  void Begin() {
    ASSERT_EQ(cudaStreamBeginCapture(main_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  }
  void Fork() {
    ASSERT_EQ(cudaEventRecord(fork_, main_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(side_, fork_), cudaSuccess);
  }
  void Join() {
    ASSERT_EQ(cudaEventRecord(join_, side_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(main_, join_), cudaSuccess);
  }
  cudaGraphExec_t End() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaSuccess);
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaGraphUpload(exec, main_), cudaSuccess);
    return exec;
  }
  cudaError_t EndsWith() {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(main_, &graph);
    EXPECT_EQ(graph, nullptr);
    return error;
  }

  cudaStream_t main_ = nullptr, side_ = nullptr;
  cudaEvent_t fork_ = nullptr, join_ = nullptr;
};

TEST_P(GraphTest, TwoStreamsReplayOnNewInput) {
  const DeviceArray<int> a(kCount), b(kCount);
  const PinnedArray<int> in(kCount), out(kCount);
  Begin();
  ASSERT_EQ(cudaMemcpyAsync(a.data(), in.data(), kBytes, cudaMemcpyHostToDevice, main_),
            cudaSuccess);
  Fork();
  ASSERT_EQ(cudaMemcpyAsync(b.data(), a.data(), kBytes, cudaMemcpyDeviceToDevice, side_),
            cudaSuccess);
  ASSERT_EQ(simile::samples::LaunchScale(b.data(), kCount, 10, 1, side_), cudaSuccess);
  Join();
  ASSERT_EQ(simile::samples::LaunchScale(b.data(), kCount, 2, 0, main_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(out.data(), b.data(), kBytes, cudaMemcpyDeviceToHost, main_),
            cudaSuccess);
  cudaGraphExec_t exec = End();
  for (int i = 1; i < 4; ++i) {
    in[0] = i;
    ASSERT_EQ(cudaGraphLaunch(exec, main_), cudaSuccess);
    EXPECT_NE(out[0], (10 * i + 1) * 2);
    ASSERT_EQ(cudaStreamSynchronize(main_), cudaSuccess);
    EXPECT_EQ(out[0], (10 * i + 1) * 2);
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

// An external event is a node: it is recorded at each launch, after the nodes before it.
TEST_P(GraphTest, ExternalEventsAreRecordedByEachLaunch) {
  const DeviceArray<int> a(std::vector<int>(kCount, 1));
  cudaEvent_t began = nullptr, ended = nullptr;
  ASSERT_EQ(cudaEventCreate(&began), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&ended), cudaSuccess);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventRecordWithFlags(began, main_, cudaEventRecordExternal), cudaErrorInvalidValue)
      << "outside of a capture";
  Begin();
  ASSERT_EQ(cudaEventRecordWithFlags(began, main_, cudaEventRecordExternal), cudaSuccess);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(simile::samples::LaunchScale(a.data(), kCount, 2, 0, main_), cudaSuccess);
  }
  ASSERT_EQ(cudaEventRecordWithFlags(ended, main_, cudaEventRecordExternal), cudaSuccess);
  cudaGraphExec_t exec = End();
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, began, ended), cudaErrorInvalidResourceHandle)
      << "captured and not recorded";
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cudaGraphLaunch(exec, main_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(main_), cudaSuccess);
    ASSERT_EQ(cudaEventElapsedTime(&milliseconds, began, ended), cudaSuccess);
    EXPECT_NEAR(milliseconds, 5e-3, 1e-6) << "three kernels and two events";
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(began), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(ended), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
}

TEST_P(GraphTest, CublasIsCaptured) {
  const DeviceArray<float> values(std::vector<float>(8, 2.0F)), out(1);
  cublasHandle_t handle = nullptr;
  ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSetStream(handle, main_), CUBLAS_STATUS_SUCCESS);
  Begin();
  const float one = 1, zero = 0;
  ASSERT_EQ(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, 8, &one, values.data(), CUDA_R_32F,
                         8, values.data(), CUDA_R_32F, 8, &zero, out.data(), CUDA_R_32F, 1,
                         CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
  cudaGraphExec_t exec = End();
  ASSERT_EQ(cudaGraphLaunch(exec, main_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(main_), cudaSuccess);
  EXPECT_EQ(out.Read()[0], 32.0F);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
}

TEST_P(GraphTest, MissingJoinAtTheEndIsReported) {
  const DeviceArray<int> a(kCount);
  Begin();
  Fork();
  ASSERT_EQ(simile::samples::LaunchScale(a.data(), kCount, 0, 1, side_), cudaSuccess);
  EXPECT_EQ(EndsWith(), cudaErrorStreamCaptureUnjoined);
}

// Without the fork the side stream is not captured: its work runs once, outside of the graph.
TEST_P(GraphTest, MissingForkLeavesWorkOut) {
  const DeviceArray<int> a(std::vector<int>(kCount, 1)), b(std::vector<int>(kCount, 1));
  Begin();
  ASSERT_EQ(simile::samples::LaunchScale(a.data(), kCount, 2, 0, main_), cudaSuccess);
  ASSERT_EQ(simile::samples::LaunchScale(b.data(), kCount, 2, 0, side_), cudaSuccess);
  cudaGraphExec_t exec = End();
  for (int i = 0; i < 2; ++i) ASSERT_EQ(cudaGraphLaunch(exec, main_), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(a.Read()[0], 4);
  EXPECT_EQ(b.Read()[0], 2);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_P(GraphTest, CaptureRefusesWhatADeviceRefuses) {
  const DeviceArray<int> a(kCount);
  void* pointer = nullptr;
  Begin();
  EXPECT_EQ(cudaMalloc(&pointer, 16), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(EndsWith(), cudaErrorStreamCaptureInvalidated);

  Begin();
  EXPECT_EQ(cudaStreamSynchronize(main_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(EndsWith(), cudaErrorStreamCaptureInvalidated);

  ASSERT_EQ(cudaEventRecord(join_, side_), cudaSuccess);
  Begin();
  EXPECT_EQ(cudaStreamWaitEvent(main_, join_), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(EndsWith(), cudaErrorStreamCaptureInvalidated);

  Begin();
  Fork();
  EXPECT_EQ(cudaEventSynchronize(fork_), cudaErrorCapturedEvent);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(side_, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(EndsWith(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(EndsWith(), cudaErrorInvalidValue);

  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(simile::samples::LaunchScale(a.data(), kCount, 1, 1, nullptr),
            cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
}

TEST_P(GraphTest, CaptureOfThisThreadDoesNotAffectOthers) {
  Begin();
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_EQ(cudaStreamIsCapturing(main_, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  void* pointer = nullptr;
  std::thread([&] { EXPECT_EQ(cudaMalloc(&pointer, 16), cudaSuccess); }).join();
  // A thread may opt out of the checks for its own capture.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  EXPECT_EQ(cudaFree(pointer), cudaSuccess);
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(End()), cudaSuccess);
}

INSTANTIATE_TEST_SUITE_P(Seeds, GraphTest, testing::Range<std::uint64_t>(0, 20));

// A graph whose main branch sets 0 and whose side branch then sets 9. Returns what the main branch
// reads in 16 replays, after the join or, when `early`, before it.
std::set<int> ReadAcrossBranches(std::uint64_t seed, bool early) {
  ResetDevice(WithSeed(seed));
  cudaStream_t streams[2] = {};
  cudaEvent_t events[2] = {};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaEventCreate(&events[i]), cudaSuccess);
  }
  const DeviceArray<int> shared(kCount), copy(kCount);
  EXPECT_EQ(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(shared.data(), 0, kBytes, streams[0]), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(events[0], streams[0]), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(streams[1], events[0]), cudaSuccess);
  EXPECT_EQ(simile::samples::LaunchScale(shared.data(), kCount, 0, 9, streams[1]), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(events[1], streams[1]), cudaSuccess);
  if (!early) {
    EXPECT_EQ(cudaStreamWaitEvent(streams[0], events[1]), cudaSuccess);
  }
  EXPECT_EQ(
      cudaMemcpyAsync(copy.data(), shared.data(), kBytes, cudaMemcpyDeviceToDevice, streams[0]),
      cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(streams[0], events[1]), cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(streams[0], &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
  std::set<int> seen;
  for (int replay = 0; replay < 16; ++replay) {
    EXPECT_EQ(cudaGraphLaunch(exec, streams[0]), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
    seen.insert(copy.Read()[0]);
  }
  return seen;
}

TEST(GraphRaceTest, MissingJoinReadsBothValuesUnderEverySeed) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_THAT(ReadAcrossBranches(seed, true), testing::ElementsAre(0, 9)) << "seed " << seed;
    EXPECT_THAT(ReadAcrossBranches(seed, false), testing::ElementsAre(9)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace emulated_cuda
