#pragma once

#include <string>
#include <vector>

#include "cli/client_security.h"
#include "files/certificates.h"
#include "files/scratch_folder.h"
#include "integration/films_server.h"

namespace simile::integration {

// A server of the films that knows its callers by an access file and, if wanted, encrypts.
class AccessServer {
 public:
  enum class Encryption { kNone, kServerOnly, kClientsMay, kClientsMust };

  //   principals  the members of the file's list, as JSON; Entry makes them
  explicit AccessServer(const std::vector<std::string>& principals,
                        Encryption encryption = Encryption::kNone,
                        const FilmsServer::Change& change = {});

  // A principal whose token is `token of NAME`.
  //   members  further ones: R"("collections": ["films"])"
  static std::string Entry(const std::string& name, const std::string& role,
                           const std::string& members = "");
  static std::string MakeToken(const std::string& name) { return "token-of-" + name; }

  FilmsServer& films() { return *films_; }
  const TestAuthority& authority() const { return authority_; }
  // The client named by its token; empty for none. Encrypts if the server does.
  Client NewClient(const std::string& name) const;
  Client NewClient(const cli::ClientSecurity& security) const;
  // What a client needs that trusts the server.
  cli::ClientSecurity Trusting() const;

  // Replace files of the running server.
  void WriteAccess(const std::vector<std::string>& principals) const;
  void WriteCertificate(const CertificatePair& pair) const;
  void WriteClientAuthorities(const std::string& certificates) const;

 private:
  void WriteWhole(const std::string& name, const std::string& text) const;

  const ScratchFolder folder_;
  const TestAuthority authority_;
  const Encryption encryption_;
  std::unique_ptr<FilmsServer> films_;
};

}  // namespace simile::integration
