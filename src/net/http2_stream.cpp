#include "net/http2_stream.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <new>

#include <fmt/format.h>

#include "net/grpc_wire.h"
#include "net/http2_connection.h"

namespace simile::net {
namespace {

// Clients drop trailers of more than 8 KiB.
constexpr std::size_t kDetailsBytesMax = 5U << 10;
constexpr char kOutOfMemory[] = "out of memory";
// How long a caller may send after it was answered. Clients end their request when they have read
// the answer. A reset before that would make a proxy lose the answer.
constexpr std::chrono::milliseconds kSendAfterAnswerMax{500};

std::uint8_t* Bytes(std::string_view text) {
  return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));  // nghttp2 only reads it
}

// A header of literals, which nghttp2 need not copy.
nghttp2_nv Fixed(std::string_view name, std::string_view value) {
  return {Bytes(name), Bytes(value), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

// A header that no other call has: it enters no table of HPACK.
nghttp2_nv Once(std::string_view name, std::string_view value) {
  return {Bytes(name), Bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NO_INDEX};
}

using HeaderList = std::vector<nghttp2_nv>;

void AppendMetadata(const Metadata& metadata, HeaderList& list) {
  for (const auto& [name, value] : metadata) list.push_back(Once(name, value));
}

// The end of a call as headers. Keeps the encoded texts, which the list borrows.
class EndHeaders {
 public:
  explicit EndHeaders(const CallEnd& end)
      : code_(std::to_string(static_cast<int>(end.code))),
        message_(PercentEncode(end.message)),
        details_(EncodeBinaryValue(end.details)) {
    if (details_.size() > kDetailsBytesMax) details_.clear();
  }
  void AppendTo(HeaderList& list, const CallEnd& end) const {
    if (end.code == absl::StatusCode::kOk) {
      list.push_back(Fixed("grpc-status", "0"));
    } else {
      list.push_back(Once("grpc-status", code_));
    }
    if (!message_.empty()) list.push_back(Once("grpc-message", message_));
    if (!details_.empty()) list.push_back(Once("grpc-status-details-bin", details_));
    AppendMetadata(end.trailing, list);
  }

 private:
  std::string code_;  // so short that it takes no memory
  std::string message_;
  std::string details_;
};

bool IsGrpcContentType(std::string_view value) {
  constexpr std::string_view kGrpc = "application/grpc";
  return value.starts_with(kGrpc) &&
         (value.size() == kGrpc.size() || value[kGrpc.size()] == '+' || value[kGrpc.size()] == ';');
}

// Adds a header of the caller. False when the name ends with "-bin" and the value is not base64.
bool AddMetadata(std::string_view name, std::string_view value, Metadata& metadata) {
  if (!name.ends_with("-bin")) {
    metadata.emplace_back(name, value);
    return true;
  }
  // Several values of one name may have been joined.
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t comma = std::min(value.find(',', begin), value.size());
    const auto bytes = DecodeBinaryValue(value.substr(begin, comma - begin));
    if (!bytes) return false;
    metadata.emplace_back(name, *bytes);
    begin = comma + 1;
  }
  return true;
}

ssize_t ReadStreamData(nghttp2_session* /*session*/, std::int32_t /*id*/, std::uint8_t* /*buffer*/,
                       std::size_t length, std::uint32_t* flags, nghttp2_data_source* source,
                       void* /*connection*/) {
  return static_cast<Http2Stream*>(source->ptr)->ReadData(length, *flags);
}

}  // namespace

Http2Stream::Http2Stream(Http2Connection& connection, std::int32_t id)
    : connection_(connection), id_(id), moved_at_(connection.group().loop.now()) {
  incoming_.head.peer = connection.peer();
  connection.group().calls->Add();
}

int Http2Stream::RefuseForMemory(nghttp2_session* session, std::int32_t id) {
  const std::array<nghttp2_nv, 4> headers = {
      Fixed(":status", "200"), Fixed("content-type", "application/grpc"), Fixed("grpc-status", "8"),
      Fixed("grpc-message", kOutOfMemory)};
  const int submitted =
      nghttp2_submit_response(session, id, headers.data(), headers.size(), nullptr);
  return submitted == NGHTTP2_ERR_NOMEM ? NGHTTP2_ERR_NOMEM : 0;
}

Http2Stream::~Http2Stream() { assert(call_ == nullptr && !is_posted()); }

EventLoop& Http2Stream::loop() const { return connection_.group().loop; }
std::shared_ptr<OpenCalls> Http2Stream::open_calls() const { return connection_.group().calls; }
const std::atomic<bool>& Http2Stream::server_stops() const {
  return connection_.group().parts.server_stops;
}

void Http2Stream::OnHeader(std::string_view name, std::string_view value) {
  constexpr std::size_t kBesideBytes = 32;  // as HPACK counts
  header_bytes_ += name.size() + value.size() + kBesideBytes;
  if (headers_ended_ || header_bytes_ > connection_.group().parts.limits.metadata_bytes_max) return;
  if (name.starts_with(':') || name.starts_with("grpc-") || name == "content-type" ||
      name == "te" || name == "user-agent") {
    return OnOwnHeader(name, value);
  }
  if (!AddMetadata(name, value, incoming_.head.metadata)) incoming_.has_bad_value = true;
}

void Http2Stream::OnOwnHeader(std::string_view name, std::string_view value) {
  const ConnectionParts& parts = connection_.group().parts;
  if (name == ":path") {
    const auto found = parts.methods.find(value);
    if (found != parts.methods.end()) incoming_.method = found->second;
  } else if (name == ":method") {
    incoming_.is_post = value == "POST";
  } else if (name == "content-type") {
    incoming_.is_grpc = IsGrpcContentType(value);
  } else if (name == "grpc-encoding") {
    incoming_.is_encoded = value != "identity";
  } else if (name == "grpc-timeout") {
    if (const auto timeout = ParseTimeout(value)) {
      incoming_.head.deadline = loop().now() + *timeout;
    }
  }
}

bool Http2Stream::RefuseHeaders() {
  const std::uint32_t metadata_bytes_max = connection_.group().parts.limits.metadata_bytes_max;
  if (header_bytes_ > metadata_bytes_max) {
    EndByServer(absl::StatusCode::kResourceExhausted,
                fmt::format("the metadata have {} bytes; limits.metadata_bytes_max allows {}",
                            header_bytes_, metadata_bytes_max));
  } else if (!incoming_.is_post) {
    AnswerHttp("405");
  } else if (!incoming_.is_grpc) {
    AnswerHttp("415");
  } else if (incoming_.method == nullptr) {
    EndByServer(absl::StatusCode::kUnimplemented, "unknown method");
  } else if (incoming_.has_bad_value) {
    EndByServer(absl::StatusCode::kInternal, "a value of a -bin header is not base64");
  } else {
    return false;
  }
  return true;
}

void Http2Stream::OnHeadersEnd(bool is_end) {
  if (std::exchange(headers_ended_, true)) {  // these are trailers
    if (is_end) OnRequestEnd();
    return;
  }
  request_ended_ = is_end;
  if (end_ || RefuseHeaders()) return;
  if (incoming_.head.deadline) loop().Arm(*this, *incoming_.head.deadline);
  body_.emplace(connection_.group().parts.limits.receive_bytes_max, connection_.budget(), loop(),
                static_cast<EventLoop::Task&>(*this));
  if (incoming_.method->takes_stream()) {
    BeginCall({});
  } else {
    body_->Want();
  }
  if (is_end) Progress();
}

void Http2Stream::MakeCall() {
  call_ = &incoming_.method->NewCall(*this, std::move(incoming_.head));
}

void Http2Stream::BeginCall(ReceivedMessage request) {
  MakeCall();
  call_->Begin(std::move(request));
}

void Http2Stream::OnData(std::span<const std::uint8_t> bytes) {
  moved_at_ = loop().now();
  if (!body_) return Consume(bytes.size());
  Consume(body_->Add(bytes));
  GrowWindow();
  Progress();
}

void Http2Stream::OnRequestEnd() {
  request_ended_ = true;
  if (body_) Progress();
}

void Http2Stream::Run() {
  if (is_closed_) return delete this;
  if (!body_) return;
  moved_at_ = loop().now();  // its window was closed by this server
  try {
    Consume(body_->GoOn());
    GrowWindow();
    Progress();
  } catch (const std::bad_alloc&) {
    Fail();
  }
}

void Http2Stream::WantMessage() {
  if (!body_) return Deliver(std::nullopt);
  wants_message_ = true;
  moved_at_ = loop().now();
  try {
    Consume(body_->Want());
    GrowWindow();
    Progress();
  } catch (const std::bad_alloc&) {
    Fail();
  }
}

void Http2Stream::Consume(std::size_t bytes) {
  if (bytes == 0) return;
  if (nghttp2_session_consume_stream(connection_.session(), id_, bytes) == NGHTTP2_ERR_NOMEM) {
    connection_.FailSoon();
  }
  connection_.WriteSoon();
}

// nghttp2 renews a window once half of it is consumed. Until then the window must hold the bytes
// that arrived since the last renewal, and the rest of the message.
void Http2Stream::GrowWindow() {
  if (!body_ || body_->missing_bytes() == 0) return;
  nghttp2_session* const session = connection_.session();
  const std::int64_t needed =
      std::int64_t{nghttp2_session_get_stream_effective_recv_data_length(session, id_)} +
      body_->missing_bytes();
  if (needed <= nghttp2_session_get_stream_effective_local_window_size(session, id_)) return;
  constexpr std::int64_t kWindowMax = 0x7fff'ffff;
  connection_.Submitted(nghttp2_session_set_local_window_size(
      session, NGHTTP2_FLAG_NONE, id_, static_cast<std::int32_t>(std::min(needed, kWindowMax))));
  connection_.RaiseFirstWindow(body_->declared_bytes());
}

void Http2Stream::Progress() {
  if (!body_) return;
  if (body_->problem() != RequestBody::Problem::kNone) return OnBodyProblem();
  const bool takes_stream = incoming_.method->takes_stream();
  if (!takes_stream && body_->is_whole() && body_->has_kept_bytes()) {
    return EndByServer(absl::StatusCode::kUnimplemented, "more than one request message");
  }
  if (body_->is_whole() && (takes_stream ? wants_message_ : request_ended_)) {
    ReceivedMessage message = body_->PopMessage();
    if (takes_stream) return Deliver(std::move(message));
    body_.reset();
    return BeginCall(std::move(message));
  }
  const bool is_wanted = !takes_stream || wants_message_;
  if (!request_ended_ || !is_wanted || body_->is_waiting()) return;
  if (!body_->is_between_messages()) {
    return EndByServer(absl::StatusCode::kInternal, "the request ends within a message");
  }
  if (takes_stream) return Deliver(std::nullopt);
  EndByServer(absl::StatusCode::kUnimplemented, "no request message");
}

void Http2Stream::OnBodyProblem() {
  const RequestBody::Problem problem = body_->problem();
  const std::uint32_t declared_bytes = body_->declared_bytes();
  body_.reset();
  if (problem == RequestBody::Problem::kCompressed && incoming_.is_encoded) {
    return EndByServer(absl::StatusCode::kUnimplemented,
                       "the request is compressed; this server takes identity alone");
  }
  if (problem == RequestBody::Problem::kCompressed) {
    return EndByServer(absl::StatusCode::kInternal,
                       "a message has the flag of compression, but the call names no encoding");
  }
  if (problem == RequestBody::Problem::kUnknownFlag) {
    return EndByServer(absl::StatusCode::kInternal, "a message has an unknown flag");
  }
  connection_.group().parts.metrics.CountRejected(observe::Rejection::kUnfinishedBodies);
  wants_message_ = false;
  if (call_ == nullptr) MakeCall();
  call_->Refused(problem, declared_bytes);
}

void Http2Stream::Deliver(std::optional<ReceivedMessage> message) {
  wants_message_ = false;
  if (call_ != nullptr) call_->Received(std::move(message));
}

void Http2Stream::OnAnswered() {
  DetachCall();
  is_answered_ = true;
  if (!request_ended_) loop().Arm(*this, loop().now() + kSendAfterAnswerMax);
}

void Http2Stream::Fail() { EndByServer(absl::StatusCode::kResourceExhausted, kOutOfMemory); }

ssize_t Http2Stream::ReadData(std::size_t bytes_max, std::uint32_t& flags) {
  if (message_ == nullptr && !end_) {
    is_deferred_ = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  const std::size_t left = message_ == nullptr ? 0 : message_->framed_size() - offset_;
  const std::size_t taken = std::min(bytes_max, left);
  flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (end_ && taken == left) {
    flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    SubmitEnd();
  }
  return static_cast<ssize_t>(taken);
}

void Http2Stream::OnDataTaken(std::size_t bytes) {
  if (message_ == nullptr) return;
  offset_ += bytes;
  if (offset_ < message_->framed_size()) return;
  connection_.OnMessageQueued(take_by_);
  DropMessage();
  if (!end_ && call_ != nullptr) call_->Sent(true);
}

void Http2Stream::Send(std::shared_ptr<const OutgoingMessage> message, Clock::TimePoint take_by) {
  message_ = std::move(message);
  offset_ = 0;
  take_by_ = take_by;
  SubmitHeaders();
  Resume();
}

void Http2Stream::Finish(std::shared_ptr<const OutgoingMessage> last, CallEnd end,
                         Clock::TimePoint take_by) {
  if (end_) return;
  end_ = std::move(end);
  wants_message_ = false;
  body_.reset();  // the rest of the request is of no use
  if (last == nullptr && !headers_sent_ && initial_.empty()) return SubmitEnd();
  if (last != nullptr) {
    Send(std::move(last), take_by);
  } else {
    SubmitHeaders();
    Resume();
  }
}

void Http2Stream::SendInitial(Metadata metadata) {
  if (headers_sent_ || metadata.empty()) return;
  initial_ = std::move(metadata);
  if (incoming_.method->takes_stream()) SubmitHeaders();
}

void Http2Stream::Reset() {
  DetachCall();
  DropMessage();
  SubmitReset(NGHTTP2_CANCEL);
}

void Http2Stream::StopCall() {
  if (call_ != nullptr) call_->Stop();
}

void Http2Stream::LookAtProgress() {
  const ConnectionParts& parts = connection_.group().parts;
  const Clock::TimePoint now = loop().now();
  if (message_ != nullptr && now >= take_by_) {
    parts.metrics.CountRejected(observe::Rejection::kReplyNotTaken);
    return Reset();
  }
  // A caller of a stream has nothing to send while a whole message waits for its handler.
  const bool must_send = body_ && body_->is_counted() &&
                         (body_->missing_bytes() > 0 || !incoming_.method->takes_stream());
  const bool stalls = must_send && connection_.budget()->is_awaited() &&
                      now - moved_at_ >= parts.limits.keepalive_timeout;
  if (!stalls) return;
  parts.metrics.CountRejected(observe::Rejection::kUnfinishedBodies);
  EndByServer(absl::StatusCode::kResourceExhausted,
              "nothing more of the request has arrived for limits.keepalive_timeout, while other "
              "requests of the same address wait for its space");
}

void Http2Stream::OnTime() {
  if (is_answered_) return SubmitReset(NGHTTP2_NO_ERROR);
  EndByServer(absl::StatusCode::kDeadlineExceeded, "the deadline has passed");
}

// When the window is closed, nghttp2 does not ask for data, so the trailers are submitted directly.
// Trailers cannot follow a message that was sent in part.
void Http2Stream::EndByServer(absl::StatusCode code, std::string_view message) {
  const bool is_finished = end_.has_value();
  const bool is_cut_off = message_ != nullptr && offset_ > 0;
  DetachCall();
  DropMessage();
  body_.reset();
  if (is_reset_ || (is_finished && trailers_sent_)) return;
  if (is_finished || is_cut_off) return SubmitReset(NGHTTP2_CANCEL);
  end_.emplace();
  end_->code = code;
  try {
    end_->message = message;
  } catch (const std::bad_alloc&) {
    end_->message = kOutOfMemory;  // so short that it takes no memory
  }
  SubmitEnd();
}

void Http2Stream::AnswerHttp(std::string_view status) {
  end_.emplace();
  headers_sent_ = trailers_sent_ = true;
  Submit([&](HeaderList& headers) {
    headers = {Fixed(":status", status), Fixed("allow", "POST")};
    return nghttp2_submit_response(connection_.session(), id_, headers.data(), headers.size(),
                                   nullptr);
  });
}

// The beginning of an answer.
void Http2Stream::AppendFirstHeaders(HeaderList& headers) const {
  headers = {Fixed(":status", "200"), Fixed("content-type", "application/grpc")};
  // Not in each answer, where it would cost a few percent of a small call.
  if (incoming_.is_encoded) headers.push_back(Fixed("grpc-accept-encoding", "identity"));
  AppendMetadata(initial_, headers);
}

void Http2Stream::SubmitHeaders() {
  if (std::exchange(headers_sent_, true)) return;
  Submit([&](HeaderList& headers) {
    AppendFirstHeaders(headers);
    nghttp2_data_provider provider{};
    provider.source.ptr = this;
    provider.read_callback = &ReadStreamData;
    return nghttp2_submit_response(connection_.session(), id_, headers.data(), headers.size(),
                                   &provider);
  });
}

void Http2Stream::SubmitEnd() {
  if (std::exchange(trailers_sent_, true)) return;
  const bool is_alone = !std::exchange(headers_sent_, true);
  Submit([&](HeaderList& headers) {
    const EndHeaders end(*end_);
    if (is_alone) AppendFirstHeaders(headers);
    end.AppendTo(headers, *end_);
    nghttp2_session* const session = connection_.session();
    return is_alone ? nghttp2_submit_response(session, id_, headers.data(), headers.size(), nullptr)
                    : nghttp2_submit_trailer(session, id_, headers.data(), headers.size());
  });
}

template <class Make>
void Http2Stream::Submit(const Make& make) {
  thread_local HeaderList headers;  // no allocation for each call
  headers.clear();
  int result = NGHTTP2_ERR_NOMEM;
  try {
    result = make(headers);
  } catch (const std::bad_alloc&) {
  }
  if (result != 0) SubmitReset(NGHTTP2_ENHANCE_YOUR_CALM);  // RESOURCE_EXHAUSTED to clients
  connection_.WriteSoon();
}

void Http2Stream::SubmitReset(std::uint32_t code) {
  if (std::exchange(is_reset_, true)) return;
  connection_.Submitted(
      nghttp2_submit_rst_stream(connection_.session(), NGHTTP2_FLAG_NONE, id_, code));
}

void Http2Stream::Resume() {
  if (std::exchange(is_deferred_, false) &&
      nghttp2_session_resume_data(connection_.session(), id_) == NGHTTP2_ERR_NOMEM) {
    connection_.FailSoon();
  }
  connection_.WriteSoon();
}

void Http2Stream::DropMessage() {
  message_.reset();
  take_by_ = Clock::TimePoint::max();
}

void Http2Stream::DetachCall() {
  if (RpcCall* const call = std::exchange(call_, nullptr)) call->Detach();
}

void Http2Stream::Close() {
  DetachCall();
  DropMessage();
  body_.reset();  // nothing posts this any more
  Disarm();
  connection_.group().calls->Remove();
  if (!is_posted()) return delete this;
  is_closed_ = true;  // Run deletes it
}

}  // namespace simile::net
