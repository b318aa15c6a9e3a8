#include "net/acceptor.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/threads.h"

namespace simile::net {
namespace {

// How long the loop stops accepting when not even the spare descriptor helps. It still waits for
// the stop event, so stopping is not delayed.
constexpr int kBackOffMs = 50;

base::FileDescriptor OpenSpare() {
  return base::FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

// A full server logs at most one refused connection in this time.
constexpr std::chrono::seconds kRefusalLogInterval{10};

// Closes with a reset: the peer is notified at once, and no half-closed socket remains. Before that
// the peer is told why by a reply of HTTP/1.1, which needs no handshake and no reading: clients of
// gRPC name its status, and a person who connects with any program reads the text.
//   status  of HTTP: "429 Too Many Requests"
void Reset(base::FileDescriptor connection, std::string_view status, std::string_view text) {
  const std::string reply = fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: "
      "close\r\n\r\n{}\n",
      status, text.size() + 1, text);
  static_cast<void>(send(connection.get(), reply.data(), reply.size(), MSG_NOSIGNAL));
  const linger now{1, 0};
  static_cast<void>(setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now));
}

// Formats how many connections there may be, and by which setting.
std::string FormatConnectionLimit(Admission admission, const ConnectionTable::Options& options) {
  switch (admission) {
    case Admission::kPeerFull:
      return fmt::format("{} from one address (limits.connections_per_peer_max)",
                         base::Grouped(options.per_peer_max));
    case Admission::kHalfOpenFull:
      return fmt::format("{} that have not spoken HTTP/2 yet (limits.half_open_connections_max)",
                         base::Grouped(options.half_open_max));
    default:
      return fmt::format("{} (limits.connections_max)", base::Grouped(options.connections_max));
  }
}

std::string FormatHost(const sockaddr_storage& peer) {
  std::array<char, NI_MAXHOST> host{};
  const int failed = getnameinfo(reinterpret_cast<const sockaddr*>(&peer), sizeof peer, host.data(),
                                 host.size(), nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? host.data() : "";
}

std::string FormatAddress(const sockaddr_storage& peer) {
  const bool is_v6 = peer.ss_family == AF_INET6;
  const in_port_t port = is_v6 ? reinterpret_cast<const sockaddr_in6&>(peer).sin6_port
                               : reinterpret_cast<const sockaddr_in&>(peer).sin_port;
  const std::string host = FormatHost(peer);
  return is_v6 ? fmt::format("ipv6:[{}]:{}", host, ntohs(port))
               : fmt::format("ipv4:{}:{}", host, ntohs(port));
}

base::FileDescriptor AcceptFrom(int listener, sockaddr_storage& peer) {
  socklen_t bytes = sizeof peer;
  return base::FileDescriptor(
      accept4(listener, reinterpret_cast<sockaddr*>(&peer), &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

}  // namespace

Acceptor::Acceptor(ListenSocket socket, Options options, ConnectionTable& table, HandOver hand_over,
                   const Clock& clock, observe::Metrics& metrics, const observe::Logger& log)
    : socket_(std::move(socket)),
      options_(options),
      table_(table),
      hand_over_(std::move(hand_over)),
      clock_(clock),
      metrics_(metrics),
      log_(log),
      stop_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      spare_(OpenSpare()) {}

Acceptor::~Acceptor() { Stop(); }

void Acceptor::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void Acceptor::Stop() {
  if (thread_.joinable()) {
    eventfd_write(stop_event_.get(), 1);
    thread_.join();
  }
  socket_.fd.Close();
}

void Acceptor::Loop() {
  base::NameThread("simile-accept");
  Step step = Step::kWait;
  while (true) {
    pollfd watched[] = {{stop_event_.get(), POLLIN, 0}, {socket_.fd.get(), POLLIN, 0}};
    const bool backing_off = step == Step::kBackOff;
    poll(watched, backing_off ? 1 : 2, backing_off ? kBackOffMs : -1);
    if (watched[0].revents != 0) return;
    try {
      do {
        step = AcceptOne();
      } while (step == Step::kAgain);
    } catch (const std::bad_alloc&) {  // the connection is closed
      step = Step::kBackOff;
    }
  }
}

Acceptor::Step Acceptor::AcceptOne() {
  sockaddr_storage peer{};
  base::FileDescriptor connection = AcceptFrom(socket_.fd.get(), peer);
  if (connection.valid()) {
    was_shedding_ = false;
    Admit(std::move(connection), peer);
    return Step::kAgain;
  }
  switch (errno) {
    case EAGAIN:
      return Step::kWait;
    case EMFILE:
    case ENFILE:
      return ShedForLackOfDescriptors();
    case ECONNABORTED:  // the peer gave up; the others are errors of its network (accept(2))
    case EINTR:
    case EPROTO:
    case ENETDOWN:
    case ENONET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
      return Step::kAgain;
    default:  // usually no memory: an immediate retry would spin
      return Step::kBackOff;
  }
}

void Acceptor::Admit(base::FileDescriptor connection, const sockaddr_storage& peer) {
  AdmittedSocket socket;
  const PeerKey key = PeerKey::Of(peer, options_.ipv6_peer_bits);
  const Admission admission = table_.Admit(key, socket.place);
  if (admission != Admission::kAdmitted) return Refuse(std::move(connection), peer, admission);
  // An answer is one small write: waiting to fill a packet would delay it.
  const int no_delay = 1;
  static_cast<void>(
      setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay));
  // Bounds what waits in the kernel for a peer that does not read.
  constexpr int kUnsentBytesMax = 128 << 10;
  static_cast<void>(setsockopt(connection.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytesMax,
                               sizeof kUnsentBytesMax));
  const auto untaken_max_ms = static_cast<unsigned>(options_.untaken_max.count());
  static_cast<void>(setsockopt(connection.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &untaken_max_ms,
                               sizeof untaken_max_ms));
  socket.peer = std::make_shared<Peer>(Peer{key, FormatAddress(peer)});
  socket.fd = std::move(connection);
  hand_over_(std::move(socket));
}

void Acceptor::Refuse(base::FileDescriptor connection, const sockaddr_storage& peer,
                      Admission admission) {
  const bool is_of_peer = admission == Admission::kPeerFull;
  metrics_.CountRejected(is_of_peer ? observe::Rejection::kConnectionsPerPeer
                                    : observe::Rejection::kConnections);
  const std::string most = FormatConnectionLimit(admission, table_.options());
  Reset(std::move(connection), is_of_peer ? "429 Too Many Requests" : "503 Service Unavailable",
        fmt::format("too many connections: this server holds at most {}", most));
  const Clock::TimePoint now = clock_.Now();
  if (now < next_refusal_log_) {
    ++refusals_not_logged_;
    return;
  }
  log_.Warn("a connection is refused: a limit of connections is reached",
            {{"peer", FormatHost(peer)}, {"most", most}, {"more_before", refusals_not_logged_}});
  next_refusal_log_ = now + kRefusalLogInterval;
  refusals_not_logged_ = 0;
}

Acceptor::Step Acceptor::ShedForLackOfDescriptors() {
  if (!was_shedding_) {
    log_.Warn(
        "connections are refused: no file descriptor is left; raise the limit (ulimit -n) or "
        "lower limits.connections_max");
    was_shedding_ = true;
  }
  spare_.Close();
  sockaddr_storage peer{};
  base::FileDescriptor connection = AcceptFrom(socket_.fd.get(), peer);
  const bool accepted = connection.valid();
  if (accepted) {
    metrics_.CountRejected(observe::Rejection::kDescriptors);
    Reset(std::move(connection), "503 Service Unavailable",
          "too many connections: this server has no file descriptor left (ulimit -n)");
  }
  spare_ = OpenSpare();
  return accepted && spare_.valid() ? Step::kAgain : Step::kBackOff;
}

}  // namespace simile::net
