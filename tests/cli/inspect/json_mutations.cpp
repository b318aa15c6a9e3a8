#include <array>
#include <utility>

#include <fmt/format.h>

#include "cli/inspect/mutations.h"
#include "cli/inspect/thing_folder.h"

namespace simile::cli {
namespace {

Mutation Replace(const char* file, std::string name, std::string bytes, std::string says,
                 Fate fate = Fate::kRefused) {
  return {std::move(name),
          [file, bytes = std::move(bytes)](FolderContent& folder) { folder.Put(file, bytes); },
          std::move(says), fate};
}

// user_ids.json with one entry replaced by other text.
std::string ListWith(std::size_t entry, const std::string& text) {
  std::vector<std::string> entries;
  for (std::size_t n = 0; n < kUsers; ++n) {
    entries.push_back(n == entry ? text : fmt::format("\"user-{}\"", n));
  }
  return fmt::format("[{}]", fmt::join(entries, ", "));
}

// A list of so many ids.
std::string MakeIdList(std::size_t count) {
  std::vector<std::string> entries;
  for (std::size_t n = 0; n < count; ++n) entries.push_back(fmt::format("\"user-{}\"", n));
  return fmt::format("[{}]", fmt::join(entries, ", "));
}

struct WrongText {
  const char* label;
  std::string text;
  const char* says;
  Fate fate = Fate::kRefused;
};

std::vector<WrongText> WrongEntries() {
  return {
      {"null", "null", "null"},
      {"true", "true", "true"},
      {"fraction", "2.5", "a string or an integer"},
      {"list", R"(["user-1"])", "a string or an integer"},
      {"object", R"({"id": "user-1"})", "a string or an integer"},
      {"empty", R"("")", "is empty"},
      {"514_bytes", fmt::format("\"{}\"", std::string(514, 'u')), "514 bytes"},
      {"control", R"("a\tb")", "control character"},
      {"huge", "123456789012345678901234567890", "64-bit integer"},
      {"bare", "user-1", "column"},
      {"single_quotes", "'user-1'", "column"},
      {"not_utf8", "\"\xFF\"", "0xff"},
      {"not_closed", "\"user-1", "column"},
      {"two", R"("a" "b")", "column"},
      {"nothing", "", "column"},
  };
}

std::vector<WrongText> WrongLists() {
  return {
      {"empty_file", "", "is empty"},
      {"spaces", " \n ", "line 2"},
      {"string", R"("user-0")", "a list of ids"},
      {"number", "8", "a list of ids"},
      {"null", "null", "a list of ids"},
      {"lines", "user-0\nuser-1\nuser-2\n", "looks like lines of text"},
      {"quoted_lines", "\"user-0\"\n\"user-1\"\n", "line 1"},
      {"csv", "id,name\nuser-0,Ann\n", "looks like CSV"},
      {"json_lines", "{\"id\": \"user-0\"}\n{\"id\": \"user-1\"}\n", "line 1"},
      {"names_by_id", R"({"user-0": "Ann", "user-1": "Ben"})", "no list"},
      {"rows_by_id", R"({"user-0": 0, "user-1": 1})", "no list"},
      {"empty_object", "{}", "no list"},
      {"two_lists", R"({"user_ids": ["a"], "more": ["b"]})", "second list"},
      {"list_inside", R"({"users": {"ids": ["a"]}})", "\"users\""},
      {"list_of_objects", R"([{"id": "user-0"}, {"id": "user-1"}])", "row 0"},
      {"no_ids", "[]", "0 ids"},
      {"1_id", MakeIdList(1), "1 id"},
      {"7_ids", MakeIdList(7), "7 ids"},
      {"9_ids", MakeIdList(9), "9 ids, but"},
      {"50_ids", MakeIdList(50), "50 ids, but"},
      {"trailing_comma", R"(["user-0", "user-1",])", "column"},
      {"not_closed", R"(["user-0", "user-1")", "column"},
      {"two_values", fmt::format("{} []", MakeIdList(8)), "nothing may follow"},
      {"comment", fmt::format("{} // users", MakeIdList(8)), "nothing may follow"},
      {"utf16", std::string("\xFF\xFE[\0]\0", 6), "is UTF-16"},
      {"same_twice", ListWith(7, "\"user-0\""), "distinct"},
      {"same_next", ListWith(1, "\"user-0\""), "distinct"},
      {"all_same", R"(["u", "u", "u", "u", "u", "u", "u", "u"])", "distinct"},
      {"number_and_text", R"([1, 2, 3, 4, 5, 6, 7, "1"])", "distinct"},
      {"object", fmt::format(R"({{"user_ids": {}, "made": "2024"}})", MakeIdList(8)), "",
       Fate::kLoads},
      {"numbers", "[0, 1, 2, 3, 4, 5, 6, 7]", "", Fate::kLoads},
  };
}

std::vector<WrongText> WrongSettings() {
  return {
      {"empty_file", "", "is empty"},
      {"list", "[]", "expected an object"},
      {"text", "\"cosine\"", "expected an object"},
      {"yaml", "metric: cosine\n", "line 1"},
      {"toml", "metric = \"cosine\"\n", "line 1"},
      {"not_closed", R"({"metric": "cosine")", "column"},
      {"trailing_comma", "{\n  \"metric\": \"cosine\",\n}\n", "line 3"},
      {"comment", "{\n  // the metric\n  \"metric\": \"cosine\"\n}\n", "line 2"},
      {"two_objects", "{}{}", "nothing may follow"},
      {"key_near", R"({"metrics": "dot"})", "did you mean \"metric\"?"},
      {"key_case", R"({"Metric": "dot"})", "did you mean \"metric\"?"},
      {"key_dashes", R"({"lookup-fields": ["title"]})", "did you mean \"lookup_fields\"?"},
      {"key_far", R"({"colour": "red"})", "keys are"},
      {"key_empty", R"({"": "red"})", "keys are"},
      {"key_twice", R"({"metric": "dot", "metric": "dot"})", "twice"},
      {"metric_unknown", R"({"metric": "euclidean"})", "\"euclidean\""},
      {"metric_case", R"({"metric": "Cosine"})", "\"Cosine\""},
      {"metric_empty", R"({"metric": ""})", "\"metric\""},
      {"metric_null", R"({"metric": null})", "null"},
      {"metric_list", R"({"metric": ["cosine"]})", "a list"},
      {"zero_row_unknown", R"({"on_zero_row": "drop"})", "\"drop\""},
      {"zero_row_true", R"({"on_zero_row": true})", "on_zero_row"},
      {"id_field_number", R"({"id_field": 1})", "\"id_field\""},
      {"id_field_empty", R"({"id_field": ""})", "\"id_field\""},
      {"id_field_absent", R"({"id_field": "imdb"})", "\"imdb\""},
      {"id_field_not_distinct", R"({"id_field": "kept"})", "\"kept\""},
      {"id_field_years", R"({"id_field": "year"})", "", Fate::kLoads},
      {"tensor_of_npy", R"({"tensor": "embeddings"})", "leave it out"},
      {"tensor_empty", R"({"tensor": ""})", "\"tensor\""},
      {"vectors_number", R"({"vectors": 5})", "\"vectors\""},
      {"vectors_list", R"({"vectors": ["content_vectors.npy"]})", "\"vectors\""},
      {"vectors_nul", R"({"vectors": "a\u0000.npy"})", "\"vectors\""},
      {"lookup_text", R"({"lookup_fields": "title"})", "\"lookup_fields\""},
      {"lookup_empty", R"({"lookup_fields": []})", "\"lookup_fields\""},
      {"lookup_numbers", R"({"lookup_fields": [1]})", "\"lookup_fields\""},
      {"lookup_object", R"({"lookup_fields": {"title": 1}})", "\"lookup_fields\""},
      {"lookup_near", R"({"lookup_fields": ["titel"]})", "did you mean \"title\"?"},
      {"lookup_absent", R"({"lookup_fields": ["title", "plot"]})", "\"plot\""},
      {"lookup_number_field", R"({"lookup_fields": ["year"]})", "", Fate::kEither},
      {"lookup_twice", R"({"lookup_fields": ["title", "title"]})", "", Fate::kEither},
      {"types_list", R"({"field_types": ["year"]})", "\"field_types\""},
      {"types_text", R"({"field_types": "integer"})", "\"field_types\""},
      {"types_number", R"({"field_types": {"year": 4}})", "year"},
      {"types_unknown", R"({"field_types": {"year": "int"}})", "\"int\""},
      {"types_case", R"({"field_types": {"year": "Integer"}})", "\"Integer\""},
      {"types_absent", R"({"field_types": {"decade": "integer"}})", "\"decade\""},
      {"types_near", R"({"field_types": {"yaer": "integer"}})", "did you mean \"year\"?"},
      {"types_wrong", R"({"field_types": {"title": "integer"}})", "\"title\""},
      {"types_wrong_time", R"({"field_types": {"title": "time"}})", "\"title\""},
      {"types_wrong_boolean", R"({"field_types": {"year": "boolean"}})", "\"year\""},
      {"types_wrong_keyword", R"({"field_types": {"genres": "keyword"}})", "\"genres\""},
      {"types_wrong_integer", R"({"field_types": {"rating": "integer"}})", "\"rating\""},
      {"types_good", R"({"field_types": {"released": "keyword", "kept": "boolean"}})", "",
       Fate::kLoads},
      {"not_utf8", "{\"id_field\": \"\xFF\"}", "0xff"},
      {"deep", fmt::format(R"({{"metric": {}}})", std::string(40, '[')), "deeper"},
      {"too_long", fmt::format("{{{}}}", std::string(70'000, ' ')), "65,536"},
      {"nothing_set", "{}", "", Fate::kLoads},
      {"dot", R"({"metric": "dot"})", "", Fate::kLoads},
      {"skip_zero_rows", R"({"on_zero_row": "skip"})", "", Fate::kLoads},
      {"refuse_zero_rows", R"({"on_zero_row": "refuse"})", "", Fate::kLoads},
  };
}

}  // namespace

std::vector<Mutation> UserIdMutations() {
  std::vector<Mutation> mutations;
  for (const std::size_t entry : {std::size_t{0}, std::size_t{3}, kUsers - 1}) {
    for (const WrongText& wrong : WrongEntries()) {
      mutations.push_back(Replace(kUserIds, fmt::format("user_ids_{}_{}", entry, wrong.label),
                                  ListWith(entry, wrong.text), wrong.says));
    }
  }
  for (const WrongText& wrong : WrongLists()) {
    mutations.push_back(Replace(kUserIds, fmt::format("user_ids_{}", wrong.label), wrong.text,
                                wrong.says, wrong.fate));
  }
  return mutations;
}

std::vector<Mutation> SettingsMutations() {
  std::vector<Mutation> mutations;
  for (const WrongText& wrong : WrongSettings()) {
    mutations.push_back(Replace(kSettings, fmt::format("settings_{}", wrong.label), wrong.text,
                                wrong.says, wrong.fate));
  }
  return mutations;
}

}  // namespace simile::cli
