#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "simile/v1/collections.pb.h"

namespace simile::cli {

// What a change does now: `reading 1.20 GiB of 3.00 GiB, content_vectors.npy`; empty when the
// server does not say.
std::string ProgressText(const v1::ChangeProgress& progress);

// The same with its share, as a line of a log: `loading films: 40 %, reading 1.20 GiB of 3.00 GiB,
// content_vectors.npy`.
std::string ProgressLine(const std::string& label, const v1::ChangeProgress& progress);

// {"stage", "file", "share", "bytes_read", "bytes_total"}
nlohmann::ordered_json ProgressJson(const v1::ChangeProgress& progress);

}  // namespace simile::cli
