#include "integration/shared_calls.h"

namespace simile::integration {
namespace {

// Message is SearchOptions, FetchRequest or LookupRequest.
template <class Message>
void SetOptions(const SharedOptions& options, Message& message) {
  *message.mutable_payload() = options.payload;
  message.set_with_vectors(options.with_vectors);
  message.set_with_rows(options.with_rows);
  message.set_required_filter(options.required_filter);
  message.set_expected_snapshot_id(options.expected_snapshot_id);
  if (options.reply_bytes_max) message.set_reply_bytes_max(*options.reply_bytes_max);
}

// Message is Hit or Item.
template <class Message>
SharedRow ToSharedRow(const Message& message) {
  SharedRow row{
      .id = message.id(), .payload_fields = {}, .has_vector = message.has_vector(), .row = {}};
  for (const auto& [name, value] : message.payload()) row.payload_fields.insert(name);
  if (message.has_row()) row.row = message.row();
  return row;
}

// Response is SearchResponse or RecommendResponse.
template <class Response>
SharedAnswer SearchAnswer(const Outcome& outcome, const Response& response) {
  SharedAnswer answer{.outcome = outcome,
                      .rows = {},
                      .snapshot_id = response.receipt().snapshot_id(),
                      .bytes = response.ByteSizeLong()};
  for (const v1::SearchResult& result : response.results()) {
    for (const v1::Hit& hit : result.hits()) answer.rows.push_back(ToSharedRow(hit));
  }
  return answer;
}

SharedAnswer Search(const Client& client, const SharedOptions& options) {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("toy-story-1995");
  SetOptions(options, *request.mutable_options());
  request.mutable_options()->set_receipt_detail(v1::RECEIPT_DETAIL_BRIEF);
  v1::SearchResponse response;
  const Outcome outcome = client.Search(request, response);
  return SearchAnswer(outcome, response);
}

SharedAnswer Recommend(const Client& client, const SharedOptions& options) {
  v1::RecommendRequest request;
  request.set_collection("films");
  request.add_user_ids("user_00042");
  SetOptions(options, *request.mutable_options());
  request.mutable_options()->set_receipt_detail(v1::RECEIPT_DETAIL_BRIEF);
  v1::RecommendResponse response;
  const Outcome outcome = client.Recommend(request, response);
  return SearchAnswer(outcome, response);
}

SharedAnswer Fetch(const Client& client, const SharedOptions& options) {
  v1::FetchRequest request;
  request.set_collection("films");
  for (const char* id : {"toy-story-1995", "toy-story-2-1999", "toy-story-3-2010"}) {
    request.add_ids(id);
  }
  SetOptions(options, request);
  v1::FetchResponse response;
  SharedAnswer answer{.outcome = client.Fetch(request, response),
                      .rows = {},
                      .snapshot_id = response.snapshot_id(),
                      .bytes = response.ByteSizeLong()};
  for (const v1::Item& item : response.items()) answer.rows.push_back(ToSharedRow(item));
  return answer;
}

SharedAnswer Lookup(const Client& client, const SharedOptions& options) {
  v1::LookupRequest request;
  request.set_collection("films");
  request.set_text("toy story");
  SetOptions(options, request);
  v1::LookupResponse response;
  SharedAnswer answer{.outcome = client.Lookup(request, response),
                      .rows = {},
                      .snapshot_id = response.snapshot_id(),
                      .bytes = response.ByteSizeLong()};
  for (const v1::LookupMatch& match : response.matches())
    answer.rows.push_back(ToSharedRow(match.item()));
  return answer;
}

constexpr SharedCall kSharedCalls[] = {{"Search", Search, "options."},
                                       {"Recommend", Recommend, "options."},
                                       {"Fetch", Fetch, ""},
                                       {"Lookup", Lookup, ""}};

}  // namespace

std::span<const SharedCall> SharedCalls() { return kSharedCalls; }

}  // namespace simile::integration
