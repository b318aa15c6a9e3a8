#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace simile::doctor {

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
