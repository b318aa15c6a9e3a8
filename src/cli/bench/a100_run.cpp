#include "cli/bench/a100_run.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "cli/backend_text.h"
#include "cli/bench/median.h"
#include "cli/bench/random_draw.h"
#include "cli/bench/server_process.h"
#include "cli/payload_text.h"
#include "simile/limits.h"

namespace simile::cli::bench {
namespace {

constexpr std::uint32_t kWarmUpCalls = 20;
constexpr std::uint32_t kSingleCalls = 200;
constexpr std::uint32_t kUsers = 100;
constexpr std::uint32_t kQueriesOfBatches = 5'000;  // in all calls of one batch size
constexpr std::uint32_t kCallsOfBatchMin = 10;
constexpr std::uint32_t kHits = 10;
constexpr std::uint32_t kFranchiseFilmsMin = 4;  // a query and three more
constexpr std::uint32_t kFranchiseFilmsMax = 50;
constexpr std::size_t kUserGenres = 3;
const std::string kTitle = "title";
const std::string kGenres = "genres";

// FIELD_TYPE_UNSPECIFIED when there is none.
v1::FieldType TypeOf(const v1::Collection& collection, const std::string& name) {
  for (const v1::PayloadField& field : collection.fields()) {
    if (field.name() == name) return field.type();
  }
  return v1::FIELD_TYPE_UNSPECIFIED;
}

bool HasField(const v1::Collection& collection, const std::string& name) {
  return TypeOf(collection, name) != v1::FIELD_TYPE_UNSPECIFIED;
}

// Collects the times of calls of one kind.
class TimedCalls {
 public:
  // Makes one call and returns its answer.
  template <class Call>
  auto Time(const Call& call) {
    const auto start = std::chrono::steady_clock::now();
    auto response = call();
    const auto end = std::chrono::steady_clock::now();
    if (response.ok()) {
      call_ms_.push_back(std::chrono::duration<double, std::milli>(end - start).count());
      compute_ms_.push_back(static_cast<double>(response->receipt().compute_us()) / 1e3);
    }
    return response;
  }

  A100Times Times() const {
    return {static_cast<std::uint32_t>(call_ms_.size()), Median(compute_ms_), Median(call_ms_)};
  }

 private:
  std::vector<double> compute_ms_;
  std::vector<double> call_ms_;
};

std::string TitleOf(const PayloadMap& payload, const std::string& id) {
  const std::string title = FieldText(payload, kTitle);
  return title.empty() ? id : title;
}

std::vector<A100Hit> HitsOf(const v1::SearchResult& result) {
  std::vector<A100Hit> hits;
  for (const v1::Hit& hit : result.hits()) {
    hits.push_back({hit.rank(), TitleOf(hit.payload(), hit.id()), hit.score()});
  }
  return hits;
}

// The five tests against one collection. Each adds its part to the measurements.
class A100Run {
 public:
  A100Run(const Connection& connection, const v1::Collection& collection,
          const QuerySamples& samples, A100Measurements& measured)
      : connection_(connection), collection_(collection), samples_(samples), measured_(measured) {}

  absl::Status MeasureSimilarity() {
    TimedCalls calls;
    for (std::uint32_t i = 0; i < kWarmUpCalls + kSingleCalls; ++i) {
      const std::string& id = samples_.rows[random_.Below(samples_.rows.size())].id;
      const v1::SearchRequest request = ById(id);
      if (i < kWarmUpCalls) {
        if (auto response = connection_.Search(request); !response.ok()) return response.status();
        continue;
      }
      const auto response = calls.Time([&] { return connection_.Search(request); });
      if (!response.ok()) return response.status();
      measured_.similarity.query = id;
      measured_.similarity.results = HitsOf(response->results(0));
      SetBackend(response->receipt());
    }
    measured_.similarity.times = calls.Times();
    return MeasureFranchises();
  }

  absl::Status MeasureUsers() {
    const std::size_t count = std::min<std::size_t>(kUsers, samples_.users.size());
    TimedCalls calls;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t user = random_.Below(samples_.users.size());
      v1::RecommendRequest request;
      request.set_collection(samples_.collection);
      request.add_user_ids(samples_.users[user].id);
      *request.mutable_options() = Options();
      const auto response = calls.Time([&] { return connection_.Recommend(request); });
      if (!response.ok()) return response.status();
      A100User& result = measured_.users.emplace_back();
      result.user_id = samples_.users[user].id;
      result.results = HitsOf(response->results(0));
      if (absl::Status status = CountGenres(user, response->results(0), result); !status.ok()) {
        return status;
      }
    }
    measured_.user_times = calls.Times();
    return absl::OkStatus();
  }

  absl::Status MeasureBatches() {
    for (const std::uint32_t size : {10U, 100U, 1'000U}) {
      TimedCalls calls;
      for (std::uint32_t i = 0; i < std::max(kCallsOfBatchMin, kQueriesOfBatches / size); ++i) {
        v1::SearchRequest request = OfVectors(size);
        request.mutable_options()->clear_payload();
        request.mutable_options()->mutable_payload()->set_selection(
            v1::PayloadSelector::SELECTION_NONE);
        const auto response = calls.Time([&] { return connection_.Search(request); });
        if (!response.ok()) return response.status();
        NoteMemory(response->receipt());
      }
      measured_.batches.push_back({size, calls.Times()});
    }
    return absl::OkStatus();
  }

  absl::Status MeasureFilters() {
    TimedCalls calls;
    for (const SampledFilter& filter : samples_.filters) {
      v1::SearchRequest request = OfVectors(1);
      request.mutable_options()->set_filter(filter.text);
      request.mutable_options()->clear_payload();  // all fields: the filter's too
      const auto response = calls.Time([&] { return connection_.Search(request); });
      if (!response.ok()) return response.status();
      NoteMemory(response->receipt());
      A100Filter& result = measured_.filters.emplace_back();
      result.text = filter.text;
      if (response->results(0).has_rows_passing()) {
        result.rows_passing = response->results(0).rows_passing();
      }
      result.results = HitsOf(response->results(0));
      for (const v1::Hit& hit : response->results(0).hits()) {
        result.matches += Passes(filter, hit.payload()) ? 1 : 0;
      }
    }
    measured_.filter_times = calls.Times();
    return absl::OkStatus();
  }

  void ReadMemory(const std::vector<pid_t>& server_processes) {
    A100Memory& memory = measured_.memory;
    if (on_gpu_) {
      memory.source =
          "device memory that the server's receipts report; it takes memory from the driver as it "
          "needs it, so reserved is allocated; the device's total is not part of a receipt";
      memory.allocated_bytes = memory.reserved_bytes = device_bytes_;
      memory.peak_allocated_bytes = memory.peak_reserved_bytes = device_bytes_peak_;
      return;
    }
    const v1::ResidentBytes& bytes = collection_.bytes();
    memory.allocated_bytes = bytes.vectors() + bytes.payload() + bytes.users() + bytes.index();
    memory.source = "host memory, no GPU: allocated is what the collection holds";
    const std::optional<ResidentMemory> resident = ResidentMemoryOf(server_processes);
    const std::optional<HostMemory> host = ReadHostMemory();
    if (!resident || !host) {
      memory.source += "; the server is not on this machine, or its process is another user's";
      return;
    }
    memory.source +=
        "; reserved is the server's resident memory, peak its most so far; total and "
        "free are the machine's";
    memory.reserved_bytes = resident->bytes;
    memory.peak_reserved_bytes = resident->peak_bytes;
    memory.total_bytes = host->total;
    memory.free_bytes = host->available;
  }

 private:
  v1::SearchOptions Options() const {
    v1::SearchOptions options;
    options.set_k(kHits);
    options.set_reply_bytes_max(Limits{}.reply_bytes_max);
    for (const std::string& field : {kTitle, kGenres}) {
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
    on_gpu_ = receipt.backend() == v1::BACKEND_KIND_GPU;
    measured_.backend = BackendText(receipt);
    measured_.device = receipt.device();
    NoteMemory(receipt);
  }

  void NoteMemory(const v1::Receipt& receipt) {
    device_bytes_ = receipt.device_bytes();
    device_bytes_peak_ = receipt.device_bytes_peak();
  }

  // The films of a franchise that a look-up of its titles finds.
  absl::StatusOr<std::vector<v1::Item>> FilmsOf(const Franchise& franchise) const {
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
        const std::string title = TitleOf(match.item().payload(), match.item().id());
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
      const auto films = FilmsOf(franchise);
      if (!films.ok()) return films.status();
      if (films->size() < kFranchiseFilmsMin) continue;
      const v1::Item& film = films->front();
      const auto response = connection_.Search(ById(film.id()));
      if (!response.ok()) return response.status();
      std::vector<A100Hit> hits = HitsOf(response->results(0));
      A100FranchiseResult& result = similarity.franchises.emplace_back();
      result.franchise = franchise.name;
      result.query = TitleOf(film.payload(), film.id());
      if (similarity.franchises.size() == 1) {
        similarity.query = result.query;
        similarity.results = hits;
      }
      hits.resize(std::min<std::size_t>(hits.size(), 3));
      result.same = hits.size() == 3 && std::ranges::all_of(hits, [&](const A100Hit& hit) {
                      return IsOf(franchise, hit.title);
                    });
      result.top = std::move(hits);
    }
    return absl::OkStatus();
  }

  std::vector<std::string> GenresOf(const PayloadMap& payload) const {
    const auto found = payload.find(kGenres);
    if (found == payload.end()) return {};
    return KeywordsOf(TypeOf(collection_, kGenres), found->second);
  }

  // The genres that most of what a user has seen has.
  absl::StatusOr<std::vector<std::string>> GenresOfUser(std::size_t user) const {
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
      for (const std::string& genre : GenresOf(item.payload())) ++counts[genre];
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
    const auto genres = GenresOfUser(user);
    if (!genres.ok()) return genres.status();
    result.genres = *genres;
    for (const v1::Hit& hit : found.hits()) {
      const bool matches = std::ranges::any_of(GenresOf(hit.payload()), [&](const auto& genre) {
        return std::ranges::find(*genres, genre) != genres->end();
      });
      result.genre_matches += matches ? 1 : 0;
    }
    return absl::OkStatus();
  }

  const Connection& connection_;
  const v1::Collection& collection_;
  const QuerySamples& samples_;
  A100Measurements& measured_;
  RandomDraw random_{1};
  bool on_gpu_ = false;
  std::uint64_t device_bytes_ = 0;
  std::uint64_t device_bytes_peak_ = 0;
};

}  // namespace

absl::StatusOr<A100Measurements> MeasureA100(const Connection& connection,
                                             const v1::Collection& collection,
                                             const QuerySamples& samples,
                                             const std::vector<pid_t>& server_processes) {
  if (samples.rows.empty()) {
    return absl::FailedPreconditionError(samples.collection + " has no rows to ask for");
  }
  A100Measurements measured;
  measured.collection = samples.collection;
  measured.rows = samples.row_count;
  measured.dim = static_cast<std::uint32_t>(samples.dim);
  A100Run run(connection, collection, samples, measured);
  for (const auto test : {&A100Run::MeasureSimilarity, &A100Run::MeasureUsers,
                          &A100Run::MeasureBatches, &A100Run::MeasureFilters}) {
    if (absl::Status status = (run.*test)(); !status.ok()) return status;
  }
  run.ReadMemory(server_processes);
  return measured;
}

}  // namespace simile::cli::bench
