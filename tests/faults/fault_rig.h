#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "faults/fault_control.h"
#include "faults/generation.h"
#include "files/scratch_folder.h"
#include "integration/client.h"
#include "integration/server_process.h"

namespace simile::faults {

std::string_view NameOf(FaultKind kind);
std::optional<FaultKind> FaultKindOf(std::string_view name);

// The control of a server that preloads inject_faults.cpp, by the side of the test.
class FaultSwitch {
 public:
  //   file  is created
  explicit FaultSwitch(const std::filesystem::path& file);
  ~FaultSwitch();
  FaultSwitch(const FaultSwitch&) = delete;
  FaultSwitch& operator=(const FaultSwitch&) = delete;

  // Counts calls from now on and lets one fail.
  //   failing  its number, from 1; 0 for none
  //   file     the end of the path of the files that are meant; empty for all
  void Arm(FaultKind kind, std::uint64_t failing, std::string_view file = {});
  // Lets no more fail. Returns whether one has.
  bool Disarm();
  std::uint64_t seen() const { return control_->seen; }  // since Arm
  // The functions that led to the call that failed, one a line, as addr2line has them.
  std::string Where() const;

  void SetWallClockOffset(std::chrono::nanoseconds offset) {
    control_->wall_clock_offset_ns = offset.count();
  }

  // The variables of a server that it controls.
  std::vector<std::string> Variables() const;

 private:
  const std::filesystem::path file_;
  FaultControl* control_ = nullptr;
};

// A server of its own process, with faults, that serves a generation as "items"; the folders "one"
// and "two" below its data root are two generations.
class FaultRig {
 public:
  FaultRig();

  // What the program is started with besides; a server that runs is stopped first.
  struct Start {
    std::vector<std::string> arguments = {};
    std::vector<std::string> variables = {};
  };
  // Starts the program and waits until it serves. False when it ended instead.
  bool Begin(const Start& start);
  bool Begin() { return Begin(Start()); }

  FaultSwitch& faults() { return faults_; }
  integration::ServerProcess& server() { return *server_; }
  // REQUIRES: Begin returned true.
  const integration::Client& client() { return *client_; }
  std::unique_ptr<integration::Client> NewClient() const;
  const std::filesystem::path& root() const { return scratch_.path(); }
  static const Generation& Of(std::string_view folder);

  // Whether the server runs and answers as the generation of the folder says, exactly.
  testing::AssertionResult Serves(std::string_view folder);
  // Whether nothing waits or is held any more, and so many threads and descriptors are in use as at
  // the last call of Remember. Waits for it: what a call held is released after its answer.
  testing::AssertionResult IsAtRest();
  void Remember();  // REQUIRES: no call is open
  std::uint64_t ResidentBytes() const;

 private:
  struct Use {
    std::size_t threads = 0;
    std::size_t descriptors = 0;
    friend bool operator==(const Use&, const Use&) = default;
  };
  Use UseNow() const;
  // What is not zero although no call is open; empty for nothing.
  std::string HeldNow() const;

  const ScratchFolder scratch_;
  FaultSwitch faults_{scratch_.path() / "faults"};
  std::unique_ptr<integration::ServerProcess> server_;
  std::string address_;
  std::uint16_t metrics_port_ = 0;
  std::unique_ptr<integration::Client> client_;
  Use remembered_;
};

}  // namespace simile::faults
