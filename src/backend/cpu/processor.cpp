#include "backend/cpu/processor.h"

#include <sys/utsname.h>

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

namespace simile::backend::cpu {
namespace {

std::string Word(const std::filesystem::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

// "2048K", "2M" or plain bytes.
std::optional<std::size_t> Bytes(const std::string& text) {
  constexpr std::size_t kBytesMax = std::size_t{1} << 30;
  std::size_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const bool has_unit = unit == "K" || unit == "M";
  const int shift = unit == "K" ? 10 : unit == "M" ? 20 : 0;
  if (error != std::errc() || number == 0 || number > kBytesMax >> shift) return std::nullopt;
  return unit.empty() || has_unit ? std::optional(number << shift) : std::nullopt;
}

struct ArmCore {
  std::string_view implementer;
  std::string_view part;
  std::string_view name;
};

// ARM processors report numbers instead of a name. The numbers of server cores are from Linux's
// arch/arm64/include/asm/cputype.h.
constexpr ArmCore kArmCores[] = {
    {"0x41", "0xd08", "Cortex-A72"},  {"0x41", "0xd0c", "Neoverse N1"},
    {"0x41", "0xd40", "Neoverse V1"}, {"0x41", "0xd49", "Neoverse N2"},
    {"0x41", "0xd4f", "Neoverse V2"}, {"0x41", "0xd84", "Neoverse V3"},
    {"0x41", "0xd8e", "Neoverse N3"}, {"0xc0", "0xac3", "Ampere-1"},
    {"0xc0", "0xac4", "Ampere-1A"},
};

std::string ArmName(const std::string& implementer, const std::string& part) {
  for (const ArmCore& core : kArmCores) {
    if (core.implementer == implementer && core.part == part) return std::string(core.name);
  }
  return "ARM processor " + implementer + ":" + part;
}

// The value of a line `model name : AMD EPYC 9B14`; "" for lines of other fields.
std::string ParseValue(std::string_view field, const std::string& line) {
  if (!line.starts_with(field)) return "";
  const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
  return value == std::string::npos ? "" : line.substr(value);
}

}  // namespace

std::optional<std::size_t> SecondLevelBytes(const std::filesystem::path& folder) {
  // No processor has as many caches; the numbers have no gaps.
  constexpr int kCachesMax = 16;
  for (int i = 0; i < kCachesMax; ++i) {
    const std::filesystem::path cache = folder / ("index" + std::to_string(i));
    if (Word(cache / "level") == "2" && Word(cache / "type") != "Instruction") {
      return Bytes(Word(cache / "size"));
    }
  }
  return std::nullopt;
}

std::string CpuName(const std::string& cpuinfo_path) {
  std::ifstream cpuinfo(cpuinfo_path);
  std::string implementer;
  for (std::string line; std::getline(cpuinfo, line);) {
    if (std::string name = ParseValue("model name", line); !name.empty()) return name;
    if (std::string value = ParseValue("CPU implementer", line); !value.empty()) {
      implementer = std::move(value);
    }
    const std::string part = ParseValue("CPU part", line);
    if (!part.empty() && !implementer.empty()) return ArmName(implementer, part);
  }
  utsname system{};
  return uname(&system) == 0 ? system.machine : "unknown processor";
}

}  // namespace simile::backend::cpu
