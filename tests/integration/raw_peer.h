#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

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
  // Says that nothing more follows, and still reads.
  void HalfClose();
  // Whether the server closes the connection.
  bool AwaitClosed();
  // Whether the server ends the call, by its status or a reset.
  bool AwaitCallEnd(std::uint32_t stream);
  // Whether the server still answers a ping.
  bool AnswersPing();

 private:
  // Waits until bytes can be read, or written when `to_write`; reads them. False once it is closed.
  bool Progress(bool to_write, bool& writable);
  // Whether a frame has come, or comes, of which this is true.
  using Condition = std::function<bool(const net::FrameHeader& header, const std::string& payload)>;
  bool AwaitFrame(const Condition& condition);

  base::FileDescriptor fd_;
  std::string received_;
  bool closed_ = false;
};

}  // namespace simile::integration
