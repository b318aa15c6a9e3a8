#pragma once

#include <string>

#include "integration/client.h"

// The calls that have a required filter, by the type of their request.
namespace simile::integration {

inline Outcome MakeCall(const Client& client, const v1::SearchRequest& request,
                        v1::SearchResponse& response) {
  return client.Search(request, response);
}
inline Outcome MakeCall(const Client& client, const v1::RecommendRequest& request,
                        v1::RecommendResponse& response) {
  return client.Recommend(request, response);
}
inline Outcome MakeCall(const Client& client, const v1::FetchRequest& request,
                        v1::FetchResponse& response) {
  return client.Fetch(request, response);
}
inline Outcome MakeCall(const Client& client, const v1::LookupRequest& request,
                        v1::LookupResponse& response) {
  return client.Lookup(request, response);
}

template <class Request>
void Require(const std::string& filter, Request& request) {
  if constexpr (requires { request.mutable_options(); }) {
    request.mutable_options()->set_required_filter(filter);
  } else {
    request.set_required_filter(filter);
  }
}

}  // namespace simile::integration
