#include "net/http2_connection.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include <absl/functional/function_ref.h>

namespace simile::net {
namespace {

using namespace std::chrono_literals;

// Bytes that one connection reads or writes before others have their turn.
constexpr std::size_t kTurnBytes = 1U << 20;
// Bytes of frames that are taken from nghttp2 at a time.
constexpr std::size_t kFillBytes = 256U << 10;
// Answers to frames that wait behind a write that is stuck; beyond it the peer is not heard.
constexpr std::size_t kUnwrittenFramesMax = 200;
// A call that exceeds limits.metadata_bytes_max fails at the end of its headers. Until then its
// header block may have kMetadataTimes the limit and one frame more, and unpacked kUnpackedTimes
// the limit.
constexpr std::size_t kMetadataTimes = 4;
constexpr std::size_t kUnpackedTimes = 64;
constexpr std::size_t kFrameBytes = 16U << 10;
constexpr std::size_t kContinuationBytes = 64;  // that a CONTINUATION frame costs
// How often a connection with calls looks at their progress.
constexpr std::chrono::seconds kLookInterval{1};
// When a connection tries again for which there was no memory.
constexpr std::chrono::milliseconds kRetryInterval{50};
// A peer that does not answer the ping of a drain is sent away without.
constexpr std::chrono::seconds kDrainPingMax{1};
constexpr std::array<std::uint8_t, 8> kDrainPing = {'d', 'r', 'a', 'i', 'n', 'i', 'n', 'g'};
// A peer that resets a call before any has come begins one soon, or breaks the rules.
constexpr std::chrono::milliseconds kFirstCallMax{200};
// How long a connection that has ended is read, so that what was written last arrives.
constexpr std::chrono::seconds kLastBytesMax{2};

const nghttp2_option* SessionOption() {
  static const nghttp2_option* const option = [] {
    nghttp2_option* made = nullptr;
    if (nghttp2_option_new(&made) != 0) throw std::bad_alloc();
    // Windows are given back when handlers have taken the bytes.
    nghttp2_option_set_no_auto_window_update(made, 1);
    // Resets are counted by peer instead of by connection.
    constexpr std::uint64_t kNoLimit = 1'000'000'000;
    nghttp2_option_set_stream_reset_rate_limit(made, kNoLimit, kNoLimit);
    // nghttp2 reports frames of unknown types, too, so that they can be counted.
    for (int type = NGHTTP2_CONTINUATION + 1; type <= 0xff; ++type) {
      nghttp2_option_set_user_recv_extension_type(made, static_cast<std::uint8_t>(type));
    }
    return made;
  }();
  return option;
}

Violation ViolationOf(int error) {
  if (error == NGHTTP2_ERR_BAD_CLIENT_MAGIC) return Violation::kNotHttp2;
  if (error == NGHTTP2_ERR_FLOODED) return Violation::kPings;  // 1,000 of them came at once
  return error == NGHTTP2_ERR_NOMEM ? Violation::kMemory : Violation::kProtocol;
}

}  // namespace

// What nghttp2 calls. It is not made for exceptions.
struct Http2Connection::Callbacks {
  static Http2Connection& Of(void* data) { return *static_cast<Http2Connection*>(data); }
  static Http2Stream* StreamOf(nghttp2_session* session, std::int32_t id) {
    return static_cast<Http2Stream*>(nghttp2_session_get_stream_user_data(session, id));
  }
  // Has the connection cut unless it is kNone.
  static int Check(Http2Connection& connection, Violation violation) {
    if (violation == Violation::kNone) return 0;
    connection.violation_ = violation;
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  // What lacks memory for a step of a call ends the call.
  static void ForCall(Http2Stream* stream, absl::FunctionRef<void(Http2Stream&)> step) {
    if (stream == nullptr) return;
    try {
      step(*stream);
    } catch (const std::bad_alloc&) {
      stream->Fail();
    }
  }

  static int OnBeginFrame(nghttp2_session* /*session*/, const nghttp2_frame_hd* frame, void* data) {
    return Check(Of(data), Of(data).CountFrame(*frame));
  }

  static int OnBeginHeaders(nghttp2_session* session, const nghttp2_frame* frame, void* data) {
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    // nghttp2 refuses the call when GOAWAY is sent, and its client sends it elsewhere.
    if (Of(data).drain_ == Drain::kLastStreamSaid) return 0;
    try {
      Http2Stream& stream = Of(data).AddStream(frame->hd.stream_id);
      nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, &stream);
      return 0;
    } catch (const std::bad_alloc&) {
      return 0;  // OnFrame refuses it
    }
  }

  static int OnHeader(nghttp2_session* session, const nghttp2_frame* frame, nghttp2_rcbuf* name,
                      nghttp2_rcbuf* value, std::uint8_t /*flags*/, void* data) {
    Http2Stream* const stream = StreamOf(session, frame->hd.stream_id);
    const auto text = [](nghttp2_rcbuf* buffer) {
      const nghttp2_vec bytes = nghttp2_rcbuf_get_buf(buffer);
      return std::string_view(reinterpret_cast<const char*>(bytes.base), bytes.len);
    };
    ForCall(stream, [&](Http2Stream& call) { call.OnHeader(text(name), text(value)); });
    const std::size_t bytes_max = kUnpackedTimes * Of(data).limits_.metadata_bytes_max;
    const bool is_too_much = stream != nullptr && stream->header_bytes() > bytes_max;
    return Check(Of(data), is_too_much ? Violation::kHeaderBytes : Violation::kNone);
  }

  static int OnFrame(nghttp2_session* session, const nghttp2_frame* frame, void* data) {
    Http2Connection& connection = Of(data);
    const bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
        connection.header_block_bytes_ = 0;
        if (frame->headers.cat == NGHTTP2_HCAT_REQUEST &&
            connection.drain_ != Drain::kLastStreamSaid &&
            StreamOf(session, frame->hd.stream_id) == nullptr) {
          return Http2Stream::RefuseForMemory(session, frame->hd.stream_id);
        }
        ForCall(StreamOf(session, frame->hd.stream_id),
                [is_end](Http2Stream& call) { call.OnHeadersEnd(is_end); });
        return 0;
      case NGHTTP2_DATA:
        if (is_end) {
          ForCall(StreamOf(session, frame->hd.stream_id),
                  [](Http2Stream& call) { call.OnRequestEnd(); });
        } else if (frame->hd.length == frame->data.padlen) {
          const bool is_allowed = connection.budget_->CountEmptyFrame();
          return Check(connection, is_allowed ? Violation::kNone : Violation::kEmptyData);
        }
        return 0;
      case NGHTTP2_SETTINGS:
        if (std::exchange(connection.is_open_, true)) return 0;
        connection.place_.Open();
        connection.ArmTimer();
        return 0;
      case NGHTTP2_PING:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0 && connection.drain_ == Drain::kAnnounced &&
            std::ranges::equal(frame->ping.opaque_data, kDrainPing)) {
          connection.EndDrain();
        }
        return 0;
      default:
        return 0;
    }
  }

  static int OnData(nghttp2_session* session, std::uint8_t /*flags*/, std::int32_t id,
                    const std::uint8_t* bytes, std::size_t count, void* /*data*/) {
    if (nghttp2_session_consume_connection(session, count) == NGHTTP2_ERR_NOMEM) {
      return NGHTTP2_ERR_NOMEM;
    }
    Http2Stream* const stream = StreamOf(session, id);
    if (stream == nullptr) {
      nghttp2_session_consume_stream(session, id, count);
    } else {
      ForCall(stream, [&](Http2Stream& call) { call.OnData({bytes, count}); });
    }
    return 0;
  }

  static int OnClose(nghttp2_session* session, std::int32_t id, std::uint32_t /*code*/,
                     void* data) {
    Http2Stream* const stream = StreamOf(session, id);
    if (stream == nullptr) return 0;
    nghttp2_session_set_stream_user_data(session, id, nullptr);
    Of(data).RemoveStream(*stream);
    return 0;
  }

  static int OnSent(nghttp2_session* session, const nghttp2_frame* frame, void* data) {
    Http2Connection& connection = Of(data);
    const std::uint8_t type = frame->hd.type;
    if (type == NGHTTP2_RST_STREAM) {
      // A reset by the server is mostly the peer's doing.
      const std::uint32_t code = frame->rst_stream.error_code;
      const bool is_ours =
          code == NGHTTP2_NO_ERROR || code == NGHTTP2_CANCEL || code == NGHTTP2_ENHANCE_YOUR_CALM;
      const bool is_too_often = !is_ours && !connection.budget_->CountReset();
      return Check(connection, is_too_often ? Violation::kResets : Violation::kNone);
    }
    if (type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) {
      // nghttp2 has found that the peer breaks the protocol, and ends the session.
      connection.group_.parts.cut_reports.Report(Violation::kProtocol);
      return 0;
    }
    if (type == NGHTTP2_GOAWAY && connection.drain_ == Drain::kAnnounced) {
      // Its answer says that the peer knows.
      return nghttp2_submit_ping(session, NGHTTP2_FLAG_NONE, kDrainPing.data());
    }
    if (type != NGHTTP2_HEADERS && type != NGHTTP2_DATA) return 0;
    connection.rates_.OnFrameSent();
    if (type != NGHTTP2_HEADERS || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    connection.budget_->CountAnswer();
    Http2Stream* const stream = StreamOf(session, frame->hd.stream_id);
    if (stream != nullptr) stream->OnAnswered();
    return 0;
  }

  // Without this a call whose headers are too long would wait for ever.
  static int OnNotSent(nghttp2_session* session, const nghttp2_frame* frame, int /*error*/,
                       void* /*data*/) {
    if (frame->hd.type == NGHTTP2_HEADERS && StreamOf(session, frame->hd.stream_id) != nullptr) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                NGHTTP2_INTERNAL_ERROR);
    }
    return 0;
  }

  static int SendData(nghttp2_session* /*session*/, nghttp2_frame* /*frame*/,
                      const std::uint8_t* header, std::size_t length, nghttp2_data_source* source,
                      void* data) {
    constexpr std::size_t kHeaderBytes = 9;
    Http2Connection& connection = Of(data);
    auto& stream = *static_cast<Http2Stream*>(source->ptr);
    try {
      connection.queue_.Add({header, kHeaderBytes});
      if (length > 0) connection.queue_.Add(stream.message(), stream.offset(), length);
    } catch (const std::bad_alloc&) {
      return Check(connection, Violation::kMemory);
    }
    stream.OnDataTaken(length);
    return connection.queue_.bytes() < kFillBytes ? 0 : NGHTTP2_ERR_PAUSE;
  }

  // Frames of unknown types are counted and then forgotten.
  static int Unpack(nghttp2_session* /*session*/, void** /*payload*/,
                    const nghttp2_frame_hd* /*frame*/, void* /*data*/) {
    return NGHTTP2_ERR_CANCEL;
  }

  static const nghttp2_session_callbacks* Get() {
    static nghttp2_session_callbacks* const callbacks = [] {
      nghttp2_session_callbacks* made = nullptr;
      if (nghttp2_session_callbacks_new(&made) != 0) throw std::bad_alloc();
      nghttp2_session_callbacks_set_on_begin_frame_callback(made, &OnBeginFrame);
      nghttp2_session_callbacks_set_on_begin_headers_callback(made, &OnBeginHeaders);
      nghttp2_session_callbacks_set_on_header_callback2(made, &OnHeader);
      nghttp2_session_callbacks_set_on_frame_recv_callback(made, &OnFrame);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, &OnData);
      nghttp2_session_callbacks_set_on_stream_close_callback(made, &OnClose);
      nghttp2_session_callbacks_set_on_frame_send_callback(made, &OnSent);
      nghttp2_session_callbacks_set_on_frame_not_send_callback(made, &OnNotSent);
      nghttp2_session_callbacks_set_send_data_callback(made, &SendData);
      nghttp2_session_callbacks_set_unpack_extension_callback(made, &Unpack);
      return made;
    }();
    return callbacks;
  }
};

Http2Connection::Http2Connection(LoopConnections& group, Socket socket)
    : group_(group),
      limits_(group.parts.limits),
      stream_(std::move(socket.fd), socket.tls),
      peer_(std::move(socket.peer)),
      budget_(std::move(socket.budget)),
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

bool Http2Connection::MakeSession() {
  memory_.most = limits_.session_bytes_max;
  session_memory_.mem_user_data = &memory_;
  static constexpr auto memory_of = [](void* data) -> CountedMemory& {
    return *static_cast<CountedMemory*>(data);
  };
  session_memory_.malloc = [](std::size_t size, void* data) {
    return memory_of(data).Allocate(size);
  };
  session_memory_.free = [](void* block, void* data) { memory_of(data).Free(block); };
  session_memory_.calloc = [](std::size_t count, std::size_t size, void* data) {
    void* const block = memory_of(data).Allocate(count * size);
    return block == nullptr ? nullptr : std::memset(block, 0, count * size);
  };
  session_memory_.realloc = [](void* block, std::size_t size, void* data) {
    return memory_of(data).Reallocate(block, size);
  };
  nghttp2_session* made = nullptr;
  if (nghttp2_session_server_new3(&made, Callbacks::Get(), this, SessionOption(),
                                  &session_memory_) != 0) {
    return false;
  }
  session_.reset(made);
  const std::array<nghttp2_settings_entry, 3> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits_.streams_per_connection_max},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits_.metadata_bytes_max},
  }};
  WriteSoon();
  return nghttp2_submit_settings(made, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0 &&
         nghttp2_session_set_local_window_size(made, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) == 0;
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
    return Cut(violation_ == Violation::kNone ? ViolationOf(static_cast<int>(result)) : violation_);
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

// After a fatal error nghttp2 sends nothing any more: the frame is written by hand, unless a part
// of another one was written before. Clients of gRPC ping less often when they read
// "too_many_pings".
void Http2Connection::SayGoodbye(Violation violation) {
  if (session_ == nullptr || !queue_.empty() || stream_.has_kept_bytes()) return;
  const std::string_view text =
      violation == Violation::kPings ? "too_many_pings" : TextOf(violation);
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
  } catch (const std::bad_alloc&) {  // then without a word
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
  if (nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, nullptr,
                            0) != 0) {
    FailSoon();
  }
  WriteSoon();
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
    if (nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, nullptr) != 0) FailSoon();
    WriteSoon();
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

Violation Http2Connection::CountFrame(const nghttp2_frame_hd& frame) {
  switch (frame.type) {
    case NGHTTP2_DATA:
      return Violation::kNone;  // counted when it is known how much of it is padding
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION: {
      const bool goes_on = frame.type == NGHTTP2_CONTINUATION;
      header_block_bytes_ = (goes_on ? header_block_bytes_ + kContinuationBytes : 0) + frame.length;
      const std::size_t bytes_max = kMetadataTimes * limits_.metadata_bytes_max + kFrameBytes;
      return header_block_bytes_ > bytes_max ? Violation::kHeaderBytes : Violation::kNone;
    }
    case NGHTTP2_RST_STREAM:
      return budget_->CountReset() ? Violation::kNone : Violation::kResets;
    default:
      return rates_.Count(frame.type);
  }
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
  // A fifth more: the next one may be a little larger.
  constexpr std::uint32_t kWindowMax = 1U << 30;
  const std::uint32_t wanted = std::min(bytes + bytes / 5, kWindowMax);
  if (wanted <= first_window_) return;
  first_window_ = wanted;
  const nghttp2_settings_entry raised{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, wanted};
  if (nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, &raised, 1) != 0) FailSoon();
  if (wanted > kConnectionWindow / 2 &&
      nghttp2_session_set_local_window_size(session_.get(), NGHTTP2_FLAG_NONE, 0,
                                            static_cast<std::int32_t>(2 * wanted - 1)) != 0) {
    FailSoon();
  }
}

}  // namespace simile::net
