#include "net/guarded_connections.h"

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <gtest/gtest.h>

#include "files/certificates.h"
#include "net/acceptor.h"
#include "net/http2_frames.h"
#include "net/loopback.h"
#include "observe/exposed.h"

namespace simile::net {
namespace {

using ::testing::HasSubstr;

const TestAuthority& Authority() {
  static const TestAuthority made;
  return made;
}

// A client whose bytes are its own choice, over TLS or not.
class RawClient {
 public:
  RawClient(std::uint16_t port, bool over_tls) : fd_(ConnectTo(port)) {
    if (!over_tls) return;
    context_.reset(SSL_CTX_new(TLS_client_method()));
    constexpr std::array<unsigned char, 3> kHttp2 = {2, 'h', '2'};
    SSL_CTX_set_alpn_protos(context_.get(), kHttp2.data(), kHttp2.size());
    session_.reset(SSL_new(context_.get()));
    SSL_set_fd(session_.get(), fd_.get());
    EXPECT_EQ(SSL_connect(session_.get()), 1);
  }

  bool Send(const std::string& bytes) {
    const auto count = static_cast<int>(bytes.size());
    if (session_) return SSL_write(session_.get(), bytes.data(), count) == count;
    return send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == count;
  }
  // Reads until the other side has closed the connection.
  void AwaitEnd() {
    std::array<char, 4'096> buffer;
    if (!session_) return AwaitClosed(fd_);
    while (SSL_read(session_.get(), buffer.data(), buffer.size()) > 0) {
    }
  }

 private:
  base::FileDescriptor fd_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, &SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> session_{nullptr, &SSL_free};
};

// gRPC's own health service behind an acceptor whose connections are guarded, over TLS or not.
class GuardedConnectionsTest : public testing::TestWithParam<bool> {
 protected:
  using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;

  GuardedConnectionsTest() {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to connections that are closed
    grpc::ServerBuilder builder;
    grpc::EnableDefaultHealthCheckService(true);
    acceptors_ = builder.experimental().AddExternalConnectionAcceptor(External::FROM_FD,
                                                                      ServerCredentials());
    server_ = builder.BuildAndStart();
    auto socket = Listen("127.0.0.1", 0);
    EXPECT_TRUE(socket.ok());
    port_ = socket->port;
    acceptor_.emplace(
        *std::move(socket), Acceptor::Options(),
        [this](int fd, const PeerKey& peer) { HandOver(fd, peer); }, clock_, metrics_, log_);
    acceptor_->Start();
  }
  ~GuardedConnectionsTest() override {
    acceptor_->Stop();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  std::shared_ptr<grpc::ServerCredentials> ServerCredentials() const {
    if (!GetParam()) return grpc::InsecureServerCredentials();
    grpc::SslServerCredentialsOptions options;
    const CertificatePair pair = Authority().Issue();
    options.pem_key_cert_pairs = {{pair.key, pair.certificate}};
    return grpc::SslServerCredentials(options);
  }
  std::shared_ptr<grpc::Channel> NewChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetSslTargetNameOverride("localhost");
    return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port_),
                                     GetParam()
                                         ? grpc::SslCredentials({Authority().certificate(), "", ""})
                                         : grpc::InsecureChannelCredentials(),
                                     arguments);
  }

  void HandOver(int fd, const PeerKey& peer) {
    const absl::Status handed_over = guarded_->HandOver(fd, peer, [this, fd] {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.listener_fd = -1;
      connection.fd = fd;
      acceptors_->HandleNewConnection(&connection);
    });
    EXPECT_TRUE(handed_over.ok());
  }

  // The end of a health check with this request.
  static grpc::Status Check(const std::shared_ptr<grpc::Channel>& channel,
                            const std::string& request = {}) {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    grpc::CompletionQueue queue;
    const grpc::Slice slice(request);
    const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                            grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  }

  std::string Metrics() const { return observe::Exposed(metrics_); }

  const RealClock clock_;
  std::ostringstream lines_;
  const observe::Logger log_{{.format = observe::LogFormat::kText, .level = {}, .sink = &lines_}};
  observe::Metrics metrics_{observe::BuildInfo{}};
  std::unique_ptr<GuardedConnections> guarded_ = std::make_unique<GuardedConnections>(
      FrameGuard::Options(), 128U << 20, GuardedConnections::Parts{clock_, metrics_, log_});
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptors_;
  std::unique_ptr<grpc::Server> server_;
  std::uint16_t port_ = 0;
  std::optional<Acceptor> acceptor_;
};

INSTANTIATE_TEST_SUITE_P(, GuardedConnectionsTest, testing::Bool(),
                         [](const auto& over_tls) { return over_tls.param ? "OverTls" : "Plain"; });

constexpr char kCut[] = "simile_rejected_total{reason=\"frame_guard\"}";
constexpr char kRefused[] = "simile_rejected_total{reason=\"unfinished_bodies\"}";

TEST_P(GuardedConnectionsTest, ServesClientsAndCutsAFlood) {
  const auto channel = NewChannel();
  EXPECT_TRUE(Check(channel).ok());
  RawClient hostile(port_, GetParam());
  // Answers to pings that nobody sent: to gRPC, which ends floods of pings itself, they are
  // nothing.
  constexpr std::uint8_t kAck = 1;
  std::string answers;
  for (int i = 0; i < 100; ++i) answers += Frame(FrameType::kPing, kAck, 0, "12345678");
  bool goes_on = hostile.Send(kHttp2Preface + Settings());
  for (int i = 0; i < 1'000 && goes_on; ++i) goes_on = hostile.Send(answers);
  hostile.AwaitEnd();
  EXPECT_THAT(Metrics(), HasSubstr(std::string(kCut) + " 1\n"));
  EXPECT_TRUE(Check(channel).ok());
}

TEST_P(GuardedConnectionsTest, CutsMetadataWithoutEndAndSaysSo) {
  RawClient hostile(port_, GetParam());
  bool goes_on = hostile.Send(kHttp2Preface + Settings() + Frame(FrameType::kHeaders, 0, 1, "x"));
  const std::string more = Frame(FrameType::kContinuation, 0, 1, std::string(16'000, '\0'));
  for (int i = 0; i < 1'000 && goes_on; ++i) goes_on = hostile.Send(more);
  hostile.AwaitEnd();
  EXPECT_THAT(Metrics(), HasSubstr(std::string(kCut) + " 1\n"));
  EXPECT_THAT(lines_.str(), HasSubstr("connection cut: the peer sends metadata without end"));
}

// gRPC passes the mark on as the request. Its bytes are drawn at random, so that now and then the
// service understands them: the call ends, however it does.
TEST_P(GuardedConnectionsTest, HandsOverAMarkForARequestThatIsTooLarge) {
  const grpc::Status status = Check(NewChannel(), std::string(30U << 20, 'x'));
  EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_NE(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  EXPECT_THAT(Metrics(), HasSubstr(std::string(kRefused) + " 1\n"));
  EXPECT_THAT(Metrics(), HasSubstr(std::string(kCut) + " 0\n"));
}

TEST_P(GuardedConnectionsTest, GuardsNothingOnceItIsGone) {
  const auto channel = NewChannel();
  EXPECT_TRUE(Check(channel).ok());
  acceptor_->Stop();
  guarded_.reset();
  EXPECT_TRUE(Check(channel).ok());
}

// The number of a descriptor that was guarded soon belongs to another socket.
TEST_P(GuardedConnectionsTest, DoesNotLookAtOtherSockets) {
  std::array<int, 2> sockets{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
  const auto receive = [&] {
    char byte = 0;
    iovec piece{&byte, 1};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    EXPECT_EQ(send(sockets[1], "G", 1, 0), 1);  // as in GET
    return recvmsg(sockets[0], &message, 0);
  };
  ASSERT_TRUE(guarded_->HandOver(sockets[0], PeerKey(), [] {}).ok());
  close(sockets[0]);
  close(sockets[1]);
  std::array<int, 2> later{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, later.data()), 0);
  sockets = later;
  EXPECT_EQ(receive(), 1);
  ASSERT_TRUE(guarded_->HandOver(sockets[0], PeerKey(), [] {}).ok());
  EXPECT_EQ(receive(), -1);
  close(sockets[0]);
  close(sockets[1]);
}

TEST(FunctionNotReplacedTest, FindsThatGrpcCallsOurs) { EXPECT_EQ(FunctionNotReplaced(), ""); }

}  // namespace
}  // namespace simile::net
