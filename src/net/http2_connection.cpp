#include "net/http2_connection.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace simile::net {
namespace {

using namespace std::chrono_literals;

// Bytes that one connection reads or writes before others have their turn.
constexpr std::size_t kTurnBytes = 1U << 20;
// How many answers to frames may wait behind a write that is stuck. Beyond it nothing is read from
// the peer.
constexpr std::size_t kUnwrittenFramesMax = 200;
// How often a connection with calls looks at their progress.
constexpr std::chrono::seconds kLookInterval{1};
// How soon a connection tries again after there was no memory for it.
constexpr std::chrono::milliseconds kRetryInterval{50};
// How long a drain waits for the answer to its ping.
constexpr std::chrono::seconds kDrainPingMax{1};
// How soon a peer that resets a call before its first one must begin a call. Otherwise it breaks
// the rules of HTTP/2.
constexpr std::chrono::milliseconds kFirstCallMax{200};
// How long a connection that has ended is read, so that what was written last arrives.
constexpr std::chrono::seconds kLastBytesMax{2};

Violation ToViolation(int error) {
  if (error == NGHTTP2_ERR_BAD_CLIENT_MAGIC) return Violation::kNotHttp2;
  if (error == NGHTTP2_ERR_FLOODED) return Violation::kPings;  // 1,000 of them came at once
  return error == NGHTTP2_ERR_NOMEM ? Violation::kMemory : Violation::kProtocol;
}

}  // namespace

Http2Connection::Http2Connection(LoopConnections& group, AdmittedSocket socket, SSL_CTX* tls,
                                 std::shared_ptr<PeerBudget> budget)
    : group_(group),
      limits_(group.parts.limits),
      stream_(std::move(socket.fd), tls),
      peer_(std::move(socket.peer)),
      budget_(std::move(budget)),
      place_(std::move(socket.place)),
      rates_(group.parts.clock) {
  ++group_.count;
}

Http2Connection::~Http2Connection() {
  while (streams_ != nullptr) RemoveStream(*streams_);
  session_.reset();
  if (has_begun_) {
    (previous_ == nullptr ? group_.first : previous_->next_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
  }
  --group_.count;
}

void Http2Connection::Run() {
  if (!has_begun_) return Adopt();
  if (is_closed_) return delete this;
  if (violation_ != Violation::kNone) return Cut(violation_);
  try {
    if (may_read_more_ && !is_blocked_) {
      Read();
      WriteSoon();  // the loop lets the executor see what came, and does not wait before that
    }
    if (!is_closed_) Write();
  } catch (const std::bad_alloc&) {  // nothing is lost yet
    group_.loop.Arm(*this, group_.loop.now() + kRetryInterval);
  }
}

void Http2Connection::Adopt() {
  has_begun_ = true;
  next_ = std::exchange(group_.first, this);
  if (next_ != nullptr) next_->previous_ = this;
  began_at_ = heard_at_ = idle_since_ = group_.loop.now();
  if (group_.parts.server_stops || !group_.loop.Watch(stream_.fd(), *this)) return Close(true);
  ArmTimer();
  if (!stream_.is_encrypted()) FinishHandshake();
}

bool Http2Connection::FinishHandshake() {
  switch (stream_.Handshake()) {
    case ByteStream::State::kGoesOn:
      break;
    case ByteStream::State::kWouldBlock:
      return false;
    default:
      Close(false);
      return false;
  }
  try {
    peer_->certificate_names = stream_.VerifiedNames();
    is_ready_ = MakeSession();
  } catch (const std::bad_alloc&) {
  }
  if (!is_ready_) Cut(Violation::kMemory);
  return is_ready_;
}

void Http2Connection::OnEvents(std::uint32_t events) {
  if (is_closed_) return;
  if ((events & EPOLLOUT) != 0) is_blocked_ = false;
  is_hung_up_ = is_hung_up_ || (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  if ((events & EPOLLIN) != 0 || is_hung_up_) stream_.SetReadable();
  const bool was_ready = is_ready_;
  if (!is_ready_ && !FinishHandshake()) return;
  try {
    // Over TLS bytes may have come with the end of the handshake.
    if (!was_ready || (events & EPOLLIN) != 0 || is_hung_up_ || may_read_more_ ||
        stream_.is_encrypted()) {
      Read();
    }
  } catch (const std::bad_alloc&) {
    Cut(Violation::kMemory);
  }
  WriteSoon();
}

void Http2Connection::Read() {
  may_read_more_ = false;
  for (std::size_t turn_bytes = 0; !is_closed_;) {
    const bool takes_nothing = is_blocked_ && nghttp2_session_get_outbound_queue_size(
                                                  session_.get()) > kUnwrittenFramesMax;
    if (has_ended_writing_ && turn_bytes > kTurnBytes) return Close(true);
    if (takes_nothing || turn_bytes > kTurnBytes) {
      may_read_more_ = true;  // once the socket takes something, or in the next turn
      return WriteSoon();
    }
    if (is_hung_up_) stream_.SetReadable();  // up to the end
    const ByteStream::Result result = stream_.Read(group_.loop.read_buffer());
    if (result.state == ByteStream::State::kWouldBlock) return;
    if (result.state != ByteStream::State::kGoesOn) return Close(false);
    heard_at_ = group_.loop.now();
    pinged_at_ = Clock::TimePoint::max();
    turn_bytes += result.bytes;
    Receive(std::span(group_.loop.read_buffer()).first(result.bytes));
    // epoll reports bytes that arrive later.
    const bool is_all = result.bytes < EventLoop::kReadBytes && !stream_.is_encrypted();
    if (is_all && !is_hung_up_) return;
  }
}

void Http2Connection::Receive(std::span<const std::uint8_t> bytes) {
  if (has_ended_writing_) return;  // nothing that the peer says matters any more
  ssize_t result = 0;
  const int resets = idle_resets_.Filter(bytes, [&](std::span<const std::uint8_t> piece) {
    if (result < 0) return;
    result = nghttp2_session_mem_recv(session_.get(), piece.data(), piece.size());
  });
  if (result < 0) {
    return Cut(violation_ == Violation::kNone ? ToViolation(static_cast<int>(result)) : violation_);
  }
  for (int i = 0; i < resets; ++i) {
    if (!budget_->CountReset()) return Cut(Violation::kResets);
  }
  if (idle_resets_.has_call()) {
    first_call_by_ = Clock::TimePoint::max();
  } else if (resets > 0) {
    first_call_by_ = std::min(first_call_by_, group_.loop.now() + kFirstCallMax);
    ArmTimer();
  }
}

bool Http2Connection::FillQueue() {
  while (queue_.bytes() < kFillBytes) {
    queue_.Reserve(kFrameBytes + kContinuationBytes);  // without memory it is tried again later
    const std::size_t before = queue_.bytes();
    const std::uint8_t* frame = nullptr;
    const ssize_t count = nghttp2_session_mem_send(session_.get(), &frame);
    if (count < 0) return false;
    try {
      if (count > 0) queue_.Add({frame, static_cast<std::size_t>(count)});
    } catch (const std::bad_alloc&) {  // DATA before it took the space: the frame is lost
      return false;
    }
    if (queue_.bytes() == before) break;
  }
  return true;
}

void Http2Connection::Write() {
  constexpr std::size_t kPiecesMax = 64;
  if (session_ == nullptr || has_ended_writing_) return;
  if (memory_.spare == nullptr) memory_.spare.reset(::operator new(kSpareBytes, std::nothrow));
  // Unwritten bytes count as an open call: their own call may be gone already.
  if (!std::exchange(is_writing_, true)) group_.calls->Add();
  std::size_t turn_bytes = 0;
  while (!is_blocked_) {
    if (queue_.empty() && !stream_.has_kept_bytes()) queue_take_by_ = Clock::TimePoint::max();
    if (queue_.empty() && !FillQueue()) {
      return Cut(violation_ == Violation::kNone ? Violation::kMemory : violation_);
    }
    if (queue_.empty() && !stream_.has_kept_bytes()) break;
    std::array<iovec, kPiecesMax> space;
    const ByteStream::Result result = stream_.Write(queue_.Front(space));
    if (result.state == ByteStream::State::kWouldBlock) {
      is_blocked_ = true;
    } else if (result.state != ByteStream::State::kGoesOn) {
      return Close(false);
    }
    queue_.Drop(result.bytes);
    turn_bytes += result.bytes;
    if (turn_bytes > kTurnBytes) return WriteSoon();
  }
  if (!queue_.empty() || stream_.has_kept_bytes()) {
    if (time() > group_.loop.now() + kLookInterval) ArmTimer();
    return;
  }
  is_writing_ = false;
  group_.calls->Remove();
  if (nghttp2_session_want_read(session_.get()) == 0 &&
      nghttp2_session_want_write(session_.get()) == 0) {
    EndWriting();
  }
}

void Http2Connection::EndWriting() {
  if (std::exchange(has_ended_writing_, true)) return;
  while (streams_ != nullptr) RemoveStream(*streams_);
  stream_.EndWriting();
  group_.loop.Arm(*this, group_.loop.now() + kLastBytesMax);
}

void Http2Connection::FailSoon() {
  violation_ = Violation::kMemory;
  WriteSoon();
}

void Http2Connection::Cut(Violation violation) {
  if (is_closed_) return;
  if (violation != Violation::kNone) {
    group_.parts.cut_reports.Report(violation);
    SayGoodbye(violation);
  }
  Close(!has_ended_writing_);
}

// Writes GOAWAY by hand, because nghttp2 sends nothing after a fatal error. Does nothing when a
// part of another frame was written before. Clients of gRPC ping less often when they read
// "too_many_pings".
void Http2Connection::SayGoodbye(Violation violation) {
  if (session_ == nullptr || !queue_.empty() || stream_.has_kept_bytes()) return;
  const std::string_view text =
      violation == Violation::kPings ? "too_many_pings" : ViolationText(violation);
  const std::uint32_t code = violation == Violation::kProtocol || violation == Violation::kNotHttp2
                                 ? NGHTTP2_PROTOCOL_ERROR
                                 : NGHTTP2_ENHANCE_YOUR_CALM;
  std::array<std::uint8_t, 128> frame{};
  std::size_t size = 0;
  const auto put = [&](std::uint32_t number, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
      frame[size++] = static_cast<std::uint8_t>(number >> shift);
    }
  };
  put(static_cast<std::uint32_t>(8 + text.size()), 3);
  put(NGHTTP2_GOAWAY, 1);
  put(0, 1);
  put(0, 4);
  put(static_cast<std::uint32_t>(nghttp2_session_get_last_proc_stream_id(session_.get())), 4);
  put(code, 4);
  std::memcpy(frame.data() + size, text.data(), text.size());
  const iovec piece{frame.data(), size + text.size()};
  try {
    static_cast<void>(stream_.Write({&piece, 1}));
  } catch (const std::bad_alloc&) {  // then the peer gets no GOAWAY
  }
}

void Http2Connection::Close(bool by_reset) {
  if (std::exchange(is_closed_, true)) return;
  if (std::exchange(is_writing_, false)) group_.calls->Remove();
  while (streams_ != nullptr) RemoveStream(*streams_);
  Disarm();
  stream_.Close(by_reset);
  WriteSoon();  // destroys it, when nothing uses it any more
}

void Http2Connection::BeginDrain() {
  if (is_closed_ || drain_ != Drain::kNone) return;
  drain_ = Drain::kAnnounced;
  drained_at_ = group_.loop.now();
  if (session_ == nullptr || !is_open_) return Close(false);
  if (nghttp2_submit_shutdown_notice(session_.get()) != 0) return FailSoon();
  ArmTimer();
  WriteSoon();
}

void Http2Connection::EndDrain() {
  drain_ = Drain::kLastStreamSaid;
  const std::int32_t last = nghttp2_session_get_last_proc_stream_id(session_.get());
  Submitted(
      nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, nullptr, 0));
}

void Http2Connection::StopCalls() {
  for (Http2Stream *stream = streams_, *next = nullptr; stream != nullptr; stream = next) {
    next = stream->next_;
    stream->StopCall();
  }
}

void Http2Connection::OnTime() {
  const Clock::TimePoint now = group_.loop.now();
  if (has_ended_writing_) return Close(false);
  if (is_writing_ && !is_blocked_) WriteSoon();  // there was no memory before
  if (now >= queue_take_by_) {
    group_.parts.metrics.CountRejected(observe::Rejection::kReplyNotTaken);
    return Close(true);
  }
  if (!is_open_) {
    if (now >= began_at_ + limits_.handshake_timeout) return Close(true);
    return ArmTimer();
  }
  if (now >= first_call_by_) return Cut(Violation::kProtocol);
  const bool is_silent =
      pinged_at_ != Clock::TimePoint::max() && now >= pinged_at_ + limits_.keepalive_timeout;
  const bool is_overdue = drain_ != Drain::kNone && !group_.parts.server_stops &&
                          now >= drained_at_ + limits_.connection_age_grace;
  if (is_silent || is_overdue) return Close(true);
  if (pinged_at_ == Clock::TimePoint::max() && now >= heard_at_ + limits_.keepalive_time) {
    pinged_at_ = now;
    Submitted(nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, nullptr));
  }
  const bool is_idle = streams_ == nullptr && now >= idle_since_ + limits_.connection_idle_max;
  const bool is_old =
      limits_.connection_age_max.count() > 0 && now >= began_at_ + limits_.connection_age_max;
  if (is_idle || is_old) BeginDrain();
  if (drain_ == Drain::kAnnounced && now >= drained_at_ + kDrainPingMax) EndDrain();
  for (Http2Stream *stream = streams_, *next = nullptr; stream != nullptr; stream = next) {
    next = stream->next_;
    stream->LookAtProgress();
  }
  ArmTimer();
}

Clock::TimePoint Http2Connection::NextTime() const {
  if (!is_open_) return began_at_ + limits_.handshake_timeout;
  Clock::TimePoint next = pinged_at_ == Clock::TimePoint::max()
                              ? heard_at_ + limits_.keepalive_time
                              : pinged_at_ + limits_.keepalive_timeout;
  next = std::min(next, first_call_by_);
  if (streams_ != nullptr || is_writing_) {
    next = std::min(next, group_.loop.now() + kLookInterval);
  }
  if (drain_ == Drain::kNone) {
    if (streams_ == nullptr) next = std::min(next, idle_since_ + limits_.connection_idle_max);
    if (limits_.connection_age_max.count() > 0) {
      next = std::min(next, began_at_ + limits_.connection_age_max);
    }
  } else {
    next = std::min(next, group_.loop.now() + kLookInterval);
  }
  return next;
}

void Http2Connection::ArmTimer() {
  if (!is_closed_ && !has_ended_writing_) group_.loop.Arm(*this, NextTime());
}

Http2Stream& Http2Connection::AddStream(std::int32_t id) {
  auto* const stream = new Http2Stream(*this, id);  // destroys itself
  stream->next_ = std::exchange(streams_, stream);
  if (stream->next_ != nullptr) stream->next_->previous_ = stream;
  if (is_armed() && time() > group_.loop.now() + kLookInterval) ArmTimer();
  return *stream;
}

void Http2Connection::RemoveStream(Http2Stream& stream) {
  (stream.previous_ == nullptr ? streams_ : stream.previous_->next_) = stream.next_;
  if (stream.next_ != nullptr) stream.next_->previous_ = stream.previous_;
  if (streams_ == nullptr) idle_since_ = group_.loop.now();
  stream.Close();
}

void Http2Connection::RaiseFirstWindow(std::uint32_t bytes) {
  // A fifth more: the next message may be a little larger.
  constexpr std::uint32_t kWindowMax = 1U << 30;
  const std::uint32_t wanted = std::min(bytes + bytes / 5, kWindowMax);
  if (wanted <= first_window_) return;
  first_window_ = wanted;
  const nghttp2_settings_entry raised{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, wanted};
  Submitted(nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, &raised, 1));
  if (wanted <= kConnectionWindow / 2) return;
  Submitted(nghttp2_session_set_local_window_size(session_.get(), NGHTTP2_FLAG_NONE, 0,
                                                  static_cast<std::int32_t>(2 * wanted - 1)));
}

}  // namespace simile::net
