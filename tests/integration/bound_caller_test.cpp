// What a caller with a required filter learns of rows that do not exist for it. Calls every method
// of the contract, with requests made from the descriptors, so that new methods and fields are
// tried, too. No reply and no error may have a word or a figure of the other tenant. Each answer
// must equal the answer to a word that exists nowhere.
#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <absl/strings/ascii.h>
#include <absl/strings/str_split.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/message_differencer.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "google/rpc/status.pb.h"
#include "integration/access_server.h"
#include "integration/generated_requests.h"
#include "integration/other_tenant.h"

namespace simile::integration {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kBound = R"("required_filter": "tenant = \"acme\"")";
// With users of its own, too.
constexpr const char* kBoundTwice =
    R"("collections": ["shared"], "required_filter": "tenant = \"acme\"", )"
    R"("users": {"prefix": "acme-"})";

// Fields that are times, bounds of the server, or counts of its loads: they tell of no row.
bool SaysNothingOfRows(const FieldDescriptor& field) {
  static const std::set<std::string> kNames = {"seconds",  "nanos",      "total_us",
                                               "queue_us", "compute_us", "limits"};
  return kNames.contains(field.name());
}

// Fields that differ between two equal calls.
bool IsOfTheCall(const FieldDescriptor& field) {
  static const std::set<std::string> kNames = {
      "total_us",  "queue_us",         "compute_us",  "next_page_token",
      "loaded_at", "snapshot_version", "index_built", "rollback_snapshot_id"};
  return kNames.contains(field.name());
}

double ReadNumber(const Message& message, const FieldDescriptor& field, int index) {
  const auto& reflection = *message.GetReflection();
  const bool repeated = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return repeated ? reflection.GetRepeatedInt32(message, &field, index)
                      : reflection.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<double>(repeated ? reflection.GetRepeatedInt64(message, &field, index)
                                          : reflection.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return repeated ? reflection.GetRepeatedUInt32(message, &field, index)
                      : reflection.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(repeated ? reflection.GetRepeatedUInt64(message, &field, index)
                                          : reflection.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return repeated ? reflection.GetRepeatedFloat(message, &field, index)
                      : reflection.GetFloat(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return repeated ? reflection.GetRepeatedDouble(message, &field, index)
                      : reflection.GetDouble(message, &field);
    default:
      return 0;
  }
}

// Whether a text has a word of the other tenant, or a count that includes it.
//   sent  the words of the request, which may come back
std::string LeakIn(std::string text, const std::vector<std::string>& sent) {
  absl::AsciiStrToLower(&text);
  for (std::string word : sent) {
    absl::AsciiStrToLower(&word);
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
      text.replace(at, word.size(), "-");
    }
  }
  for (const std::string hidden :
       {OtherTenant::kMarker, "5000", "5,000", "4980", "4,980", "1200", "1,200", "1198", "1,198"}) {
    if (text.find(hidden) != std::string::npos) return hidden + " in " + text;
  }
  return "";
}

// The first figure or text of a message that is not the caller's; empty for none.
std::string LeakIn(const Message& message, const std::vector<std::string>& sent) {
  std::vector<const FieldDescriptor*> fields;
  const auto& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (SaysNothingOfRows(*field)) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      std::string leak;
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        leak = LeakIn(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                           : reflection.GetMessage(message, field),
                      sent);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        leak = LeakIn(field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                           : reflection.GetString(message, field),
                      sent);
      } else if (ReadNumber(message, *field, i) > OtherTenant::kOwnNumbersMax) {
        leak = fmt::format("{}", ReadNumber(message, *field, i));
      }
      if (!leak.empty()) return field->full_name() + ": " + leak;
    }
  }
  return "";
}

// Adds a text and its words, such as the field that a filter names.
void AddText(const std::string& text, std::vector<std::string>& texts) {
  texts.push_back(text);
  for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" ()\""))) {
    texts.emplace_back(word.data(), word.size());
  }
}

// All texts of a message, the longest first.
void AddTexts(const Message& message, std::vector<std::string>& texts) {
  std::vector<const FieldDescriptor*> fields;
  const auto& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        AddTexts(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                      : reflection.GetMessage(message, field),
                 texts);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        AddText(field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                     : reflection.GetString(message, field),
                texts);
      }
    }
  }
  std::erase(texts, "");
  std::ranges::sort(texts, std::ranges::greater(), &std::string::size);
}

void ClearWhatIsOfTheCall(Message& message) {
  std::vector<const FieldDescriptor*> fields;
  const auto& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (IsOfTheCall(*field)) {
      reflection.ClearField(&message, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
      ClearWhatIsOfTheCall(*reflection.MutableMessage(&message, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_map()) {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        ClearWhatIsOfTheCall(*reflection.MutableRepeatedMessage(&message, field, i));
      }
    }
  }
}

void ReplaceAll(const std::string& from, const std::string& to, std::string& text) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
  }
}

// How a call of any method ended.
struct End {
  grpc::Status status;
  std::vector<std::string> replies;
};

// The words of fields that are tried.
RequestWords Words() {
  const std::map<std::string, std::string> usual = {
      {"collection", "shared"}, {"id", "acme-3"},           {"ids", "acme-3"},
      {"text", "story"},        {"user_id", "acme-user-1"}, {"user_ids", "acme-user-1"}};
  return {[usual](const std::string& field) {
            const auto word = usual.find(field);
            return word == usual.end() ? "" : word->second;
          },
          [](const std::string& field) -> std::vector<std::string> {
            if (field.find("filter") != std::string::npos) {
              return {R"(tenant = "zebra")",
                      "has(zebra_field)",
                      "NOT has(zebra_field)",
                      "zebra_year > 7",
                      R"(zebra_tags = "zebra")",
                      R"(tags = "zebra-tag-1" OR id = "zebra-7")",
                      "year >= 0",
                      R"(zebra_time >= "2026-01-01T00:00:00Z")"};
            }
            if (field == "collection") return {"shared", "acme", "zebra-books", "nothing"};
            if (field == "folder") {
              return {"shared", "shared/twice", "shared/cut", "shared/none", "zebra-books"};
            }
            if (field.starts_with("user")) return {"acme-user-1", "nobody", "zebra-user-77"};
            return {"acme-3",     "zebra-7", "zebra_field", "zebra_tags", "zebra_year",
                    "zebra_time", "tags",    "year",        "title",      "zebra story"};
          }};
}

std::vector<const MethodDescriptor*> AllMethods() {
  std::vector<const MethodDescriptor*> methods;
  const auto& pool = *google::protobuf::DescriptorPool::generated_pool();
  for (const google::protobuf::Descriptor* any :
       {v1::SearchRequest::descriptor(), v1::FetchRequest::descriptor(),
        v1::GetCollectionRequest::descriptor(), v1::GetStatsRequest::descriptor()}) {
    const google::protobuf::FileDescriptor& file = *pool.FindFileByName(any->file()->name());
    for (int s = 0; s < file.service_count(); ++s) {
      for (int m = 0; m < file.service(s)->method_count(); ++m) {
        methods.push_back(file.service(s)->method(m));
      }
    }
  }
  return methods;
}

const Message& FindPrototype(const google::protobuf::Descriptor& type) {
  return *google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type);
}

class BoundCallerTest : public ::testing::Test {
 protected:
  BoundCallerTest()
      : server_({AccessServer::Entry("bound", "admin", kBound),
                 AccessServer::Entry("bound-twice", "admin", kBoundTwice),
                 AccessServer::Entry("free", "admin")},
                AccessServer::Encryption::kNone,
                [this](app::Config& config) {
                  config.data_root = tenants_.root();
                  config.collections = {};
                  for (const char* const name : {"shared", "acme", "zebra-books"}) {
                    config.collections.push_back({name, tenants_.root() / name});
                  }
                }),
        free_(server_.NewClient("free")),
        stub_(grpc::CreateChannel(server_.films().app().address(),
                                  grpc::InsecureChannelCredentials())) {}

  // Calls any method with the bytes of one request.
  End Call(const MethodDescriptor& method, const std::string& request, const std::string& caller) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    context.AddMetadata("authorization", "Bearer " + AccessServer::MakeToken(caller));
    context.AddMetadata("x-request-id", "the-same");
    const std::string path = fmt::format("/{}/{}", method.service()->full_name(), method.name());
    grpc::CompletionQueue queue;
    void* tag = nullptr;
    bool ok = false;
    const auto call = stub_.PrepareCall(&context, path, &queue);
    call->StartCall(&tag);
    queue.Next(&tag, &ok);
    const grpc::Slice slice(request);
    call->WriteLast(grpc::ByteBuffer(&slice, 1), {}, &tag);
    queue.Next(&tag, &ok);
    End end;
    for (;;) {
      grpc::ByteBuffer buffer;
      call->Read(&buffer, &tag);
      queue.Next(&tag, &ok);
      if (!ok) break;
      grpc::Slice reply;
      EXPECT_TRUE(buffer.DumpToSingleSlice(&reply).ok());
      end.replies.emplace_back(reinterpret_cast<const char*>(reply.begin()), reply.size());
    }
    call->Finish(&end.status, &tag);
    queue.Next(&tag, &ok);
    queue.Shutdown();
    Restore();
    return end;
  }

  // What a call unloaded is served again.
  void Restore() {
    if (server_.films().app().store().Pin("shared").ok()) return;
    ChangeAnswer answer;
    EXPECT_TRUE(free_.Load("shared", "shared", answer).ok());
  }

  static std::unique_ptr<Message> Parsed(const MethodDescriptor& method, const std::string& reply) {
    std::unique_ptr<Message> message(FindPrototype(*method.output_type()).New());
    EXPECT_TRUE(message->ParseFromString(reply));
    return message;
  }

  static std::string FindLeak(const MethodDescriptor& method, const Message& request,
                              const End& end) {
    std::vector<std::string> sent;
    AddTexts(request, sent);
    for (const std::string& reply : end.replies) {
      const std::string leak = LeakIn(*Parsed(method, reply), sent);
      if (!leak.empty()) return leak;
    }
    return LeakIn(end.status.error_message() + "\n" + end.status.error_details(), sent);
  }

  // How the same call ends with words that exist nowhere, in the words of the first.
  End CallWithNothing(const MethodDescriptor& method, std::string request,
                      const std::string& caller) {
    ReplaceAll(OtherTenant::kMarker, OtherTenant::kNowhere, request);
    End end = Call(method, request, caller);
    std::string message = end.status.error_message();
    std::string details = end.status.error_details();
    ReplaceAll(OtherTenant::kNowhere, OtherTenant::kMarker, message);
    ReplaceAll(OtherTenant::kNowhere, OtherTenant::kMarker, details);
    end.status = {end.status.error_code(), message, details};
    for (std::string& reply : end.replies) {
      ReplaceAll(OtherTenant::kNowhere, OtherTenant::kMarker, reply);
    }
    return end;
  }

  static void ExpectEqual(const MethodDescriptor& method, const End& a, const End& b) {
    EXPECT_EQ(a.status.error_code(), b.status.error_code()) << a.status.error_message();
    EXPECT_EQ(a.status.error_message(), b.status.error_message());
    EXPECT_EQ(a.status.error_details(), b.status.error_details());
    // Only the last message of a stream of progress: the number of messages before it depends on
    // time.
    ASSERT_EQ(a.replies.empty(), b.replies.empty());
    if (a.replies.empty() || !a.status.ok()) return;
    const auto one = Parsed(method, a.replies.back());
    const auto other = Parsed(method, b.replies.back());
    ClearWhatIsOfTheCall(*one);
    ClearWhatIsOfTheCall(*other);
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*one, *other))
        << one->DebugString() << "and with words that exist nowhere\n"
        << other->DebugString();
  }

  OtherTenant tenants_;
  AccessServer server_;
  const Client free_;
  grpc::GenericStub stub_;
};

TEST_F(BoundCallerTest, LearnsNothingOfOtherRowsByAnyMethod) {
  const RequestWords words = Words();
  // Their rows are kept from now on, as when another caller used the same filters before.
  for (const std::string& filter : words.tried("filter")) {
    v1::SearchRequest request;
    request.set_collection("shared");
    v1::Query& query = *request.add_queries();
    query.set_id("acme-3");
    query.set_filter(filter);
    v1::SearchResponse response;
    EXPECT_TRUE(free_.Search(request, response).ok()) << filter;
  }
  for (const MethodDescriptor* const method : AllMethods()) {
    bool is_answered = false;
    for (const auto& request : GenerateRequests(FindPrototype(*method->input_type()), words)) {
      SCOPED_TRACE(method->full_name() + " " + request->ShortDebugString());
      const std::string bytes = request->SerializeAsString();
      const End end = Call(*method, bytes, "bound-twice");
      is_answered = is_answered || end.status.ok();
      EXPECT_EQ(FindLeak(*method, *request, end), "");
      if (bytes.find(OtherTenant::kMarker) != std::string::npos) {
        ExpectEqual(*method, end, CallWithNothing(*method, bytes, "bound-twice"));
      }
      if (HasFailure()) return;
    }
    // Otherwise the requests try nothing. Metrics and findings tell of all rows; nothing was served
    // before.
    static const std::set<std::string> kUnanswered = {"Diagnose", "GetStats", "RollbackCollection"};
    EXPECT_EQ(is_answered, !kUnanswered.contains(method->name())) << method->full_name();
  }
}

// A figure that the test does not leave out equals that of a collection with the caller's rows
// alone.
TEST_F(BoundCallerTest, SeesTheFiguresOfItsOwnRows) {
  const Client bound = server_.NewClient("bound");
  v1::GetCollectionResponse shared;
  v1::GetCollectionResponse alone;
  ASSERT_TRUE(bound.Get("shared", shared).ok());
  ASSERT_TRUE(free_.Get("acme", alone).ok());
  EXPECT_EQ(shared.collection().rows(), OtherTenant::kOwnItems);
  EXPECT_EQ(shared.collection().users(), 0U);
  v1::GetCollectionResponse with_users;
  ASSERT_TRUE(server_.NewClient("bound-twice").Get("shared", with_users).ok());
  EXPECT_EQ(with_users.collection().users(), OtherTenant::kOwnUsers);
  const auto describe = [](const Client& client, const std::string& collection) {
    v1::DescribeFieldsRequest request;
    request.set_collection(collection);
    request.set_values_max(100);
    v1::DescribeFieldsResponse response;
    EXPECT_TRUE(client.DescribeFields(request, response).ok());
    response.clear_snapshot_id();
    for (v1::FieldDescription& field : *response.mutable_fields()) field.clear_bytes();
    return response;
  };
  EXPECT_EQ(describe(bound, "shared").DebugString(), describe(free_, "acme").DebugString());
  const auto with_own_figures = [](const v1::Collection& collection) {
    v1::Collection own;
    *own.mutable_fields() = collection.fields();
    *own.mutable_lookup_fields() = collection.lookup_fields();
    own.set_rows(collection.rows());
    own.set_skipped_rows(collection.skipped_rows());
    own.set_dim(collection.dim());
    own.set_metric(collection.metric());
    return own.DebugString();
  };
  EXPECT_EQ(with_own_figures(shared.collection()), with_own_figures(alone.collection()));
  EXPECT_THAT(
      shared.collection().notes(),
      ElementsAre(
          "notes of the load are left out: they may name rows or users that do not exist here"));
}

TEST_F(BoundCallerTest, ReadsWhyAChangeFailedInTheLogAlone) {
  v1::ReloadCollectionRequest request;
  request.set_collection("shared");
  request.set_folder("shared/twice");
  ChangeAnswer answer;
  const Outcome told = free_.Reload(request, answer);
  EXPECT_THAT(told.message, HasSubstr("\"zebra-257\""));
  const Outcome refused = server_.NewClient("bound").Reload(request, answer);
  EXPECT_EQ(refused.reason, told.reason);
  EXPECT_EQ(refused.message,
            "shared was not changed; the server's log has the details under the request id of this "
            "call");
  for (const v1::ChangeProgress& progress : answer.progress) {
    EXPECT_EQ(progress.file(), "");
    EXPECT_EQ(progress.bytes_total(), 0U);
  }
}

// The figures, texts and ids that the test above looks for, each where it would be.
TEST_F(BoundCallerTest, WouldFindWhatIsPlanted) {
  v1::GetCollectionResponse response;
  ASSERT_TRUE(server_.NewClient("bound").Get("shared", response).ok());
  EXPECT_EQ(LeakIn(response, {}), "");
  const auto leak_of = [&](const std::function<void(v1::Collection&)>& plant) {
    v1::GetCollectionResponse planted = response;
    plant(*planted.mutable_collection());
    return LeakIn(planted, {"zebra-7"});
  };
  EXPECT_THAT(leak_of([](v1::Collection& of) { of.set_rows(5'000); }), HasSubstr("rows: 5000"));
  EXPECT_NE(leak_of([](v1::Collection& of) { of.mutable_bytes()->set_vectors(4'980); }), "");
  EXPECT_NE(leak_of([](v1::Collection& of) { of.add_notes("row 3: Zebra"); }), "");
  EXPECT_NE(leak_of([](v1::Collection& of) { of.add_fields()->set_name("zebra_field"); }), "");
  EXPECT_NE(leak_of([](v1::Collection& of) { of.add_notes("5,000 rows normalized"); }), "");
  EXPECT_EQ(leak_of([](v1::Collection& of) { of.add_notes("no item \"zebra-7\""); }), "");
  // A caller for whom all rows exist is told all of this.
  v1::GetCollectionResponse all;
  ASSERT_TRUE(free_.Get("shared", all).ok());
  EXPECT_NE(LeakIn(all, {}), "");
  EXPECT_THAT(all.collection().notes(), Not(IsEmpty()));
}

}  // namespace
}  // namespace simile::integration
