#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include <absl/status/status.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include "service/grpc/exchange.h"
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
class SearchStream final : public Exchange, public std::enable_shared_from_this<SearchStream> {
 public:
  // Asks gRPC for a stream.
  static void Ask(Method& method, const SearchPipeline& pipeline);

 private:
  class Request;
  enum class Operation : std::uint8_t { kNone, kRead, kWrite, kEnd };

  SearchStream(Method& method, const SearchPipeline& pipeline);

  void MakeCall() override { record_.emplace(method(), context()); }
  void SendEnd(const grpc::Status& status) override;
  absl::Status Begin() override;
  void Reject(const absl::Status& status) override;
  void OnCallerGone() override;
  void Release() override;

  void OnRead(bool ok);
  void OnWritten(bool ok);

  // The server stops: takes no further request once the caller has sent none since the last of
  // these, or after many of them, and ends after the answers of those taken.
  void Stop() override;

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
  // Answers a request that was taken, here or on a worker.
  void AnswerRequest(std::unique_ptr<Request> request, std::uint64_t number);

  // REQUIRES of all: mutex_ is held.
  // The first reason is the one that the caller gets.
  void EndWith(const absl::Status& status);
  std::unique_ptr<Request> TakeWaiting();
  Operation NextOperation();
  void DropAnswers();

  const SearchPipeline& pipeline_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&context()};
  net::IoEventOf<SearchStream> read_event_{*this, &SearchStream::OnRead};
  net::IoEventOf<SearchStream> written_event_{*this, &SearchStream::OnWritten};
  std::optional<CallRecord> record_;  // set when the stream has arrived
  std::shared_ptr<SearchStream> self_;

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
  bool parsing_ = false;  // a worker parses a large message that has arrived
  bool writing_ = false;
  bool performing_ = false;           // a thread starts an operation
  int stops_ = 0;                     // how often the server asked for the end
  std::uint64_t number_at_stop_ = 1;  // of the next request then; at first that of the first one
  bool reads_ended_ = false;          // the caller sends no more
  bool broken_ = false;               // the caller is gone
  bool ended_ = false;
  // Why the stream ends before the caller ends it; is not written once ended_.
  std::optional<absl::Status> end_;
};

}  // namespace simile::service
