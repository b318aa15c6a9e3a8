#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>

#include "base/file_descriptor.h"
#include "net/listen_socket.h"
#include "simile/clock.h"

namespace simile::net {

// The part of HTTP/1.1 that a scraper of metrics and probes of health need. Pure.

// What the pages say. Each function is called only for its own page.
struct HttpPages {
  std::function<std::string()> metrics;  // /metrics: the text
  // /readyz: why the server is not ready for calls, in a few words; empty when it is ready
  std::function<std::string()> unready_reason;
  // /readyz of a server that is ready: what the server lacks; empty when it lacks nothing
  std::function<std::string()> missing;
};

// Whether the head of a request has arrived: its lines up to the empty one.
bool IsWholeHead(std::string_view received);

// The whole response to a request. The connection closes after it.
//   head  what was received; an incomplete head is answered by 431
std::string AnswerScrape(std::string_view head, const HttpPages& pages);

struct MetricsEndpointOptions {
  std::size_t connections_max = 64;
  std::chrono::milliseconds request_timeout{2'000};  // for a request to arrive
  std::chrono::milliseconds answer_timeout{10'000};  // for the answer to be taken
};

// Serves `GET /metrics`, `/healthz` and `/readyz` over HTTP on its own port, so that scrapers and
// probes need no access to the RPC port, and its limits on connections do not count them. One
// thread serves all connections and waits for none of them alone, so that a silent or slow client
// delays no scrape. At the maximum, or without a free descriptor, a new connection closes the
// oldest one, so that a client that holds many cannot keep a scraper out. Owned by wiring; safe to
// destroy at any time.
class MetricsEndpoint {
 public:
  //   pages  called on the endpoint's thread
  //   clock  borrowed for the endpoint's life
  MetricsEndpoint(ListenSocket socket, HttpPages pages, const Clock& clock,
                  const MetricsEndpointOptions& options);
  ~MetricsEndpoint();  // closes every connection at once
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  std::uint16_t port() const { return socket_.port; }
  const std::string& address() const { return socket_.address; }

 private:
  enum class Stage : std::uint8_t { kRequest, kAnswer, kEnd };
  struct Connection {
    base::FileDescriptor fd;
    Clock::TimePoint deadline;
    Stage stage = Stage::kRequest;
    std::string received;
    std::string answer;
    std::size_t sent_bytes = 0;  // of the answer

    bool IsSent() const { return sent_bytes == answer.size(); }
  };

  void Loop();
  // Waits until something happens.
  enum class Event : std::uint8_t { kStop, kConnection, kOther };
  Event Await();
  int WaitMs() const;
  void AdvanceAll();
  // Accepts a connection that waits.
  void Accept();
  // Each goes on as far as it can without waiting, and returns whether the connection stays.
  bool Advance(Connection& connection);
  bool Receive(Connection& connection);
  bool Send(Connection& connection);

  const ListenSocket socket_;
  const HttpPages pages_;
  const Clock& clock_;
  const MetricsEndpointOptions options_;
  const base::FileDescriptor stop_event_;
  // Of the thread alone.
  std::list<Connection> connections_;  // oldest first
  Clock::TimePoint accept_from_;       // later than now when descriptors have run out
  std::thread thread_;
};

}  // namespace simile::net
