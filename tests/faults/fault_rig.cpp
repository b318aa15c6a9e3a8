#include "faults/fault_rig.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/await_true.h"
#include "base/file_descriptor.h"
#include "integration/films_server.h"

namespace simile::faults {
namespace {

using integration::Client;
using integration::ServerProcess;

struct KindName {
  FaultKind kind;
  std::string_view name;
};
constexpr std::array<KindName, 15> kKindNames = {{
    {FaultKind::kMemory, "memory"},
    {FaultKind::kRead, "read"},
    {FaultKind::kShortRead, "short-read"},
    {FaultKind::kOpen, "open"},
    {FaultKind::kWrite, "write"},
    {FaultKind::kSync, "sync"},
    {FaultKind::kRename, "rename"},
    {FaultKind::kThread, "thread"},
    {FaultKind::kCut, "cut"},
    {FaultKind::kGrow, "grow"},
    {FaultKind::kSwap, "swap"},
    {FaultKind::kKillAtRead, "kill-at-read"},
    {FaultKind::kKillAtWrite, "kill-at-write"},
    {FaultKind::kKillAtSync, "kill-at-sync"},
    {FaultKind::kKillAtRename, "kill-at-rename"},
}};

// How long a start or a stop may take: one that takes longer never ends.
constexpr std::chrono::seconds kStepWithin{20};

// gRPC starts and ends some as it needs them.
constexpr std::size_t kThreadsOfGrpc = 4;

// How long what a call held may take to be released.
constexpr std::chrono::seconds kRestWithin{10};

std::size_t CountEntries(const std::filesystem::path& folder) {
  std::error_code gone;
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder, gone),
                                                std::filesystem::directory_iterator()));
}

// Kills a server unless it is destroyed first, so that no test waits for ever.
class KilledAfter {
 public:
  KilledAfter(const ServerProcess& server, std::chrono::seconds wait)
      : limit_([&server, wait, future = destroyed_.get_future()] {
          if (future.wait_for(wait) == std::future_status::timeout) server.Signal(SIGKILL);
        }) {}
  ~KilledAfter() {
    destroyed_.set_value();
    limit_.join();
  }
  KilledAfter(const KilledAfter&) = delete;
  KilledAfter& operator=(const KilledAfter&) = delete;

 private:
  std::promise<void> destroyed_;
  std::thread limit_;
};

}  // namespace

std::string_view NameOf(FaultKind kind) {
  const auto* const place = std::ranges::find(kKindNames, kind, &KindName::kind);
  return place == kKindNames.end() ? "none" : place->name;
}

std::optional<FaultKind> FaultKindOf(std::string_view name) {
  const auto* const place = std::ranges::find(kKindNames, name, &KindName::name);
  if (place == kKindNames.end()) return std::nullopt;
  return place->kind;
}

FaultNumbers::FaultNumbers(std::string operation, std::uint64_t step)
    : operation_(std::move(operation)), step_(step) {
  const char* const text = std::getenv("TEST_FAULT");
  if (text == nullptr) return;
  const std::string_view words(text);
  const std::size_t first = words.find('/');
  const std::size_t last = words.rfind('/');
  only_ = FaultCase{std::string(words.substr(0, first)),
                    std::string(words.substr(first + 1, last - first - 1)),
                    std::strtoull(text + last + 1, nullptr, 10)};
}

void FaultNumbers::ForEach(FaultKind kind, const std::function<bool(const FaultCase&)>& attempt) {
  if (only_) {
    if (only_->operation == operation_ && only_->kind == NameOf(kind)) {
      EXPECT_TRUE(attempt(*only_)) << only_->text() << ": there are not so many calls";
    }
    return;
  }
  constexpr std::uint64_t kFirst = 8;
  constexpr std::uint64_t kStepMax = 7;  // of kinds other than memory, which are few
  const std::uint64_t step = kind == FaultKind::kMemory ? step_ : std::min(step_, kStepMax);
  constexpr int kFailuresMax = 20;
  ends_.clear();
  std::uint64_t number = 1;
  for (bool failed = true; failed && FailureCount() < kFailuresMax; ++number) {
    if (!rotation_.all() && number > kFirst && number % step != rotation_.number() % step) continue;
    failed = attempt({operation_, std::string(NameOf(kind)), number});
  }
  EXPECT_GT(number, 2U) << operation_ << ", " << NameOf(kind) << ": no call was made to fail";
  std::string line =
      fmt::format("{}, {}: calls 1 to {}{};", operation_, NameOf(kind), number - 2,
                  rotation_.all() || number - 2 <= kFirst ? "" : fmt::format(", one in {}", step));
  for (const auto& [end, count] : ends_) line += fmt::format(" {} {},", count, end);
  line.pop_back();
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int FailureCount() {
  const testing::TestResult& result =
      *testing::UnitTest::GetInstance()->current_test_info()->result();
  int count = 0;
  for (int part = 0; part < result.total_part_count(); ++part) {
    count += result.GetTestPartResult(part).failed() ? 1 : 0;
  }
  return count;
}

FaultSwitch::FaultSwitch(const std::filesystem::path& file) : file_(file) {
  const base::FileDescriptor fd(open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid() || ftruncate(fd.get(), sizeof(FaultControl)) != 0) std::abort();
  void* const mapped =
      mmap(nullptr, sizeof(FaultControl), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) std::abort();
  control_ = static_cast<FaultControl*>(mapped);
}

FaultSwitch::~FaultSwitch() { munmap(control_, sizeof(FaultControl)); }

void FaultSwitch::Arm(FaultKind kind, std::uint64_t failing, std::string_view file) {
  control_->kind = FaultKind::kNone;
  control_->failing = failing;
  control_->seen = 0;
  control_->failed = 0;
  control_->file[file.copy(control_->file, sizeof control_->file - 1)] = '\0';
  control_->kind = kind;
}

bool FaultSwitch::Disarm() {
  control_->kind = FaultKind::kNone;
  return HasFailed();
}

std::string FaultSwitch::Where() const {
  std::string command = "addr2line -Cfpse " SIMILE_PROGRAM;
  for (std::uint32_t i = 0; i < std::min(control_->frame_count, FaultControl::kFramesMax); ++i) {
    // Of the instruction before: a return address may be another function's.
    if (control_->frames[i] != 0) command += fmt::format(" {:#x}", control_->frames[i] - 1);
  }
  std::string text;
  FILE* const out = popen(command.c_str(), "r");
  if (out == nullptr) return text;
  char part[4096];
  while (const std::size_t count = std::fread(part, 1, sizeof part, out)) text.append(part, count);
  pclose(out);
  return text;
}

std::vector<std::string> FaultSwitch::Variables() const {
  return {"LD_PRELOAD=" SIMILE_INJECT_FAULTS_FILE, "INJECT_FAULTS=" + file_.string()};
}

FaultRig::FaultRig() {
  for (const char* const folder : {"one", "two"}) Of(folder).Write(root() / folder);
}

const Generation& FaultRig::Of(std::string_view folder) {
  // Small, so that a load makes few calls.
  static constexpr Generation::Shape kShape{.rows = 60, .dim = 24, .metric = "dot"};
  static const Generation one(1, kShape);
  static const Generation two(2, kShape);
  return folder == "one" ? one : two;
}

bool FaultRig::Begin(const Start& start) {
  client_.reset();
  server_.reset();
  std::vector<std::string> arguments = {
      "--port",         "0",
      "--metrics-port", "0",
      "--data-root",    root().string(),
      "--collection",   fmt::format("items={}", (root() / "one").string()),
      "--allow-changes"};
  arguments.insert(arguments.end(), start.arguments.begin(), start.arguments.end());
  ServerProcess::Circumstances circumstances;
  circumstances.program = start.program;
  for (const std::vector<std::string>& more : {faults_.Variables(), start.variables}) {
    circumstances.variables.insert(circumstances.variables.begin(), more.begin(), more.end());
  }
  security_ = start.security;
  server_ = std::make_unique<ServerProcess>(arguments, circumstances);
  const KilledAfter limit(*server_, kStepWithin);
  address_ = server_->AwaitListening();
  if (address_.empty()) return false;
  metrics_port_ = server_->MetricsPort();
  Connect();
  return true;
}

std::unique_ptr<Client> FaultRig::NewClient(const cli::ClientSecurity& security) const {
  return std::make_unique<Client>(address_, security);
}

testing::AssertionResult FaultRig::Serves(std::string_view folder) {
  if (server_->HasEnded()) {
    return testing::AssertionFailure() << "the server has ended, " << server_->AwaitExit() << ":\n"
                                       << server_->output();
  }
  if (client_ == nullptr) return testing::AssertionFailure() << "the server has not started";
  for (const std::size_t row : {std::size_t{0}, std::size_t{59}}) {
    v1::SearchResponse response;
    const integration::Outcome outcome = client_->Search(Generation::Search(row), response);
    if (!outcome.ok()) return testing::AssertionFailure() << testing::PrintToString(outcome);
    const auto equal = Generation::Equal(response.results(0).hits(), Of(folder).Neighbours(row));
    if (!equal) return equal;
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult FaultRig::IsAtRest() {
  const auto end = std::chrono::steady_clock::now() + kRestWithin;
  for (;;) {
    const std::string held = HeldNow();
    const Use use = UseNow();
    if (held.empty() && use.threads <= remembered_.threads + kThreadsOfGrpc &&
        use.descriptors <= remembered_.descriptors) {
      return testing::AssertionSuccess();
    }
    if (std::chrono::steady_clock::now() > end) {
      return testing::AssertionFailure()
             << fmt::format("{} threads for {}, {} descriptors for {}; held: {}", use.threads,
                            remembered_.threads, use.descriptors, remembered_.descriptors, held);
    }
    std::this_thread::yield();
  }
}

void FaultRig::Remember() {
  // Until no call holds anything and two looks agree: threads and connections come and go late.
  EXPECT_TRUE(base::AwaitTrue([this] {
    const Use before = remembered_;
    remembered_ = UseNow();
    return HeldNow().empty() && before == remembered_;
  }));
}

FaultRig::Use FaultRig::UseNow() const {
  const std::filesystem::path process = fmt::format("/proc/{}", server_->pid());
  return {CountEntries(process / "task"), CountEntries(process / "fd")};
}

std::string FaultRig::HeldNow() const {
  std::istringstream lines(integration::ScrapeMetrics(metrics_port_));
  std::string held;
  for (std::string line; std::getline(lines, line);) {
    const bool is_held =
        line.starts_with("simile_requests_in_flight") || line.starts_with("simile_queue_depth") ||
        line.starts_with("simile_queue_running") || line.starts_with("simile_resolve_waiting") ||
        line.starts_with("simile_resolve_begun") || line.starts_with("simile_budget_bytes{");
    if (is_held && !line.ends_with(" 0")) held += line + "; ";
  }
  return held;
}

int FaultRig::AwaitExit() {
  const KilledAfter limit(*server_, kStepWithin);
  return server_->AwaitExit();
}

}  // namespace simile::faults
