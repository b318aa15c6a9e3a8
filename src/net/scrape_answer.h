#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace simile::net {

// The part of HTTP/1.1 that a scraper of metrics and probes of health need. Pure.

// What the pages say. Each is called only for its own.
struct HttpPages {
  std::function<std::string()> metrics;  // /metrics: the text
  // /readyz: why no calls are to be sent here, in a few words; empty when they are
  std::function<std::string()> unready_reason;
  // /readyz of a server that is ready: what it goes on without, for the page; empty for nothing
  std::function<std::string()> missing;
};

// Whether the head of a request has arrived: its lines up to the empty one.
bool IsWholeHead(std::string_view received);

// The whole response to a request. The connection closes after it.
//   head  what was received; a head that was cut off is answered by 431
std::string ScrapeAnswer(std::string_view head, const HttpPages& pages);

}  // namespace simile::net
