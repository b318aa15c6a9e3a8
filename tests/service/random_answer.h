#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "filter/text_index.h"
#include "service/replies/replies.h"

namespace simile::service {

// An answer made of random parts: rows with ids, payload and vectors of every kind, pages with
// hits and groups, each field sometimes left at its default.
class RandomAnswer {
 public:
  //   draw  returns any number
  using Draw = std::function<std::uint64_t()>;
  explicit RandomAnswer(const Draw& draw);
  RandomAnswer(const RandomAnswer&) = delete;  // its pages are views of its hits
  RandomAnswer& operator=(const RandomAnswer&) = delete;

  const engine::SnapshotPtr& snapshot() const { return snapshot_; }
  const RowShape& shape() const { return shape_; }
  const std::vector<FetchedItem>& items() const { return items_; }
  const std::vector<std::string>& notes() const { return notes_; }
  const filter::TextMatches& matches() const { return matches_; }
  SearchReply::Parts parts() const;

 private:
  void DrawSnapshot(const Draw& draw);
  void DrawShape(const Draw& draw);
  std::vector<Hit> DrawHits(const Draw& draw) const;
  void DrawPages(const Draw& draw);
  void DrawReceipt(const Draw& draw);

  engine::SnapshotPtr snapshot_;
  RowShape shape_;
  std::vector<FetchedItem> items_;
  std::vector<std::string> notes_;
  filter::TextMatches matches_;
  std::vector<std::vector<Hit>> hits_;                 // of each page
  std::vector<std::vector<engine::HitGroup>> groups_;  // of each page
  std::vector<std::string> user_ids_;                  // of each page
  std::vector<std::string> cold_start_fields_;         // of each page
  std::vector<ResultPage> pages_;
  observe::Receipt receipt_;
  bool brief_receipt_ = false;
  std::string request_id_;
  std::uint64_t total_us_ = 0;
  std::string next_page_token_;
};

}  // namespace simile::service
