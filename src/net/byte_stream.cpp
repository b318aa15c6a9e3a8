#include "net/byte_stream.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace simile::net {
namespace {

constexpr std::size_t kRecordBytes = 16U << 10;
// Space for an encrypted record, even when the peer asks for records of 512 bytes.
constexpr std::size_t kRecordSpace = 20U << 10;
// Space for the records that are sent together: a system call costs more than copying them.
constexpr std::size_t kGatheredBytes = 4 * kRecordSpace;

// Repeats a system call that a signal interrupts, and returns its result.
ssize_t Uninterrupted(const auto& call) {
  ssize_t result = -1;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

long ControlSocket(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

std::string FormatAddress(const ASN1_OCTET_STRING& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ASN1_STRING_length(&address) == 4 ? AF_INET : AF_INET6;
  const void* const bytes = ASN1_STRING_get0_data(&address);
  return inet_ntop(family, bytes, text.data(), text.size()) == nullptr ? "" : text.data();
}

std::string ToText(const ASN1_STRING& text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(&text)),
          static_cast<std::size_t>(ASN1_STRING_length(&text))};
}

void AppendAlternativeNames(const X509& certificate, std::vector<std::string>& names) {
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> found(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)),
      &GENERAL_NAMES_free);
  for (int i = 0; i < (found == nullptr ? 0 : sk_GENERAL_NAME_num(found.get())); ++i) {
    const GENERAL_NAME& name = *sk_GENERAL_NAME_value(found.get(), i);
    switch (name.type) {
      case GEN_DNS:
      case GEN_URI:
      case GEN_EMAIL:
        names.push_back(ToText(*name.d.ia5));
        break;
      case GEN_IPADD:
        if (ASN1_STRING_length(name.d.ip) == 4 || ASN1_STRING_length(name.d.ip) == 16) {
          names.push_back(FormatAddress(*name.d.ip));
        }
        break;
      default:
        break;
    }
  }
}

void AppendCommonNames(const X509& certificate, std::vector<std::string>& names) {
  const X509_NAME& subject = *X509_get_subject_name(&certificate);
  for (int i = -1; (i = X509_NAME_get_index_by_NID(&subject, NID_commonName, i)) >= 0;) {
    unsigned char* utf8 = nullptr;
    const int length =
        ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(&subject, i)));
    if (length < 0) continue;
    const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(
        utf8, [](unsigned char* text) { OPENSSL_free(text); });
    names.emplace_back(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(length));
  }
}

// Copying at most this many bytes costs less than a piece of their own.
constexpr std::size_t kCopiedBytesMax = 2'048;
// An empty queue keeps at most this much space.
constexpr std::size_t kIdleBytesMax = 8U << 10;

}  // namespace

void ByteStream::FreeSsl::operator()(SSL* ssl) const { SSL_free(ssl); }

// OpenSSL's own BIO of sockets writes without MSG_NOSIGNAL: a connection that the peer has closed
// would end the process by SIGPIPE.
int ByteStream::WriteSocket(BIO* bio, const char* bytes, int count) {
  const auto& socket = *static_cast<const Socket*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (socket.gathered != nullptr &&
      socket.gathered->capacity() - socket.gathered->size() >= static_cast<std::size_t>(count)) {
    socket.gathered->insert(socket.gathered->end(), bytes, bytes + count);
    return count;
  }
  if (socket.gathered != nullptr || socket.has_kept_bytes()) {  // the order stays
    BIO_set_retry_write(bio);
    return -1;
  }
  const ssize_t sent = Uninterrupted(
      [&] { return send(socket.fd, bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL); });
  if (sent < 0 && errno == EAGAIN) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int ByteStream::ReadSocket(BIO* bio, char* bytes, int count) {
  auto& socket = *static_cast<Socket*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (socket.is_empty) {
    BIO_set_retry_read(bio);
    return -1;
  }
  const ssize_t received =
      Uninterrupted([&] { return recv(socket.fd, bytes, static_cast<std::size_t>(count), 0); });
  if (received < 0 && errno == EAGAIN) BIO_set_retry_read(bio);
  socket.is_empty = received > 0 && received < count;
  return static_cast<int>(received);
}

const BIO_METHOD* ByteStream::SocketMethod() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket without SIGPIPE");
    if (made == nullptr) throw std::bad_alloc();
    BIO_meth_set_write(made, &WriteSocket);
    BIO_meth_set_read(made, &ReadSocket);
    BIO_meth_set_ctrl(made, &ControlSocket);
    return made;
  }();
  return method;
}

ByteStream::ByteStream(base::FileDescriptor fd, SSL_CTX* tls) : fd_(std::move(fd)) {
  if (tls == nullptr) return;
  ssl_.reset(SSL_new(tls));
  if (ssl_ == nullptr) throw std::bad_alloc();
  BIO* const bio = BIO_new(SocketMethod());
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, &socket_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_accept_state(ssl_.get());
}

ByteStream::State ByteStream::StateAfter(int result) {
  const int error = SSL_get_error(ssl_.get(), result);
  ERR_clear_error();  // else the next call of this thread would see it
  const bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  return waits ? State::kWouldBlock : State::kBroken;
}

ByteStream::State ByteStream::Handshake() {
  if (ssl_ == nullptr || is_complete_) return State::kGoesOn;
  const int result = SSL_do_handshake(ssl_.get());
  if (result != 1) return StateAfter(result);
  const unsigned char* protocol = nullptr;
  unsigned length = 0;
  SSL_get0_alpn_selected(ssl_.get(), &protocol, &length);
  is_complete_ = std::string_view(reinterpret_cast<const char*>(protocol), length) == "h2";
  return is_complete_ ? State::kGoesOn : State::kBroken;
}

std::vector<std::string> ByteStream::VerifiedNames() const {
  std::vector<std::string> names;
  if (ssl_ == nullptr || SSL_get_verify_result(ssl_.get()) != X509_V_OK) return names;
  const X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  if (certificate == nullptr) return names;
  AppendAlternativeNames(*certificate, names);
  AppendCommonNames(*certificate, names);
  ERR_clear_error();  // of names that cannot be read
  return names;
}

ByteStream::Result ByteStream::Read(std::span<std::uint8_t> buffer) {
  if (ssl_ != nullptr) {
    const int received = SSL_read(ssl_.get(), buffer.data(), static_cast<int>(buffer.size()));
    if (received > 0) return {State::kGoesOn, static_cast<std::size_t>(received)};
    return {StateAfter(received), 0};
  }
  const ssize_t received =
      Uninterrupted([&] { return recv(fd_.get(), buffer.data(), buffer.size(), 0); });
  if (received > 0) return {State::kGoesOn, static_cast<std::size_t>(received)};
  return {received < 0 && errno == EAGAIN ? State::kWouldBlock : State::kBroken, 0};
}

ByteStream::Result ByteStream::Write(std::span<const iovec> pieces) {
  return ssl_ == nullptr ? WritePlain(pieces) : WriteEncrypted(pieces);
}

ByteStream::Result ByteStream::WritePlain(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  const ssize_t sent = Uninterrupted([&] { return sendmsg(fd_.get(), &message, MSG_NOSIGNAL); });
  if (sent >= 0) return {State::kGoesOn, static_cast<std::size_t>(sent)};
  return {errno == EAGAIN ? State::kWouldBlock : State::kBroken, 0};
}

ByteStream::Result ByteStream::WriteEncrypted(std::span<const iovec> pieces) {
  Result result;
  result.state = SendKept();
  if (result.state != State::kGoesOn || pieces.empty()) return result;
  thread_local std::vector<std::uint8_t> records;
  records.clear();
  records.reserve(kGatheredBytes);  // before any byte is taken
  socket_.gathered = &records;
  const bool is_encrypted = Encrypt(pieces, result.bytes);
  socket_.gathered = nullptr;
  if (!is_encrypted) return {State::kBroken, 0};
  const ssize_t sent =
      Uninterrupted([&] { return send(fd_.get(), records.data(), records.size(), MSG_NOSIGNAL); });
  if (sent < 0 && errno != EAGAIN) return {State::kBroken, 0};
  try {
    socket_.kept.assign(records.begin() + std::max<ssize_t>(0, sent), records.end());
  } catch (const std::bad_alloc&) {
    return {State::kBroken, 0};  // the peer would miss them
  }
  return result;  // what is kept counts as written
}

bool ByteStream::Encrypt(std::span<const iovec> pieces, std::size_t& taken) {
  std::array<std::uint8_t, kRecordBytes> record;
  std::size_t offset = 0;  // in the first piece
  while (!pieces.empty() &&
         socket_.gathered->capacity() - socket_.gathered->size() >= kRecordSpace) {
    std::size_t size = 0;
    while (!pieces.empty() && size < record.size()) {  // small frames share a record
      const iovec& from = pieces.front();
      const std::size_t count = std::min(from.iov_len - offset, record.size() - size);
      std::memcpy(record.data() + size, static_cast<const std::uint8_t*>(from.iov_base) + offset,
                  count);
      size += count;
      offset += count;
      if (offset < from.iov_len) break;
      pieces = pieces.subspan(1);
      offset = 0;
    }
    const int written = SSL_write(ssl_.get(), record.data(), static_cast<int>(size));
    if (written != static_cast<int>(size)) {
      ERR_clear_error();
      return false;
    }
    taken += size;
  }
  return true;
}

ByteStream::State ByteStream::SendKept() {
  while (has_kept_bytes()) {
    const ssize_t sent = Uninterrupted([&] {
      return send(fd_.get(), socket_.kept.data() + socket_.kept_begin,
                  socket_.kept.size() - socket_.kept_begin, MSG_NOSIGNAL);
    });
    if (sent < 0) return errno == EAGAIN ? State::kWouldBlock : State::kBroken;
    socket_.kept_begin += static_cast<std::size_t>(sent);
  }
  socket_.kept = {};  // an idle connection keeps no buffer
  socket_.kept_begin = 0;
  return State::kGoesOn;
}

void ByteStream::EndWriting() {
  if (ssl_ != nullptr && is_complete_) {
    static_cast<void>(SSL_shutdown(ssl_.get()));  // close_notify, if the socket takes it
    ERR_clear_error();
  }
  static_cast<void>(shutdown(fd_.get(), SHUT_WR));
}

void ByteStream::Close(bool by_reset) {
  if (by_reset && fd_.valid()) {
    const linger at_once{1, 0};
    static_cast<void>(setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
  }
  fd_.Close();
}

void WriteQueue::Reserve(std::size_t bytes) {
  constexpr std::size_t kPieces = 4;
  if (pieces_.capacity() - pieces_.size() < kPieces) {
    pieces_.reserve(2 * pieces_.size() + kPieces);
  }
  if (copied_.capacity() - copied_.size() < bytes) copied_.reserve(2 * copied_.size() + bytes);
}

void WriteQueue::Add(std::span<const std::uint8_t> bytes) {
  const bool joins = first_ < pieces_.size() && pieces_.back().message == nullptr;
  Reserve(bytes.size());
  const std::size_t begin = copied_.size();
  copied_.insert(copied_.end(), bytes.begin(), bytes.end());
  if (joins) {
    pieces_.back().bytes += bytes.size();
  } else {
    pieces_.push_back({nullptr, begin, bytes.size()});
  }
  bytes_ += bytes.size();
}

void WriteQueue::Add(const std::shared_ptr<const OutgoingMessage>& message, std::size_t offset,
                     std::size_t bytes) {
  if (bytes <= kCopiedBytesMax) return Add(std::span(message->framed() + offset, bytes));
  pieces_.push_back({message, offset, bytes});
  bytes_ += bytes;
}

std::span<const iovec> WriteQueue::Front(std::span<iovec> space) const {
  const std::size_t count = std::min(space.size(), pieces_.size() - first_);
  for (std::size_t i = 0; i < count; ++i) {
    const Piece& piece = pieces_[first_ + i];
    const auto* const from = piece.message == nullptr ? copied_.data() : piece.message->framed();
    space[i] = {const_cast<std::uint8_t*>(from) + piece.begin, piece.bytes};  // it is only read
  }
  return space.first(count);
}

void WriteQueue::Drop(std::size_t bytes) {
  bytes_ -= bytes;
  while (bytes > 0) {
    Piece& piece = pieces_[first_];
    if (bytes < piece.bytes) {
      piece.begin += bytes;
      piece.bytes -= bytes;
      return;
    }
    bytes -= piece.bytes;
    piece.message.reset();
    ++first_;
  }
  if (bytes_ > 0) return;
  first_ = 0;
  pieces_.clear();
  copied_.clear();
  if (copied_.capacity() > kIdleBytesMax) copied_ = {};
  if (pieces_.capacity() * sizeof(Piece) > kIdleBytesMax) pieces_ = {};
}

}  // namespace simile::net
