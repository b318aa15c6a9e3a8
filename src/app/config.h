#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "backend/registry.h"
#include "simile/limits.h"

namespace simile::app {

// A collection to serve from the start.
struct CollectionConfig {
  std::string name;
  std::filesystem::path folder;

  friend bool operator==(const CollectionConfig&, const CollectionConfig&) = default;
};

// auto: the crossovers of the CPU engine are those of this machine, measured once and kept.
// defaults: those that are built in.
enum class Tuning : std::uint8_t { kAuto, kDefaults };

// failover: a lost GPU leaves the server on the CPU. restart: it drains and ends with status 75,
// for whoever restarts it to give it the GPU again.
enum class OnGpuFault : std::uint8_t { kFailover, kRestart };

enum class LogFormat : std::uint8_t { kText, kJson };
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

// Everything an operator may set, typed and checked. The table in settings.cpp gives each value its
// key, environment variable, flag, unit, range and sentence; the defaults are the ones below.
// ReadConfig (config_read.h) fills it.
struct Config {
  std::vector<CollectionConfig> collections;

  std::string listen = "127.0.0.1";
  std::uint16_t port = 50051;       // 0: any free one
  std::filesystem::path port_file;  // where the port is written once it listens; empty: nowhere
  bool reflection = false;

  bool metrics_enabled = true;
  std::string metrics_listen = "127.0.0.1";
  std::uint16_t metrics_port = 9464;  // 0: any free one

  backend::RegistryOptions backend;
  Tuning tuning = Tuning::kAuto;
  // Where measurements are kept; empty: nowhere. ReadConfig puts it below the user's cache folder.
  std::filesystem::path tuning_cache;

  OnGpuFault on_gpu_fault = OnGpuFault::kFailover;
  // Where lost GPUs are written down; empty: nowhere. ReadConfig puts it below the user's state
  // folder.
  std::filesystem::path gpu_fault_journal;

  std::filesystem::path data_root;     // where Load may read; empty: nowhere
  bool changes_allowed = false;        // Load, Reload, Unload over the wire
  std::uint64_t memory_bytes_max = 0;  // 0: nine tenths of what the machine has available

  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
  bool log_requests = false;  // one line for every served request, too

  Limits limits;
};

}  // namespace simile::app
