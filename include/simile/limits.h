#pragma once

#include <chrono>
#include <cstdint>

namespace simile {

// The largest k of one search of a segment. Bounds limits.k_max, and the lists that the engine asks
// for when an answer needs several rounds.
inline constexpr std::uint32_t kHitsMax = 10'000;

// Every bound that a request, a file or a connection can reach, with its default. The bounds that
// an operator may change are in the typed configuration (src/app/config/config.h) with unit and
// range.
struct Limits {
  // Queries
  std::uint32_t k_max = kHitsMax;
  std::uint32_t queries_per_call_max = 1'024;
  std::uint32_t dim_max = 4'096;
  std::uint32_t excluded_ids_max = 10'000;  // per query
  // Excluded ids of a call; the ids of its options count once for each query. Bounds the row lists
  // that the ids become, one list for each query.
  std::uint32_t exclusions_per_call_max = 256U << 10;
  std::uint32_t allowed_ids_max = 200'000;           // per call
  std::uint32_t item_collections_per_call_max = 16;  // other collections, whose items a call names
  std::uint32_t payload_fields_max = 256;            // named in one call
  std::uint32_t filter_bytes_max = 8U << 10;
  std::uint32_t filters_per_call_max = 256;        // different; each may take a mask over all rows
  std::uint32_t examples_max = 64;                 // per query, positive and negative together
  std::uint32_t vectors_per_call_max = 1'024;      // each example counted
  std::uint32_t diversity_candidates_max = 1'000;  // per query
  std::uint32_t diversity_pairs_per_call_max = 2'000'000;  // candidates times rows chosen
  std::uint32_t group_rows_per_call_max = 200'000;         // groups times rows of each
  std::uint32_t explained_ids_max = 100;                   // per SearchService.Explain
  std::uint32_t field_name_bytes_max = 512;                // the name of a field in a query
  std::uint32_t fetch_ids_max = 1'024;                     // per LookupService.Fetch
  std::uint32_t lookup_hits_max = 1'000;                   // per LookupService.Lookup
  std::uint32_t lookup_text_bytes_max = 512;
  std::uint32_t field_values_max = 1'000;  // of each field, per CollectionService.DescribeFields
  std::uint32_t collections_page_max = 1'000;  // per CollectionService.ListCollections
  std::uint32_t id_bytes_max = 512;
  std::uint32_t collection_name_bytes_max = 128;
  std::uint32_t queue_queries_max = 1'024;     // waiting, over all collections
  std::uint64_t queue_bytes_max = 256U << 20;  // all requests that wait or run
  std::uint32_t batch_queries_max = 1'024;     // dispatched together

  // Messages
  std::uint32_t receive_bytes_max = 20U << 20;
  std::uint32_t metadata_bytes_max = 8U << 10;
  std::uint32_t reply_bytes_default = 4U << 20;  // what stock clients accept
  std::uint32_t reply_bytes_max = 64U << 20;     // what a request may raise it to
  std::uint32_t stream_requests_max = 64;        // of a SearchStream at a time
  std::uint64_t unsent_bytes_max = 256U << 20;   // of replies that wait to be sent
  std::uint64_t resolve_bytes_max = 128U << 20;  // of work that waits for a resolve worker, or runs

  // Connections
  std::uint32_t connections_max = 1'024;
  std::uint32_t connections_per_peer_max = 64;
  std::uint32_t half_open_connections_max = 256;  // that have not spoken HTTP/2 yet
  std::uint32_t ipv6_peer_bits = 64;  // addresses that share this many first bits are one peer
  std::uint32_t streams_per_connection_max = 100;
  // Of one address's requests that are being received or wait for their handlers.
  std::uint64_t unfinished_bytes_per_peer_max = 128U << 20;
  std::uint64_t session_bytes_max = 4U << 20;  // of HTTP/2 state, per connection
  // Per address. Twice this number is allowed at first; each answered call allows one more reset.
  std::uint32_t resets_per_second_max = 1'000;
  // Per address. Ten times this number is allowed at first.
  std::uint32_t empty_frames_per_second_max = 100;
  std::chrono::milliseconds handshake_timeout{5'000};
  std::chrono::milliseconds keepalive_time{20'000};
  std::chrono::milliseconds keepalive_timeout{10'000};
  std::chrono::milliseconds connection_idle_max{300'000};
  std::chrono::milliseconds connection_age_max{0};         // 0: no limit
  std::chrono::milliseconds connection_age_grace{30'000};  // for calls of a too old connection

  // Time
  std::chrono::milliseconds search_deadline_default{2'000};
  std::chrono::milliseconds search_deadline_max{10'000};
  std::chrono::milliseconds drain_delay{100};  // calls are still accepted, health says NOT_SERVING
  std::chrono::milliseconds drain_timeout{5'000};
  // A replaced snapshot is kept this long for callers that are still paging through it.
  std::chrono::milliseconds page_lease{60'000};

  // Files
  std::uint64_t rows_max = 0xffff'fff0U;  // row numbers are 32 bits; the rest are sentinels
  std::uint64_t npy_header_bytes_max = 10'000;
  std::uint64_t safetensors_header_bytes_max = 1U << 20;
  std::uint64_t jsonl_line_bytes_max = 64U << 10;
  std::uint64_t id_list_bytes_max = 4ULL << 30;
  std::uint64_t collection_json_bytes_max = 64U << 10;
  std::uint32_t unread_files_max = 100;  // per collection's folder, listed
  std::uint32_t json_depth_max = 16;
  std::uint32_t payload_fields_per_collection_max = 1'024;
};

// Vectors whose Euclidean length is outside this range are refused, at load and in requests. Within
// it no product or sum overflows and no NaN arises. A vector of zeros scores 0 with every vector:
// dot accepts it, and cosine refuses it. A cosine collection may skip rows of zeros instead.
inline constexpr double kNormMin = 0x1p-60;
inline constexpr double kNormMax = 0x1p60;

// How far from 1 the length of a vector may be that a caller marks as stored
// (FloatVector.as_stored), for cosine. Stored rows and profiles are within 2^-20.
inline constexpr double kStoredLengthError = 1e-5;

}  // namespace simile
