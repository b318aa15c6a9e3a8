#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cli/inspect/mutations.h"
#include "cli/inspect/thing_folder.h"

namespace simile::cli {
namespace {

// What becomes of one line.
using ChangeLine = std::function<std::string(const std::string& line)>;

struct LineFault {
  std::string label;
  ChangeLine change;
  std::string says;
};

ChangeLine By(std::string text) {
  return [text = std::move(text)](const std::string&) { return text; };
}

// Replaces the first occurrence.
ChangeLine Swap(std::string from, std::string to) {
  return [from = std::move(from), to = std::move(to)](const std::string& line) {
    std::string changed = line;
    const std::size_t at = changed.find(from);
    if (at != std::string::npos) changed.replace(at, from.size(), to);
    return changed;
  };
}

// Replaces the value of a key that is a string, quotes included.
ChangeLine Text(const std::string& key, const std::string& value) {
  return [key, value](const std::string& line) {
    const std::string start = fmt::format("\"{}\": ", key);
    const std::size_t at = line.find(start);
    if (at == std::string::npos) return line;
    const std::size_t from = at + start.size();
    const std::size_t end = line.find('"', from + 1);
    return line.substr(0, from) + value + line.substr(end + 1);
  };
}

// Adds a member at the end.
ChangeLine Member(const std::string& member) { return Swap("}", fmt::format(", {}}}", member)); }

ChangeLine Cut(std::size_t bytes) {
  return [bytes](const std::string& line) { return line.substr(0, line.size() - bytes); };
}

std::string Nested(std::size_t depth) {
  return fmt::format("{}{}", std::string(depth, '['), std::string(depth, ']'));
}

// Wrong JSON, whatever the file.
std::vector<LineFault> JsonFaults() {
  return {
      {"list", By(R"(["thing-1", "Thing 1"])"), "expected an object"},
      {"text", By(R"("thing-1")"), "expected an object"},
      {"number", By("17"), "expected an object"},
      {"null", By("null"), "expected an object"},
      {"words", By("not json at all"), "column 1"},
      {"no_end", Cut(1), "column"},
      {"cut_in_text", [](const std::string& line) { return line.substr(0, 10); }, "column"},
      {"comma_after", Swap("}", "},"), "one too many"},
      {"trailing_comma", Swap("}", ",}"), "column"},
      {"comma_missing", Swap("\", \"", "\" \""), "column"},
      {"colon_missing", Swap("\": ", "\" "), "':'"},
      {"single_quotes", By("{'id': 'thing-1', 'user_id': 'user-1'}"), "column 2"},
      {"bare_key", Swap("\"id\"", "id"), "column"},
      {"comment", Swap("}", "} // the last"), "nothing may follow"},
      {"two_objects", Swap("}", "}{}"), "a second object begins here"},
      {"python", Member("\"x\": None"), "None"},
      {"nan", Member("\"x\": NaN"), "NaN"},
      {"infinity", Member("\"x\": -Infinity"), "-Infinity is not"},
      {"huge_number", Member("\"x\": 1e999"), "1e999"},
      {"huge_integer", Member("\"x\": 99999999999999999999"), "64-bit integer"},
      {"leading_zero", Member("\"x\": 007"), "column"},
      {"half_number", Member("\"x\": 1."), "column"},
      {"plus", Member("\"x\": +1"), "column"},
      {"hex", Member("\"x\": 0x10"), "column"},
      {"deep_list", Member(fmt::format("\"x\": {}", Nested(40))), "deeper"},
      {"key_twice", Member("\"id\": \"other\""), "twice"},
      {"tab_in_text", Member("\"x\": \"a\tb\""), "column"},
      {"nul_in_text", Member(fmt::format("\"x\": \"a{}b\"", '\0')), "column"},
      {"bad_escape", Member(R"("x": "a\qb")"), "column"},
      {"short_escape", Member(R"("x": "\u12")"), "column"},
      {"lone_surrogate", Member(R"("x": "\ud800")"), "column"},
      {"latin1", Member("\"x\": \"Am\xE9lie\""), "0xe9"},
      {"overlong_utf8", Member("\"x\": \"\xC0\xAF\""), "0xc0"},
      {"half_utf8", Member("\"x\": \"\xE2\x82\""), "0xe2"},
      {"nul_line", By(std::string(8, '\0')), "column 1"},
      {"too_long", Member(fmt::format("\"x\": \"{}\"", std::string(70'000, 'x'))), "65,536"},
  };
}

// Wrong values of an id under a key.
std::vector<LineFault> IdFaults(const std::string& key) {
  const auto fault = [&](const char* label, const std::string& value, const char* says) {
    return LineFault{fmt::format("{}_{}", key, label), Text(key, value), says};
  };
  return {
      fault("true", "true", "true"),
      fault("fraction", "1.5", "an id is a string or an integer"),
      fault("list", R"(["a"])", "an id is a string or an integer"),
      fault("object", R"({"a": 1})", "an id is a string or an integer"),
      fault("514_bytes", fmt::format("\"{}\"", std::string(514, 'x')), "514 bytes"),
      fault("newline", R"("a\nb")", "control character"),
      fault("nul", R"("a\u0000b")", "control character"),
      fault("c1_control", R"("a\u0085b")", "control character"),
  };
}

std::string SaysOfLine(std::size_t line, const std::string& says) {
  return says.empty() ? fmt::format("line {}", line + 1) : says;
}

Mutation OfLine(const char* label, const char* file, const LineFault& fault, std::size_t line,
                Fate fate = Fate::kRefused) {
  return {fmt::format("{}_line_{}_{}", label, line + 1, fault.label),
          [=, change = fault.change](FolderContent& folder) {
            std::string* const bytes = folder.FindBytes(file);
            if (bytes == nullptr) return;
            std::vector<std::string> lines = SplitLines(*bytes);
            if (line >= lines.size()) return;
            lines[line] = change(lines[line]);
            *bytes = JoinLines(lines);
          },
          SaysOfLine(line, fault.says), fate};
}

void AddPayloadLines(std::vector<Mutation>& mutations) {
  for (const std::size_t line : {std::size_t{0}, std::size_t{22}, kThings - 1}) {
    for (const LineFault& fault : JsonFaults()) {
      mutations.push_back(OfLine("payload", kPayload, fault, line));
    }
    for (const LineFault& fault : IdFaults("id")) {
      mutations.push_back(OfLine("payload", kPayload, fault, line));
    }
  }
  const auto add = [&](std::size_t line, const char* label, ChangeLine change, const char* says,
                       Fate fate = Fate::kRefused) {
    mutations.push_back(OfLine("payload", kPayload, {label, std::move(change), says}, line, fate));
  };
  add(0, "csv", By("thing-1,Thing 1,1951,one|two"), "looks like CSV");
  add(22, "csv", By("thing-1,Thing 1,1951,one|two"), "line 23, column 1");
  add(0, "list_opens", By("["), "one JSON object a line is needed");
  add(22, "list_opens", By("["), "line 23");
  add(0, "object_opens", By("{"), "one JSON object a line is needed");
  add(22, "object_opens", By("{"), "line 23");
  add(22, "id_null", Text("id", "null"), "has no \"id\"");
  add(22, "id_empty", Text("id", R"("")"), "is empty");
  add(22, "id_whole", Text("id", "22.0"), "", Fate::kLoads);
  add(22, "blank", By(""), "line 23");
  add(22, "spaces", By("  \t "), "line 23");
  add(22, "mark", Swap("{", "\xEF\xBB\xBF{"), "a byte order mark");
  add(22, "no_id", Swap("\"id\"", "\"ident\""), "has no \"id\"");
  add(22, "id_of_first", Text("id", "\"thing-0\""), "ids must be distinct");
  add(49, "id_of_first", Text("id", "\"thing-0\""), "ids must be distinct");
  add(1, "id_of_first", Text("id", "\"thing-0\""), "ids must be distinct");
  add(22, "id_as_number", Text("id", "22"), "", Fate::kLoads);
  add(22, "id_of_512_bytes", Text("id", fmt::format("\"{}\"", std::string(512, 'x'))), "",
      Fate::kLoads);
  add(
      22, "carriage_return", [](const std::string& line) { return fmt::format("{}\r", line); }, "",
      Fate::kLoads);
  add(22, "title_null", Text("title", "null"), "", Fate::kLoads);
  add(22, "title_number", Text("title", "22"), "", Fate::kLoads);
  add(22, "other_member", Member(R"("x": {"y": [1, null, true]})"), "", Fate::kLoads);
  // A note names a value that does not fit its field's type.
  add(0, "year_text", Swap("1950", "\"1950\""), "", Fate::kLoads);
  add(22, "year_fraction", Swap("1972", "1972.5"), "", Fate::kLoads);
  add(22, "year_list", Swap("1972", "[1972]"), "", Fate::kLoads);
  add(22, "year_null", Swap("1972", "null"), "", Fate::kLoads);
  add(22, "genres_numbers", Swap(R"(["one", "two"])", "[1, 2]"), "", Fate::kLoads);
  add(22, "genres_object", Swap(R"(["one", "two"])", R"({"one": 1})"), "", Fate::kLoads);
  add(22, "genres_one_number", Swap("\"two\"", "2"), "", Fate::kLoads);
  std::string fields = "\"field-0\": 1";
  for (int i = 1; i < 1'100; ++i) fields += fmt::format(", \"field-{}\": 1", i);
  add(22, "1100_fields", Member(fields), "1,024");
}

void AddInteractionLines(std::vector<Mutation>& mutations) {
  const auto add = [&](std::size_t line, const LineFault& fault, Fate fate = Fate::kRefused) {
    mutations.push_back(OfLine("seen", kInteractionLines, fault, line, fate));
  };
  for (const LineFault& fault : JsonFaults()) add(19, fault);
  for (const LineFault& fault : IdFaults("user_id")) add(kInteractions - 1, fault);
  for (const LineFault& fault : IdFaults("id")) add(19, fault);
  for (const std::size_t line : {std::size_t{0}, kInteractions - 1}) {
    add(line, {"no_item", Swap("\"id\"", "\"film\""), "names no item"});
    add(line, {"item_null", Text("id", "null"), "names no item"});
    add(line, {"item_empty", Text("id", R"("")"), "is empty"});
    // A line of nobody, and values that are not used.
    add(line, {"no_user", Swap("user_id", "user"), ""}, Fate::kLoads);
    add(line, {"user_null", Text("user_id", "null"), ""}, Fate::kLoads);
    add(line, {"user_empty", Text("user_id", R"("")"), ""}, Fate::kLoads);
    add(line, {"weight_text", Swap("\"weight\": ", "\"weight\": \"4\", \"x\": "), ""},
        Fate::kLoads);
    add(line, {"weight_null", Swap("\"weight\": ", "\"weight\": null, \"x\": "), ""}, Fate::kLoads);
    add(line, {"time_words", Text("time", "\"yesterday\""), ""}, Fate::kLoads);
    add(line, {"time_no_zone", Text("time", "\"2024-05-01T12:00:00\""), ""}, Fate::kLoads);
    add(line, {"time_list", Text("time", "[2024]"), ""}, Fate::kLoads);
  }
  add(0, {"csv", By("user-1,thing-1,4.5"), "looks like CSV"});
  add(19, {"csv", By("user-1,thing-1,4.5"), "line 20, column 1"});
  add(19, {"blank", By(""), ""}, Fate::kLoads);
  add(19, {"unknown_user", Text("user_id", "\"nobody\""), ""}, Fate::kLoads);
  add(19, {"unknown_item", Text("id", "\"nothing\""), ""}, Fate::kLoads);
  add(19, {"time_number", Text("time", "1700000000"), ""}, Fate::kLoads);
  add(19, {"other_member", Member(R"("device": {"os": "x"})"), ""}, Fate::kLoads);
}

// What becomes of a whole file of lines.
struct TextFault {
  const char* label;
  std::function<std::string(const std::string& text)> change;
  const char* says;
  Fate fate = Fate::kRefused;
};

std::string Indented(const std::string& text) {
  std::string indented;
  for (const char letter : text) {
    if (letter == '{') {
      indented += "{\n  ";
    } else if (letter == '}') {
      indented += "\n}";
    } else {
      indented += letter;
    }
  }
  return indented;
}

std::string JoinedAt(const std::string& text, std::size_t line) {
  std::vector<std::string> lines = SplitLines(text);
  lines[line] += lines[line + 1];
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(line) + 1);
  return JoinLines(lines);
}

std::string Utf16(const std::string& text) {
  std::string wide = "\xFF\xFE";
  for (const char letter : text) {
    wide += letter;
    wide += '\0';
  }
  return wide;
}

// REQUIRES: the text ends with '\n'.
std::vector<TextFault> TextFaults() {
  return {
      {"indented", Indented, "indented"},
      {"json_list",
       [](const std::string& text) {
         return fmt::format("[\n{}\n]\n", fmt::join(SplitLines(text), ",\n"));
       },
       ""},
      {"json_list_on_one_line",
       [](const std::string& text) {
         return fmt::format("[{}]", fmt::join(SplitLines(text), ","));
       },
       ""},
      {"csv",
       [](const std::string&) { return std::string("id,title,year\nthing-0,Thing 0,1950\n"); },
       "looks like CSV"},
      {"utf16", Utf16, "is UTF-16"},
      {"gzip", [](const std::string&) { return std::string("\x1F\x8B\x08\x00\x00", 5); }, "gzip"},
      {"blank_first", [](const std::string& text) { return fmt::format("\n{}", text); }, "",
       Fate::kLoads},
      {"objects_joined", [](const std::string& text) { return JoinedAt(text, 9); }, "line 10"},
      {"last_line_cut", [](const std::string& text) { return text.substr(0, text.size() - 9); },
       ""},
      {"commas_at_ends",
       [](const std::string& text) {
         return fmt::format("{}\n", fmt::join(SplitLines(text), ",\n"));
       },
       "line 1"},
      {"mark_twice",
       [](const std::string& text) { return fmt::format("\xEF\xBB\xBF\xEF\xBB\xBF{}", text); },
       "line 1"},
      {"zeros_after",
       [](const std::string& text) { return fmt::format("{}{}", text, std::string(512, '\0')); },
       ""},
      {"no_last_newline", [](const std::string& text) { return text.substr(0, text.size() - 1); },
       "", Fate::kLoads},
      {"carriage_returns",
       [](const std::string& text) {
         return fmt::format("{}\r\n", fmt::join(SplitLines(text), "\r\n"));
       },
       "", Fate::kLoads},
      {"blank_last", [](const std::string& text) { return fmt::format("{}\n", text); }, "",
       Fate::kLoads},
      {"mark", [](const std::string& text) { return fmt::format("\xEF\xBB\xBF{}", text); }, "",
       Fate::kLoads},
  };
}

void AddTexts(std::vector<Mutation>& mutations, const char* label, const char* file) {
  for (const TextFault& fault : TextFaults()) {
    mutations.push_back({fmt::format("{}_{}", label, fault.label),
                         [file, change = fault.change](FolderContent& folder) {
                           std::string* const bytes = folder.FindBytes(file);
                           if (bytes != nullptr && bytes->ends_with('\n')) *bytes = change(*bytes);
                         },
                         fault.says, fault.fate});
  }
}

// metadata.jsonl with another number of lines than the vectors have rows.
void AddLineCounts(std::vector<Mutation>& mutations) {
  for (const std::size_t count : {0, 1, 25, 49, 51, 52, 100}) {
    mutations.push_back({fmt::format("payload_{}_lines", count),
                         [count](FolderContent& folder) {
                           std::string text;
                           for (std::size_t n = 0; n < count; ++n) {
                             text += fmt::format("{}\n", PayloadLine(n));
                           }
                           folder.Put(kPayload, text);
                         },
                         "has 50 rows"});
  }
}

}  // namespace

std::vector<Mutation> LineMutations() {
  std::vector<Mutation> mutations;
  AddPayloadLines(mutations);
  AddInteractionLines(mutations);
  AddTexts(mutations, "payload", kPayload);
  AddTexts(mutations, "seen", kInteractionLines);
  AddLineCounts(mutations);
  mutations.push_back({"seen_empty",
                       [](FolderContent& folder) { folder.Put(kInteractionLines, ""); }, "",
                       Fate::kLoads});
  return mutations;
}

}  // namespace simile::cli
