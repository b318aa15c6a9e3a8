#include <algorithm>
#include <bit>
#include <chrono>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/stable_hash.h"
#include "cli/bench/a100_report.h"
#include "cli/bench/measured_calls.h"
#include "cli/bench/random_draw.h"
#include "cli/bench/server_process.h"
#include "cli/payload_text.h"
#include "cli/server_text.h"
#include "simile/limits.h"

namespace simile::cli::bench {
namespace {

constexpr std::uint32_t kWarmUpCalls = 20;
constexpr std::uint32_t kSingleCalls = 200;
constexpr std::uint32_t kCoherenceCalls = 100;
constexpr std::uint32_t kUsers = 100;
constexpr std::uint32_t kQueriesOfBatches = 5'000;  // in all calls of one batch size
constexpr std::uint32_t kCallsOfBatchMin = 10;
constexpr std::uint32_t kHits = 10;
constexpr std::uint32_t kFranchiseFilmsMin = 4;  // a query and three more
constexpr std::uint32_t kFranchiseFilmsMax = 50;
constexpr std::size_t kUserGenres = 3;
const std::string kTitle = "title";
const std::string kGenres = "genres";
const std::string kYear = "year";

// The type of the collection's field of this name; FIELD_TYPE_UNSPECIFIED if it has no such field.
v1::FieldType FindFieldType(const v1::Collection& collection, const std::string& name) {
  for (const v1::PayloadField& field : collection.fields()) {
    if (field.name() == name) return field.type();
  }
  return v1::FIELD_TYPE_UNSPECIFIED;
}

bool HasField(const v1::Collection& collection, const std::string& name) {
  return FindFieldType(collection, name) != v1::FIELD_TYPE_UNSPECIFIED;
}

// Collects the times of calls of one kind.
class TimedCalls {
 public:
  //   ask_device  whether the server can report the GPU's own time
  explicit TimedCalls(bool ask_device) : ask_device_(ask_device) {}

  // Makes one call and returns its answer. If a GPU answered, makes the call again to get the GPU's
  // own time. Measuring this time slows the server, so it must not happen in the first call.
  //   call  sends a request
  template <class Request, class Call>
  auto Time(Request request, const Call& call) {
    auto response = calls_.Time([&] { return call(request); });
    if (!response.ok()) return response;
    if (!ask_device_ || response->receipt().backend() != v1::BACKEND_KIND_GPU) return response;
    request.mutable_options()->set_receipt_detail(v1::RECEIPT_DETAIL_TIMED);
    const auto timed = call(request);
    if (!timed.ok()) return timed;
    if (timed->receipt().has_device_us()) {
      gpu_ms_.push_back(static_cast<double>(timed->receipt().device_us()) / 1e3);
    }
    return response;
  }

  A100Times Times() const {
    A100Times times{static_cast<std::uint32_t>(calls_.count()), calls_.compute_median_ms(),
                    calls_.call_median_ms(), std::nullopt};
    if (!gpu_ms_.empty() && gpu_ms_.size() == calls_.count()) times.gpu_ms = Median(gpu_ms_);
    return times;
  }

 private:
  const bool ask_device_;
  MeasuredCalls calls_;
  std::vector<double> gpu_ms_;
};

std::string TitleOrId(const PayloadMap& payload, const std::string& id) {
  const std::string title = FieldText(payload, kTitle);
  return title.empty() ? id : title;
}

std::vector<A100Hit> ToHits(const v1::SearchResult& result) {
  std::vector<A100Hit> hits;
  for (const v1::Hit& hit : result.hits()) {
    hits.push_back({hit.rank(), TitleOrId(hit.payload(), hit.id()), hit.score()});
  }
  return hits;
}

// A hash of ids and score bits: equal for equal answers, and rarely equal for different ones.
std::uint64_t HashAnswer(const v1::SearchResult& result) {
  base::StableHash hash;
  for (const v1::Hit& hit : result.hits()) {
    hash.Add(fmt::format("{}\n{}\n", hit.id(), std::bit_cast<std::uint32_t>(hit.score())));
  }
  return hash.Digest64();
}

// The mean similarity of all pairs of hits, whose vectors have unit length; nothing for fewer than
// two hits.
std::optional<double> MeasureHitCoherence(const v1::SearchResult& result) {
  double sum = 0;
  std::uint32_t pairs = 0;
  for (int i = 0; i < result.hits_size(); ++i) {
    const auto& one = result.hits(i).vector().values();
    for (int j = 0; j < i; ++j) {
      sum +=
          std::inner_product(one.begin(), one.end(), result.hits(j).vector().values().begin(), 0.0);
      ++pairs;
    }
  }
  return pairs == 0 ? std::nullopt : std::optional(sum / pairs);
}

// Means over answers.
class Mean {
 public:
  void Add(double value) {
    sum_ += value;
    ++count_;
  }
  std::optional<double> value() const {
    return count_ == 0 ? std::nullopt : std::optional(sum_ / count_);
  }

 private:
  double sum_ = 0;
  std::uint32_t count_ = 0;
};

// The bytes that a server holds on its device; nothing if the server does not report them.
std::optional<std::uint64_t> DeviceBytes(const v1::BackendStatus& backend,
                                         std::uint64_t (v1::DeviceMemory::*bytes)() const) {
  if (backend.device_memory().empty()) return std::nullopt;
  std::uint64_t sum = 0;
  for (const v1::DeviceMemory& memory : backend.device_memory()) sum += (memory.*bytes)();
  return sum;
}

// Runs the five tests against one collection. Each test adds its part to the measurements.
class A100Run {
 public:
  A100Run(const Connection& connection, const v1::Collection& collection,
          const QuerySamples& samples, const std::vector<pid_t>& server_processes,
          std::uint32_t calls_max, A100Measurements& measured)
      : connection_(connection),
        collection_(collection),
        samples_(samples),
        server_processes_(server_processes),
        calls_max_(calls_max),
        measured_(measured) {}

  // Reads the server's memory before the first call, and whether it can report the GPU's time.
  absl::Status ReadBase() {
    const auto info = connection_.GetServerInfo();
    if (!info.ok()) return info.status();
    // The collection's, because the server's backend may be a GPU without space for it.
    backend_ = collection_.backend().kind();
    measured_.on_gpu = backend_ == v1::BACKEND_KIND_GPU;
    ask_device_ =
        std::ranges::find(info->capabilities(), "receipt_timed") != info->capabilities().end();
    A100Memory& memory = measured_.memory;
    if (measured_.on_gpu) {
      memory.base_bytes = DeviceBytes(info->backend(), &v1::DeviceMemory::bytes);
    } else {
      memory.base_bytes = HeldBytes();
      if (const auto resident = ReadResidentMemory(server_processes_)) {
        memory.base_bytes = std::max(HeldBytes(), resident->bytes);
      }
    }
    return absl::OkStatus();
  }

  absl::Status MeasureSimilarity() {
    TimedCalls calls(ask_device_);
    Mean best;
    const std::uint32_t warm_up = std::min(kWarmUpCalls, calls_max_);
    for (std::uint32_t i = 0; i < warm_up + std::min(kSingleCalls, calls_max_); ++i) {
      const std::string& id = samples_.rows[random_.Below(samples_.rows.size())].id;
      const v1::SearchRequest request = ById(id);
      if (i < warm_up) {
        if (auto response = connection_.Search(request); !response.ok()) return response.status();
        continue;
      }
      const auto response = calls.Time(request, SendSearch());
      if (!response.ok()) return response.status();
      const v1::SearchResult& found = response->results(0);
      measured_.similarity.query = id;
      measured_.similarity.results = ToHits(found);
      if (found.score_kind() == v1::SCORE_KIND_COSINE && found.hits_size() > 0) {
        best.Add(found.hits(0).score());
      }
      AddAnswers(*response);
      SetBackend(response->receipt());
    }
    measured_.similarity.times = calls.Times();
    measured_.similarity.best_similarity = best.value();
    if (absl::Status status = MeasureCoherence(); !status.ok()) return status;
    return MeasureFranchises();
  }

  absl::Status MeasureUsers() {
    const std::size_t count =
        std::min<std::size_t>(std::min(kUsers, calls_max_), samples_.users.size());
    TimedCalls calls(ask_device_);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t user = random_.Below(samples_.users.size());
      v1::RecommendRequest request;
      request.set_collection(samples_.collection);
      request.add_user_ids(samples_.users[user].id);
      *request.mutable_options() = Options();
      const auto response =
          calls.Time(request, [&](const auto& sent) { return connection_.Recommend(sent); });
      if (!response.ok()) return response.status();
      AddAnswers(*response);
      A100User& result = measured_.users.emplace_back();
      result.user_id = samples_.users[user].id;
      result.results = ToHits(response->results(0));
      result.decades = CountDecades(response->results(0));
      if (absl::Status status = CountGenres(user, response->results(0), result); !status.ok()) {
        return status;
      }
    }
    measured_.user_times = calls.Times();
    return absl::OkStatus();
  }

  absl::Status MeasureBatches() {
    for (const std::uint32_t size : {10U, 100U, 1'000U}) {
      TimedCalls calls(ask_device_);
      A100Batch batch{size, {}, 0};
      const std::uint32_t count = std::max(kCallsOfBatchMin, kQueriesOfBatches / size);
      for (std::uint32_t i = 0; i < std::min(count, calls_max_); ++i) {
        v1::SearchRequest request = OfVectors(size);
        request.mutable_options()->clear_payload();
        request.mutable_options()->mutable_payload()->set_selection(
            v1::PayloadSelector::SELECTION_NONE);
        const auto response = calls.Time(request, SendSearch());
        if (!response.ok()) return response.status();
        batch.fallbacks += response->receipt().backend() != backend_ ? 1 : 0;
        AddAnswers(*response);
      }
      batch.times = calls.Times();
      measured_.batches.push_back(batch);
    }
    return absl::OkStatus();
  }

  absl::Status MeasureFilters() {
    TimedCalls calls(ask_device_);
    for (const SampledFilter& filter : samples_.filters) {
      if (measured_.filters.size() == calls_max_) break;
      v1::SearchRequest request = OfVectors(1);
      request.mutable_options()->set_filter(filter.text);
      request.mutable_options()->clear_payload();  // all fields: the filter's too
      const auto response = calls.Time(request, SendSearch());
      if (!response.ok()) return response.status();
      AddAnswers(*response);
      A100Filter& result = measured_.filters.emplace_back();
      result.text = filter.text;
      if (response->results(0).has_rows_passing()) {
        result.rows_passing = response->results(0).rows_passing();
      }
      result.results = ToHits(response->results(0));
      for (const v1::Hit& hit : response->results(0).hits()) {
        result.matches += Passes(filter, hit.payload()) ? 1 : 0;
      }
    }
    measured_.filter_times = calls.Times();
    return absl::OkStatus();
  }

  absl::Status ReadMemory() {
    if (measured_.on_gpu) return ReadDeviceMemory();
    A100Memory& memory = measured_.memory;
    memory.allocated_bytes = HeldBytes();
    memory.source = "host memory, no GPU: allocated is what the collection holds";
    const std::optional<ResidentMemory> resident = ReadResidentMemory(server_processes_);
    const std::optional<HostMemory> host = ReadHostMemory();
    if (!resident || !host) {
      memory.source += "; the server is not on this machine, or its process is another user's";
      return absl::OkStatus();
    }
    memory.source +=
        "; reserved is the server's resident memory, base the same before the tests, and the peaks "
        "its most so far; total and free are the machine's";
    memory.reserved_bytes = resident->bytes;
    memory.peak_reserved_bytes = resident->peak_bytes;
    memory.peak_allocated_bytes = HeldBytes();
    memory.total_bytes = host->total;
    memory.free_bytes = host->available;
    return absl::OkStatus();
  }

 private:
  std::function<absl::StatusOr<v1::SearchResponse>(const v1::SearchRequest&)> SendSearch() const {
    return [this](const v1::SearchRequest& request) { return connection_.Search(request); };
  }

  absl::Status ReadDeviceMemory() {
    const auto info = connection_.GetServerInfo();
    if (!info.ok()) return info.status();
    const v1::BackendStatus& backend = info->backend();
    A100Memory& memory = measured_.memory;
    memory.allocated_bytes = memory.reserved_bytes = DeviceBytes(backend, &v1::DeviceMemory::bytes);
    memory.peak_allocated_bytes = memory.peak_reserved_bytes =
        DeviceBytes(backend, &v1::DeviceMemory::peak_bytes);
    if (!memory.allocated_bytes) {
      memory.source = "unknown: this caller may not see what the server holds on its GPU";
      return absl::OkStatus();
    }
    memory.source =
        "device memory that the server holds, base before the tests; it takes memory from the "
        "driver "
        "as it needs it, so reserved is allocated";
    if (!backend.has_card_memory()) return absl::OkStatus();
    memory.source +=
        "; total and free are the card's, all processes counted, when the server last took memory";
    memory.total_bytes = backend.card_memory().total_bytes();
    memory.free_bytes = backend.card_memory().free_bytes();
    return absl::OkStatus();
  }

  // The bytes of the collection on the host.
  std::uint64_t HeldBytes() const {
    const v1::ResidentBytes& bytes = collection_.bytes();
    return bytes.vectors() + bytes.payload() + bytes.users() + bytes.index();
  }

  template <class Response>
  void AddAnswers(const Response& response) {
    for (const v1::SearchResult& result : response.results()) {
      measured_.answers.push_back(HashAnswer(result));
    }
  }

  // Makes separate calls, because vectors make replies large.
  absl::Status MeasureCoherence() {
    if (collection_.metric() != v1::Collection::METRIC_COSINE) return absl::OkStatus();
    Mean coherence;
    for (std::uint32_t i = 0; i < std::min(kCoherenceCalls, calls_max_); ++i) {
      v1::SearchRequest request = ById(samples_.rows[random_.Below(samples_.rows.size())].id);
      request.mutable_options()->set_with_vectors(true);
      const auto response = connection_.Search(request);
      if (!response.ok()) return response.status();
      if (const auto mean = MeasureHitCoherence(response->results(0))) coherence.Add(*mean);
    }
    measured_.similarity.coherence = coherence.value();
    return absl::OkStatus();
  }

  // How many different decades the hits' years belong to; 0 without a year field.
  std::uint32_t CountDecades(const v1::SearchResult& result) const {
    std::set<std::int64_t> decades;
    for (const v1::Hit& hit : result.hits()) {
      const auto year = hit.payload().find(kYear);
      if (year != hit.payload().end() && year->second.has_int_value()) {
        decades.insert(year->second.int_value() / 10);
      }
    }
    return static_cast<std::uint32_t>(decades.size());
  }

  v1::SearchOptions Options() const {
    v1::SearchOptions options;
    options.set_k(kHits);
    options.set_reply_bytes_max(Limits{}.reply_bytes_max);
    for (const std::string& field : {kTitle, kGenres, kYear}) {
      if (HasField(collection_, field)) options.mutable_payload()->add_fields(field);
    }
    if (options.payload().fields().empty()) {
      options.mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_NONE);
    }
    return options;
  }

  v1::SearchRequest ById(const std::string& id) const {
    v1::SearchRequest request;
    request.set_collection(samples_.collection);
    request.add_queries()->set_id(id);
    *request.mutable_options() = Options();
    return request;
  }

  v1::SearchRequest OfVectors(std::uint32_t count) {
    v1::SearchRequest request;
    request.set_collection(samples_.collection);
    *request.mutable_options() = Options();
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto& vector = samples_.query_vectors[random_.Below(samples_.query_vectors.size())];
      request.add_queries()->mutable_vector()->mutable_values()->Add(vector.begin(), vector.end());
    }
    return request;
  }

  void SetBackend(const v1::Receipt& receipt) {
    measured_.backend = BackendText(receipt);
    measured_.device = receipt.device();
  }

  // The films of a franchise, found by looking up the beginnings of their titles.
  absl::StatusOr<std::vector<v1::Item>> FindFilms(const Franchise& franchise) const {
    std::vector<v1::Item> films;
    for (const std::string_view beginning : franchise.beginnings) {
      v1::LookupRequest request;
      request.set_collection(samples_.collection);
      request.set_field(kTitle);
      request.set_text(std::string(beginning));
      request.set_limit(kFranchiseFilmsMax);
      request.mutable_payload()->add_fields(kTitle);
      const auto response = connection_.Lookup(request);
      if (!response.ok()) return response.status();
      for (const v1::LookupMatch& match : response->matches()) {
        const std::string title = TitleOrId(match.item().payload(), match.item().id());
        if (title.starts_with(beginning)) films.push_back(match.item());
      }
    }
    return films;
  }

  absl::Status MeasureFranchises() {
    A100Similarity& similarity = measured_.similarity;
    if (std::ranges::find(collection_.lookup_fields(), kTitle) ==
        collection_.lookup_fields().end()) {
      return absl::OkStatus();
    }
    for (const Franchise& franchise : Franchises()) {
      const auto films = FindFilms(franchise);
      if (!films.ok()) return films.status();
      if (films->size() < kFranchiseFilmsMin) continue;
      const v1::Item& film = films->front();
      const auto response = connection_.Search(ById(film.id()));
      if (!response.ok()) return response.status();
      std::vector<A100Hit> hits = ToHits(response->results(0));
      A100FranchiseResult& result = similarity.franchises.emplace_back();
      result.franchise = franchise.name;
      result.query = TitleOrId(film.payload(), film.id());
      if (similarity.franchises.size() == 1) {
        similarity.query = result.query;
        similarity.results = hits;
      }
      hits.resize(std::min<std::size_t>(hits.size(), 3));
      result.same = hits.size() == 3 && std::ranges::all_of(hits, [&](const A100Hit& hit) {
                      return HasTitle(franchise, hit.title);
                    });
      result.top = std::move(hits);
    }
    return absl::OkStatus();
  }

  std::vector<std::string> ReadGenres(const PayloadMap& payload) const {
    const auto found = payload.find(kGenres);
    if (found == payload.end()) return {};
    return ReadKeywords(FindFieldType(collection_, kGenres), found->second);
  }

  // The genres that occur most often among the items that a user has seen.
  absl::StatusOr<std::vector<std::string>> FindUserGenres(std::size_t user) const {
    if (user >= samples_.seen_ids.size() || samples_.seen_ids[user].empty() ||
        !HasField(collection_, kGenres)) {
      return std::vector<std::string>();
    }
    v1::FetchRequest request;
    request.set_collection(samples_.collection);
    const auto& seen = samples_.seen_ids[user];
    for (std::size_t i = 0; i < std::min<std::size_t>(seen.size(), Limits{}.fetch_ids_max); ++i) {
      request.add_ids(seen[i]);
    }
    request.mutable_payload()->add_fields(kGenres);
    const auto response = connection_.Fetch(request);
    if (!response.ok()) return response.status();
    std::map<std::string, std::uint32_t> counts;
    for (const v1::Item& item : response->items()) {
      for (const std::string& genre : ReadGenres(item.payload())) ++counts[genre];
    }
    std::vector<std::pair<std::string, std::uint32_t>> order(counts.begin(), counts.end());
    std::ranges::stable_sort(order, std::greater<>(), [](const auto& each) { return each.second; });
    std::vector<std::string> genres;
    for (const auto& [genre, count] : order) {
      if (genres.size() < kUserGenres) genres.push_back(genre);
    }
    return genres;
  }

  absl::Status CountGenres(std::size_t user, const v1::SearchResult& found, A100User& result) {
    const auto genres = FindUserGenres(user);
    if (!genres.ok()) return genres.status();
    result.genres = *genres;
    for (const v1::Hit& hit : found.hits()) {
      const bool matches = std::ranges::any_of(ReadGenres(hit.payload()), [&](const auto& genre) {
        return std::ranges::find(*genres, genre) != genres->end();
      });
      result.genre_matches += matches ? 1 : 0;
    }
    return absl::OkStatus();
  }

  const Connection& connection_;
  const v1::Collection& collection_;
  const QuerySamples& samples_;
  const std::vector<pid_t>& server_processes_;
  const std::uint32_t calls_max_;
  A100Measurements& measured_;
  RandomDraw random_{1};
  v1::BackendKind backend_ = v1::BACKEND_KIND_UNSPECIFIED;  // the server's
  bool ask_device_ = false;
};

}  // namespace

absl::StatusOr<A100Measurements> MeasureA100(const Connection& connection,
                                             const v1::Collection& collection,
                                             const QuerySamples& samples,
                                             const std::vector<pid_t>& server_processes,
                                             std::uint32_t calls_max) {
  if (samples.rows.empty()) {
    return absl::FailedPreconditionError(samples.collection + " has no rows to ask for");
  }
  A100Measurements measured;
  measured.collection = samples.collection;
  measured.rows = samples.row_count;
  measured.dim = static_cast<std::uint32_t>(samples.dim);
  A100Run run(connection, collection, samples, server_processes, calls_max, measured);
  for (const auto step :
       {&A100Run::ReadBase, &A100Run::MeasureSimilarity, &A100Run::MeasureUsers,
        &A100Run::MeasureBatches, &A100Run::MeasureFilters, &A100Run::ReadMemory}) {
    if (absl::Status status = (run.*step)(); !status.ok()) return status;
  }
  return measured;
}

}  // namespace simile::cli::bench
