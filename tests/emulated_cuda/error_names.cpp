#include <cuda_runtime_api.h>

namespace {

struct Names {
  const char* name;
  const char* text;
};

// NOLINTBEGIN: a table of CUDA's codes.
#define EMULATED_ERROR(code, text) \
  case code:                       \
    return { #code, text }

Names NamesOf(cudaError_t error) {
  switch (error) {
    EMULATED_ERROR(cudaSuccess, "no error");
    EMULATED_ERROR(cudaErrorInvalidValue, "invalid argument");
    EMULATED_ERROR(cudaErrorMemoryAllocation, "out of memory");
    EMULATED_ERROR(cudaErrorInitializationError, "initialization error");
    EMULATED_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument");
    EMULATED_ERROR(cudaErrorInvalidSymbol, "invalid device symbol");
    EMULATED_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy");
    EMULATED_ERROR(cudaErrorStubLibrary, "the driver library is a stub");
    EMULATED_ERROR(cudaErrorInsufficientDriver, "the driver is older than the runtime");
    EMULATED_ERROR(cudaErrorDevicesUnavailable, "all devices are busy or unavailable");
    EMULATED_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function");
    EMULATED_ERROR(cudaErrorNoDevice, "no device is detected");
    EMULATED_ERROR(cudaErrorInvalidDevice, "invalid device ordinal");
    EMULATED_ERROR(cudaErrorNoKernelImageForDevice, "no kernel image for this device");
    EMULATED_ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error");
    EMULATED_ERROR(cudaErrorInvalidPtx, "a PTX compilation failed");
    EMULATED_ERROR(cudaErrorUnsupportedPtxVersion, "unsupported PTX version");
    EMULATED_ERROR(cudaErrorContained, "a contained memory error");
    EMULATED_ERROR(cudaErrorInvalidSource, "invalid device kernel source");
    EMULATED_ERROR(cudaErrorOperatingSystem, "a call of the operating system failed");
    EMULATED_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle");
    EMULATED_ERROR(cudaErrorNotReady, "device not ready");
    EMULATED_ERROR(cudaErrorIllegalAddress, "an illegal memory access");
    EMULATED_ERROR(cudaErrorLaunchOutOfResources, "too many resources for a launch");
    EMULATED_ERROR(cudaErrorLaunchTimeout, "the launch timed out");
    EMULATED_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled");
    EMULATED_ERROR(cudaErrorAssert, "a device-side assertion failed");
    EMULATED_ERROR(cudaErrorHostMemoryAlreadyRegistered, "host memory is registered already");
    EMULATED_ERROR(cudaErrorHostMemoryNotRegistered, "host memory is not registered");
    EMULATED_ERROR(cudaErrorHardwareStackError, "hardware stack error");
    EMULATED_ERROR(cudaErrorIllegalInstruction, "an illegal instruction");
    EMULATED_ERROR(cudaErrorMisalignedAddress, "misaligned address");
    EMULATED_ERROR(cudaErrorInvalidAddressSpace, "not in the address space of the instruction");
    EMULATED_ERROR(cudaErrorInvalidPc, "invalid program counter");
    EMULATED_ERROR(cudaErrorLaunchFailure, "unspecified launch failure");
    EMULATED_ERROR(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch");
    EMULATED_ERROR(cudaErrorTensorMemoryLeak, "tensor memory not freed by the end of the kernel");
    EMULATED_ERROR(cudaErrorNotPermitted, "operation not permitted");
    EMULATED_ERROR(cudaErrorNotSupported, "operation not supported");
    EMULATED_ERROR(cudaErrorSystemNotReady, "the system is not ready");
    EMULATED_ERROR(cudaErrorSystemDriverMismatch, "driver and user-space library differ");
    EMULATED_ERROR(cudaErrorCompatNotSupportedOnDevice, "no forward compatibility on this device");
    EMULATED_ERROR(cudaErrorMpsConnectionFailed, "no connection to the MPS server");
    EMULATED_ERROR(cudaErrorStreamCaptureUnsupported, "not permitted while a stream captures");
    EMULATED_ERROR(cudaErrorStreamCaptureInvalidated, "the capture failed by an earlier error");
    EMULATED_ERROR(cudaErrorStreamCaptureMerge, "would merge two captures");
    EMULATED_ERROR(cudaErrorStreamCaptureUnmatched, "not the stream where the capture began");
    EMULATED_ERROR(cudaErrorStreamCaptureUnjoined, "captured work was not joined");
    EMULATED_ERROR(cudaErrorStreamCaptureIsolation, "would depend on work outside the capture");
    EMULATED_ERROR(cudaErrorStreamCaptureImplicit, "would depend on the default stream");
    EMULATED_ERROR(cudaErrorCapturedEvent, "not permitted on a captured event");
    EMULATED_ERROR(cudaErrorStreamCaptureWrongThread, "not the thread where the capture began");
    EMULATED_ERROR(cudaErrorExternalDevice, "an external device failed");
    EMULATED_ERROR(cudaErrorUnknown, "unknown error");
  }
  return {"unrecognized error code", "unrecognized error code"};
}
#undef EMULATED_ERROR

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t error) { return NamesOf(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return NamesOf(error).text; }
}
// NOLINTEND
