#include "integration/raw_call.h"

#include <chrono>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

namespace simile::integration {
namespace {

constexpr std::chrono::seconds kRawTimeout{60};  // so that no test hangs

// The metadata of a stock client: 8 KiB.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

std::string ToBytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace

class RawCall::Impl {
 public:
  Impl(const std::string& address, const std::string& method,
       const std::map<std::string, std::string>& metadata)
      : stub(NewChannel(address)) {
    context.set_deadline(std::chrono::system_clock::now() + kRawTimeout);
    context.set_wait_for_ready(true);
    for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
    call = stub.PrepareCall(&context, method, &queue);
    call->StartCall(this);
    Await();
  }
  ~Impl() {
    if (!ended) {
      context.TryCancel();
      Finish();
    }
    queue.Shutdown();
  }

  bool Await() {
    void* tag = nullptr;
    bool succeeded = false;
    return queue.Next(&tag, &succeeded) && succeeded;
  }
  grpc::Status Finish() {
    grpc::Status status;
    call->Finish(&status, this);
    Await();
    ended = true;
    return status;
  }

  grpc::GenericStub stub;
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
  bool ended = false;
  google::rpc::Status details;
};

RawCall::RawCall(const std::string& address, const std::string& method,
                 const std::map<std::string, std::string>& metadata)
    : impl_(std::make_unique<Impl>(address, method, metadata)) {}
RawCall::~RawCall() = default;
RawCall::RawCall(RawCall&&) noexcept = default;

bool RawCall::Send(const std::string& message) {
  const grpc::Slice slice(message);
  impl_->call->Write(grpc::ByteBuffer(&slice, 1), impl_.get());
  return impl_->Await();
}

void RawCall::HalfClose() {
  impl_->call->WritesDone(impl_.get());
  impl_->Await();
}

std::optional<std::string> RawCall::Read() {
  grpc::ByteBuffer message;
  impl_->call->Read(&message, impl_.get());
  if (!impl_->Await()) return std::nullopt;
  return ToBytes(message);
}

void RawCall::Cancel() { impl_->context.TryCancel(); }

Outcome RawCall::AwaitEnd() {
  const grpc::Status status = impl_->Finish();
  EXPECT_TRUE(impl_->details.ParseFromString(status.error_details()));
  return ReadOutcome(status, impl_->context);
}

const google::rpc::Status& RawCall::details() const { return impl_->details; }

}  // namespace simile::integration
