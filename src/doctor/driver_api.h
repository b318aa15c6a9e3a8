#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace simile::doctor {

// What the driver's library (libcuda) says. It is asked without CUDA's runtime, which hides the
// driver's own errors.
struct DriverAnswer {
  bool found = false;      // the library is on this machine
  std::string load_error;  // why it cannot be loaded, in the loader's words; empty when it was
  std::string path;        // of the loaded file, links resolved
  std::string library;     // "570.133.20": the version in that file's name; empty when it has none
  int code = 0;            // of the first call that failed; 0 for none
  std::string error;       // "cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
  int version = 0;         // the newest CUDA that it runs: 12080; 0 when unknown
  int devices = 0;
};

// Loads the library, by its name or path as for dlopen, starts it and counts the devices. May block
// as long as the driver does. Leaves the library loaded.
DriverAnswer AskDriver(const std::string& library);

// "CUDA 12.8" of 12080.
std::string CudaText(int version);

// How CUDA reads CUDA_VISIBLE_DEVICES: a list of numbers and of UUIDs or their beginnings, which
// ends before the first that no card has. Pure.
//   uuids  of all cards, by number; none when the cards are not known, "" where one is not

// Whether the variable's value hides every card, as far as is known.
bool HidesAllCards(std::string_view value, std::span<const std::string> uuids);

// Returns the number of the card that CUDA then counts as `device`; nullopt when that is not known.
std::optional<std::size_t> CardOfDevice(std::string_view value, std::size_t device,
                                        std::span<const std::string> uuids);

// Whether a container with this NVIDIA_VISIBLE_DEVICES is given no card. Pure.
bool GivesNoCard(std::string_view value);

}  // namespace simile::doctor
