#include "net/http2_connection.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include <absl/functional/function_ref.h>

// Makes a session of nghttp2, with the functions that the session calls.
namespace simile::net {
namespace {

// A call that exceeds limits.metadata_bytes_max fails at the end of its headers. The connection is
// cut before when the header block exceeds kMetadataTimes the limit and one frame, or
// kUnpackedTimes the limit unpacked.
constexpr std::size_t kMetadataTimes = 4;
constexpr std::size_t kUnpackedTimes = 64;

constexpr std::array<std::uint8_t, 8> kDrainPing = {'d', 'r', 'a', 'i', 'n', 'i', 'n', 'g'};

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

}  // namespace

// What nghttp2 calls. None of these functions throws: nghttp2 is not made for exceptions.
struct Http2Connection::Callbacks {
  static Http2Connection& Of(void* data) { return *static_cast<Http2Connection*>(data); }
  static Http2Stream* StreamOf(nghttp2_session* session, std::int32_t id) {
    return static_cast<Http2Stream*>(nghttp2_session_get_stream_user_data(session, id));
  }
  // Returns the result of a callback: an error, so that the connection is cut, unless the violation
  // is kNone.
  static int Check(Http2Connection& connection, Violation violation) {
    if (violation == Violation::kNone) return 0;
    connection.violation_ = violation;
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  // Runs a step of a call. Without memory for it the call ends.
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
    // After GOAWAY nghttp2 refuses the call, and the client sends it to another server.
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
      // Most resets by the server answer a fault of the peer, so they count as the peer's.
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
      // The answer to this ping says that the peer has read the GOAWAY.
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

}  // namespace simile::net
