// A hundred thousand random filters over random payloads, each compared with an interpreter that
// visits row by row.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/unasked_work.h"
#include "certificate/seeded_random.h"
#include "data/payload/id_index.h"
#include "filter/evaluate.h"
#include "filter/filters.h"
#include "filter/naive_filter.h"
#include "filter/parser.h"
#include "filter/payload_rows.h"

namespace simile::filter {
namespace {

using tests::SeededRandom;

constexpr std::size_t kRowCount = 150;
constexpr std::size_t kCollections = 50;
constexpr std::size_t kFiltersOfEach = 2'000;

// Several differ in case, marks, width or white space alone.
const std::vector<std::string> kGenres{"Drama",  "Sci-Fi",       "WESTERN", "western",
                                       "Amélie", "Ame\u0301lie", "a|b",     ""};
const std::vector<std::string> kTitles{"Toy Story", "toy story", "Solaris",   "Ｓolaris",
                                       "Amélie",    "Amelie",    "STAR TREK", "Ärger",
                                       "ガス",      "カス",      "Star  Trek"};
const std::vector<std::string> kTitleParts{"toy", "STAR", "äR", "lie", "nothing"};
const std::vector<std::string> kDays{"2020-01-01T00:00:00Z", "2020-01-01T00:00:00.5Z", "2021-06-30",
                                     "2021-06-30T02:00:00+02:00", "1969-12-31T23:59:59Z"};

template <class Values>
const auto& DrawOne(const Values& values, SeededRandom& random) {
  return values[random.Below(std::size(values))];
}

FieldType FindType(const std::string& field) {
  if (field == "title") return FieldType::kKeyword;
  if (field == "genres" || field == "tags") return FieldType::kKeywords;
  if (field == "year") return FieldType::kInteger;
  if (field == "rating") return FieldType::kNumber;
  if (field == "released") return FieldType::kTime;
  if (field == "available") return FieldType::kBoolean;
  if (field == "years") return FieldType::kIntegers;
  if (field == "ratings") return FieldType::kNumbers;
  if (field == "flags") return FieldType::kBooleans;
  if (field == "meta.year") return FieldType::kInteger;
  if (field == "meta.of.genres") return FieldType::kKeywords;
  return FieldType::kOther;
}

// Each fits the types of some fields.
const std::vector<PayloadValue> kOddValues{Text("N/A"),
                                           Text(""),
                                           Real(1991.5),
                                           Real(3),
                                           Texts({"western"}),
                                           Flag(true),
                                           Whole(4),
                                           List({Whole(1)}),
                                           List({Real(0.5), Whole(2)}),
                                           List({Flag(true)}),
                                           List({}),
                                           List({Whole(1), Text("1")})};

// Up to three values that draw() makes, or one without a list.
template <class Draw>
PayloadValue DrawList(SeededRandom& random, Draw draw) {
  if (random.OneIn(6)) return draw();
  PayloadList list;
  for (std::size_t i = random.Below(4); i > 0; --i) list.push_back(draw());
  return List(std::move(list));
}

// Every field is sometimes missing, sometimes null and sometimes of another type.
PayloadObject DrawRow(SeededRandom& random) {
  PayloadObject row;
  const auto add = [&](const char* name, PayloadValue value) {
    if (random.OneIn(5)) return;
    if (random.OneIn(30)) value = DrawOne(kOddValues, random);
    row.emplace_back(name, random.OneIn(10) ? PayloadValue{} : std::move(value));
  };
  add("title", Text(DrawOne(kTitles, random)));
  std::vector<std::string> genres;
  for (std::size_t i = random.Below(4); i > 0; --i) genres.push_back(DrawOne(kGenres, random));
  add("genres", Texts(genres));
  std::string tags;
  for (std::size_t i = random.Below(4); i > 0; --i)
    tags += fmt::format("{}t{}{}", tags.empty() ? "" : "|", random.Below(4),
                        random.OneIn(3) ? " " : "");
  add("tags", Text(tags));
  const auto draw_year = [&] {
    return Whole(random.OneIn(30) ? (std::int64_t{1} << 53) + 1
                                  : 1990 + static_cast<std::int64_t>(random.Below(8)));
  };
  const auto draw_rating = [&] {
    return random.OneIn(8)   ? Whole((std::int64_t{1} << 53) + 1)
           : random.OneIn(4) ? Whole(static_cast<std::int64_t>(random.Below(5)))
                             : Real(static_cast<double>(random.Below(20)) / 4);
  };
  add("year", draw_year());
  add("years", DrawList(random, draw_year));
  add("rating", draw_rating());
  add("ratings", DrawList(random, draw_rating));
  add("flags", DrawList(random, [&] { return Flag(random.OneIn(2)); }));
  add("released", Text(DrawOne(kDays, random)));
  add("available", Flag(random.OneIn(2)));
  add("details", random.OneIn(2) ? Text("x") : Whole(1));
  PayloadObject of;
  PayloadObject meta;
  if (!random.OneIn(5)) of.emplace_back("genres", Texts({DrawOne(kGenres, random)}));
  if (!random.OneIn(5)) meta.emplace_back("of", random.OneIn(9) ? Whole(1) : PayloadValue{of});
  if (!random.OneIn(5)) meta.emplace_back("year", random.OneIn(9) ? Text("?") : draw_year());
  add("meta", PayloadValue{std::move(meta)});
  return row;
}

std::string LiteralFor(const std::string& field, SeededRandom& random) {
  const auto quoted = [](const std::string& text) { return fmt::format("\"{}\"", text); };
  switch (FindType(field)) {
    case FieldType::kKeyword:
      return quoted(random.OneIn(3) ? DrawOne(kTitleParts, random) : DrawOne(kTitles, random));
    case FieldType::kKeywords:
      if (field == "tags") {
        return quoted(fmt::format("{}{}", random.OneIn(3) ? "T" : "t", random.Below(5)));
      }
      return quoted(DrawOne(kGenres, random));
    case FieldType::kInteger:
    case FieldType::kIntegers:
      if (random.OneIn(10))
        return DrawOne(std::array{"9007199254740993", "1e300", "-1e300", "9007199254740992.0"},
                       random);
      return fmt::format("{}{}", 1989 + random.Below(10), random.OneIn(5) ? ".5" : "");
    case FieldType::kNumber:
    case FieldType::kNumbers:
      if (random.OneIn(8)) {
        return DrawOne(std::array{"9007199254740993", "9007199254740992", "9007199254740992.0"},
                       random);
      }
      return fmt::format("{}", static_cast<double>(random.Below(24)) / 4);
    case FieldType::kTime:
      return quoted(DrawOne(kDays, random));
    case FieldType::kBoolean:
    case FieldType::kBooleans:
      return DrawOne(std::array{"true", "false", "TRUE"}, random);
    case FieldType::kOther:
      break;
  }
  return quoted(fmt::format("{}", random.Below(kRowCount + 5)));  // an id
}

std::string DrawComparison(SeededRandom& random) {
  constexpr std::array kFields{"title",  "genres",    "tags",          "year",      "years",
                               "rating", "ratings",   "released",      "available", "flags",
                               "id",     "meta.year", "meta.of.genres"};
  std::string field = DrawOne(kFields, random);
  const FieldType type = FindType(field);
  const bool is_text = type == FieldType::kKeyword || type == FieldType::kKeywords;
  if (random.OneIn(8))
    return fmt::format("has({})", random.OneIn(6)   ? "details"
                                  : random.OneIn(9) ? "meta.of"
                                                    : field);
  if (random.OneIn(6)) {
    std::string list = LiteralFor(field, random);
    for (std::size_t i = random.Below(3); i > 0; --i) list += ", " + LiteralFor(field, random);
    if (is_text && random.OneIn(3)) field = fmt::format("folded({})", field);
    return fmt::format("{} {}IN [{}]", field, random.OneIn(3) ? "NOT " : "", list);
  }
  std::vector<const char*> operators{"=", "!="};
  if (is_text && random.OneIn(4)) {
    return fmt::format("folded({}) {} {}", field, DrawOne(operators, random),
                       LiteralFor(field, random));
  }
  if (is_text || IsList(type)) operators.push_back(":");
  const FieldType of_element = data::TypeOfElements(type);
  if (of_element == FieldType::kInteger || of_element == FieldType::kNumber ||
      of_element == FieldType::kTime)
    operators.insert(operators.end(), {"<", "<=", ">", ">="});
  return fmt::format("{} {} {}", field, DrawOne(operators, random), LiteralFor(field, random));
}

std::string DrawFilter(std::size_t depth, SeededRandom& random) {
  if (depth == 0 || random.OneIn(3)) return DrawComparison(random);
  if (random.OneIn(4)) return fmt::format("NOT ({})", DrawFilter(depth - 1, random));
  const char* const joint = random.OneIn(2) ? " AND " : " OR ";
  std::string filter = fmt::format("({})", DrawFilter(depth - 1, random));
  for (std::size_t i = random.Between(1, 2); i > 0; --i)
    filter += joint + fmt::format("({})", DrawFilter(depth - 1, random));
  return filter;
}

void CheckCollection(std::uint64_t seed) {
  SeededRandom random(seed);
  std::vector<PayloadObject> rows;
  for (std::size_t r = 0; r < kRowCount; ++r) rows.push_back(DrawRow(random));
  data::FieldRules rules;
  rules.separators.push_back({"tags", "|"});
  for (const char* const field :
       {"title", "genres", "year", "years", "rating", "ratings", "released", "available", "flags",
        "details", "meta.year", "meta.of.genres"}) {
    rules.declared.push_back({field, FindType(field)});
  }
  const data::PayloadTable table = MakeTable(rows, rules);
  const PayloadIndex payload = PayloadIndex::Build(table);
  const data::IdIndex ids = data::IdIndex::OfRowNumbers(kRowCount);
  for (std::size_t i = 0; i < kFiltersOfEach; ++i) {
    const std::string filter = DrawFilter(3, random);
    const absl::StatusOr<Expression> expression = Parse(filter);
    ASSERT_TRUE(expression.ok()) << filter << ": " << expression.status();
    ASSERT_TRUE(EstimateLooks(*expression, {"films", payload, ids}).ok())
        << "seed " << seed << ", " << filter;
    base::LongWork work = tests::UnaskedWork();
    const absl::StatusOr<RowMask> mask = Evaluate(*expression, {"films", payload, ids}, work);
    ASSERT_TRUE(mask.ok()) << "seed " << seed << ", " << filter << ": " << mask.status();
    for (Row row = 0; row < kRowCount; ++row) {
      ASSERT_EQ(mask->Allows(row),
                NaivelyPasses(*expression, std::to_string(row), rows[row], &FindType) == true)
          << "seed " << seed << ", row " << row << ", " << filter;
    }
  }
}

TEST(RandomFiltersTest, PassTheRowsThatAnInterpreterPasses) {
  for (std::uint64_t seed = 1; seed <= kCollections; ++seed) {
    CheckCollection(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace simile::filter
