#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/snapshots/snapshot_store.h"
#include "observe/build_info.h"
#include "simile/clock.h"
#include "simile/served_by.h"

namespace simile::app {

// The lines that `serve` prints when it starts. Pure.

// `simile 0.1.0  cpu engine (scan-avx2 on AMD EPYC 9B14, 2 threads): no NVIDIA driver ...; `simile
// doctor` explains`, the end only where a GPU was wanted
// `simile 0.1.0  gpu engine (fp16-sm90 on NVIDIA H200): NVIDIA H200 (139 GiB), CUDA 13.0`
//   gpu_wanted  the configuration does not ask for the CPU
std::string BackendLine(const observe::BuildInfo& build, const ServedBy& backend, bool gpu_wanted);

// `films     5,000 vectors x 384 (cosine)  500 users  9.5 MiB resident  ready in 0.21 s`, followed
// by a line for each of the dataset's notes.
std::string CollectionLines(const engine::Snapshot& snapshot, Clock::Duration took);

// `listening on 127.0.0.1:50051, metrics on 127.0.0.1:9464`
std::string ListeningLine(std::string_view address,
                          const std::optional<std::string>& metrics_address);

// `loading films, 60 %` for the first collection that is loading; else empty.
std::string LoadingText(const std::vector<engine::CollectionStatus>& collections);

// `books, users` for the collections whose load failed; empty for none.
std::string FailedCollections(const std::vector<engine::CollectionStatus>& collections);

// `films |############--------| 60 %` for the first collection that is loading; else empty.
std::string ProgressText(const std::vector<engine::CollectionStatus>& collections);

}  // namespace simile::app
