#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace simile::net {

// The part of HTTP/1.1 that a scraper of metrics needs. Pure.

// Whether the head of a request has arrived: its lines up to the empty one.
bool IsWholeHead(std::string_view received);

// The whole response to a request. The connection closes after it.
//   head     what was received; a head that was cut off is answered by 431
//   metrics  makes the text of `GET /metrics`; not called for other requests
std::string ScrapeAnswer(std::string_view head, const std::function<std::string()>& metrics);

}  // namespace simile::net
