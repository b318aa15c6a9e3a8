#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "backend/registry.h"
#include "net/tls.h"
#include "observe/log.h"
#include "simile/limits.h"

namespace simile::app {

// A collection to serve from the start.
struct CollectionConfig {
  std::string name;
  std::filesystem::path folder;

  friend bool operator==(const CollectionConfig&, const CollectionConfig&) = default;
};

// auto: the CPU engine uses crossovers measured once on this machine. defaults: built-in ones.
enum class Tuning : std::uint8_t { kAuto, kDefaults };

// What a lost GPU leads to. failover: the server stays on the CPU. restart: it drains and exits
// with status 75, so that its supervisor restarts it on the GPU.
enum class OnGpuFault : std::uint8_t { kFailover, kRestart };

using observe::LogFormat;
using observe::LogLevel;

// Everything an operator may set, typed and checked. The table in settings.cpp gives each value its
// key, environment variable, flag, unit, range and help; the defaults are below. ReadConfig
// (config_read.h) fills it.
struct Config {
  std::vector<CollectionConfig> collections;

  std::string listen = "127.0.0.1";
  std::uint16_t port = 50051;       // 0: any free one
  std::filesystem::path port_file;  // gets the port once the server listens; empty: none
  // Exists while every configured collection serves (readiness.h); empty: none.
  std::filesystem::path ready_file;
  bool die_with_parent = false;  // drain when the process that started this one ends
  std::size_t io_threads = 0;    // that carry connections; 0: by the processors
  bool reflection = false;
  bool admin_allowed = false;  // whether clients may GetStats and Diagnose

  net::TlsFiles tls;                      // without a certificate connections are not encrypted
  std::filesystem::path access_file;      // who may call; empty: anyone
  bool plaintext_tokens_allowed = false;  // beyond loopback, where something else encrypts

  bool metrics_enabled = true;
  std::string metrics_listen = "127.0.0.1";
  std::uint16_t metrics_port = 9464;  // 0: any free one

  backend::RegistryOptions backend;
  Tuning tuning = Tuning::kAuto;
  // The file of measurements; empty: none. ReadConfig puts it below the user's cache folder.
  std::filesystem::path tuning_cache;

  OnGpuFault on_gpu_fault = OnGpuFault::kFailover;
  // The file of lost GPUs; empty: none. ReadConfig puts it below the user's state folder.
  std::filesystem::path gpu_fault_journal;

  std::filesystem::path data_root;     // Load reads below it; empty: Load is refused
  bool changes_allowed = false;        // whether clients may Load, Reload, Unload
  bool collections_required = true;    // false: one that fails to load leaves the others serving
  double min_overlap = 0;              // of the answers that stay at a reload, 0..1
  std::uint64_t memory_bytes_max = 0;  // 0: nine tenths of what the machine has available

  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
  bool log_requests = false;  // also a line for every served request

  Limits limits;
};

}  // namespace simile::app
