#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace simile::doctor {

// The answers of the driver's library (libcuda). Asked directly, because CUDA's runtime hides the
// driver's own errors.
struct DriverAnswer {
  bool found = false;      // the library is on this machine
  std::string load_error;  // why it cannot be loaded, in the loader's words; empty if it was loaded
  std::string path;        // path of the loaded file, with links resolved
  std::string library;     // "570.133.20": the version in the file's name; empty if it has none
  int code = 0;            // code of the first call that failed; 0 if none failed
  std::string error;       // "cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
  int version = 0;         // the newest CUDA version that it runs: 12080; 0: unknown
  int devices = 0;
};

// Loads the library by its name or path, as dlopen does, initializes it and counts the devices. May
// block as long as the driver does. Leaves the library loaded.
DriverAnswer AskDriver(const std::string& library);

// "CUDA 12.8" of 12080.
std::string CudaText(int version);

// The next two functions read CUDA_VISIBLE_DEVICES as CUDA does: a list of card numbers, UUIDs or
// beginnings of UUIDs. The list ends before its first entry that no card has. Pure.
//   uuids  UUIDs of all cards, by number; empty if the cards are unknown; "" for an unknown UUID

// Whether the value hides every card, as far as is known.
bool HidesAllCards(std::string_view value, std::span<const std::string> uuids);

// The number of the card that CUDA then counts as `device`; nullopt if it is unknown.
std::optional<std::size_t> FindVisibleCard(std::string_view value, std::size_t device,
                                           std::span<const std::string> uuids);

// Whether this value of NVIDIA_VISIBLE_DEVICES gives a container no card. Pure.
bool GivesNoCard(std::string_view value);

}  // namespace simile::doctor
