#include "data/payload_builder.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

#include <absl/strings/string_view.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "data/payload_encoding.h"

namespace simile::data {
PayloadTableBuilder::PayloadTableBuilder(std::size_t row_count, const Limits& limits, Keep keep)
    : fields_max_(limits.payload_fields_per_collection_max), keep_(keep) {
  if (keep_ == Keep::kRows) table_.starts_.reserve(row_count);
}

absl::Status PayloadTableBuilder::Add(const PayloadObject& row) {
  packed_.clear();
  for (const auto& [name, value] : row) {
    std::uint32_t number = 0;
    if (absl::Status status = NumberOf(name, number); !status.ok()) return status;
    if (!std::holds_alternative<std::monostate>(value.value)) {
      table_.fields_[number].values.Add(next_row_, value);
    }
    AppendVarint(packed_, number);
    AppendValue(packed_, value);
  }
  if (packed_.size() > PayloadTable::kChunkBytes) {
    return absl::InvalidArgumentError(fmt::format("the object takes {} bytes packed; at most {}",
                                                  base::Grouped(packed_.size()),
                                                  base::Grouped(PayloadTable::kChunkBytes)));
  }
  if (keep_ == Keep::kRows) Store(packed_);
  ++next_row_;
  return absl::OkStatus();
}

absl::Status PayloadTableBuilder::NumberOf(std::string_view name, std::uint32_t& number) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) {
    number = found->second;
    return absl::OkStatus();
  }
  if (table_.fields_.size() == fields_max_) {
    return absl::InvalidArgumentError(fmt::format(
        "field {} is one too many; a collection may have {} different fields: keep rare ones "
        "together in one list of texts, as in \"attributes\": [\"color=red\"]",
        base::Quoted(name), base::Grouped(fields_max_)));
  }
  number = static_cast<std::uint32_t>(table_.fields_.size());
  numbers_.emplace(std::string(name), number);
  table_.fields_.emplace_back().name = name;
  return absl::OkStatus();
}

void PayloadTableBuilder::Store(const std::vector<std::uint8_t>& row) {
  auto& chunks = table_.chunks_;
  // No row begins at the end of a full chunk, not even an empty one: an offset is below
  // kChunkBytes.
  if (chunks.empty() || chunks.back().size() + row.size() >= PayloadTable::kChunkBytes) {
    chunks.emplace_back().reserve(PayloadTable::kChunkBytes);
  }
  const auto chunk = static_cast<std::uint32_t>(chunks.size() - 1);
  if (table_.starts_.size() % PayloadTable::kBlockRows == 0) table_.block_chunks_.push_back(chunk);
  const auto offset = static_cast<std::uint32_t>(chunks.back().size());
  table_.starts_.push_back((chunk - table_.block_chunks_.back()) << PayloadTable::kOffsetBits |
                           offset);
  chunks.back().insert(chunks.back().end(), row.begin(), row.end());
}

absl::Status PayloadTableBuilder::ChooseTypes(const FieldRules& rules, std::string_view file,
                                              std::vector<std::string>& notes) {
  types_chosen_ = true;
  return ChooseFieldTypes(rules, file, table_.fields_, notes);
}

PayloadTable PayloadTableBuilder::Build() && {
  auto& fields = table_.fields_;
  if (!types_chosen_) {
    std::vector<std::string> notes;
    // Without rules nothing is refused.
    static_cast<void>(ChooseFieldTypes({}, {}, fields, notes));
  }
  std::vector<std::uint32_t> stored_by_name(fields.size());
  std::iota(stored_by_name.begin(), stored_by_name.end(), 0U);
  std::sort(
      stored_by_name.begin(), stored_by_name.end(),
      [&fields](std::uint32_t a, std::uint32_t b) { return fields[a].name < fields[b].name; });

  std::vector<FieldInfo> sorted;
  sorted.reserve(fields.size());
  table_.number_of_stored_.resize(fields.size());
  for (const std::uint32_t stored : stored_by_name) {
    table_.number_of_stored_[stored] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(std::move(fields[stored]));
  }
  fields = std::move(sorted);
  if (!table_.chunks_.empty()) table_.chunks_.back().shrink_to_fit();
  return std::move(table_);
}

}  // namespace simile::data
