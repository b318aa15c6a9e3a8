#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include <absl/status/status.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include "service/export_run.h"
#include "service/grpc/exchange.h"
#include "service/search_pipeline.h"
#include "service/served_snapshots.h"

namespace simile::service {

// What an Export is answered with. Borrowed.
struct ExportServices {
  const ServedSnapshots& snapshots;
  const SearchPipeline& pipeline;
};

// The row of Export in the table.
std::unique_ptr<Method> ExportMethod(RpcEnvironment& environment, const MethodRow& row,
                                     const ExportServices& services);

// Export: computes the next message while one is being sent, and holds no more than these two. A
// message that takes too long or becomes too large is made again of fewer sources. Holds itself
// until gRPC is done with it.
class ExportStream final : public Exchange, public std::enable_shared_from_this<ExportStream> {
 public:
  // Asks gRPC for a stream.
  static void Ask(Method& method, const ExportServices& services);

 private:
  class Message;
  enum class Operation : std::uint8_t { kNone, kCompute, kWrite, kEnd };

  ExportStream(Method& method, const ExportServices& services);

  void MakeCall() override { record_.emplace(method(), context()); }
  void SendEnd(const grpc::Status& status) override;
  absl::Status Begin() override;
  void Reject(const absl::Status& status) override;
  void OnCallerGone() override;
  void Release() override;
  void Stop() override;

  void OnWritten(bool ok);
  // Starts what can be done now. Any thread.
  void Advance();
  void Perform(Operation operation);
  // On a worker: makes the next message and has it answered.
  void Compute();
  // The message is there, or why not. Any thread.
  void Complete(absl::StatusOr<grpc::ByteBuffer> message, Clock::Duration duration);

  // REQUIRES of these: mutex_ is held.
  Operation NextOperation();
  // The first reason is the one that the caller gets.
  void EndWith(const absl::Status& status);
  void FitSize(const absl::Status& status, Clock::Duration duration);

  const ExportServices services_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&context()};
  net::IoEventOf<ExportStream> written_event_{*this, &ExportStream::OnWritten};
  std::optional<CallRecord> record_;  // set when the stream has arrived
  std::shared_ptr<ExportStream> self_;

  // Of the message under way; used by one thread at a time.
  ExportRun run_;
  bool begun_ = false;
  std::uint64_t message_number_ = 0;
  UnsentReplies::Part counted_;  // a large request
  grpc::ByteBuffer outgoing_;

  std::mutex mutex_;  // guards the members below
  std::size_t size_;  // sources of the next message
  std::size_t size_max_;
  bool computing_ = false;
  bool writing_ = false;
  std::optional<grpc::ByteBuffer> ready_;  // to be sent next
  bool finished_ = false;                  // every source is answered
  bool broken_ = false;                    // the caller is gone
  bool ended_ = false;
  std::optional<absl::Status> end_;  // why the stream ends early
};

}  // namespace simile::service
