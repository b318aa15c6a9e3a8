// What the frame guard adds to a call: the reads and writes of its socket that gRPC makes, over a
// pair of sockets in this process, guarded and not, alternating round by round; in processor time.
//
//   frame_guard_bench --rounds 51
#include <sys/socket.h>
#include <time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/file_descriptor.h"
#include "bench/timing.h"
#include "net/guarded_connections.h"
#include "net/http2_frames.h"

namespace simile::bench {
namespace {

using net::Frame;
using net::FrameType;

// A peer that calls, and the socket by which gRPC would serve it.
class Call {
 public:
  Call(std::size_t request_bytes, std::size_t reply_bytes)
      : request_(request_bytes, 'q'), reply_(reply_bytes, 'r'), buffer_(1U << 20) {
    std::array<int, 2> sockets{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
      throw std::runtime_error("no pair of sockets");
    }
    peer_ = base::FileDescriptor(sockets[0]);
    served_ = base::FileDescriptor(sockets[1]);
  }
  int fd() const { return served_.get(); }

  void Open() { Pass(peer_, served_, net::kHttp2Preface + net::Settings()); }
  void Run() {
    const std::string prefix = net::MessagePrefix(static_cast<std::uint32_t>(request_.size()));
    Pass(peer_, served_,
         Frame(FrameType::kHeaders, net::kEndHeaders, stream_, headers_) +
             Frame(FrameType::kData, net::kEndStream, stream_, prefix + request_));
    Pass(served_, peer_,
         Frame(FrameType::kHeaders, net::kEndHeaders, stream_, headers_) +
             Frame(FrameType::kData, 0, stream_, reply_) +
             Frame(FrameType::kHeaders, net::kEndHeaders | net::kEndStream, stream_, headers_));
    stream_ += 2;
  }

 private:
  void Pass(const base::FileDescriptor& from, const base::FileDescriptor& to, std::string bytes) {
    iovec piece{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (sendmsg(from.get(), &message, MSG_NOSIGNAL) < 0) throw std::runtime_error("sendmsg failed");
    piece = {buffer_.data(), buffer_.size()};
    if (recvmsg(to.get(), &message, 0) < 0) throw std::runtime_error("recvmsg failed");
  }

  const std::string headers_ = net::CallHeaders("/simile.v1.SearchService/Search");
  const std::string request_;
  const std::string reply_;
  std::vector<char> buffer_;
  base::FileDescriptor peer_;
  base::FileDescriptor served_;
  std::uint32_t stream_ = 1;
};

double ThreadNanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

// The mean processor time of a call.
double Nanoseconds(Call& call) {
  constexpr int kCalls = 2'000;
  const double start = ThreadNanoseconds();
  for (int i = 0; i < kCalls; ++i) call.Run();
  return (ThreadNanoseconds() - start) / kCalls;
}

struct Sizes {
  std::size_t request_bytes = 0;
  std::size_t reply_bytes = 0;
};

nlohmann::json Measure(const Sizes& sizes, net::GuardedConnections& connections,
                       std::size_t rounds) {
  Call plain(sizes.request_bytes, sizes.reply_bytes);
  Call guarded(sizes.request_bytes, sizes.reply_bytes);
  const absl::Status handed_over = connections.HandOver(guarded.fd(), net::PeerKey(), [] {});
  if (!handed_over.ok()) throw std::runtime_error(handed_over.ToString());
  plain.Open();
  guarded.Open();
  std::vector<double> plain_ns;
  std::vector<double> guarded_ns;
  std::vector<double> added_ns;
  for (std::size_t round = 0; round < rounds; ++round) {
    plain_ns.push_back(Nanoseconds(plain));
    guarded_ns.push_back(Nanoseconds(guarded));
    added_ns.push_back(guarded_ns.back() - plain_ns.back());
  }
  const double without = Median(plain_ns);
  const double with = Median(guarded_ns);
  const double added = Median(added_ns);
  fmt::print("{:>14} {:>12} {:>12.0f} {:>12.0f} {:>9.0f} {:>7.2f}\n", sizes.request_bytes,
             sizes.reply_bytes, without, with, added, with / without);
  return {{"request_bytes", sizes.request_bytes},
          {"reply_bytes", sizes.reply_bytes},
          {"without_ns", without},
          {"guarded_ns", with},
          {"added_ns", added}};
}

void Run(std::size_t rounds, const std::string& json_path) {
  const RealClock clock;
  const observe::Logger log({.format = observe::LogFormat::kText, .level = {}, .sink = nullptr});
  observe::Metrics metrics{observe::BuildInfo{}};
  const net::FrameGuard::Options options;
  net::GuardedConnections connections(options, 128U << 20, {clock, metrics, log});
  fmt::print("{:>14} {:>12} {:>12} {:>12} {:>9} {:>7}\n", "request, bytes", "reply, bytes",
             "without, ns", "guarded, ns", "adds, ns", "ratio");
  nlohmann::json report = nlohmann::json::array();
  for (const Sizes& sizes :
       {Sizes{60, 490}, Sizes{60, 2'400}, Sizes{1'600, 490}, Sizes{16'000, 16'000}}) {
    report.push_back(Measure(sizes, connections, rounds));
  }
  if (!json_path.empty()) std::ofstream(json_path) << report.dump(1) << '\n';
}

}  // namespace
}  // namespace simile::bench

int main(int argc, char** argv) {
  CLI::App app("What the frame guard adds to the socket calls of an RPC.");
  std::size_t rounds = 21;
  std::string json_path;
  app.add_option("--rounds", rounds, "of which medians are taken")->check(CLI::Range(1, 10'000));
  app.add_option("--json", json_path, "a file to write the figures to");
  CLI11_PARSE(app, argc, argv);
  try {
    simile::bench::Run(rounds, json_path);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
