#include "filter/suggestions.h"

#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "filter/expression.h"
#include "filter/operators.h"
#include "filter/text_index.h"

namespace simile::filter {
namespace {

// The most suggestions for one filter.
constexpr std::size_t kSentencesMax = 3;

// How the expression compares the keywords of the field; kNone when it names no keyword.
KeywordTest ChooseTest(const Expression& expression, const Field& field) {
  if (expression.kind != Expression::Kind::kIn && expression.kind != Expression::Kind::kCompare) {
    return KeywordTest::kNone;
  }
  if (expression.is_folded) return KeywordTest::kFolded;
  if (expression.kind == Expression::Kind::kIn) return KeywordTest::kEqual;
  if (expression.comparison->negated) return KeywordTest::kNone;
  return field.type == FieldType::kKeywords ? expression.comparison->keywords
                                            : expression.comparison->keyword;
}

class NearSearch {
 public:
  NearSearch(const PayloadView& payload, base::LongWork& work) : payload_(payload), work_(work) {}

  absl::Status Look(const Expression& expression) {
    if (expression.kind == Expression::Kind::kNot) return absl::OkStatus();
    for (const Expression& child : expression.children) {
      if (absl::Status status = Look(child); !status.ok()) return status;
    }
    const Field* const field = payload_.Find(expression.field);
    const auto* const column =
        field == nullptr ? nullptr : std::get_if<KeywordColumn>(&field->column);
    if (column == nullptr) return absl::OkStatus();
    const KeywordTest test = ChooseTest(expression, *field);
    if (test == KeywordTest::kNone) return absl::OkStatus();
    for (const Literal& literal : expression.literals) {
      if (sentences_.size() == kSentencesMax) return absl::OkStatus();
      const absl::StatusOr<std::string> nearest = NearestTo(literal.text, test, *column);
      if (!nearest.ok()) return nearest.status();
      if (nearest->empty()) continue;
      sentences_.push_back(fmt::format("no row has {} {}; did you mean {}?",
                                       FieldText(expression.field), base::Quoted(literal.text),
                                       base::Quoted(*nearest)));
    }
    return absl::OkStatus();
  }

  std::vector<std::string> TakeSentences() { return std::move(sentences_); }

 private:
  // The keyword nearest to a text; empty when a keyword passes the comparison with the text, or
  // when none is near.
  absl::StatusOr<std::string> NearestTo(const std::string& text, KeywordTest test,
                                        const KeywordColumn& column) {
    const std::string folded = FoldText(text);
    if (test == KeywordTest::kEqual && column.Find(text)) return std::string();
    if (test == KeywordTest::kFolded) {
      const KeywordColumn::Range range = column.FindFolded(folded);
      if (range.begin != range.end) return std::string();
    }
    base::NearestSearch search(text);
    for (std::size_t keyword = 0; keyword < column.keyword_count(); ++keyword) {
      if (test == KeywordTest::kPart && column.Contains(keyword, folded)) return std::string();
      if (absl::Status looked = search.ConsiderText(column.Text(keyword), work_); !looked.ok()) {
        return looked;
      }
    }
    return std::string(search.found());
  }

  const PayloadView& payload_;
  base::LongWork& work_;
  std::vector<std::string> sentences_;
};

// For a name such as `tags.k`, says that the field before the dot holds no fields. Empty for any
// other name.
std::string OfNoObject(std::string_view name, const PayloadView& payload) {
  const Field* const object = payload.Find(name.substr(0, name.find('.')));
  if (object == nullptr || object->name == name) return {};
  for (const Field& field : payload.fields()) {
    if (field.is_nested && field.name.starts_with(object->name + '.')) return {};
  }
  return fmt::format(" {} is of type {}, and no fields inside it are read.",
                     FieldText(object->name), NameOf(object->type));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> NearValues(const Expression& filter,
                                                    const PayloadView& payload,
                                                    base::LongWork& work) {
  NearSearch search(payload, work);
  absl::Status looked = search.Look(filter);
  if (!looked.ok()) return looked;
  return search.TakeSentences();
}

std::string UnknownField(std::string_view collection, std::string_view field,
                         const PayloadView& payload) {
  std::vector<std::string> known;
  for (const Field& each : payload.fields()) known.push_back(each.name);
  if (known.empty()) {
    return fmt::format("{} has no payload and so no field {}; only id can be asked", collection,
                       base::Quoted(field));
  }
  constexpr std::size_t kListedMax = 20;
  const bool cut = known.size() > kListedMax;
  std::string offer = OfNoObject(field, payload);
  if (offer.empty()) offer = base::DidYouMean(base::NearestName(field, known));
  if (cut) known.resize(kListedMax);
  for (std::string& name : known) name = FieldText(name);
  return fmt::format("{} has no field {}.{} Fields: {}{}.", collection, base::Quoted(field), offer,
                     fmt::join(known, ", "), cut ? ", ..." : "");
}

}  // namespace simile::filter
