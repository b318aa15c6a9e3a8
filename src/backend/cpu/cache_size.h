#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

namespace simile::backend::cpu {

// Bytes of the first processor's second-level cache as Linux describes it: the folder holds one
// index* for each cache with its level, type and size. Nothing when none of them is it; tests put
// folders of their own here.
std::optional<std::size_t> SecondLevelBytes(
    const std::filesystem::path& folder = "/sys/devices/system/cpu/cpu0/cache");

}  // namespace simile::backend::cpu
