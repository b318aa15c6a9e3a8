#include "net/scrape_answer.h"

#include <fmt/format.h>

namespace simile::net {
namespace {

constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kMessageType = "text/plain; charset=utf-8";

std::string Response(std::string_view status, std::string_view type, std::string_view body,
                     bool with_body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nAllow: GET, HEAD\r\n"
      "Connection: close\r\n\r\n{}",
      status, type, body.size(), with_body ? body : "");
}

std::string Refusal(std::string_view status, std::string_view message) {
  return Response(status, kMessageType, message, true);
}

// Removes and returns the text up to the next space.
std::string_view NextWord(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line = end == std::string_view::npos ? "" : line.substr(end + 1);
  return word;
}

// The response to a GET, or to a HEAD without the body.
std::string Page(std::string_view path, const HttpPages& pages, bool with_body) {
  if (path == "/metrics") return Response("200 OK", kMetricsType, pages.metrics(), with_body);
  if (path == "/healthz") return Response("200 OK", kMessageType, "alive\n", with_body);
  if (path != "/readyz") {
    return Response("404 Not Found", kMessageType,
                    "metrics are at /metrics, health is at /healthz and /readyz\n", with_body);
  }
  const std::string reason = pages.unready_reason();
  if (!reason.empty()) {
    return Response("503 Service Unavailable", kMessageType, fmt::format("{}\n", reason),
                    with_body);
  }
  const std::string missing = pages.missing();
  return Response("200 OK", kMessageType,
                  missing.empty() ? "serving\n" : fmt::format("serving without {}\n", missing),
                  with_body);
}

}  // namespace

bool IsWholeHead(std::string_view received) {
  return received.find("\n\r\n") != std::string_view::npos ||
         received.find("\n\n") != std::string_view::npos;
}

std::string ScrapeAnswer(std::string_view head, const HttpPages& pages) {
  if (!IsWholeHead(head)) {
    return Refusal("431 Request Header Fields Too Large", "the request's header is too large\n");
  }
  std::string_view line = head.substr(0, head.find_first_of("\r\n"));
  const std::string_view method = NextWord(line);
  const std::string_view target = NextWord(line);
  if (!line.starts_with("HTTP/1.")) {
    return Refusal("400 Bad Request", "metrics are served over HTTP/1.1 at /metrics\n");
  }
  if (method != "GET" && method != "HEAD") {
    return Refusal("405 Method Not Allowed", "only GET and HEAD\n");
  }
  return Page(target.substr(0, target.find('?')), pages, method == "GET");
}

}  // namespace simile::net
