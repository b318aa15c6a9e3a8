#pragma once

#include <openssl/bio.h>
#include <openssl/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "net/grpc_wire.h"

namespace simile::net {

// A connected, non-blocking socket that carries bytes, over TLS or not. Knows no protocol above
// TLS. Used by one thread at a time.
class ByteStream {
 public:
  enum class State : std::uint8_t {
    kGoesOn,
    kWouldBlock,  // the socket must become readable, or writable, first
    kBroken,      // or the peer sends no more
  };
  struct Result {
    State state = State::kGoesOn;
    std::size_t bytes = 0;  // with kGoesOn; not 0
  };

  //   tls  null: not encrypted. Not used after the constructor. Throws bad_alloc.
  ByteStream(base::FileDescriptor fd, SSL_CTX* tls);
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  int fd() const { return fd_.get(); }
  bool is_encrypted() const { return ssl_ != nullptr; }

  // Goes on with the handshake of TLS. kGoesOn once it is complete; without TLS at once.
  // kBroken also when the peer does not agree to HTTP/2 (ALPN).
  State Handshake();
  // The names in the client's certificate, which the handshake has verified: its alternative names,
  // then its common name. None without a certificate. May throw bad_alloc.
  std::vector<std::string> VerifiedNames() const;

  // Says that the socket has bytes, or its end. After a read that emptied the socket, the kernel is
  // not asked again until then.
  void SetReadable() { socket_.is_empty = false; }

  // REQUIRES of Read and Write: the handshake is complete.
  Result Read(std::span<std::uint8_t> buffer);
  // Writes bytes from the front of the pieces. Over TLS up to 64 KiB of them may be kept until the
  // next call, which writes the kept bytes first, even when it has no pieces.
  //   pieces  at most IOV_MAX
  Result Write(std::span<const iovec> pieces);
  // Whether Write has kept bytes that the socket did not take.
  bool has_kept_bytes() const { return socket_.has_kept_bytes(); }

  // Tells the peer that no more bytes come. Read on until the peer ends its side: the kernel
  // answers unread bytes by a reset, and what was written could be lost.
  void EndWriting();
  // Closes the connection, by a reset if `by_reset`.
  void Close(bool by_reset);

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const;
  };

  Result WritePlain(std::span<const iovec> pieces);
  Result WriteEncrypted(std::span<const iovec> pieces);
  // Encrypts bytes from the front of the pieces until the gathered records are full. False when
  // OpenSSL does not take them.
  bool Encrypt(std::span<const iovec> pieces, std::size_t& taken);
  State SendKept();
  // The state after a failed call of OpenSSL.
  State StateAfter(int result);

  // What OpenSSL reads from and writes to.
  struct Socket {
    int fd = -1;
    bool is_empty = false;
    std::vector<std::uint8_t>* gathered = nullptr;  // not null: takes what OpenSSL writes
    std::vector<std::uint8_t> kept{};               // encrypted, to be sent from kept_begin on
    std::size_t kept_begin = 0;

    bool has_kept_bytes() const { return kept_begin != kept.size(); }
  };
  static int ReadSocket(BIO* bio, char* bytes, int count);
  static int WriteSocket(BIO* bio, const char* bytes, int count);
  static const BIO_METHOD* SocketMethod();

  base::FileDescriptor fd_;
  Socket socket_{fd_.get()};
  std::unique_ptr<SSL, FreeSsl> ssl_;
  bool is_complete_ = false;  // the handshake
};

// Bytes that wait to be written, in their order: frames, which are copied, and parts of messages,
// which are copied only when they are small. Dropped bytes keep their space until the queue is
// empty, so it is filled only then. Not thread-safe.
class WriteQueue {
 public:
  // Makes space for four pieces that copy at most `bytes` together. May throw bad_alloc.
  void Reserve(std::size_t bytes);
  // Both may throw bad_alloc; then nothing is added.
  void Add(std::span<const std::uint8_t> bytes);
  // Adds a part of the framed message. The message is kept until the part is written.
  void Add(const std::shared_ptr<const OutgoingMessage>& message, std::size_t offset,
           std::size_t bytes);

  std::size_t bytes() const { return bytes_; }
  bool empty() const { return bytes_ == 0; }
  // The first pieces. Valid until the queue changes.
  std::span<const iovec> Front(std::span<iovec> space) const;
  // Removes the first bytes, which are written.
  void Drop(std::size_t bytes);

 private:
  struct Piece {
    std::shared_ptr<const OutgoingMessage> message;  // null: the bytes are copied_'s
    std::size_t begin = 0;
    std::size_t bytes = 0;
  };

  std::vector<std::uint8_t> copied_;
  std::vector<Piece> pieces_;  // from first_ on
  std::size_t first_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace simile::net
