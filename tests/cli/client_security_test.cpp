// How each command that calls a server shows who it is, against a server that wants to know.
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/errors.h"
#include "cli/program_run.h"
#include "files/certificates.h"
#include "files/scratch_folder.h"
#include "integration/server_process.h"

namespace simile::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr char kFilms[] = SIMILE_SOURCE_DIR "/examples/films";
constexpr char kNobody[] = "wants to know who calls: give --token-file FILE (or SIMILE_TOKEN)";
constexpr char kElsewhere[] = "192.0.2.1:50051";  // of no machine (RFC 5737)

struct ClientCommand {
  std::vector<std::string> arguments;
  std::string answered;  // what it prints once the server has answered, be it an error
  bool is_open = false;  // the server answers anyone
};

// In an order that each can be answered in.
std::vector<ClientCommand> ClientCommands() {
  return {
      {{"health"}, "serving", true},
      {{"info"}, "build "},
      {{"list"}, "films "},
      {{"similar", "--id", "toy-story-1995"}, "toy-story-2-1999"},
      {{"search", "--vector", std::string(kFilms) + "/preference_vectors.npy"}, "nearest to"},
      {{"recommend", "--user", "user_00042"}, "for user_00042"},
      {{"explain", "--item", "heat-1995", "--id", "toy-story-1995"}, "not returned"},
      {{"lookup", "toy"}, "items of films match"},
      {{"fetch", "--id", "toy-story-1995"}, "Tom Hanks"},
      {{"fields"}, "genre"},
      {{"verify", "--folder", kFilms, "--samples", "1"}, "stored rows"},
      {{"bench", "--duration", "100ms", "--warm-up", "0s", "--in-flight", "1"}, "queries/s"},
      {{"top", "--count", "1", "--interval", "100ms"}, "backend "},
      {{"plan", "--host-bandwidth", "20GB/s"}, "films "},
      {{"doctor"}, "device nodes"},
      {{"reload", "films"}, "this content was served already"},
      {{"rollback", "films"}, "films has no earlier generation"},
      {{"load", "more", "films"}, "5,000 rows x 384"},
      {{"unload", "more"}, "more is no longer served"},
  };
}

class ClientSecurityTest : public testing::Test {
 protected:
  ClientSecurityTest() {
    const CertificatePair server = authority_.Issue();
    Write("server.pem", server.certificate);
    Write("server.key", server.key);
    Write("ca.pem", authority_.certificate());
    const CertificatePair client = authority_.Issue({.common_name = "loader"});
    Write("client.pem", client.certificate);
    Write("client.key", client.key);
    const json made =
        json::parse(RunProgram({"token", "--name", "admin", "--role", "admin", "--json"}).printed);
    token_ = made["token"];
    Write("token", token_ + "\n");
    const json reader = json::parse(RunProgram({"token", "--name", "reader", "--json"}).printed);
    Write("reader", reader["token"].get<std::string>() + "\n");
    const json loader = {{"name", "loader"}, {"role", "admin"}, {"certificates", {"loader"}}};
    Write("access.json",
          json{{"principals", {made["principal"], reader["principal"], loader}}}.dump());
    process_.emplace(
        std::vector<std::string>{"--collection", std::string("films=") + kFilms, "--data-root",
                                 SIMILE_SOURCE_DIR "/examples", "--no-metrics", "--log-level",
                                 "error", "--port", "0", "--tls-certificate", File("server.pem"),
                                 "--tls-key", File("server.key"), "--tls-client-ca", File("ca.pem"),
                                 "--access-file", File("access.json")},
        integration::ServerProcess::Circumstances{
            .variables = {"SIMILE_BACKEND_PREFERENCE=cpu",
                          "SIMILE_SERVER_TLS_CLIENT_CERTIFICATES=optional"}});
    address_ = process_->AwaitListening();
    EXPECT_NE(address_, "") << process_->output();
  }

  void Write(const std::string& name, const std::string& text) const { folder_.Write(name, text); }
  std::string File(const std::string& name) const { return folder_.path() / name; }

  // Runs a command with more arguments, against this server unless another is named.
  ProgramRun Run(std::vector<std::string> arguments, const std::vector<std::string>& more,
                 const std::vector<std::string>& variables = {},
                 const std::string& address = {}) const {
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"--server", address.empty() ? address_ : address});
    return RunProgram(arguments, "", variables);
  }

  const ScratchFolder folder_;
  const TestAuthority authority_;
  std::string token_;
  std::string address_;
  std::optional<integration::ServerProcess> process_;
};

TEST_F(ClientSecurityTest, EveryCommandIsAnsweredWithItsTokenAndRefusedWithout) {
  const std::vector<std::string> trusts = {"--ca", File("ca.pem")};
  const std::vector<std::string> knows = {"--ca", File("ca.pem"), "--token-file", File("token")};
  for (const ClientCommand& command : ClientCommands()) {
    SCOPED_TRACE(testing::PrintToString(command.arguments));
    const ProgramRun unknown = Run(command.arguments, trusts);
    if (command.is_open) {
      EXPECT_THAT(unknown.printed, HasSubstr(command.answered));
    } else {
      EXPECT_NE(unknown.exit_code, 0);
      EXPECT_THAT(unknown.errors, HasSubstr(kNobody));
      EXPECT_THAT(unknown.printed + unknown.errors, Not(HasSubstr(command.answered)));
    }
    const ProgramRun known = Run(command.arguments, knows);
    EXPECT_THAT(known.printed + known.errors, HasSubstr(command.answered));
    EXPECT_THAT(known.errors, Not(HasSubstr(kNobody)));
    // To another machine the token is not sent in plain text, nor is a connection made.
    const ProgramRun plain =
        Run(command.arguments, {"--token-file", File("token")}, {}, kElsewhere);
    EXPECT_EQ(plain.exit_code, kWrongUsage);
    EXPECT_THAT(plain.errors, HasSubstr("the token would reach 192.0.2.1:50051 unencrypted: give "
                                        "--tls, with --ca FILE"));
    EXPECT_EQ(plain.errors.find(token_), std::string::npos);
  }
}

// A command that takes --token-file and is not in the table fails here.
TEST_F(ClientSecurityTest, TheTableHasEveryCommandThatCallsAServer) {
  std::vector<std::string> called;
  for (const ClientCommand& command : ClientCommands()) called.push_back(command.arguments.front());
  std::vector<std::string> taking;
  std::istringstream help(RunProgram({"--help"}).printed);
  for (std::string line; std::getline(help, line);) {
    if (!line.starts_with("  ") || line.starts_with("   ")) continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    if (RunProgram({name, "--help"}).printed.find("--token-file") != std::string::npos) {
      taking.push_back(name);
    }
  }
  EXPECT_THAT(called, testing::UnorderedElementsAreArray(taking));
}

TEST_F(ClientSecurityTest, TakesFlagsAndVariables) {
  const std::string ca = File("ca.pem");
  const std::string certificate = File("client.pem");
  const std::string key = File("client.key");
  const std::string token = File("token");
  Write("wrong", "not-the-token");
  const std::string wrong = File("wrong");
  const std::string listed = "films ";
  const std::string unencrypted = "it closes the connection; it may want TLS (--tls)";
  const std::string untrusted = "its certificate is not trusted";
  struct Case {
    std::vector<std::string> flags;
    std::vector<std::string> variables;
    std::string says;
  };
  const Case cases[] = {
      {{"--token-file", token}, {"SIMILE_CA=" + ca}, listed},
      {{"--ca", ca}, {"SIMILE_TOKEN_FILE=" + token}, listed},
      {{"--ca", ca}, {"SIMILE_TOKEN=" + token_}, listed},
      {{}, {"SIMILE_CA=" + ca, "SIMILE_TOKEN=" + token_}, listed},
      // Flags win over variables, and a file over the token itself.
      {{"--ca", ca, "--token-file", token}, {"SIMILE_TOKEN=wrong"}, listed},
      {{"--ca", ca, "--token-file", token}, {"SIMILE_TOKEN_FILE=" + wrong}, listed},
      {{"--ca", ca, "--token-file", wrong}, {"SIMILE_TOKEN=" + token_}, "does not know the token"},
      {{"--ca", ca}, {"SIMILE_TOKEN_FILE=" + token, "SIMILE_TOKEN=wrong"}, listed},
      {{"--ca", ca, "--cert", certificate, "--key", key}, {}, listed},
      {{"--ca", ca, "--server-name", "localhost", "--token-file", token}, {}, listed},
      {{"--ca", ca, "--server-name", "other.test", "--token-file", token},
       {},
       "its certificate has another name than this address; --server-name NAME names it"},
      {{"--token-file", token}, {}, unencrypted},
      {{"--tls", "--token-file", token}, {}, untrusted},
      {{"--server-name", "localhost", "--token-file", token}, {}, untrusted},
      {{"--ca", certificate, "--token-file", token}, {}, untrusted},
      {{"--ca", ca, "--cert", certificate}, {}, "--cert and --key go together: give both"},
      {{"--ca", ca, "--key", key}, {}, "--cert and --key go together: give both"},
      {{"--ca", File("none")}, {}, "--ca " + File("none") + ": no such file, or an empty one"},
      {{}, {"SIMILE_CA=" + File("none")}, "SIMILE_CA=" + File("none") + ": no such file"},
      {{"--ca", token}, {}, "--ca " + token + ": not a PEM file"},
      {{"--ca", key}, {}, "--ca " + key + ": it holds \""},
      {{"--ca", ca, "--cert", key, "--key", key}, {}, "--cert " + key + ": it holds \""},
      {{"--ca", ca, "--cert", certificate, "--key", certificate},
       {},
       "it holds \"CERTIFICATE\"; a PEM file of a private key has a line -----BEGIN PRIVATE KEY"},
      {{"--ca", ca, "--cert", token, "--key", key}, {}, "--cert " + token + ": not a PEM file"},
      {{"--ca", ca, "--token-file", ca}, {}, "a token is one word of printable ASCII characters"},
      {{"--ca", ca}, {"SIMILE_TOKEN=two words"}, "SIMILE_TOKEN: a token is one word"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(testing::PrintToString(one.flags) + testing::PrintToString(one.variables));
    const ProgramRun run = Run({"list"}, one.flags, one.variables);
    EXPECT_THAT(run.printed + run.errors, HasSubstr(one.says));
    EXPECT_EQ(run.exit_code == 0, one.says == listed);
  }
}

// What the server refuses one caller is not the server's settings.
TEST_F(ClientSecurityTest, TellsAReaderWhatItsRoleRefuses) {
  const std::vector<std::string> reader = {"--ca", File("ca.pem"), "--token-file", File("reader")};
  for (const char* const command : {"top", "doctor"}) {
    const ProgramRun run = Run({command}, reader);
    EXPECT_THAT(run.printed + run.errors, Not(HasSubstr("--allow-admin"))) << command;
    EXPECT_THAT(run.printed + run.errors, HasSubstr("the role")) << command;
  }
  EXPECT_EQ(Run({"top"}, reader).errors,
            "error: reader has the role read; simile.v1.AdminService/GetStats needs admin\n");
  const ProgramRun info = Run({"info"}, reader);
  EXPECT_THAT(info.printed, HasSubstr("admin    refused to this caller: top and doctor --server "
                                      "need the role admin\n"));
  EXPECT_THAT(Run({"info"}, {"--ca", File("ca.pem"), "--token-file", File("token")}).printed,
              HasSubstr("admin    allowed\n"));
}

// A server that listens need not be started.
TEST_F(ClientSecurityTest, OffersNoStartOfAServerThatRefusesOrIsRefused) {
  const std::vector<std::string> refused[] = {
      {"--tls"}, {}, {"--ca", File("ca.pem"), "--server-name", "other.test"}};
  for (const std::vector<std::string>& flags : refused) {
    const ProgramRun run = Run({"list"}, flags);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.errors,
                testing::StartsWith("error: no connection to the server at " + address_ + ": it"));
    EXPECT_THAT(run.errors, Not(HasSubstr("start one with")));
  }
}

// Variables count like flags, and only this machine is near enough for plain text.
TEST_F(ClientSecurityTest, SendsNoTokenInPlainTextToAnotherMachine) {
  struct Case {
    std::string address;
    std::vector<std::string> variables;
    bool is_refused;
  };
  const std::string file = "SIMILE_TOKEN_FILE=" + File("token");
  for (const Case& one :
       {Case{kElsewhere, {"SIMILE_TOKEN=" + token_}, true}, Case{kElsewhere, {file}, true},
        Case{"[2001:db8::1]:50051", {file}, true}, Case{"search.invalid:50051", {file}, true},
        Case{"127.0.0.1:1", {file}, false}, Case{"[::1]:1", {file}, false},
        Case{"localhost:1", {file}, false}, Case{"search.invalid:1", {}, false}}) {
    SCOPED_TRACE(one.address);
    const ProgramRun run = Run({"list", "--timeout", "1"}, {}, one.variables, one.address);
    EXPECT_EQ(run.errors.find("unencrypted") != std::string::npos, one.is_refused) << run.errors;
    EXPECT_EQ(run.exit_code, one.is_refused ? kWrongUsage : 1);
  }
}

}  // namespace
}  // namespace simile::cli
