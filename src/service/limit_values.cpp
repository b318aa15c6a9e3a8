#include "service/limit_values.h"

#include <chrono>
#include <utility>
#include <variant>

namespace simile::service {
namespace {

using Member = std::variant<std::uint32_t Limits::*, std::uint64_t Limits::*,
                            std::chrono::milliseconds Limits::*>;

// Every member of Limits, in its order; a test compares the two.
constexpr std::pair<const char*, Member> kMembers[] = {
    {"k_max", &Limits::k_max},
    {"queries_per_call_max", &Limits::queries_per_call_max},
    {"dim_max", &Limits::dim_max},
    {"excluded_ids_max", &Limits::excluded_ids_max},
    {"exclusions_per_call_max", &Limits::exclusions_per_call_max},
    {"allowed_ids_max", &Limits::allowed_ids_max},
    {"item_collections_per_call_max", &Limits::item_collections_per_call_max},
    {"payload_fields_max", &Limits::payload_fields_max},
    {"filter_bytes_max", &Limits::filter_bytes_max},
    {"filters_per_call_max", &Limits::filters_per_call_max},
    {"examples_max", &Limits::examples_max},
    {"vectors_per_call_max", &Limits::vectors_per_call_max},
    {"diversity_candidates_max", &Limits::diversity_candidates_max},
    {"diversity_pairs_per_call_max", &Limits::diversity_pairs_per_call_max},
    {"group_rows_per_call_max", &Limits::group_rows_per_call_max},
    {"explained_ids_max", &Limits::explained_ids_max},
    {"field_name_bytes_max", &Limits::field_name_bytes_max},
    {"fetch_ids_max", &Limits::fetch_ids_max},
    {"lookup_hits_max", &Limits::lookup_hits_max},
    {"lookup_text_bytes_max", &Limits::lookup_text_bytes_max},
    {"field_values_max", &Limits::field_values_max},
    {"collections_page_max", &Limits::collections_page_max},
    {"id_bytes_max", &Limits::id_bytes_max},
    {"collection_name_bytes_max", &Limits::collection_name_bytes_max},
    {"queue_queries_max", &Limits::queue_queries_max},
    {"queue_bytes_max", &Limits::queue_bytes_max},
    {"batch_queries_max", &Limits::batch_queries_max},
    {"receive_bytes_max", &Limits::receive_bytes_max},
    {"metadata_bytes_max", &Limits::metadata_bytes_max},
    {"reply_bytes_default", &Limits::reply_bytes_default},
    {"reply_bytes_max", &Limits::reply_bytes_max},
    {"stream_requests_max", &Limits::stream_requests_max},
    {"unsent_bytes_max", &Limits::unsent_bytes_max},
    {"resolve_bytes_max", &Limits::resolve_bytes_max},
    {"connections_max", &Limits::connections_max},
    {"connections_per_peer_max", &Limits::connections_per_peer_max},
    {"half_open_connections_max", &Limits::half_open_connections_max},
    {"ipv6_peer_bits", &Limits::ipv6_peer_bits},
    {"streams_per_connection_max", &Limits::streams_per_connection_max},
    {"unfinished_bytes_per_peer_max", &Limits::unfinished_bytes_per_peer_max},
    {"session_bytes_max", &Limits::session_bytes_max},
    {"resets_per_second_max", &Limits::resets_per_second_max},
    {"empty_frames_per_second_max", &Limits::empty_frames_per_second_max},
    {"handshake_timeout", &Limits::handshake_timeout},
    {"keepalive_time", &Limits::keepalive_time},
    {"keepalive_timeout", &Limits::keepalive_timeout},
    {"connection_idle_max", &Limits::connection_idle_max},
    {"connection_age_max", &Limits::connection_age_max},
    {"connection_age_grace", &Limits::connection_age_grace},
    {"search_deadline_default", &Limits::search_deadline_default},
    {"search_deadline_max", &Limits::search_deadline_max},
    {"drain_delay", &Limits::drain_delay},
    {"drain_timeout", &Limits::drain_timeout},
    {"page_lease", &Limits::page_lease},
    {"rows_max", &Limits::rows_max},
    {"npy_header_bytes_max", &Limits::npy_header_bytes_max},
    {"safetensors_header_bytes_max", &Limits::safetensors_header_bytes_max},
    {"jsonl_line_bytes_max", &Limits::jsonl_line_bytes_max},
    {"id_list_bytes_max", &Limits::id_list_bytes_max},
    {"collection_json_bytes_max", &Limits::collection_json_bytes_max},
    {"unread_files_max", &Limits::unread_files_max},
    {"json_depth_max", &Limits::json_depth_max},
    {"payload_fields_per_collection_max", &Limits::payload_fields_per_collection_max},
};

// Reads a member, with the name that a caller sees.
struct ReadMember {
  const Limits& limits;
  const char* name;

  LimitValue operator()(std::chrono::milliseconds Limits::*member) const {
    return {std::string(name) + "_ms", static_cast<std::uint64_t>((limits.*member).count())};
  }
  template <class Number>
  LimitValue operator()(Number Limits::*member) const {
    return {name, limits.*member};
  }
};

}  // namespace

std::vector<LimitValue> LimitValues(const Limits& limits) {
  std::vector<LimitValue> values;
  for (const auto& [name, member] : kMembers) {
    values.push_back(std::visit(ReadMember{limits, name}, member));
  }
  return values;
}

}  // namespace simile::service
