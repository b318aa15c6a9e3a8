#pragma once

#include <string>
#include <vector>

#include "cli/program_run.h"
#include "integration/server_process.h"

namespace simile::cli {

// build/bin/simile serving the films, or another folder, as "films" on a free port, with changes
// and `top` allowed and examples/ or another folder as its data root. The destructor stops it with
// SIGTERM.
class LiveServer {
 public:
  explicit LiveServer(const std::string& folder = SIMILE_SOURCE_DIR "/examples/films",
                      const std::string& data_root = SIMILE_SOURCE_DIR "/examples");
  ~LiveServer();
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  const std::string& address() const { return address_; }
  // Runs a command that calls this server unless its arguments name another.
  ProgramRun Run(const std::vector<std::string>& arguments, const std::string& input = "") const;

 private:
  integration::ServerProcess process_;
  const std::string address_;
};

}  // namespace simile::cli
