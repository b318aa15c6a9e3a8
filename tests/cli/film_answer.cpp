#include "cli/film_answer.h"

namespace simile::cli {
namespace {

void AddHit(AnsweredQuery& query, const std::string& id, float score, const std::string& title,
            std::int64_t year) {
  v1::Hit& hit = *query.hits.Add();
  hit.set_rank(static_cast<std::uint32_t>(query.hits.size()));
  hit.set_id(id);
  hit.set_score(score);
  auto& payload = *hit.mutable_payload();
  payload["title"].set_string_value(title);
  payload["year"].set_int_value(year);
  auto& genres = *payload["genres"].mutable_list_value();
  genres.add_values()->set_string_value("Animated");
  genres.add_values()->set_string_value("Comedy");
  payload["media_id"].set_string_value(id);
}

}  // namespace

Answer FilmAnswer() {
  Answer answer;
  answer.collection = "films";
  AnsweredQuery& query = answer.results.emplace_back();
  query.heading = "in films, like Toy Story (1995), toy-story-1995";
  query.id = "toy-story-1995";
  query.score_kind = v1::SCORE_KIND_COSINE;
  AddHit(query, "toy-story-2-1999", 0.7029F, "Toy Story 2", 1999);
  AddHit(query, "amelie-2001", 0.1F, "Amélie 七", 2001);
  answer.backend_reason = "no NVIDIA driver on this machine";
  answer.receipt.set_backend(v1::BACKEND_KIND_CPU);
  answer.receipt.set_reason(answer.backend_reason);
  answer.receipt.set_exact(true);
  answer.receipt.set_snapshot_id("3f9a12c4d5e6f708192a3b4c5d6e7f80");
  answer.receipt.set_snapshot_version(1);
  return answer;
}

}  // namespace simile::cli
