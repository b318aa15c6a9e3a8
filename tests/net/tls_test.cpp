#include "net/tls.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/certificates.h"
#include "files/scratch_folder.h"

namespace simile::net {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class TlsFilesTest : public ::testing::Test {
 protected:
  absl::StatusOr<TlsContent> Read(const CertificatePair& pair, const std::string& ca = "") const {
    folder_.Write("server.pem", pair.certificate);
    folder_.Write("server.key", pair.key);
    TlsFiles files{folder_.path() / "server.pem", folder_.path() / "server.key", ""};
    if (!ca.empty()) {
      folder_.Write("ca.pem", ca);
      files.client_ca = folder_.path() / "ca.pem";
    }
    return ReadTlsFiles(files, std::chrono::system_clock::now());
  }
  std::string Refusal(const CertificatePair& pair, const std::string& ca = "") const {
    return std::string(Read(pair, ca).status().message());
  }

  const ScratchFolder folder_;
  const TestAuthority authority_;
};

TEST_F(TlsFilesTest, ReadsAPairAndItsAuthority) {
  const CertificatePair pair = authority_.Issue({.common_name = "search.example.org"});
  const auto content = Read(pair, authority_.certificate());
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->subject, "CN=search.example.org");
  EXPECT_EQ(content->certificate, pair.certificate);
  const auto days =
      std::chrono::ceil<std::chrono::days>(content->expires_at - std::chrono::system_clock::now());
  EXPECT_EQ(days.count(), 30);
}

TEST_F(TlsFilesTest, RefusesWhatWouldFailInEveryHandshake) {
  const CertificatePair pair = authority_.Issue();
  EXPECT_THAT(Refusal({pair.certificate, authority_.Issue().key}),
              HasSubstr("server.key: the key of another certificate than"));
  EXPECT_THAT(Refusal({"nothing", pair.key}), HasSubstr("server.pem: no PEM certificate"));
  EXPECT_THAT(Refusal({pair.certificate, "nothing"}), HasSubstr("server.key: no PEM private key"));
  EXPECT_THAT(Refusal({"", pair.key}), HasSubstr("server.pem: no such file, or an empty one"));
  EXPECT_THAT(Refusal(authority_.Issue({.begins_in = -2h, .ends_in = -1h})),
              HasSubstr("server.pem: the certificate expired at "));
  EXPECT_THAT(Refusal(authority_.Issue({.begins_in = 1h})),
              HasSubstr("server.pem: the certificate is not valid before "));
  EXPECT_THAT(Refusal(pair, "no authority"), HasSubstr("ca.pem: no PEM certificates"));
}

// A damaged second certificate of a chain would only be noticed by clients.
TEST_F(TlsFilesTest, RefusesADamagedChain) {
  CertificatePair pair = authority_.Issue();
  pair.certificate += "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
  EXPECT_THAT(Refusal(pair), HasSubstr("server.pem: "));
}

}  // namespace
}  // namespace simile::net
