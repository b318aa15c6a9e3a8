#include "integration/raw_peer.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <utility>

#include <nghttp2/nghttp2.h>

#include "net/http2_frames.h"

namespace simile::integration {
namespace {

using net::ReceivedFrame;

constexpr int kWaitMaxMs = 30'000;

sockaddr_in MakeAddress(const char* host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}

std::vector<std::pair<std::string, std::string>> HeadersIn(const std::string& block,
                                                           nghttp2_hd_inflater* inflater) {
  std::vector<std::pair<std::string, std::string>> headers;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(block.data());
  for (std::size_t left = block.size();;) {
    nghttp2_nv header{};
    int flags = 0;
    const ssize_t taken = nghttp2_hd_inflate_hd2(inflater, &header, &flags, bytes, left, 1);
    if (taken < 0) std::abort();
    bytes += taken;
    left -= static_cast<std::size_t>(taken);
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
      headers.emplace_back(std::string(reinterpret_cast<char*>(header.name), header.namelen),
                           std::string(reinterpret_cast<char*>(header.value), header.valuelen));
    }
    if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) break;
  }
  nghttp2_hd_inflate_end_headers(inflater);
  return headers;
}

bool EndsCall(const ReceivedFrame& frame, std::uint32_t stream) {
  return frame.EndsStream(stream) || frame.Is(net::FrameType::kRstStream, stream);
}

}  // namespace

RawPeer::RawPeer(std::uint16_t port, const std::string& from)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const sockaddr_in own = MakeAddress(from.c_str(), 0);
  const sockaddr_in server = MakeAddress("127.0.0.1", port);
  if (bind(fd_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
      connect(fd_.get(), reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0) {
    std::abort();
  }
  const int no_delay = 1;  // what it sends goes by itself, a single byte too
  setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay);
}

bool RawPeer::Send(std::string_view bytes) {
  while (!bytes.empty() && !closed_) {
    bool writable = false;
    if (!Progress(true, writable)) return false;
    if (!writable) continue;
    const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) closed_ = true;
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return !closed_;
}

void RawPeer::HalfClose() { shutdown(fd_.get(), SHUT_WR); }

void RawPeer::Vanish() {
  sock_filter takes_nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program{static_cast<unsigned short>(std::size(takes_nothing)), takes_nothing};
  if (setsockopt(fd_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) {
    std::abort();
  }
}

bool RawPeer::AwaitClosed() {
  bool writable = false;
  while (Progress(false, writable)) {
  }
  return closed_;
}

bool RawPeer::SendData(std::uint32_t stream, std::string_view bytes) {
  constexpr std::int64_t kFrameBytesMax = 16'384;
  bool goes_on = true;
  while (!bytes.empty() && goes_on) {
    if (HasFrame([&](const ReceivedFrame& frame) { return EndsCall(frame, stream); })) return false;
    const std::int64_t window = SumWindow(stream);
    bool writable = false;
    if (window <= 0) {
      goes_on = Progress(false, writable);
      continue;
    }
    const std::string_view piece =
        bytes.substr(0, static_cast<std::size_t>(std::min(window, kFrameBytesMax)));
    goes_on = Send(net::Frame(net::FrameType::kData, 0, stream, piece));
    sent_of_data_[stream] += static_cast<std::int64_t>(piece.size());
    bytes.remove_prefix(piece.size());
  }
  return goes_on;
}

bool RawPeer::AwaitCallEnd(std::uint32_t stream) {
  return AwaitFrame([stream](const ReceivedFrame& frame) { return EndsCall(frame, stream); });
}

bool RawPeer::AwaitData(std::uint32_t stream) {
  return AwaitFrame([stream](const ReceivedFrame& frame) {
    return frame.Is(net::FrameType::kData, stream) && !frame.payload.empty();
  });
}

std::string RawPeer::JoinData(std::uint32_t stream) const { return frames_.JoinData(stream); }

std::optional<absl::StatusCode> RawPeer::FindStatus(std::uint32_t stream) const {
  nghttp2_hd_inflater* made = nullptr;
  if (nghttp2_hd_inflate_new(&made) != 0) std::abort();
  const std::unique_ptr<nghttp2_hd_inflater, decltype(&nghttp2_hd_inflate_del)> inflater(
      made, &nghttp2_hd_inflate_del);
  std::optional<absl::StatusCode> status;
  for (const ReceivedFrame& frame : frames_.frames()) {  // all of them: each may change the table
    if (frame.header.type != net::FrameType::kHeaders || !frame.IsWhole()) continue;
    for (const auto& [name, value] : HeadersIn(frame.payload, inflater.get())) {
      if (frame.header.stream != stream || name != "grpc-status") continue;
      status = static_cast<absl::StatusCode>(std::stoi(value));
    }
  }
  return status;
}

bool RawPeer::AnswersPing() {
  const std::string number = "ask back";
  return Send(net::Frame(net::FrameType::kPing, 0, 0, number)) &&
         AwaitFrame([&number](const ReceivedFrame& frame) {
           return frame.header.type == net::FrameType::kPing && frame.payload == number;
         });
}

bool RawPeer::AwaitFrame(const Condition& condition) {
  bool writable = false;
  do {
    if (HasFrame(condition)) return true;
  } while (Progress(false, writable));
  return false;
}

bool RawPeer::HasFrame(const Condition& condition) const {
  return std::ranges::any_of(frames_.frames(), [&](const ReceivedFrame& frame) {
    return frame.IsWhole() && condition(frame);
  });
}

// The windows at the start plus what the server has added. Settings that change windows count only
// once the peer answers them, and this peer answers no later settings.
std::int64_t RawPeer::SumWindow(std::uint32_t stream) const {
  constexpr std::int64_t kAtFirst = 65'535;
  std::int64_t of_connection = kAtFirst;
  std::int64_t of_stream = kAtFirst;
  for (const ReceivedFrame& frame : frames_.frames()) {
    if (!frame.IsWhole() || frame.header.type != net::FrameType::kWindowUpdate) continue;
    const std::int64_t more = net::ParseBigEndian(frame.payload);
    if (frame.header.stream == 0) of_connection += more;
    if (frame.header.stream == stream) of_stream += more;
  }
  for (const auto& [other, sent] : sent_of_data_) {
    of_connection -= sent;
    if (other == stream) of_stream -= sent;
  }
  return std::min(of_connection, of_stream);
}

bool RawPeer::Progress(bool to_write, bool& writable) {
  if (closed_) return false;
  pollfd watched{fd_.get(), static_cast<short>(POLLIN | (to_write ? POLLOUT : 0)), 0};
  if (poll(&watched, 1, kWaitMaxMs) <= 0) return false;
  writable = (watched.revents & POLLOUT) != 0;
  if ((watched.revents & ~POLLOUT) == 0) return true;
  std::array<char, 65'536> buffer;
  const ssize_t count = recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count > 0) {
    frames_.Add({buffer.data(), static_cast<std::size_t>(count)});
  } else if (count == 0 || errno != EAGAIN) {
    closed_ = true;
  }
  return !closed_;
}

}  // namespace simile::integration
