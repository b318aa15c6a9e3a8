#include "doctor/driver_api.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <system_error>

#include <absl/status/statusor.h>
#include <fmt/format.h>

#include "base/shared_library.h"

namespace simile::doctor {
namespace {

// What this file uses of NVIDIA's cuda.h.
using InitFunction = int (*)(unsigned flags);
using NumberFunction = int (*)(int* number);
using TextFunction = int (*)(int code, const char** text);

constexpr int kCudaSuccess = 0;

template <class Function>
Function FindIn(void* library, const char* symbol) {
  return reinterpret_cast<Function>(dlsym(library, symbol));
}

// The driver's text for a code: its name or its explanation; empty when it has none.
std::string TextFor(void* library, const char* symbol, int code) {
  const auto text_of = FindIn<TextFunction>(library, symbol);
  const char* text = nullptr;
  if (text_of == nullptr || text_of(code, &text) != kCudaSuccess || text == nullptr) return {};
  return text;
}

std::string ErrorText(void* library, const char* call, int code) {
  const std::string name = TextFor(library, "cuGetErrorName", code);
  const std::string text = TextFor(library, "cuGetErrorString", code);
  return fmt::format("{}: {}{}{}", call, name.empty() ? fmt::format("CUDA error {}", code) : name,
                     text.empty() ? "" : ": ", text);
}

std::string PathOf(void* library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return {};
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(map->l_name, error);
  return error ? map->l_name : real.string();
}

// "570.133.20" of "/usr/lib/x86_64-linux-gnu/libcuda.so.570.133.20"; empty for "libcuda.so.1".
std::string VersionIn(const std::string& path) {
  constexpr std::string_view kSuffix = ".so.";
  const std::size_t at = path.rfind(kSuffix);
  if (at == std::string::npos) return {};
  std::string version = path.substr(at + kSuffix.size());
  return version.find('.') == std::string::npos ? "" : version;
}

}  // namespace

DriverAnswer AskDriver(const std::string& library_name) {
  DriverAnswer answer;
  const absl::StatusOr<void*> loaded = base::LoadSharedLibrary(library_name);
  answer.found = !absl::IsNotFound(loaded.status());
  if (!loaded.ok()) {
    answer.load_error = std::string(loaded.status().message());
    return answer;
  }
  void* const library = *loaded;
  answer.path = PathOf(library);
  answer.library = VersionIn(answer.path);
  if (const auto version = FindIn<NumberFunction>(library, "cuDriverGetVersion")) {
    version(&answer.version);
  }
  const auto call = [&](const char* name, auto function, auto argument) {
    if (answer.code != kCudaSuccess || function == nullptr) return;
    answer.code = function(argument);
    if (answer.code != kCudaSuccess) answer.error = ErrorText(library, name, answer.code);
  };
  call("cuInit", FindIn<InitFunction>(library, "cuInit"), 0U);
  call("cuDeviceGetCount", FindIn<NumberFunction>(library, "cuDeviceGetCount"), &answer.devices);
  return answer;
}

std::string CudaText(int version) {
  return fmt::format("CUDA {}.{}", version / 1'000, version % 1'000 / 10);
}

}  // namespace simile::doctor
