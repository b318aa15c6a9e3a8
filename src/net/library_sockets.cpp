#include <dlfcn.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <string_view>

#include "net/guarded_connections.h"

// gRPC reads and writes its connections by these functions of the C library and of OpenSSL, and
// gives nobody else a look at what passes. The dynamic linker takes the program's before any
// library's; each does what it replaces, and shows the frame guard the bytes of connections that it
// watches. Nothing else of a connection is touched: no copy, no system call, no thread.

namespace {

using simile::net::GuardedConnection;
namespace guarded_sockets = simile::net::guarded_sockets;

template <class Function>
Function* Replaced(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

using Held = std::shared_ptr<GuardedConnection>;

void FreeHeld(void* /*session*/, void* held, CRYPTO_EX_DATA* /*data*/, int /*index*/, long /*argl*/,
              void* /*argp*/) {
  delete static_cast<Held*>(held);
}

// Where a TLS session keeps its connection.
int HeldIndex() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, &FreeHeld);
  return index;
}

GuardedConnection* ConnectionOf(const SSL* session) {
  const auto* const held = static_cast<const Held*>(SSL_get_ex_data(session, HeldIndex()));
  return held == nullptr ? nullptr : held->get();
}

}  // namespace

extern "C" {

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static auto* const replaced = Replaced<ssize_t(int, msghdr*, int)>("recvmsg");
  const ssize_t bytes = replaced(fd, message, flags);
  if (bytes <= 0 || (flags & (MSG_PEEK | MSG_ERRQUEUE)) != 0) return bytes;
  if (guarded_sockets::Received(fd, message->msg_iov, static_cast<std::size_t>(bytes))) {
    return bytes;
  }
  errno = ECONNRESET;
  return -1;
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  static auto* const replaced = Replaced<ssize_t(int, const msghdr*, int)>("sendmsg");
  const ssize_t bytes = replaced(fd, message, flags);
  if (bytes > 0) guarded_sockets::Sent(fd, message->msg_iov, static_cast<std::size_t>(bytes));
  return bytes;
}

int close(int fd) {
  static auto* const replaced = Replaced<int(int)>("close");
  guarded_sockets::Closing(fd);
  return replaced(fd);
}

// gRPC makes the TLS session of a connection while it takes over the socket.
SSL* SSL_new(SSL_CTX* context) {
  static auto* const replaced = Replaced<SSL*(SSL_CTX*)>("SSL_new");
  SSL* const session = replaced(context);
  if (session == nullptr) return nullptr;
  auto connection = guarded_sockets::TakeForTls();
  if (connection == nullptr) return session;
  auto held = std::unique_ptr<Held>(new (std::nothrow) Held(std::move(connection)));
  if (held == nullptr || SSL_set_ex_data(session, HeldIndex(), held.get()) != 1) {
    SSL_free(session);
    return nullptr;
  }
  static_cast<void>(held.release());  // FreeHeld has it
  return session;
}

int SSL_read(SSL* session, void* bytes, int bytes_max) {
  static auto* const replaced = Replaced<int(SSL*, void*, int)>("SSL_read");
  const int count = replaced(session, bytes, bytes_max);
  if (count <= 0) return count;
  GuardedConnection* const connection = ConnectionOf(session);
  if (connection == nullptr ||
      guarded_sockets::ReceivedOverTls(*connection, bytes, static_cast<std::size_t>(count))) {
    return count;
  }
  // What the session has left would leave no space for what gRPC gives it next.
  while (replaced(session, bytes, bytes_max) > 0) {
  }
  return 0;
}

// To gRPC a session whose connection is cut has nothing more to read. As an error each would be
// three lines in the log, however many there are.
int SSL_get_error(const SSL* session, int result) {
  static auto* const replaced = Replaced<int(const SSL*, int)>("SSL_get_error");
  const GuardedConnection* const connection = ConnectionOf(session);
  if (result <= 0 && connection != nullptr && guarded_sockets::IsCut(*connection)) {
    return SSL_ERROR_ZERO_RETURN;
  }
  return replaced(session, result);
}

int SSL_write(SSL* session, const void* bytes, int bytes_max) {
  static auto* const replaced = Replaced<int(SSL*, const void*, int)>("SSL_write");
  const int count = replaced(session, bytes, bytes_max);
  if (count <= 0) return count;
  GuardedConnection* const connection = ConnectionOf(session);
  if (connection != nullptr) {
    guarded_sockets::SentOverTls(*connection, bytes, static_cast<std::size_t>(count));
  }
  return count;
}

}  // extern "C"

namespace simile::net {

std::string_view FunctionNotReplaced() {
  struct Function {
    const char* name;
    void* ours;
  };
  const std::array functions = {
      Function{"recvmsg", reinterpret_cast<void*>(&::recvmsg)},
      Function{"sendmsg", reinterpret_cast<void*>(&::sendmsg)},
      Function{"close", reinterpret_cast<void*>(&::close)},
      Function{"SSL_new", reinterpret_cast<void*>(&::SSL_new)},
      Function{"SSL_read", reinterpret_cast<void*>(&::SSL_read)},
      Function{"SSL_write", reinterpret_cast<void*>(&::SSL_write)},
      Function{"SSL_get_error", reinterpret_cast<void*>(&::SSL_get_error)}};
  for (const Function& function : functions) {
    if (dlsym(RTLD_DEFAULT, function.name) != function.ours) return function.name;
  }
  return {};
}

}  // namespace simile::net
