#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>

#include <absl/status/status.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include "service/grpc/call_record.h"
#include "service/grpc/method.h"
#include "service/rpc_environment.h"
#include "service/search_pipeline.h"
#include "service/stream_window.h"
#include "service/validate_stream.h"

namespace simile::service {

// The row of SearchStream in the table.
std::unique_ptr<Method> SearchStreamMethod(RpcEnvironment& environment, const MethodRow& row,
                                           const SearchPipeline& pipeline);

// SearchStream: makes a Call of each message, within the bounds of a StreamWindow, and sends the
// answers one after the other. Reads one message at a time, and none while the window is full. gRPC
// sees the end only after every call has finished. Holds itself until gRPC is done with it.
class SearchStream final : public net::OpenCall, public std::enable_shared_from_this<SearchStream> {
 public:
  // What the streams of the method have in common.
  struct Shared {
    RpcEnvironment& environment;
    const MethodIdentity identity;
    const SearchPipeline& pipeline;
  };
  // Where gRPC is asked for a stream.
  struct Source {
    MethodService& service;
    int index;
    net::IoThread& thread;
  };
  // Asks gRPC for a stream.
  static void Ask(const Shared& shared, const Source& source);

 private:
  class Request;
  enum class Operation : std::uint8_t { kNone, kRead, kWrite, kFinish };

  SearchStream(const Shared& shared, const Source& source);

  // gRPC's events.
  void OnArrived(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);
  void OnDone(bool ok);

  // The server stops: takes no further request, and ends after the answers of those taken.
  void Stop() override;
  void Cut() override { context_.TryCancel(); }
  void AskForNext();
  // After each event: one operation has ended. Lets go of the stream after gRPC's last event.
  void EndOperation();
  void ReleaseIfOver();

  // Has a worker take the large message that was read. Without a place for that the stream ends.
  void PostRead(std::size_t bytes);
  // Takes what was read, unless nothing was: the caller sends no more.
  void TakeRead(bool received);
  //   status   why the stream ends now, unless OK
  //   request  that was read; null for none
  void EndReading(const absl::Status& status, bool reads_ended = false,
                  std::unique_ptr<Request> request = nullptr);
  // Parses what was read. Its errors are the stream's.
  absl::Status ParseRequest(std::unique_ptr<Request>& request);
  // The answer, or error, of a request that was taken. Any thread.
  void Complete(std::uint64_t number, grpc::ByteBuffer answer);
  // Does what can be done now: starts the request that waits, then gRPC's operations. To be called
  // after whatever may let the request be taken.
  void Advance();
  // Starts gRPC's operations, one at a time. The stream must be held meanwhile.
  void StartOperations();
  void Perform(Operation operation);

  // REQUIRES of all: mutex_ is held.
  // The first reason is the one that the caller gets.
  void EndWith(const absl::Status& status);
  std::unique_ptr<Request> TakeWaiting();
  Operation NextOperation();
  void DropAnswers();

  const Shared& shared_;
  RpcEnvironment& environment_;
  const Source source_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&context_};
  net::IoEventOf<SearchStream> arrived_event_{*this, &SearchStream::OnArrived};
  net::IoEventOf<SearchStream> read_event_{*this, &SearchStream::OnRead};
  net::IoEventOf<SearchStream> written_event_{*this, &SearchStream::OnWritten};
  net::IoEventOf<SearchStream> finished_event_{*this, &SearchStream::OnFinished};
  net::IoEventOf<SearchStream> done_event_{*this, &SearchStream::OnDone};
  std::optional<CallRecord> record_;  // set when the stream has arrived
  std::stop_source cancelled_;
  std::shared_ptr<SearchStream> self_;

  // Used by the I/O thread only.
  bool asked_for_next_ = false;
  bool is_done_ = false;  // OnDone has run

  // Each is used by gRPC or by one reaction at a time.
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
  StreamOrder order_;
  std::uint64_t messages_read_ = 0;

  std::mutex mutex_;  // guards the members below
  StreamWindow window_;
  std::unique_ptr<Request> waiting_;                   // read, but not taken yet
  std::map<std::uint64_t, grpc::ByteBuffer> answers_;  // of requests that were taken, by number
  std::uint64_t sending_ = 0;                          // the number of the answer being sent
  bool reading_ = false;                               // a message, or parsing it
  bool writing_ = false;
  int operations_ = 0;        // of gRPC, that have not ended
  bool performing_ = false;   // a thread starts an operation
  bool reads_ended_ = false;  // the caller sends no more
  bool broken_ = false;       // the caller is gone
  bool finished_ = false;
  // Why the stream ends before the caller ends it; is not written once finished_.
  std::optional<absl::Status> end_;
};

}  // namespace simile::service
