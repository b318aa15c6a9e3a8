// `simile inspect FOLDER` says what a load says, for every kind of broken file and folder: in this
// process for all of them, and by the programs for a sample. INSPECT_SEED=<number> draws other
// mutations; INSPECT_MESSAGES=<file> writes every refusal there, for a person to read.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "backend/registry.h"
#include "base/error_detail.h"
#include "cli/inspect/mutations.h"
#include "cli/inspect/thing_folder.h"
#include "cli/live_server.h"
#include "cli/program_run.h"
#include "data/load/inspect.h"
#include "engine/fake_clock.h"
#include "engine/snapshots/publisher.h"
#include "files/scratch_folder.h"

namespace simile::cli {
namespace {

using nlohmann::json;

constexpr std::uint64_t kDefaultSeed = 15;

std::uint64_t Seed() {
  const char* const text = std::getenv("INSPECT_SEED");
  const std::uint64_t seed = text == nullptr ? kDefaultSeed : std::strtoull(text, nullptr, 10);
  std::cout << "INSPECT_SEED=" << seed << '\n';
  return seed;
}

std::vector<Mutation> Joined(std::vector<std::vector<Mutation>> lists) {
  std::vector<Mutation> all;
  for (std::vector<Mutation>& list : lists) {
    for (Mutation& mutation : list) all.push_back(std::move(mutation));
  }
  return all;
}

std::vector<Mutation> AllOfFiles(std::uint64_t seed) {
  return Joined({VectorMutations(), LineMutations(), UserIdMutations(), SettingsMutations(),
                 DrawnMutations(seed)});
}

std::vector<Mutation> AllOfFolders(std::uint64_t seed) {
  return Joined({FolderMutations(), CombinedMutations(seed)});
}

// The folder "things" of a scratch folder, beside another collection in "outside".
class WrittenFolder {
 public:
  explicit WrittenFolder(const FolderContent& content) {
    content.WriteTo(path());
    ThingFolder().WriteTo(scratch_.path() / "outside");
  }
  std::filesystem::path path() const { return scratch_.path() / "things"; }

 private:
  const ScratchFolder scratch_;
};

FolderContent Mutated(const Mutation& mutation) {
  FolderContent folder = ThingFolder();
  mutation.apply(folder);
  return folder;
}

// What one of the two says of a folder.
struct Outcome {
  absl::Status status;
  std::vector<std::string> notes;  // when it loads
  bool operator==(const Outcome&) const = default;
};
void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << outcome.status << ", notes " << testing::PrintToString(outcome.notes);
}

// Loads folders as the server does, each as a collection of its own.
class Loads {
 public:
  Loads() : backend_(std::move(backend::ChooseBackend(CpuOnly())->backend)) {}

  Outcome Load(const std::filesystem::path& folder) {
    const auto loaded = publisher_.Create({"things", folder});
    if (!loaded.ok()) return {loaded.status(), {}};
    EXPECT_TRUE(store_.Remove("things").ok());
    return {absl::OkStatus(), loaded->snapshot->dataset->notes};
  }

 private:
  static backend::RegistryOptions CpuOnly() {
    backend::RegistryOptions options;
    options.preference = backend::Preference::kCpu;
    options.threads = 1;
    return options;
  }

  engine::FakeClock clock_;
  std::unique_ptr<Backend> backend_;
  engine::SnapshotStore store_{clock_};
  engine::Publisher publisher_{{}, *backend_, store_, clock_};
};

Outcome Inspect(const std::filesystem::path& folder) {
  const absl::StatusOr<data::Inspection> inspection = data::InspectFile(folder, Limits{});
  if (!inspection.ok()) return {inspection.status(), {}};
  if (!inspection->status.ok()) return {inspection->status, {}};
  return {absl::OkStatus(), inspection->notes};
}

// Compares what inspecting and loading say of mutated folders.
class InspectLoadTest : public testing::Test {
 protected:
  InspectLoadTest() {
    if (const char* const path = std::getenv("INSPECT_MESSAGES")) {
      messages_.open(path, std::ios::app);
    }
  }

  // Returns how many are refused.
  std::size_t Compare(const std::vector<Mutation>& mutations) {
    std::set<std::string> names;
    std::size_t refused = 0;
    for (const Mutation& mutation : mutations) {
      SCOPED_TRACE(mutation.name);
      EXPECT_TRUE(names.insert(mutation.name).second) << "two mutations of one name";
      const FolderContent content = Mutated(mutation);
      const WrittenFolder folder(content);
      const Outcome outcome = loads_.Load(folder.path());
      EXPECT_EQ(Inspect(folder.path()), outcome);
      const absl::Status& loaded = outcome.status;
      CheckFate(mutation, loaded);
      if (loaded.ok()) continue;
      ++refused;
      CheckMessage(content, folder, loaded);
      if (messages_.is_open()) messages_ << mutation.name << '\t' << loaded.message() << '\n';
    }
    std::cout << mutations.size() << " mutations, " << refused << " refused\n";
    return refused;
  }

 private:
  static void CheckFate(const Mutation& mutation, const absl::Status& loaded) {
    if (mutation.fate == Fate::kEither) return;
    EXPECT_EQ(loaded.ok(), mutation.fate == Fate::kLoads) << loaded;
    if (loaded.ok()) return;
    EXPECT_NE(loaded.message().find(mutation.says), std::string::npos)
        << loaded << "\n  should say: " << mutation.says;
  }

  // What every refusal of a folder has: the name of the file first, one line or one for each of
  // several faults, and no path.
  static void CheckMessage(const FolderContent& content, const WrittenFolder& folder,
                           const absl::Status& loaded) {
    const std::string message(loaded.message());
    EXPECT_TRUE(content.Names(message) || message.starts_with("no vectors in the folder: "))
        << message;
    constexpr std::ptrdiff_t kFaultLinesMax = 11;
    const std::ptrdiff_t more_lines = std::ranges::count(message, '\n');
    EXPECT_EQ(more_lines > 0, message.find(" faults\n  ") != std::string::npos) << message;
    EXPECT_LE(more_lines, kFaultLinesMax) << message;
    EXPECT_EQ(message.find(folder.path().parent_path().string()), std::string::npos) << message;
    EXPECT_EQ(base::ReasonOf(loaded), base::ErrorReason::kInvalidFiles) << message;
  }

  Loads loads_;
  std::ofstream messages_;
};

TEST_F(InspectLoadTest, AgreesOnEveryMutatedFile) {
  constexpr std::size_t kRefusedMin = 294;
  EXPECT_GE(Compare(AllOfFiles(Seed())), kRefusedMin);
}

TEST_F(InspectLoadTest, AgreesOnEveryMutatedFolder) {
  constexpr std::size_t kRefusedMin = 100;
  EXPECT_GE(Compare(AllOfFolders(Seed())), kRefusedMin);
}

TEST_F(InspectLoadTest, LoadsTheFoldersThatAreMutated) {
  for (const FolderContent& content : {ThingFolder(), ThingFolderOfSafetensors()}) {
    const WrittenFolder folder(content);
    Loads loads;
    const Outcome loaded = loads.Load(folder.path());
    EXPECT_EQ(loaded.status, absl::OkStatus());
    EXPECT_EQ(Inspect(folder.path()), loaded);
  }
}

// The same, as a shell sees it: `simile inspect`, and `simile load` on a server.
class InspectLoadProgramTest : public testing::Test {
 protected:
  InspectLoadProgramTest() {
    ThingFolder().WriteTo(root_.path() / "good");
    ThingFolder().WriteTo(root_.path() / "outside");
    server_.emplace(root_.path() / "good", root_.path());
  }

  // Compares every `step`th mutation.
  void Compare(const std::vector<Mutation>& mutations, std::size_t step) {
    for (std::size_t i = 0; i < mutations.size(); i += step) {
      SCOPED_TRACE(mutations[i].name);
      const std::string name = fmt::format("case-{}", i);
      const std::filesystem::path folder = root_.path() / name;
      Mutated(mutations[i]).WriteTo(folder);
      const ProgramRun inspected = RunProgram({"inspect", folder, "--json"});
      const ProgramRun loaded = Load(name);
      // A caller's folder has no links out of the data root; an operator's may.
      const std::string inspected_message = LeadsOut(loaded) ? "" : ReadMessage(inspected);
      EXPECT_EQ(inspected_message, LeadsOut(loaded) ? "" : ReadMessage(loaded));
      EXPECT_EQ(inspected.exit_code, loaded.exit_code);
      EXPECT_EQ(inspected.exit_code, ReadMessage(loaded).empty() ? 0 : 1) << loaded.printed;
      ++compared_;
      if (loaded.exit_code != 0) ++refused_;
    }
    std::cout << compared_ << " mutations, " << refused_ << " refused\n";
  }
  std::size_t compared_ = 0;
  std::size_t refused_ = 0;

 private:
  ProgramRun Load(const std::string& name) const {
    return RunProgram({"load", name, name, "--json", "--server", server_->address()});
  }

  static bool LeadsOut(const ProgramRun& run) {
    return ReadMessage(run).find("leads out of the folders") != std::string::npos;
  }
  // The error that the JSON tells; empty without one.
  static std::string ReadMessage(const ProgramRun& run) {
    const json said = json::parse(run.printed, nullptr, false);
    EXPECT_TRUE(said.is_object()) << run.printed << run.errors;
    if (!said.is_object()) return run.errors;
    const json error = said.value("error", json());
    if (error.is_null()) return "";
    return error.value("message", "");
  }

  const ScratchFolder root_;
  std::optional<LiveServer> server_;
};

TEST_F(InspectLoadProgramTest, AgreesOnMutatedFiles) {
  Compare(AllOfFiles(Seed()), 11);
  EXPECT_GE(compared_, 40U);
  EXPECT_GE(refused_, 30U);
}

TEST_F(InspectLoadProgramTest, AgreesOnMutatedFolders) {
  Compare(AllOfFolders(Seed()), 5);
  EXPECT_GE(compared_, 40U);
  EXPECT_GE(refused_, 30U);
}

}  // namespace
}  // namespace simile::cli
