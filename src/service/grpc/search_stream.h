#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include <absl/status/status.h>
#include <grpcpp/support/server_callback.h>

#include "service/grpc/call_record.h"
#include "service/rpc_environment.h"
#include "service/search_pipeline.h"
#include "service/stream_window.h"
#include "service/validate_stream.h"

namespace simile::service {

// SearchStream: makes a Call of each message, within the bounds of a StreamWindow, and sends the
// answers one after the other. Reads one message at a time, and none while the window is full. gRPC
// sees the end only after every call has finished. Holds itself until gRPC is done with it.
class SearchStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                           public std::enable_shared_from_this<SearchStream> {
 public:
  static grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Start(
      RpcEnvironment& environment, grpc::CallbackServerContext& context,
      const SearchPipeline& pipeline);

 private:
  class Request;
  enum class Operation : std::uint8_t { kNone, kRead, kWrite, kFinish };

  SearchStream(RpcEnvironment& environment, grpc::CallbackServerContext& context,
               const SearchPipeline& pipeline);

  void Begin();
  void OnReadDone(bool received) override;
  void OnWriteDone(bool sent) override;
  void OnCancel() override;
  void OnDone() override;
  // The server stops: takes no further request, and ends after the answers of those taken.
  void Stop();

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

  RpcEnvironment& environment_;
  grpc::CallbackServerContext& context_;
  const SearchPipeline& pipeline_;
  const CallRecord record_;
  const std::shared_ptr<std::atomic<bool>> cancelled_;
  std::shared_ptr<SearchStream> self_;
  std::optional<std::uint64_t> ticket_;  // of the gate; nothing: was not admitted

  // Each is used by gRPC or by one reaction at a time.
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
  StreamOrder order_;
  std::uint64_t messages_read_ = 0;

  std::mutex mutex_;  // guards the members below
  StreamWindow window_;
  std::unique_ptr<Request> waiting_;                   // read, but not taken yet
  std::map<std::uint64_t, grpc::ByteBuffer> answers_;  // completed, by number
  std::uint64_t sending_ = 0;                          // the number of the answer being sent
  bool reading_ = false;
  bool writing_ = false;
  bool performing_ = false;   // a thread starts an operation
  bool reads_ended_ = false;  // the caller sends no more
  bool broken_ = false;       // the caller is gone
  bool finished_ = false;
  // Why the stream ends before the caller ends it; is not written once finished_.
  std::optional<absl::Status> end_;
};

}  // namespace simile::service
