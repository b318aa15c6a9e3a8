#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>

#include <nghttp2/nghttp2.h>

#include "net/byte_stream.h"
#include "net/connection_guards.h"
#include "net/event_loop.h"
#include "net/http2_stream.h"
#include "net/peers.h"
#include "net/rpc_call.h"
#include "observe/metrics.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::net {

// What all connections of a server share. Safe to use from any thread.
struct ConnectionParts {
  const Limits& limits;
  const Clock& clock;
  observe::Metrics& metrics;
  CutReports& cut_reports;
  const std::unordered_map<std::string_view, RpcMethod*>& methods;  // by path
  std::atomic<bool>& server_stops;
};

class Http2Connection;

// The connections of one loop.
struct LoopConnections {
  EventLoop& loop;
  const ConnectionParts parts;
  const std::shared_ptr<OpenCalls> calls = std::make_shared<OpenCalls>();
  Http2Connection* first = nullptr;  // a list; of the loop's thread
  std::atomic<std::size_t> count = 0;
};

// A connection that speaks HTTP/2 by libnghttp2, over TLS or not. Bounds what its peer makes the
// server do: the rate of each kind of frame, headers, memory, silence. Used on the loop's thread.
// Owns itself once it has begun.
class Http2Connection final : private EventLoop::Watcher,
                              private EventLoop::Task,
                              private EventLoop::Timer {
 public:
  static constexpr std::uint32_t kStreamWindow = 4U << 20;
  static constexpr std::uint32_t kConnectionWindow = 64U << 20;

  // Any thread. May throw bad_alloc.
  //   tls     null: not encrypted
  //   budget  of the peer
  Http2Connection(LoopConnections& group, AdmittedSocket socket, SSL_CTX* tls,
                  std::shared_ptr<PeerBudget> budget);
  ~Http2Connection() override;

  // Any thread. The loop owns the connection from now on.
  void Begin() { group_.loop.Post(*this); }

  // The functions below are for the loop's thread.

  // Sends GOAWAY, takes calls until the peer has seen it, and closes once all calls have ended (RFC
  // 9113, section 6.8). No call fails because of it.
  void BeginDrain();
  void StopCalls();
  // Closes at once; its calls lose their caller.
  void Cut(Violation violation);
  Http2Connection* next() const { return next_; }

  // For streams.
  LoopConnections& group() const { return group_; }
  nghttp2_session* session() const { return session_.get(); }
  std::shared_ptr<const Peer> peer() const { return peer_; }
  const std::shared_ptr<PeerBudget>& budget() const { return budget_; }
  // Writes at the end of the turn: frames were submitted, or may be sent now.
  void WriteSoon() { group_.loop.Soon(*this); }
  // There is no memory for what must be sent: the connection is cut soon.
  void FailSoon();
  // Writes soon what was submitted to nghttp2, or fails when nghttp2 had no memory for it.
  //   result  of the call of nghttp2; 0 for success
  void Submitted(int result) { result == 0 ? WriteSoon() : FailSoon(); }
  // The last bytes of a message are in the queue. The connection is cut when the peer has not taken
  // them by `take_by`.
  void OnMessageQueued(Clock::TimePoint take_by) {
    queue_take_by_ = std::min(queue_take_by_, take_by);
  }
  // A message declares this many bytes. Later streams begin with a window for a message of this
  // size.
  void RaiseFirstWindow(std::uint32_t bytes);

 private:
  // Bytes of frames that are taken from nghttp2 at a time.
  static constexpr std::size_t kFillBytes = 256U << 10;
  static constexpr std::size_t kFrameBytes = 16U << 10;
  static constexpr std::size_t kContinuationBytes = 64;  // counted for each CONTINUATION frame

  struct Callbacks;  // what nghttp2 calls
  struct DeleteSession {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };
  enum class Drain : std::uint8_t { kNone, kAnnounced, kLastStreamSaid };

  void OnEvents(std::uint32_t events) override;
  void Run() override;     // begins; later: reads what was left, writes, or destroys itself
  void OnTime() override;  // checks each of the times

  void Adopt();
  // False while the handshake goes on, or once it is closed.
  bool FinishHandshake();
  bool MakeSession();
  void Read();
  void Receive(std::span<const std::uint8_t> bytes);
  void Write();
  // Takes frames from nghttp2 into the queue. False when the session is broken.
  bool FillQueue();
  void Close(bool by_reset);
  // Everything is written: closes when the peer closes, or after kLastBytesMax.
  void EndWriting();
  void SayGoodbye(Violation violation);
  void EndDrain();
  void ArmTimer();
  Clock::TimePoint NextTime() const;

  Violation CountFrame(const nghttp2_frame_hd& frame);
  Http2Stream& AddStream(std::int32_t id);
  void RemoveStream(Http2Stream& stream);

  LoopConnections& group_;
  const Limits& limits_;
  ByteStream stream_;
  const std::shared_ptr<Peer> peer_;  // changes until the handshake is complete
  const std::shared_ptr<PeerBudget> budget_;
  ConnectionTable::Place place_;
  Http2Connection* previous_ = nullptr;  // of the group's list
  Http2Connection* next_ = nullptr;

  IdleResets idle_resets_;
  CountedMemory memory_;
  nghttp2_mem session_memory_{};
  std::unique_ptr<nghttp2_session, DeleteSession> session_;
  Http2Stream* streams_ = nullptr;  // a list
  WriteQueue queue_;
  Clock::TimePoint queue_take_by_ = Clock::TimePoint::max();  // of the messages in it

  bool has_begun_ = false;
  bool is_closed_ = false;
  bool is_ready_ = false;       // the handshake is complete
  bool is_open_ = false;        // the peer has sent its settings
  bool is_blocked_ = false;     // the socket takes nothing now
  bool may_read_more_ = false;  // bytes were left in the socket
  bool is_writing_ = false;     // bytes wait for the socket
  bool has_ended_writing_ = false;
  bool is_hung_up_ = false;  // the peer sends no more, or the socket is broken
  Drain drain_ = Drain::kNone;
  Violation violation_ = Violation::kNone;
  std::uint32_t first_window_ = kStreamWindow;  // of new streams
  std::size_t header_block_bytes_ = 0;          // since the last END_HEADERS
  FrameRates rates_;

  Clock::TimePoint began_at_;
  Clock::TimePoint heard_at_;
  Clock::TimePoint idle_since_;
  Clock::TimePoint drained_at_;
  Clock::TimePoint pinged_at_ = Clock::TimePoint::max();  // of a ping without an answer so far
  // By when its first call must come: set when the peer resets a call before its first one.
  Clock::TimePoint first_call_by_ = Clock::TimePoint::max();
};

}  // namespace simile::net
