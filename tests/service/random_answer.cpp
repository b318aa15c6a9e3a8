#include "service/random_answer.h"

#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "data/payload/field_rules.h"
#include "data/payload/payload_table.h"
#include "data/random_payload.h"
#include "google/rpc/status.pb.h"
#include "simile/limits.h"

namespace simile::service {
namespace {

bool Flip(const RandomAnswer::Draw& draw) { return draw() % 2 == 0; }

std::size_t UpTo(const RandomAnswer::Draw& draw, std::size_t most) {
  return static_cast<std::size_t>(draw() % (most + 1));
}

std::string DrawText(const RandomAnswer::Draw& draw) {
  const std::string texts[] = {"",
                               "x",
                               "Am\xc3\xa9lie \xf0\x9f\x8e\xac",
                               std::string(127, 'a'),
                               std::string(128, 'b'),
                               std::string(20'000, 'c')};
  return texts[draw() % std::size(texts)];
}

// Often 0, often long as a varint.
std::uint64_t DrawNumber(const RandomAnswer::Draw& draw) {
  const std::uint64_t shift = draw() % 65;
  return shift == 64 ? 0 : draw() >> shift;
}

float DrawFloat(const RandomAnswer::Draw& draw) {
  constexpr float kValues[] = {0,      -0.0F, 0.5F, -1, std::numeric_limits<float>::denorm_min(),
                               3.4e38F};
  return kValues[draw() % std::size(kValues)];
}

std::vector<std::string> DrawNotes(const RandomAnswer::Draw& draw) {
  std::vector<std::string> notes(UpTo(draw, 2));
  for (std::string& note : notes) note = DrawText(draw);
  return notes;
}

std::string DrawError(const RandomAnswer::Draw& draw) {
  google::rpc::Status error;
  error.set_code(5);
  error.set_message(DrawText(draw));
  return error.SerializeAsString();
}

// The types of the first fields; later fields have values of any type.
constexpr data::FieldType kUsualTypes[] = {data::FieldType::kInteger,  data::FieldType::kNumber,
                                           data::FieldType::kBoolean,  data::FieldType::kKeyword,
                                           data::FieldType::kKeywords, data::FieldType::kNumbers};
constexpr std::size_t kFields = std::size(kUsualTypes) + 2;

std::string NameOfField(std::size_t field) {
  return fmt::format("field {}{}", field, std::string(field * 20, 'n'));
}

PayloadValue DrawElement(const RandomAnswer::Draw& draw, data::FieldType type) {
  switch (type) {
    case data::FieldType::kInteger:
      return {static_cast<std::int64_t>(DrawNumber(draw))};
    case data::FieldType::kNumber:
      if (Flip(draw)) return {static_cast<std::int64_t>(DrawNumber(draw))};
      return {static_cast<double>(DrawFloat(draw))};
    case data::FieldType::kBoolean:
      return {Flip(draw)};
    default:
      return {DrawText(draw)};
  }
}

PayloadValue DrawValue(const RandomAnswer::Draw& draw, std::size_t field) {
  if (field >= std::size(kUsualTypes) || draw() % 8 == 0) return data::RandomValue(draw, 3);
  const data::FieldType type = kUsualTypes[field];
  if (!data::IsList(type)) return DrawElement(draw, type);
  PayloadList list(UpTo(draw, 3));
  for (PayloadValue& value : list) value = DrawElement(draw, data::TypeOfElements(type));
  return {list};
}

data::PayloadTable DrawPayload(const RandomAnswer::Draw& draw, std::size_t row_count) {
  data::PayloadTableBuilder payload(row_count, Limits{});
  for (std::size_t row = 0; row < row_count; ++row) {
    PayloadObject object;
    for (std::size_t field = 0; field < kFields; ++field) {
      if (!Flip(draw)) object.emplace_back(NameOfField(field), DrawValue(draw, field));
    }
    static_cast<void>(payload.Add(object));  // far below every limit
  }
  data::FieldRules rules;
  rules.kept.may_change = true;  // where most values are of another type
  for (std::size_t field = 0; field < std::size(kUsualTypes); ++field) {
    rules.kept.types.push_back(
        {.field = NameOfField(field), .type = kUsualTypes[field], .separator = {}});
  }
  std::vector<std::string> notes;
  static_cast<void>(payload.ChooseTypes(rules, "", notes));
  return std::move(payload).Build();
}

data::IdIndex DrawIds(const RandomAnswer::Draw& draw, std::size_t row_count) {
  if (Flip(draw)) return data::IdIndex::OfRowNumbers(row_count);
  data::IdIndex::Builder ids(row_count);
  for (std::size_t row = 0; row < row_count; ++row) {
    static_cast<void>(ids.Add(fmt::format("{}{}", DrawText(draw), row)));  // distinct by the row
  }
  return std::move(ids).Build();
}

}  // namespace

RandomAnswer::RandomAnswer(const Draw& draw) {
  DrawSnapshot(draw);
  DrawShape(draw);
  items_.resize(UpTo(draw, 5));
  for (FetchedItem& item : items_) {
    item.row = static_cast<Row>(draw() % snapshot_->row_count());
    if (!Flip(draw)) continue;
    item.id = DrawText(draw);
    item.error = DrawError(draw);
  }
  notes_ = DrawNotes(draw);
  matches_.match_count = DrawNumber(draw);
  matches_.whole_match_count = DrawNumber(draw);
  for (const FetchedItem& item : items_) {
    matches_.first.push_back({item.row, static_cast<filter::MatchQuality>(draw() % 3)});
  }
  DrawPages(draw);
  DrawReceipt(draw);
}

void RandomAnswer::DrawSnapshot(const Draw& draw) {
  const std::size_t row_count = 1 + UpTo(draw, 12);
  const std::size_t dim = 1 + UpTo(draw, 5);
  auto dataset = std::make_shared<data::Dataset>();
  dataset->vectors = *data::Matrix::Create(row_count, dim);
  for (std::size_t row = 0; row < row_count; ++row) {
    for (std::size_t column = 0; column < dim; ++column) {
      dataset->vectors.MutableRow(row)[column] = DrawFloat(draw);
    }
  }
  dataset->ids = DrawIds(draw, row_count);
  if (Flip(draw)) dataset->payload = DrawPayload(draw, row_count);
  auto snapshot = std::make_shared<engine::Snapshot>();
  snapshot->id = DrawText(draw);
  snapshot->version = DrawNumber(draw);
  snapshot->dataset = std::move(dataset);
  snapshot_ = std::move(snapshot);
}

void RandomAnswer::DrawShape(const Draw& draw) {
  const data::PayloadTable& payload = snapshot_->dataset->payload;
  PayloadSelection& selection = shape_.payload;
  selection.none = payload.row_count() == 0 || draw() % 4 == 0;
  selection.all = !selection.none && Flip(draw);
  for (std::uint32_t number = 0; number < payload.fields().size(); ++number) {
    if (Flip(draw)) selection.field_numbers.push_back(number);
  }
  shape_.with_vectors = Flip(draw);
  shape_.with_rows = Flip(draw);
}

std::vector<Hit> RandomAnswer::DrawHits(const Draw& draw) const {
  std::vector<Hit> hits(UpTo(draw, 5));
  for (Hit& hit : hits) {
    hit = {static_cast<Row>(draw() % snapshot_->row_count()), DrawFloat(draw)};
  }
  return hits;
}

void RandomAnswer::DrawPages(const Draw& draw) {
  constexpr std::uint32_t kOffsets[] = {0, 1, 117, 4'000'000'000};
  const std::size_t count = UpTo(draw, 4);
  for (std::size_t i = 0; i < count; ++i) {
    hits_.push_back(DrawHits(draw));
    std::vector<engine::HitGroup>& groups = groups_.emplace_back(UpTo(draw, 3));
    for (engine::HitGroup& group : groups) group = {DrawText(draw), DrawHits(draw)};
    user_ids_.push_back(DrawText(draw));
    cold_start_fields_.push_back(DrawText(draw));
  }
  for (std::size_t i = 0; i < count; ++i) {
    ResultPage& page = pages_.emplace_back();
    page.hits = hits_[i];
    page.groups = groups_[i];
    page.offset = kOffsets[draw() % std::size(kOffsets)];
    page.score_kind = static_cast<v1::ScoreKind>(draw() % 6);
    if (Flip(draw)) page.rows_passing = DrawNumber(draw);
    if (Flip(draw)) {
      page.cold_start = {.order = static_cast<engine::ColdStart::Order>(draw() % 2),
                         .field = cold_start_fields_[i]};
    }
    page.user_id = user_ids_[i];
    page.seen_count = static_cast<std::uint32_t>(DrawNumber(draw));
    page.notes = DrawNotes(draw);
    if (Flip(draw)) page.index = static_cast<std::uint32_t>(i);
    if (draw() % 4 == 0) page.error = DrawError(draw);
  }
}

void RandomAnswer::DrawReceipt(const Draw& draw) {
  const std::string names[] = {"cpu", "gpu", "other"};
  ServedBy served_by;
  served_by.info.name = names[draw() % std::size(names)];
  served_by.info.device = DrawText(draw);
  served_by.reason = DrawText(draw);
  receipt_.served_by = std::make_shared<const ServedBy>(std::move(served_by));
  for (std::size_t i = UpTo(draw, 3); i > 0; --i) {
    receipt_.engines.push_back(Flip(draw) ? "int8-amx" : "");
  }
  receipt_.device_bytes = DrawNumber(draw);
  receipt_.device_bytes_peak = DrawNumber(draw);
  if (Flip(draw)) receipt_.device_us = DrawNumber(draw);
  receipt_.batch_size = static_cast<std::uint32_t>(DrawNumber(draw));
  receipt_.queue_us = DrawNumber(draw);
  receipt_.compute_us = DrawNumber(draw);
  receipt_.cost = {.rows_scanned = DrawNumber(draw),
                   .rows_rescored = DrawNumber(draw),
                   .rescans = DrawNumber(draw),
                   .rounds = DrawNumber(draw)};
  brief_receipt_ = Flip(draw);
  request_id_ = DrawText(draw);
  total_us_ = DrawNumber(draw);
  next_page_token_ = DrawText(draw);
}

SearchReply::Parts RandomAnswer::parts() const {
  return {.shape = shape_,
          .pages = pages_,
          .receipt = {.snapshot = *snapshot_,
                      .receipt = receipt_,
                      .is_brief = brief_receipt_,
                      .request_id = request_id_,
                      .total_us = total_us_},
          .next_page_token = next_page_token_,
          .notes = notes_};
}

}  // namespace simile::service
