#include "service/grpc/method.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include "google/protobuf/descriptor.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "service/calls/call.h"

namespace simile::service {
namespace {

namespace reflection = grpc::reflection::v1;
using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

constexpr std::string_view kPaths[] = {
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};

// Names of symbols and files are shorter.
constexpr std::size_t kRequestBytesMax = 4U << 10;
// How long a caller may take to read an answer.
constexpr std::chrono::seconds kTakeTime{10};

using Names = std::set<std::string, std::less<>>;

// "simile.v1.SearchService" of "/simile.v1.SearchService/Search"
std::string_view ParseService(std::string_view path) {
  path.remove_prefix(1);
  return path.substr(0, path.find('/'));
}

// Appends the file and every file that it imports, each once.
void AppendFiles(const FileDescriptor& file, std::set<const FileDescriptor*>& seen,
                 reflection::FileDescriptorResponse& response) {
  if (!seen.insert(&file).second) return;
  google::protobuf::FileDescriptorProto content;
  file.CopyTo(&content);
  response.add_file_descriptor_proto(content.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) {
    AppendFiles(*file.dependency(i), seen, response);
  }
}

void AnswerFile(const FileDescriptor* file, std::string_view what,
                reflection::ServerReflectionResponse& response) {
  if (file == nullptr) {
    reflection::ErrorResponse& error = *response.mutable_error_response();
    error.set_error_code(static_cast<int>(absl::StatusCode::kNotFound));
    error.set_error_message(fmt::format("this server does not know {}", what));
    return;
  }
  std::set<const FileDescriptor*> seen;
  AppendFiles(*file, seen, *response.mutable_file_descriptor_response());
}

void AnswerExtensionNumbers(const std::string& type,
                            reflection::ServerReflectionResponse& response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const google::protobuf::Descriptor* const found = pool.FindMessageTypeByName(type);
  if (found == nullptr) return AnswerFile(nullptr, "the type", response);
  std::vector<const google::protobuf::FieldDescriptor*> extensions;
  pool.FindAllExtensions(found, &extensions);
  auto& numbers = *response.mutable_all_extension_numbers_response();
  numbers.set_base_type_name(type);
  for (const auto* const extension : extensions) {
    numbers.add_extension_number(extension->number());
  }
}

reflection::ServerReflectionResponse MakeAnswer(const reflection::ServerReflectionRequest& request,
                                                const Names& services) {
  using Request = reflection::ServerReflectionRequest;
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  reflection::ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      AnswerFile(pool.FindFileByName(request.file_by_filename()), "the file", response);
      break;
    case Request::kFileContainingSymbol:
      AnswerFile(pool.FindFileContainingSymbol(request.file_containing_symbol()), "the symbol",
                 response);
      break;
    case Request::kFileContainingExtension: {
      const reflection::ExtensionRequest& wanted = request.file_containing_extension();
      const auto* const type = pool.FindMessageTypeByName(wanted.containing_type());
      const auto* const extension =
          type == nullptr ? nullptr : pool.FindExtensionByNumber(type, wanted.extension_number());
      AnswerFile(extension == nullptr ? nullptr : extension->file(), "the extension", response);
      break;
    }
    case Request::kAllExtensionNumbersOfType:
      AnswerExtensionNumbers(request.all_extension_numbers_of_type(), response);
      break;
    case Request::kListServices:
      for (const std::string& name : services) {
        response.mutable_list_services_response()->add_service()->set_name(name);
      }
      break;
    case Request::MESSAGE_REQUEST_NOT_SET: {
      reflection::ErrorResponse& error = *response.mutable_error_response();
      error.set_error_code(static_cast<int>(absl::StatusCode::kInvalidArgument));
      error.set_error_message("the request asks for nothing");
      break;
    }
  }
  return response;
}

class ReflectionCall final : public net::RpcCall {
 public:
  ReflectionCall(const Names& services, net::Http2Stream& stream, net::CallHead head)
      : RpcCall(stream, std::move(head)), services_(services) {}

 private:
  void Begin(net::ReceivedMessage /*none*/) override { WantMessage(); }
  void Received(std::optional<net::ReceivedMessage> message) override {
    if (!message) return End({});
    const absl::Status answered = Guarded([&] {
      reflection::ServerReflectionRequest request;
      const std::string_view text = message->text();
      if (text.size() > kRequestBytesMax) {
        return absl::InvalidArgumentError("the request is too long for a name");
      }
      if (!request.ParseFromArray(text.data(), static_cast<int>(text.size()))) {
        return absl::InvalidArgumentError("could not be parsed as a ServerReflectionRequest");
      }
      const reflection::ServerReflectionResponse answer = MakeAnswer(request, services_);
      auto bytes = std::make_shared<net::OutgoingMessage>(answer.ByteSizeLong());
      answer.SerializeWithCachedSizesToArray(bytes->data());
      Send(std::move(bytes), TakeBy());
      is_sending_ = true;
      return absl::OkStatus();
    });
    if (answered.ok()) return;
    net::CallEnd end;
    end.code = answered.code();
    static_cast<void>(Guarded([&] { end.message = std::string(answered.message()); }));
    End(std::move(end));
  }
  void Refused(Problem /*problem*/, std::uint32_t /*declared_bytes*/) override {
    end_.code = absl::StatusCode::kResourceExhausted;
    if (!is_sending_) End(std::move(end_));
  }
  void Sent(bool ok) override {
    is_sending_ = false;
    ok&& end_.code == absl::StatusCode::kOk ? WantMessage() : End(std::move(end_));
  }
  // An open call would keep the server from ending.
  void Stop() override { Cut(); }
  void Release() override { delete this; }

  void End(net::CallEnd end) { Finish(nullptr, std::move(end), TakeBy()); }
  Clock::TimePoint TakeBy() const { return loop().now() + kTakeTime; }

  const Names& services_;
  bool is_sending_ = false;
  net::CallEnd end_;
};

class ReflectionMethod final : public net::RpcMethod {
 public:
  ReflectionMethod(std::string_view path, std::shared_ptr<const Names> services)
      : path_(path), services_(std::move(services)) {}

  std::string_view path() const override { return path_; }
  bool takes_stream() const override { return true; }
  net::RpcCall& NewCall(net::Http2Stream& stream, net::CallHead head) override {
    return *new ReflectionCall(*services_, stream, std::move(head));  // destroys itself
  }

 private:
  const std::string_view path_;
  const std::shared_ptr<const Names> services_;
};

}  // namespace

std::vector<std::unique_ptr<net::RpcMethod>> ReflectionMethods(
    std::span<net::RpcMethod* const> methods) {
  // Has the linker keep the file that describes the older version.
  grpc::reflection::v1alpha::ServerReflectionRequest::descriptor();
  auto services = std::make_shared<Names>();
  for (const net::RpcMethod* const method : methods)
    services->emplace(ParseService(method->path()));
  for (const std::string_view path : kPaths) services->emplace(ParseService(path));
  std::vector<std::unique_ptr<net::RpcMethod>> made;
  for (const std::string_view path : kPaths) {
    made.push_back(std::make_unique<ReflectionMethod>(path, services));
  }
  return made;
}

}  // namespace simile::service
