#include "app/config/settings.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "app/config/setting_types.h"

namespace simile::app {
namespace {

using backend::CpuEngine;
using backend::GpuOptions;
using backend::Preference;
using backend::RegistryOptions;
using backend::WhenFull;

constexpr std::uint64_t kKiB = 1U << 10;
constexpr std::uint64_t kMiB = 1U << 20;
constexpr std::uint64_t kDayMs = 86'400'000;

// Each row: {key, flag, unit, help}, what its type needs besides, and the member that it sets.
std::vector<Setting> MakeSettings() {
  return {
      Text({"server.listen", "--listen", "", "The address to answer on."}, "address or host",
           &Config::listen),
      WholeNumber({"server.port", "--port", "", "The port to answer on; 0 takes any free one."}, 0,
                  65'535, &Config::port),
      Path({"server.port_file", "--port-file", "", "A file to write the port to once it listens."},
           &Config::port_file),
      Path({"server.ready_file", "--ready-file", "",
            "A file that exists while every configured collection serves, with the address in it; "
            "removed at the start and when the server begins to stop."},
           &Config::ready_file),
      Switch({"server.die_with_parent", "--die-with-parent", "",
              "Stop as on SIGTERM when the process that started the server ends."},
             "true", &Config::die_with_parent),
      WholeNumber({"server.io_threads", "", "threads",
                   "Threads that carry the connections; 0 is one for up to 3 processors, else a "
                   "quarter of them, at most 8."},
                  0, 64, &Config::io_threads),
      Switch({"server.reflection", "--reflection", "",
              "Describe the services to anyone who asks (gRPC server reflection)."},
             "true", &Config::reflection),
      Switch({"server.admin_allowed", "--allow-admin", "",
              "Answer GetStats and Diagnose (`simile top`, `simile doctor --server`)."},
             "true", &Config::admin_allowed),
      Path({"server.tls_certificate", "--tls-certificate", "",
            "The server's certificate and the certificates that signed it (PEM). Set: connections "
            "are encrypted (TLS 1.2 or 1.3). Read again when it changes."},
           &net::TlsFiles::certificate),
      Path({"server.tls_key", "--tls-key", "", "The certificate's private key (PEM)."},
           &net::TlsFiles::key),
      Path({"server.tls_client_ca", "--tls-client-ca", "",
            "The authorities whose client certificates are accepted (PEM). Set: clients are asked "
            "for one."},
           &net::TlsFiles::client_ca),
      Choice({"server.tls_client_certificates", "", "",
              "Whether a client without a certificate is turned away (required), or may have a "
              "token instead (optional)."},
             Values<bool>{{"required", true}, {"optional", false}},
             &net::TlsFiles::client_certificates_required),
      Path({"server.access_file", "--access-file", "",
            "Who may call and what they may do (docs/access.md). Read again when it changes; "
            "empty lets anyone search."},
           &Config::access_file),
      Switch({"server.plaintext_tokens_allowed", "", "",
              "Take tokens over unencrypted connections from other machines: only where a proxy "
              "in front encrypts them."},
             "true", &Config::plaintext_tokens_allowed),
      Collections({"collections.serve", "--collection", "",
                   "The collections to serve from the start, NAME=FOLDER each."},
                  &Config::collections),
      Path({"collections.data_root", "--data-root", "",
            "Load and Reload may name folders inside this folder; empty refuses every folder "
            "that they name."},
           &Config::data_root),
      Switch({"collections.changes_allowed", "--allow-changes", "",
              "Accept Load, Reload, Rollback and Unload over the wire."},
             "true", &Config::changes_allowed),
      Switch(
          {"collections.required", "--skip-failed-collections", "",
           "true: the server does not start if a collection of collections.serve fails to load. "
           "false (--skip-failed-collections): that collection is NOT_SERVING, the others serve, "
           "and SIGHUP retries it."},
          "false", &Config::collections_required),
      Number(
          {"collections.min_overlap", "", "",
           "The least share of the 10 nearest of sampled items that must stay the same at a "
           "reload, also by SIGHUP. 0 accepts any change; a reload's own min_overlap replaces it."},
          0, 1, &Config::min_overlap),
      WholeNumber(
          {"collections.memory_bytes_max", "", "bytes",
           "The memory that all collections may take, with both generations of a reload and "
           "generations that calls still hold; 0 is nine tenths of what is available."},
          0, std::uint64_t{1} << 50, &Config::memory_bytes_max),
      Switch({"metrics.enabled", "--no-metrics", "", "Serve Prometheus metrics."}, "false",
             &Config::metrics_enabled),
      Text({"metrics.listen", "--metrics-listen", "", "The address to serve metrics on."},
           "address or host", &Config::metrics_listen),
      WholeNumber(
          {"metrics.port", "--metrics-port", "", "The port of the metrics; 0 takes any free one."},
          0, 65'535, &Config::metrics_port),
      Choice({"backend.preference", "--backend", "",
              "Which backend answers: auto takes the GPU if it can be used, gpu "
              "refuses to start without one."},
             Values<Preference>{
                 {"auto", Preference::kAuto}, {"cpu", Preference::kCpu}, {"gpu", Preference::kGpu}},
             &RegistryOptions::preference),
      WholeNumber({"backend.threads", "--threads", "threads",
                   "Threads that search; 0 is every core this process may use, or what `simile "
                   "tune` found faster."},
                  0, 1'024, &RegistryOptions::threads),
      Choice({"backend.cpu_engine", "", "",
              "How the CPU searches: int8 finds candidates by int8 codes and decides "
              "by fp32 scores, scan is fp32 only. Both return the same bits."},
             Values<CpuEngine>{{"int8", CpuEngine::kInt8}, {"scan", CpuEngine::kScan}},
             &RegistryOptions::cpu_engine),
      Choice({"backend.isa", "", "",
              "The instruction set to search with; auto takes the best there is."},
             Values<std::string>{{"auto", ""},
                                 {"amx", "amx"},
                                 {"avx512vnni", "avx512vnni"},
                                 {"avxvnni", "avxvnni"},
                                 {"avx2", "avx2"},
                                 {"neondot", "neondot"},
                                 {"portable", "portable"}},
             &RegistryOptions::isa),
      Choice({"backend.int4", "", "",
              "Also keep int4 codes of large collections: up to four queries at once "
              "are then faster, and memory grows by an eighth of the fp32 rows."},
             Values<bool>{{"auto", true}, {"off", false}}, &RegistryOptions::int4),
      Choice({"backend.tuning", "", "",
              "When the engines change their strategies: auto takes what was measured "
              "on this machine and its GPU, defaults what is built in."},
             Values<Tuning>{{"auto", Tuning::kAuto}, {"defaults", Tuning::kDefaults}},
             &Config::tuning),
      Path({"backend.tuning_cache", "", "",
            "The file that keeps the measurements. Unless set, simile/cpu-tuning.json "
            "in $XDG_CACHE_HOME, else in ~/.cache; empty measures at each start."},
           &Config::tuning_cache),
      WholeNumber({"gpu.device", "--gpu-device", "",
                   "The GPU to use, by its number among the GPUs that the driver shows."},
                  0, 15, &GpuOptions::device),
      Number({"gpu.memory_fraction", "--gpu-memory-fraction", "",
              "The share of the GPU's memory that all collections may take together, "
              "less the reserve."},
             0.05, 1, &GpuOptions::memory_fraction),
      Mebibytes({"gpu.reserve_mib", "", "MiB",
                 "Memory of the GPU that is left free for its driver and other processes."},
                0, 1'048'576, &GpuOptions::reserve_bytes),
      Choice({"gpu.int8", "", "",
              "Whether the GPU also keeps a copy of each collection with one byte per dimension, "
              "from which batches of up to 64 queries are answered with half the memory traffic. "
              "auto: on cards from sm_80 on, where everything fits; off: never. Answers are the "
              "same."},
             Values<bool>{{"auto", true}, {"off", false}}, &GpuOptions::int8_rows),
      WholeNumber({"gpu.batch_timeout", "", "ms",
                   "A batch that the GPU has not finished after this long is answered by the "
                   "CPU; after a second one in a row the GPU counts as lost."},
                  100, 600'000, &GpuOptions::batch_timeout),
      Choice({"gpu.when_full", "", "",
              "What happens to a collection that does not fit in the GPU's free "
              "memory: cpu serves it from the CPU, refuse fails its load."},
             Values<WhenFull>{{"cpu", WhenFull::kCpu}, {"refuse", WhenFull::kRefuse}},
             &RegistryOptions::gpu_when_full),
      Choice({"gpu.on_fault", "--on-gpu-fault", "",
              "What happens when the GPU is lost: failover stays on the CPU, restart "
              "drains and exits with status 75."},
             Values<OnGpuFault>{{"failover", OnGpuFault::kFailover},
                                {"restart", OnGpuFault::kRestart}},
             &Config::on_gpu_fault),
      Path({"gpu.fault_journal", "", "",
            "The file that records lost GPUs; after three in ten minutes a start takes "
            "the CPU. Unless set, simile/gpu-faults.json in $XDG_STATE_HOME, else in "
            "~/.local/state; empty records none."},
           &Config::gpu_fault_journal),
      Choice({"log.format", "--log-format", "", "How log lines are written."},
             Values<LogFormat>{{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
             &Config::log_format),
      Choice({"log.level", "--log-level", "", "The least severe lines to log."},
             Values<LogLevel>{{"debug", LogLevel::kDebug},
                              {"info", LogLevel::kInfo},
                              {"warning", LogLevel::kWarning},
                              {"error", LogLevel::kError}},
             &Config::log_level),
      Switch({"log.requests", "--log-requests", "",
              "Also log a line for every served request; failed ones are logged either way, ten a "
              "second of each reason."},
             "true", &Config::log_requests),
      // The upper bounds of these ranges are the maxima of the wire contract (proto/simile/v1): an
      // operator may lower them.
      WholeNumber(
          {"limits.k_max", "", "hits", "The most hits a query may ask for, its offset included."},
          1, kHitsMax, &Limits::k_max),
      WholeNumber(
          {"limits.queries_per_call_max", "", "queries", "The most queries or users in one call."},
          1, 1'024, &Limits::queries_per_call_max),
      WholeNumber({"limits.dim_max", "", "dimensions", "The widest vectors a collection may have."},
                  1, 4'096, &Limits::dim_max),
      WholeNumber(
          {"limits.queue_queries_max", "", "queries",
           "Queries that may wait, not counting one large call of each lane; beyond it calls get "
           "RESOURCE_EXHAUSTED."},
          1, 1'000'000, &Limits::queue_queries_max),
      WholeNumber({"limits.queue_bytes_max", "", "bytes",
                   "What requests that wait or run may take: vectors, exclusions and filters."},
                  1U << 20, 1ULL << 40, &Limits::queue_bytes_max),
      WholeNumber({"limits.batch_queries_max", "", "queries",
                   "The most queries that share one pass over the rows."},
                  1, 65'536, &Limits::batch_queries_max),
      WholeNumber({"limits.search_deadline_default", "", "ms",
                   "How long a search may take when its caller sets no deadline."},
                  1, kDayMs, &Limits::search_deadline_default),
      WholeNumber(
          {"limits.search_deadline_max", "", "ms",
           "The longest deadline a search is given, whatever its caller sets. A reply not read "
           "this long after its call is cut."},
          1, kDayMs, &Limits::search_deadline_max),
      WholeNumber(
          {"limits.drain_delay", "", "ms",
           "How long a stopping server still takes calls, with its health NOT_SERVING. The "
           "default is enough for clients that watch health; balancers that poll health need "
           "more than two of their intervals."},
          0, 600'000, &Limits::drain_delay),
      WholeNumber({"limits.drain_timeout", "", "ms",
                   "How long a stopping server waits for calls under way."},
                  0, 600'000, &Limits::drain_timeout),
      WholeNumber({"limits.page_lease", "", "ms",
                   "How long a replaced snapshot is kept for callers that still read its "
                   "pages; a load that needs the memory ends it sooner."},
                  0, 3'600'000, &Limits::page_lease),
      WholeNumber({"limits.connections_max", "", "connections",
                   "Connections held at once; more are closed as they arrive."},
                  1, 65'536, &Limits::connections_max),
      WholeNumber({"limits.connections_per_peer_max", "", "connections",
                   "Connections of one address; a proxy in front is one address."},
                  1, 65'536, &Limits::connections_per_peer_max),
      WholeNumber({"limits.ipv6_peer_bits", "", "bits",
                   "IPv6 addresses that begin with the same bits count as one address: 64 is the "
                   "network that one host commonly owns, 128 is each address by itself."},
                  32, 128, &Limits::ipv6_peer_bits),
      WholeNumber(
          {"limits.streams_per_connection_max", "", "calls", "Calls one connection may have open."},
          1, 65'536, &Limits::streams_per_connection_max),
      WholeNumber(
          {"limits.unfinished_bytes_per_peer_max", "", "bytes",
           "Bytes of the requests that one address has begun to send. Further requests wait. A "
           "waiting request fails with RESOURCE_EXHAUSTED once the waiting requests of the address "
           "have received half of this limit."},
          kMiB, 65'536 * kMiB, &Limits::unfinished_bytes_per_peer_max),
      WholeNumber({"limits.half_open_connections_max", "", "connections",
                   "Connections that have not spoken HTTP/2 yet; more are closed as they arrive."},
                  1, 65'536, &Limits::half_open_connections_max),
      WholeNumber({"limits.session_bytes_max", "", "bytes",
                   "Memory of HTTP/2's state that one connection may make the server hold. A "
                   "connection that exceeds it is cut."},
                  256 * kKiB, 1'024 * kMiB, &Limits::session_bytes_max),
      WholeNumber(
          {"limits.resets_per_second_max", "", "resets a second",
           "Calls that one address may begin and reset without an answer; at first twice this "
           "number. A connection that exceeds it is cut."},
          1, 1'000'000, &Limits::resets_per_second_max),
      WholeNumber({"limits.empty_frames_per_second_max", "", "frames a second",
                   "Empty DATA frames that one address may send; at first ten times this number. A "
                   "connection that exceeds it is cut."},
                  1, 1'000'000, &Limits::empty_frames_per_second_max),
      WholeNumber({"limits.handshake_timeout", "", "ms",
                   "How long a new connection may take to speak HTTP/2."},
                  100, 600'000, &Limits::handshake_timeout),
      WholeNumber(
          {"limits.keepalive_time", "", "ms", "A connection silent for this long is pinged."},
          1'000, kDayMs, &Limits::keepalive_time),
      WholeNumber(
          {"limits.keepalive_timeout", "", "ms",
           "A connection is closed when it does not answer a ping, or takes nothing of what it is "
           "sent, for this long. A request fails when nothing of it arrives for this long and "
           "other "
           "requests wait for its space. gRPC's clients may take 5 s to answer a ping while they "
           "make no call."},
          1'000, 600'000, &Limits::keepalive_timeout),
      WholeNumber({"limits.connection_idle_max", "", "ms",
                   "A connection without calls for this long is closed."},
                  1'000, kDayMs, &Limits::connection_idle_max),
      WholeNumber(
          {"limits.connection_age_max", "", "ms",
           "A connection this old is closed once its calls have ended, so that clients look "
           "for servers again; 0 is never, and under 1,000 is refused."},
          0, kDayMs, &Limits::connection_age_max),
      WholeNumber({"limits.connection_age_grace", "", "ms",
                   "How long calls of a connection that is too old may still take."},
                  0, kDayMs, &Limits::connection_age_grace),
      WholeNumber({"limits.unsent_bytes_max", "", "bytes",
                   "Memory of replies that are made and not yet sent; beyond it calls get "
                   "RESOURCE_EXHAUSTED."},
                  64 * kMiB, 65'536 * kMiB, &Limits::unsent_bytes_max),
      WholeNumber(
          {"limits.resolve_bytes_max", "", "bytes",
           "Memory of calls that wait for a resolve worker. Calls that a worker has begun may take "
           "the same amount. Beyond it calls get RESOURCE_EXHAUSTED."},
          64 * kMiB, 65'536 * kMiB, &Limits::resolve_bytes_max),
      WholeNumber(
          {"limits.receive_bytes_max", "", "bytes", "The largest request message accepted."},
          64 * kKiB, 512 * kMiB, &Limits::receive_bytes_max),
      WholeNumber(
          {"limits.jsonl_line_bytes_max", "", "bytes",
           "The longest line of metadata.jsonl and interactions.jsonl. A line may take at most "
           "1 MiB in memory, where a number in a list takes up to 13 bytes."},
          kKiB, 16 * kMiB, &Limits::jsonl_line_bytes_max),
  };
}

// A familiar name whose values are values of our setting, too. A test checks that the key exists.
FamiliarName Same(std::string name, std::string key, std::string help) {
  return {std::move(name), key, std::move(help),
          [key](const std::string& value, Config& config) -> absl::StatusOr<bool> {
            const absl::Status set = Settings()[SettingIndex(key)].set({value}, config);
            if (!set.ok()) return set;
            return true;
          }};
}

// The batch of a model is chosen for the model's memory. Here a smaller maximum only slows large
// calls (docs/configuration.md has the times), so the value may raise ours and never lowers it.
absl::StatusOr<bool> RaiseBatchMax(const std::string& value, Config& config) {
  Config asked;
  const absl::Status set = Settings()[SettingIndex("limits.batch_queries_max")].set({value}, asked);
  if (!set.ok()) return set;
  if (asked.limits.batch_queries_max <= config.limits.batch_queries_max) return false;
  config.limits.batch_queries_max = asked.limits.batch_queries_max;
  return true;
}

}  // namespace

std::string ToVariableName(std::string_view key) {
  std::string name = "SIMILE_";
  for (const char c : key) {
    name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::span<const RenamedSetting> RenamedSettings() {
  static constexpr RenamedSetting kRenamed[] = {{"backend.nibbles", "backend.int4", "0.1"}};
  return kRenamed;
}

std::span<const EndedSetting> EndedSettings() {
  static constexpr EndedSetting kEnded[] = {
      {"server.frame_guard", "connections are always guarded, by bounds that need no setting"},
      {"limits.ping_interval_min", "clients may send 100 PING frames a second"},
      {"limits.network_bytes_max",
       "limits.unfinished_bytes_per_peer_max bounds requests that are being received, "
       "limits.unsent_bytes_max replies, and limits.session_bytes_max the rest of a connection"},
  };
  return kEnded;
}

const std::vector<Setting>& Settings() {
  static const std::vector<Setting> table = MakeSettings();
  return table;
}

std::size_t SettingIndex(std::string_view key) {
  const auto found = std::ranges::find(Settings(), key, &Setting::key);
  return static_cast<std::size_t>(found - Settings().begin());
}

const std::vector<FamiliarName>& FamiliarNames() {
  static const std::vector<FamiliarName> table{
      {"USE_GPU", "backend.preference", "true means auto, false means cpu",
       [](const std::string& value, Config& config) -> absl::StatusOr<bool> {
         const absl::StatusOr<bool> use_gpu = ParseSwitch(value);
         if (!use_gpu.ok()) return use_gpu.status();
         config.backend.preference = *use_gpu ? Preference::kAuto : Preference::kCpu;
         return true;
       }},
      {"INFERENCE_BATCH_SIZE", "limits.batch_queries_max",
       "a larger number raises it, a smaller one leaves it as it is", RaiseBatchMax},
      Same("GPU_DEVICE_ID", "gpu.device", "the same number"),
      Same("GPU_MEMORY_FRACTION", "gpu.memory_fraction", "the same number"),
      Same("RESERVE_MEMORY", "gpu.reserve_mib", "the same number, in MiB"),
  };
  return table;
}

}  // namespace simile::app
