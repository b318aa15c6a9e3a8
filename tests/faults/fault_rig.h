#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/client_security.h"
#include "conformance/rotation.h"
#include "faults/fault_control.h"
#include "faults/generation.h"
#include "files/scratch_folder.h"
#include "integration/client.h"
#include "integration/server_process.h"

namespace simile::faults {

std::string_view NameOf(FaultKind kind);
std::optional<FaultKind> FaultKindOf(std::string_view name);

// A case to repeat, as its failure names it: TEST_FAULT=reload/memory/17.
struct FaultCase {
  std::string operation;
  std::string kind;
  std::uint64_t number = 0;

  std::string text() const { return fmt::format("TEST_FAULT={}/{}/{}", operation, kind, number); }
};

// Which numbers of the calls that can fail a run takes: the one of TEST_FAULT; else the first ones
// and every step-th, from TEST_ROTATION on (every seventh where that is more); all with
// TEST_ROTATION=all.
class FaultNumbers {
 public:
  FaultNumbers(std::string operation, std::uint64_t step);

  // Calls attempt(case) with 1, 2, ... until it returns that no call has failed, and prints how
  // many there are and how the attempts ended, from Count. Fails when there is none.
  void ForEach(FaultKind kind, const std::function<bool(const FaultCase&)>& attempt);
  void Count(const std::string& end) { ++ends_[end]; }

 private:
  const std::string operation_;
  const std::uint64_t step_;
  const conformance::Rotation rotation_ = conformance::Rotation::FromEnvironment();
  std::optional<FaultCase> only_;
  std::map<std::string, int> ends_;
};

// How many checks of the test that runs have failed.
int FailureCount();

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
  FaultKind kind() const { return control_->kind; }         // kNone after Disarm
  std::uint64_t seen() const { return control_->seen; }     // since Arm
  bool HasFailed() const { return control_->failed != 0; }  // since Arm
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

// A server in a process of its own, with faults, that serves a generation as "items"; the folders
// "one" and "two" below its data root are two generations.
class FaultRig {
 public:
  FaultRig();

  // What the program is started with besides.
  struct Start {
    std::vector<std::string> arguments = {};
    std::vector<std::string> variables = {};
    std::string program = SIMILE_PROGRAM;
    cli::ClientSecurity security = {};  // what its clients connect with
  };
  // Starts the program and waits until it serves. False when it ended instead. Any server before it
  // is killed.
  bool Begin(const Start& start);
  bool Begin() { return Begin(Start()); }

  FaultSwitch& faults() { return faults_; }
  integration::ServerProcess& server() { return *server_; }
  // REQUIRES: Begin returned true.
  const integration::Client& client() { return *client_; }
  std::unique_ptr<integration::Client> NewClient() const { return NewClient(security_); }
  std::unique_ptr<integration::Client> NewClient(const cli::ClientSecurity& security) const;
  const cli::ClientSecurity& security() const { return security_; }
  void Connect() { client_ = NewClient(); }  // in place of a connection that has ended
  std::uint16_t port() const { return integration::ParsePort(address_); }
  std::uint16_t metrics_port() const { return metrics_port_; }
  const std::filesystem::path& root() const { return scratch_.path(); }
  static const Generation& Of(std::string_view folder);

  // Whether the server runs and answers as the generation of the folder says, exactly.
  testing::AssertionResult Serves(std::string_view folder);
  // Whether nothing waits or is held any more, and so many threads and descriptors are in use as at
  // the last call of Remember. Waits for it: what a call held is released after its answer.
  testing::AssertionResult IsAtRest();
  void Remember();  // REQUIRES: no call is open
  // The exit status, or 128 + the signal that ended it; a server that does not end in time is
  // killed. REQUIRES: it was asked to stop.
  int AwaitExit();

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
  cli::ClientSecurity security_;
  std::uint16_t metrics_port_ = 0;
  std::unique_ptr<integration::Client> client_;
  Use remembered_;
};

}  // namespace simile::faults
