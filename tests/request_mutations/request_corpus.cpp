#include "request_mutations/request_corpus.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <absl/strings/escaping.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include "simile/v1/admin.pb.h"
#include "simile/v1/collections.pb.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::request_mutations {
namespace {

constexpr char kHex[] = "hex ";

const google::protobuf::Message* PrototypeOf(const google::protobuf::Descriptor* type) {
  return google::protobuf::MessageFactory::generated_factory()->GetPrototype(type);
}

[[noreturn]] void Abort(const std::string& line) {
  std::fprintf(stderr, "not a request: %s\n", line.c_str());
  std::abort();
}

}  // namespace

std::vector<Method> AllMethods() {
  std::vector<Method> methods;
  for (const auto* const file :
       {v1::GetStatsRequest::descriptor()->file(), v1::LoadCollectionRequest::descriptor()->file(),
        v1::LookupRequest::descriptor()->file(), v1::SearchRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      const auto& service = *file->service(s);
      for (int m = 0; m < service.method_count(); ++m) {
        const auto& method = *service.method(m);
        methods.push_back({"/" + service.full_name() + "/" + method.name(), method.name(),
                           PrototypeOf(method.input_type()), PrototypeOf(method.output_type()),
                           method.client_streaming(), method.server_streaming()});
      }
    }
  }
  return methods;
}

std::string Request::Serialized() const {
  return message == nullptr ? bytes : message->SerializePartialAsString();
}

Request Request::Copy() const {
  Request copy{method, nullptr, bytes};
  if (message != nullptr) {
    copy.message.reset(message->New());
    copy.message->CopyFrom(*message);
  }
  return copy;
}

std::vector<Request> ReadCorpus(const std::filesystem::path& file,
                                const std::vector<Method>& methods) {
  std::vector<Request> requests;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = line.find(' ');
    const auto method = std::ranges::find(methods, line.substr(0, space), &Method::name);
    if (method == methods.end()) Abort(line);
    const std::string text = space == std::string::npos ? "" : line.substr(space + 1);
    Request request{&*method, nullptr, {}};
    if (text.starts_with(kHex)) {
      request.bytes = absl::HexStringToBytes(text.substr(sizeof kHex - 1));
    } else {
      request.message.reset(method->request->New());
      if (!google::protobuf::TextFormat::ParseFromString(text, request.message.get())) Abort(line);
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

std::string LineOf(const Request& request) {
  if (request.Serialized().empty()) return request.method->name;
  std::string text;
  if (request.message != nullptr) {
    google::protobuf::TextFormat::Printer printer;
    printer.SetSingleLineMode(true);
    printer.SetExpandAny(false);
    printer.PrintToString(*request.message, &text);
    // What the text cannot say (unknown fields) is kept as bytes.
    const std::unique_ptr<google::protobuf::Message> again(request.message->New());
    if (google::protobuf::TextFormat::ParseFromString(text, again.get()) &&
        again->SerializePartialAsString() == request.message->SerializePartialAsString()) {
      return request.method->name + " " + text;
    }
  }
  return request.method->name + " " + kHex + absl::BytesToHexString(request.Serialized());
}

}  // namespace simile::request_mutations
