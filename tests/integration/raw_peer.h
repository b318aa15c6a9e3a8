#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <absl/status/status.h>

#include "base/file_descriptor.h"
#include "net/frame_reader.h"

namespace simile::integration {

// A peer that sends whatever it likes over a TCP connection, and reads what comes meanwhile. Each
// wait ends after 30 s at most.
class RawPeer {
 public:
  // Connects to 127.0.0.1:port.
  //   from  the peer's own address, "127.0.0.9"
  RawPeer(std::uint16_t port, const std::string& from);

  // Sends the bytes, unless the server closes the connection first. False then.
  bool Send(std::string_view bytes);
  // Sends the bytes as DATA of a stream as fast as the server's windows allow. False once the call
  // has ended or the connection is closed.
  bool SendData(std::uint32_t stream, std::string_view bytes);
  // Says that nothing more follows, and still reads.
  void HalfClose();
  // From now on the peer's kernel drops what the server sends, as when its machine has vanished. It
  // neither acknowledges nor resets, and the waiting functions below return false.
  void Vanish();
  // Whether the server closes the connection.
  bool AwaitClosed();
  // Whether the server sends some of a message of the call.
  bool AwaitData(std::uint32_t stream);
  // Whether the server ends the call, by its status or a reset.
  bool AwaitCallEnd(std::uint32_t stream);
  // What has come of the call's messages, each after its prefix of five bytes.
  std::string JoinData(std::uint32_t stream) const;
  // The status that ended the call. None after a reset.
  std::optional<absl::StatusCode> FindStatus(std::uint32_t stream) const;
  // Whether the server still answers a ping.
  bool AnswersPing();

  int fd() const { return fd_.get(); }  // of the connection, for a handshake before the frames

 private:
  // Waits until bytes can be read, or written when `to_write`; reads them. False once it is closed.
  bool Progress(bool to_write, bool& writable);
  // Whether a whole frame that meets the condition has come, or comes.
  using Condition = std::function<bool(const net::ReceivedFrame& frame)>;
  bool HasFrame(const Condition& condition) const;
  bool AwaitFrame(const Condition& condition);
  // The bytes that the server takes of a stream now, by the frames received.
  std::int64_t SumWindow(std::uint32_t stream) const;

  base::FileDescriptor fd_;
  net::FrameCollector frames_;
  std::map<std::uint32_t, std::int64_t> sent_of_data_;  // by stream
  bool closed_ = false;
};

}  // namespace simile::integration
