#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>
#include <variant>

#include <absl/strings/match.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backend/cpu/int8_backend.h"
#include "base/error_detail.h"
#include "base/message_text.h"
#include "base/threads.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/output_text.h"
#include "cli/progress.h"
#include "cli/settings_flags.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "data/load/collection_files.h"
#include "data/load/inspect.h"
#include "engine/snapshots/memory_plan.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InspectFlags {
  std::optional<std::string> path;
  std::optional<std::string> config;
  bool quick = false;
  bool json = false;
};

// A progress bar on a terminal while a folder is read.
class InspectProgress {
 public:
  InspectProgress() : bar_([this] { return Line(); }) {}

  void Set(const data::ReadProgress& progress) {
    const std::lock_guard lock(mutex_);
    file_ = progress.file;
    bytes_read_ = progress.bytes_read;
    bytes_total_ = progress.bytes_total;
  }

 private:
  std::string Line() {
    constexpr std::size_t kWidth = 20;
    const std::lock_guard lock(mutex_);
    if (bytes_total_ == 0) return "checking ...";
    const double share = static_cast<double>(bytes_read_) / static_cast<double>(bytes_total_);
    return fmt::format("checking {}  {} of {}{}{}", BarText(share, kWidth),
                       base::BytesText(bytes_read_), base::BytesText(bytes_total_),
                       file_.empty() ? "" : ", ", file_);
  }

  std::mutex mutex_;  // guards the members below, which the bar's thread reads
  std::string file_;
  std::uint64_t bytes_read_ = 0;
  std::uint64_t bytes_total_ = 0;
  ProgressBar bar_;  // destroyed first
};

// `first_id` as `first id`.
std::string ToLabel(std::string key) {
  for (char& letter : key) {
    if (letter == '_') letter = ' ';
  }
  return key;
}

// The role that a file was read as, why it was not read, or `refused` if the folder does not load
// because of it.
std::string ReadAs(const data::FolderFile& file, const absl::Status& status) {
  if (!file.role) return fmt::format("not read: {}", file.unread_reason);
  const bool is_refused = absl::StartsWith(status.message(), fmt::format("{}:", file.display_name));
  return is_refused ? "refused" : std::string(data::NameOf(*file.role));
}

// The folder's files, after a blank line; empty if there are none.
std::string FilesText(const data::Inspection& inspection, const Terminal& terminal) {
  const data::FolderListing& listing = inspection.listing;
  if (listing.files.empty()) return "";
  Table table({{"file"}, {"size", Align::kRight}, {"read as", Align::kLeft, true}});
  std::uint64_t unread = 0;
  for (const data::FolderFile& file : listing.files) {
    if (!file.role) ++unread;
    table.AddRow({file.display_name, base::BytesText(file.bytes), ReadAs(file, inspection.status)});
  }
  std::string text = '\n' + table.Render(terminal, 2);
  if (listing.unread_files > unread) {
    fmt::format_to(std::back_inserter(text), "  and {}, not read\n",
                   base::Counted(listing.unread_files - unread, "more file"));
  }
  return text;
}

// `would load`, and what is left out.
std::string LoadsText(const data::Inspection& inspection) {
  if (inspection.left_out.empty()) return "would load\n";
  return fmt::format("would load, without {}\n",
                     Printable(fmt::format("{}", fmt::join(inspection.left_out, "; without "))));
}

// One fact per line, then the files, then `would load` if there is no error. RunInspect prints an
// error.
std::string InspectionText(const std::string& path, const data::Inspection& inspection,
                           const Terminal& terminal) {
  // Prints the notes first, because they would be overlooked at the end.
  std::string notes;
  for (const std::string& note : inspection.notes) {
    fmt::format_to(std::back_inserter(notes), "  note: {}\n", Printable(note));
  }
  Table facts({{}, {}});
  for (const data::InspectedFact& fact : inspection.facts) {
    facts.AddRow({ToLabel(fact.key), fact.text});
  }
  for (const data::FieldInfo& field : inspection.fields) {
    facts.AddRow(
        {fmt::format("field {}", field.name),
         fmt::format("{}, in {}", NameOf(field.type),
                     base::Counted(field.values.count() - field.values.UnfitFor(field.type).count,
                                   "row"))});
  }
  const std::string title =
      inspection.kind.empty() ? path : fmt::format("{}: {}", path, inspection.kind);
  std::string text = fmt::format("{}\n{}{}{}", Bold(Printable(title), terminal), notes,
                                 facts.Render(terminal, 2), FilesText(inspection, terminal));
  if (!inspection.status.ok()) return text;
  if (inspection.unchecked.empty()) return text + LoadsText(inspection);
  fmt::format_to(std::back_inserter(text), "not checked: {}; without --quick they are\n",
                 Printable(fmt::format("{}", fmt::join(inspection.unchecked, ", "))));
  return text;
}

// One overload for each type of value.
struct ValueJson {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(const PayloadList& list) const {
    Json json = Json::array();
    for (const PayloadValue& value : list) json.push_back(std::visit(*this, value.value));
    return json;
  }
  Json operator()(const PayloadObject& object) const {
    Json json = Json::object();
    for (const auto& [name, value] : object) json[name] = std::visit(*this, value.value);
    return json;
  }
  template <typename Scalar>
  Json operator()(const Scalar& scalar) const {
    return scalar;
  }
};

Json FilesJson(const data::FolderListing& listing) {
  Json files = Json::array();
  for (const data::FolderFile& file : listing.files) {
    Json json = {{"name", file.display_name},
                 {"role", nullptr},
                 {"bytes", file.bytes},
                 {"unread_reason", nullptr}};
    if (file.role) {
      json["role"] = data::NameOf(*file.role);
    } else {
      json["unread_reason"] = file.unread_reason;
    }
    files.push_back(std::move(json));
  }
  return files;
}

// The inspection as one line of JSON. `loads` is null if --quick left something unchecked. `error`
// is null unless the folder would not load.
std::string InspectionJson(const std::string& path, const data::Inspection& inspection) {
  Json facts = Json::object();
  for (const data::InspectedFact& fact : inspection.facts) {
    facts[fact.key] = std::visit(ValueJson{}, fact.value.value);
  }
  Json fields = Json::array();
  for (const data::FieldInfo& field : inspection.fields) {
    const data::ValueSample unfit = field.values.UnfitFor(field.type);
    fields.push_back({{"name", field.name},
                      {"type", NameOf(field.type)},
                      {"rows", field.values.count() - unfit.count},
                      {"unfit_rows", unfit.count}});
    if (unfit.count > 0) fields.back()["first_unfit_row"] = unfit.first_row;
  }
  Json json = {{"path", path},
               {"kind", inspection.kind},
               {"loads", inspection.status.ok()},
               {"facts", std::move(facts)},
               {"fields", std::move(fields)},
               {"files", FilesJson(inspection.listing)},
               {"unread_files", inspection.listing.unread_files},
               {"notes", inspection.notes},
               {"left_out", inspection.left_out},
               {"unchecked", inspection.unchecked},
               {"error", nullptr}};
  if (inspection.status.ok() && !inspection.unchecked.empty()) json["loads"] = nullptr;
  if (!inspection.status.ok()) {
    json["error"] =
        ErrorObject(WithServersReason(inspection.status, base::ReasonOf(inspection.status)));
  }
  return JsonLine(json);
}

absl::StatusOr<data::Inspection> ReadAndCheck(const InspectFlags& flags, const Limits& limits) {
  if (flags.json)
    return data::InspectFile(*flags.path, limits, {.quick = flags.quick, .progress = {}});
  InspectProgress progress;
  return data::InspectFile(
      *flags.path, limits,
      {.quick = flags.quick,
       .progress = [&progress](const data::ReadProgress& read) { progress.Set(read); }});
}

// The memory that the collection takes on the CPU, as a fact.
data::InspectedFact MemoryFact(const engine::MemoryPlan& memory) {
  const auto whole = [](std::uint64_t number) {
    return PayloadValue{static_cast<std::int64_t>(number)};
  };
  const engine::ResidentBytes& bytes = memory.resident;
  return {"memory_bytes",
          PayloadValue{PayloadObject{{"total", whole(bytes.host())},
                                     {"vectors", whole(bytes.vectors)},
                                     {"payload", whole(bytes.payload)},
                                     {"users", whole(bytes.users)},
                                     {"index", whole(bytes.index)},
                                     {"load_peak", whole(memory.peak_bytes())}}},
          fmt::format("{} on the CPU (vectors {}, payload {}, users {}, index {}), {} while it is "
                      "loaded; `simile plan` has more",
                      base::BytesText(bytes.host()), base::BytesText(bytes.vectors),
                      base::BytesText(bytes.payload), base::BytesText(bytes.users),
                      base::BytesText(bytes.index), base::BytesText(memory.peak_bytes()))};
}

// Inspects the path. Adds the memory to a folder's facts, after its counts, if the memory can be
// planned. Errors: app::ReadConfig's; data::InspectFile's.
absl::StatusOr<data::Inspection> Inspect(const InspectFlags& flags) {
  const absl::StatusOr<app::ConfigReading> reading = ReadConfigFor(flags.config, {}, std::nullopt);
  if (!reading.ok()) return reading.status();
  const Limits& limits = reading->config.limits;
  absl::StatusOr<data::Inspection> inspection = ReadAndCheck(flags, limits);
  if (!inspection.ok() || !inspection->plan) return inspection;
  const absl::StatusOr<engine::DataBytes> data = engine::PlanData(*inspection->plan, limits);
  if (!data.ok()) return inspection;  // a file disappeared meanwhile; its status says which
  backend::cpu::Int8Options options = backend::cpu::OptionsFor("");
  options.threads = base::UsableCpuCount();
  const ResidentPlan index = backend::cpu::PlanInt8(
      options,
      {inspection->plan->row_count, inspection->plan->dim, inspection->plan->files.metric});
  const auto users = std::ranges::find(inspection->facts, "users", &data::InspectedFact::key);
  if (users == inspection->facts.end()) return inspection;
  inspection->facts.insert(std::next(users), MemoryFact(engine::PlanMemory(*data, index)));
  return inspection;
}

// Prints the facts to standard output, and the reason why the file would not load to standard
// error.
int RunInspect(const InspectFlags& flags) {
  const absl::StatusOr<data::Inspection> inspection = Inspect(flags);
  if (!inspection.ok()) return Fail(inspection.status(), flags.json);
  fmt::print("{}", flags.json ? InspectionJson(*flags.path, *inspection)
                              : InspectionText(*flags.path, *inspection, StandardOutput()));
  std::fflush(stdout);  // so that the error follows it
  if (!inspection->status.ok()) return Fail(inspection->status);
  std::error_code error;
  if (!flags.json && std::filesystem::is_directory(*flags.path, error)) {
    SuggestNext(fmt::format("simile serve --collection NAME={}", ShellWord(*flags.path)));
  }
  return kSucceeded;
}

}  // namespace

void AddInspectCommand(CommandLine& line) {
  auto flags = std::make_shared<InspectFlags>();
  Command command =
      line.Add("inspect", "Show what a file or folder holds and whether it would load");
  command
      .File("PATH", flags->path, "",
            "A .npy, .safetensors, .jsonl or .json file, or a collection's folder")
      .Required()
      .File("--config", flags->config, "FILE",
            "The server's settings, whose limits apply to the files (or SIMILE_CONFIG)")
      .Switch("--quick", flags->quick,
              "Read headers, sizes, names and a part of the payload, and say what was not checked")
      .Switch("--json", flags->json, "Print JSON for programs");
  command
      .Footer(
          "A folder is read as a load reads it, with every check, and nothing is kept. Needs no "
          "server.\nExit codes: 0 it would load, or --quick found nothing wrong; 1 it would not.")
      .Run([flags] { return RunInspect(*flags); });
}

}  // namespace simile::cli
