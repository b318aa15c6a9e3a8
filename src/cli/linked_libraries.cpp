#include "cli/linked_libraries.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/crypto.h>
#include <utf8proc.h>
#include <nlohmann/json.hpp>

#include "backend/gpu_plugin.h"
#include "backend/gpu_search.h"
#include "base/loaded_libraries.h"
#include "cli/table.h"
#include "observe/build_info.h"

namespace simile::cli {
namespace {

namespace fs = std::filesystem;

// A function that only other libraries call, or that one folder keeps for itself, by its name.
template <typename Function>
Function* Find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

std::string XxHashVersion() {
  auto* const number = Find<unsigned()>("XXH_versionNumber");
  if (number == nullptr) return {};
  const unsigned version = number();  // 801 is 0.8.1
  return fmt::format("{}.{}.{}", version / 10'000, version / 100 % 100, version % 100);
}

std::string ZlibVersion() {
  auto* const version = Find<const char*()>("zlibVersion");
  return version == nullptr ? "" : version();
}

std::string CAresVersion() {
  auto* const version = Find<const char*(int*)>("ares_version");
  return version == nullptr ? "" : version(nullptr);
}

// How to recognise a library's files, and to ask it for its version.
struct KnownLibrary {
  std::string_view name;  // as in observe::BuildInfo
  // What its files begin with, separated by spaces: the one whose name holds the version first.
  std::string_view files;
  std::string (*ask)() = nullptr;
  // Whether the files are numbered as the releases are; else the number is that of the interface,
  // which stands for the version only where no header says one.
  bool file_has_version = false;
};

constexpr KnownLibrary kLibraries[] = {
    {"gRPC", "libgrpc++. libgrpc libgpr. libupb. libaddress_sorting.",
     [] { return grpc::Version(); }},
    {"nghttp2", "libnghttp2.", [] { return std::string(nghttp2_version(0)->version_str); }},
    {"OpenSSL", "libssl. libcrypto.",
     [] { return std::string(OpenSSL_version(OPENSSL_VERSION_STRING)); }},
    {"protobuf", "libprotobuf."},
    {"abseil", "libabsl_", nullptr, true},
    {"fmt", "libfmt.", nullptr, true},
    {"spdlog", "libspdlog.", nullptr, true},
    {"prometheus-cpp", "libprometheus-cpp-core.", nullptr, true},
    {"nlohmann/json", ""},
    {"utf8proc", "libutf8proc.", [] { return std::string(utf8proc_version()); }},
    {"xxHash", "libxxhash.", XxHashVersion},
    {"CRoaring", "libroaring.", nullptr, true},
    {"zlib", "libz.", ZlibVersion},
    {"c-ares", "libcares.", CAresVersion},
    {"RE2", "libre2."},
    {"libstdc++", "libstdc++."},
    {"libgcc", "libgcc_s."},
    {"glibc", "libc. libm. ld-linux libdl. libpthread. librt.",
     [] { return std::string(gnu_get_libc_version()); }},
};

// Those of its files that are among the loaded, which they leave, in the order of `known.files`.
std::vector<std::string> TakeFiles(const KnownLibrary& known,
                                   std::vector<base::LoadedLibrary>& loaded) {
  std::vector<std::string> files;
  for (std::string_view left = known.files; !left.empty();) {
    const std::string_view prefix = left.substr(0, left.find(' '));
    std::erase_if(loaded, [&](const base::LoadedLibrary& library) {
      const bool is_its = library.name.starts_with(prefix);
      if (is_its) files.push_back(library.file);
      return is_its;
    });
    left.remove_prefix(std::min(left.size(), prefix.size() + 1));
  }
  return files;
}

// "1.2.13" of "libz.so.1.2.13"; empty for a file without a number.
std::string NumberOf(const std::string& file) {
  constexpr std::string_view kBefore = ".so.";
  const std::size_t at = file.find(kBefore);
  return at == std::string::npos ? "" : file.substr(at + kBefore.size());
}

std::string HeaderVersion(std::string_view name) {
  const std::span<const observe::UsedLibrary> used = observe::GetBuildInfo().libraries;
  const auto found = std::ranges::find(used, name, &observe::UsedLibrary::name);
  return found == used.end() ? "" : std::string(found->version);
}

LinkedLibrary Describe(const KnownLibrary& known, std::vector<std::string> files) {
  LinkedLibrary library{.name = std::string(known.name),
                        .version = HeaderVersion(known.name),
                        .source = VersionSource::kHeaders,
                        .built_with = HeaderVersion(known.name),
                        .files = std::move(files)};
  const std::string answer =
      known.ask != nullptr && !library.files.empty() ? known.ask() : std::string();
  if (!answer.empty()) {
    library.version = answer;
    library.source = VersionSource::kLibrary;
  } else if (!library.files.empty() && (known.file_has_version || library.version.empty())) {
    library.version = NumberOf(library.files.front());
    library.source = VersionSource::kFileName;
  }
  return library;
}

std::string_view SourceText(VersionSource source) {
  switch (source) {
    case VersionSource::kLibrary:
      return "library";
    case VersionSource::kFileName:
      return "file";
    case VersionSource::kHeaders:
      return "headers";
  }
  return "";
}

// Its file; of several, the first and how many more.
std::string FilesText(const std::vector<std::string>& files) {
  if (files.empty()) return "headers alone";
  if (files.size() == 1) return files.front();
  return fmt::format("{} and {} more", files.front(), files.size() - 1);
}

}  // namespace

std::vector<LinkedLibrary> LinkedLibraries() {
  std::vector<base::LoadedLibrary> left = base::LoadedLibraries();
  std::vector<LinkedLibrary> result;
  for (const KnownLibrary& known : kLibraries) {
    std::vector<std::string> files = TakeFiles(known, left);
    if (!files.empty() || !HeaderVersion(known.name).empty()) {
      result.push_back(Describe(known, std::move(files)));
    }
  }
  // What LD_PRELOAD or another distribution's build of a library brings.
  for (const base::LoadedLibrary& loaded : left) {
    result.push_back(
        {loaded.name, NumberOf(loaded.file), VersionSource::kFileName, {}, {loaded.file}});
  }
  return result;
}

std::vector<PluginVersion> PluginVersions() {
  std::vector<PluginVersion> result;
  for (const backend::GpuSearch& search : backend::DefaultGpuSearches()) {
    for (const std::string& path : search.plugin_paths) {
      std::error_code error;
      if (!fs::exists(path, error)) continue;
      PluginVersion& version = result.emplace_back();
      version.file = fs::path(path).filename().string();
      const auto plugin = backend::LoadGpuPlugin(path, search.kind.entry_symbol);
      if (plugin.ok()) {
        version.built_with = (*plugin)->toolkit;
      } else {
        version.refusal = std::string(plugin.status().message());
      }
    }
  }
  return result;
}

std::string LinkedLibrariesTable(const std::vector<LinkedLibrary>& libraries,
                                 const std::vector<PluginVersion>& plugins,
                                 const Terminal& terminal) {
  Table table(
      {{"library"}, {"version"}, {"said by"}, {"built with"}, {"file", Align::kLeft, true}});
  for (const LinkedLibrary& library : libraries) {
    table.AddRow({library.name, library.version, std::string(SourceText(library.source)),
                  library.built_with, FilesText(library.files)});
  }
  std::string text = table.Render(terminal, 2);
  for (const PluginVersion& plugin : plugins) {
    text += fmt::format(
        "  {}: {}\n", plugin.file,
        plugin.refusal.empty() ? "built with " + plugin.built_with : "not used: " + plugin.refusal);
  }
  return text;
}

nlohmann::ordered_json LinkedLibrariesJson(const std::vector<LinkedLibrary>& libraries) {
  auto document = nlohmann::ordered_json::array();
  for (const LinkedLibrary& library : libraries) {
    document.push_back({{"name", library.name},
                        {"version", library.version},
                        {"version_from", SourceText(library.source)},
                        {"built_with", library.built_with},
                        {"files", library.files}});
  }
  return document;
}

nlohmann::ordered_json PluginVersionsJson(const std::vector<PluginVersion>& plugins) {
  auto document = nlohmann::ordered_json::array();
  for (const PluginVersion& plugin : plugins) {
    document.push_back(
        {{"file", plugin.file}, {"built_with", plugin.built_with}, {"refusal", plugin.refusal}});
  }
  return document;
}

}  // namespace simile::cli
