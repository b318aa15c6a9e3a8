#include "doctor/driver_api.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include <absl/status/statusor.h>
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <fmt/format.h>

#include "base/shared_library.h"

namespace simile::doctor {
namespace {

// The function types of NVIDIA's cuda.h that this file uses.
using InitFunction = int (*)(unsigned flags);
using NumberFunction = int (*)(int* number);
using TextFunction = int (*)(int code, const char** text);

constexpr int kCudaSuccess = 0;

template <class Function>
Function FindIn(void* library, const char* symbol) {
  return reinterpret_cast<Function>(dlsym(library, symbol));
}

// The driver's text for a code, which is its name or its explanation; empty if it has none.
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

std::string FindLibraryPath(void* library) {
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

// The entry at a position of a comma-separated list; empty if there is none.
std::string EntryAt(std::string_view value, std::size_t position) {
  const std::vector<std::string> entries = absl::StrSplit(std::string(value), ',');
  if (position >= entries.size()) return {};
  return std::string(absl::StripAsciiWhitespace(entries[position]));
}

bool IsUuid(std::string_view entry) { return entry.starts_with("GPU-"); }

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
  answer.path = FindLibraryPath(library);
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

bool HidesAllCards(std::string_view value, std::span<const std::string> uuids) {
  const std::string first = EntryAt(value, 0);
  if (first.starts_with("MIG-")) return false;  // a part of a card, which has its own UUID
  if (IsUuid(first)) {
    return !uuids.empty() && std::ranges::none_of(uuids, [&first](const std::string& uuid) {
      return uuid.empty() || uuid.starts_with(first);
    });
  }
  unsigned number = 0;
  if (!absl::SimpleAtoi(first, &number)) return true;
  return !uuids.empty() && number >= uuids.size();
}

std::optional<std::size_t> FindVisibleCard(std::string_view value, std::size_t device,
                                           std::span<const std::string> uuids) {
  const std::string entry = EntryAt(value, device);
  unsigned number = 0;
  if (absl::SimpleAtoi(entry, &number)) return number;
  const auto found = std::ranges::find_if(
      uuids, [&entry](const std::string& uuid) { return uuid.starts_with(entry); });
  if (!IsUuid(entry) || found == uuids.end()) return std::nullopt;
  return static_cast<std::size_t>(found - uuids.begin());
}

bool GivesNoCard(std::string_view value) {
  return value.empty() || value == "void" || value == "none";
}

}  // namespace simile::doctor
