// Any bytes as the frames of a connection: the server answers, refuses or cuts, and every call that
// begins ends once.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/http2_frames.h"
#include "net/served_connection.h"

// The input: bit 0 of byte 0: the bytes come in pieces of 1 to 64 bytes, else at once. Bit 1: they
// come after a call whose headers are sent. The other bytes follow the preface and the settings.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace simile::net;
  if (size < 1) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  ServedConnection server;
  const std::string opening = kHttp2Preface + Settings();
  server.Send(opening);
  if ((data[0] & 2) != 0) {
    server.Send(Frame(FrameType::kHeaders, kEndHeaders, 1, CallHeaders("/echo.Echo/Spec")));
  }
  const std::size_t piece = (data[0] & 1) != 0 ? 1 + data[0] / 4 : bytes.size();
  while (!bytes.empty() && !server.is_closed()) {
    const std::string_view next = bytes.substr(0, piece);
    server.Send(next);
    bytes.remove_prefix(next.size());
  }
  if (server.connection() != nullptr) server.connection()->Cut(Violation::kNone);
  server.Turn();
  const int begun = server.unary().begun + server.stream().begun;
  const int ended = server.unary().ended + server.stream().ended;
  if (begun == ended) return 0;
  std::fprintf(stderr, "%d calls began, %d ended\n", begun, ended);
  std::abort();
}
