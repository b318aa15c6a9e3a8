#include "integration/raw_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <vector>

#include "net/http2_frames.h"

namespace simile::integration {
namespace {

constexpr int kWaitMaxMs = 30'000;

sockaddr_in AddressOf(const char* host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}

struct ReceivedFrame {
  net::FrameHeader header;
  std::string payload;
};

// Puts together the frames that a reader finds.
struct FrameCollector {
  std::vector<ReceivedFrame> frames;
  bool OnHeader(const net::FrameHeader& header) {
    frames.push_back({header, {}});
    return true;
  }
  bool OnPayload(std::span<const std::uint8_t> piece) {
    frames.back().payload.append(piece.begin(), piece.end());
    return true;
  }
};

}  // namespace

RawPeer::RawPeer(std::uint16_t port, const std::string& from)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const sockaddr_in own = AddressOf(from.c_str(), 0);
  const sockaddr_in server = AddressOf("127.0.0.1", port);
  if (bind(fd_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
      connect(fd_.get(), reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0) {
    std::abort();
  }
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

bool RawPeer::AwaitClosed() {
  bool writable = false;
  while (Progress(false, writable)) {
  }
  return closed_;
}

bool RawPeer::AwaitCallEnd(std::uint32_t stream) {
  return AwaitFrame([stream](const net::FrameHeader& header, const std::string& /*payload*/) {
    const bool is_last = header.type == net::FrameType::kHeaders && header.Has(net::kEndStream);
    return header.stream == stream && (is_last || header.type == net::FrameType::kRstStream);
  });
}

bool RawPeer::AnswersPing() {
  const std::string number = "ask back";
  return Send(net::Frame(net::FrameType::kPing, 0, 0, number)) &&
         AwaitFrame([&number](const net::FrameHeader& header, const std::string& payload) {
           return header.type == net::FrameType::kPing && payload == number;
         });
}

bool RawPeer::AwaitFrame(const Condition& condition) {
  bool writable = false;
  do {
    FrameCollector collector;
    net::FrameReader reader;
    reader.Read(
        std::span(reinterpret_cast<const std::uint8_t*>(received_.data()), received_.size()),
        collector);
    for (const ReceivedFrame& frame : collector.frames) {
      const bool is_whole = frame.payload.size() == frame.header.length;
      if (is_whole && condition(frame.header, frame.payload)) return true;
    }
  } while (Progress(false, writable));
  return false;
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
    received_.append(buffer.data(), static_cast<std::size_t>(count));
  } else if (count == 0 || errno != EAGAIN) {
    closed_ = true;
  }
  return !closed_;
}

}  // namespace simile::integration
