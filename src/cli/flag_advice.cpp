#include "cli/flag_advice.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "cli/command_line.h"
#include "cli/display_text.h"

namespace simile::cli {
namespace {

// The first name of a row is ours; the others are what users of other tools type for it. A command
// that has the first flag offers it for the others that it does not have.
constexpr std::string_view kSameFlags[] = {
    "-k --limit --top-k --topk --top --k --count --n -n --num --results --n-results --num-results",
    "-k --max-results --size --max --hits",
    "--limit -k --top-k --topk --top --k --count --n -n --num --results --max-results --size --max",
    "--values --limit --count --top -k -n",
    "--samples --queries --count --limit -n -k",
    "--json --output --format --output-format --out-format --as-json -o -j",
    "--server --host --hostname --address --addr --url --uri --endpoint --target --connect --port",
    "--server -s -H -a -p",
    "--listen --host --hostname --bind --address --addr --interface --bind-address -H",
    "--port --listen-port --grpc-port -p",
    "--title --name --text --query --q --search --movie --film -t -q",
    "--items-of --of --source --from-collection --query-collection --lookup-from",
    "--collection --index --table --dataset --collection-name --name --db --database --namespace",
    "--collection --data --folder --dir --directory --path --model --load -c",
    "--id --ids --item --items --item-id --item-ids --media-id --key --similar-to -i",
    "--vector --vectors --query --embedding --embeddings --query-vector --file --input -v -f -i",
    "--user --users --user-id --user-ids --uid --for -u",
    "--exclude --exclude-id --exclude-ids --exclude-items --ignore --except --not --without",
    "--exclude-seen --skip-seen --hide-seen --unseen --no-seen --filter-seen --ignore-seen",
    "--fields --field --columns --select --payload --with-payload --include --output-fields",
    "--payload --fields --with-payload --columns --select",
    "--field --column --by --fields",
    "--filter --where --condition --query-filter --filters --expr -f -w",
    "--score-threshold --threshold --min-score --minimum-score --score-min --cutoff --min",
    "--offset --skip --start --from",
    "--like --positive --plus",
    "--unlike --negative --dislike --minus --not-like",
    "--group-by --group --groupby --by",
    "--group-size --per-group",
    "--diversity --mmr --lambda --mmr-lambda --diversify",
    "--candidates --fetch-k --mmr-candidates",
    "--cold-start --fallback --default",
    "--cold-start-field --fallback-field",
    "--user-weight --alpha --blend --weight",
    "--with-vectors --vectors --with-vector --vector --embeddings",
    "--with-rows --rows --with-row --row",
    "--timeout --deadline --wait --max-time --timeout-ms --timeout-s -w -T",
    "--page-token --cursor --next --page --token",
    "--paged --paginate --pages --paging",
    "--expect-snapshot --snapshot --snapshot-id --version",
    "--allow-changes --writable --allow-writes --write --mutable",
    "--allow-admin --admin --stats --enable-admin",
    "--allow-shape-change --force -f",
    "--data-root --root --data-dir --root-dir",
    "--backend --device --gpu --cpu --use-gpu --engine",
    "--gpu-device --device-id --gpu-id",
    "--card --device --gpu --gpu-name",
    "--threads --workers --num-threads --jobs --cores --parallel -t -j",
    "--log-level --verbose --loglevel --debug --quiet --verbosity -v -q",
    "--no-metrics --disable-metrics --without-metrics",
    "--metrics-port --prometheus-port",
    "--config --config-file --settings --conf",
    "--in-flight --concurrency --parallel --outstanding --clients -c",
    "--duration --time --seconds --for --length -d -t",
    "--rate --qps --rps --requests-per-second -r",
    "--warm-up --warmup",
    "--batch --batch-size -b",
    "--folder --dir --directory --path --files --data",
    "--liveness --live --alive",
    "--tls-certificate --tls-cert --tls-crt --ssl-cert --ssl-certificate --certificate --cert",
    "--tls-key --ssl-key --private-key --tls-private-key --key",
    "--tls-client-ca --client-ca --ssl-ca --ca",
};

constexpr std::string_view kSameCommands[] = {
    "serve start run server up",
    "similar like neighbors neighbours nearest related",
    "search query knn ann",
    "recommend recommendations suggest user",
    "lookup find title",
    "fetch get show item items retrieve",
    "fields schema describe columns payload",
    "list ls collections",
    "load add create import insert upload index ingest",
    "reload refresh update replace",
    "rollback undo revert",
    "unload delete drop remove rm",
    "health status ping ready check",
    "info about stats",
    "inspect validate lint",
    "verify test compare",
    "bench benchmark perf",
    "tune calibrate autotune optimize optimise",
    "config settings configuration configure",
    "man manual",
    "completion completions autocomplete",
};

// A flag that a command lacks because its purpose is met elsewhere.
struct FlagElsewhere {
  std::string_view command;
  std::string_view names;
  std::string_view advice;  // VALUE stands for the flag's value
};

constexpr FlagElsewhere kFlagsElsewhere[] = {
    {"serve", "--metric --distance --similarity",
     "the metric is set in FOLDER/collection.json: {\"metric\": VALUE}"},
    {"search", "--id --ids --item --items --item-id --item-ids -i",
     "say simile similar --id VALUE"},
    {"search", "--title --name --text --query --q", "say simile similar --title VALUE"},
    {"search", "--user --users --user-id --user-ids --uid -u", "say simile recommend --user VALUE"},
    {"similar", "--exclude-seen --skip-seen --hide-seen --unseen",
     "items have seen nothing; say simile recommend --user ID --exclude-seen"},
    {"similar", "--user --users --user-id --user-ids --uid -u",
     "say simile recommend --user VALUE"},
    {"recommend", "--id --ids --item --items --item-id --item-ids -i",
     "say --like VALUE, or simile similar --id VALUE"},
};

// The files that hold vectors.
constexpr std::string_view kVectorFileEndings[] = {".npy", ".json", ".safetensors"};

bool HasWord(std::string_view row, std::string_view word) {
  for (std::size_t at = row.find(word); at != std::string_view::npos; at = row.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || row[at - 1] == ' ') && (end == row.size() || row[end] == ' ')) return true;
  }
  return false;
}

// The known name that means the same; empty for none.
std::string SameMeaning(std::span<const std::string_view> rows, const std::string& name,
                        std::span<const std::string> known) {
  for (const std::string_view row : rows) {
    std::string ours(row.substr(0, row.find(' ')));
    if (HasWord(row, name) && std::ranges::find(known, ours) != known.end()) return ours;
  }
  return "";
}

// `say simile recommend --user u`; empty for a flag that is not met elsewhere.
std::string ElsewhereAdvice(const std::string& command, const std::string& name,
                            const std::optional<std::string>& value) {
  for (const FlagElsewhere& flag : kFlagsElsewhere) {
    if (flag.command != command || !HasWord(flag.names, name)) continue;
    constexpr std::string_view kPlaceholder = "VALUE";
    const bool in_json = flag.advice.ends_with('}');
    const std::string given =
        in_json ? base::Quoted(value.value_or("dot")) : ShellWord(value.value_or("ID"));
    std::string advice(flag.advice);
    for (std::size_t at = advice.find(kPlaceholder); at != std::string::npos;
         at = advice.find(kPlaceholder, at + given.size())) {
      advice.replace(at, kPlaceholder.size(), given);
    }
    return advice;
  }
  return "";
}

bool NamesVectorFile(const std::string& text) {
  std::error_code error;
  return std::filesystem::exists(text, error) ||
         std::ranges::any_of(kVectorFileEndings,
                             [&](std::string_view ending) { return text.ends_with(ending); });
}

}  // namespace

absl::Status UnknownFlag(const CommandSpec& command, const std::string& name,
                         const std::optional<std::string>& value) {
  const std::vector<std::string> known = FlagNamesOf(command);
  const std::string message = fmt::format("{} has no flag {}", command.name, base::Quoted(name));
  if (const std::string advice = ElsewhereAdvice(command.name, name, value); !advice.empty()) {
    return absl::InvalidArgumentError(fmt::format("{}; {}", message, advice));
  }
  const Argument* meant = FindArgument(command, SameMeaning(kSameFlags, name, known));
  if (meant != nullptr) {
    return absl::InvalidArgumentError(fmt::format("{}; say {}", message, FlagText(*meant)));
  }
  const std::string offer = base::DidYouMean(base::NearestName(name, known));
  return absl::InvalidArgumentError(offer.empty() ? message : fmt::format("{}.{}", message, offer));
}

absl::Status UnknownCommand(const ProgramSpec& program, const std::string& name) {
  const std::vector<std::string> known = CommandNames(program);
  if (name == "import" || name == "export") {
    return absl::InvalidArgumentError(fmt::format(
        "{} is a command of the Python package simile-search, which is not installed here or comes "
        "later on the PATH: python3 -m simile_search {}",
        base::Quoted(name), name));
  }
  const std::string same = SameMeaning(kSameCommands, name, known);
  const std::string offer = base::DidYouMean(same.empty() ? base::NearestName(name, known) : same);
  return absl::InvalidArgumentError(
      fmt::format("no command {}{}", base::Quoted(name),
                  offer.empty() ? fmt::format("; `{} --help` lists them", program.name)
                                : fmt::format(".{}", offer)));
}

absl::Status FlagBeforeCommand(const ProgramSpec& program, const std::vector<std::string>& texts) {
  const std::string name = texts.front().substr(0, texts.front().find('='));
  for (const std::string& text : texts) {
    const CommandSpec* command = FindCommand(program, text);
    const Argument* flag = command == nullptr ? nullptr : FindArgument(*command, name);
    if (flag == nullptr) continue;
    return absl::InvalidArgumentError(fmt::format("{} comes after the command: {} {} {}", name,
                                                  program.name, command->name, FlagText(*flag)));
  }
  const std::vector<std::string> known{kHelpFlag, "--version"};
  constexpr std::string_view kSameAsVersion[] = {"--version -v -V -version --about"};
  const std::string same = SameMeaning(kSameAsVersion, name, known);
  const std::string offer = base::DidYouMean(same.empty() ? base::NearestName(name, known) : same);
  return absl::InvalidArgumentError(
      fmt::format("{} has no flag {} before a command{}", program.name, base::Quoted(name),
                  offer.empty() ? fmt::format("; `{} --help` lists the commands", program.name)
                                : fmt::format(".{}", offer)));
}

std::string AwaitedAdvice(const Argument& flag, const std::string& text) {
  if (flag.name == "--vector" && !NamesVectorFile(text)) {
    return fmt::format("This takes vectors; `simile lookup {}` finds items by words.",
                       ShellWord(text));
  }
  return fmt::format("Did you mean {}?", flag.values == Values::kList
                                             ? ListFlag(flag.name, text)
                                             : fmt::format("{} {}", flag.name, ShellWord(text)));
}

}  // namespace simile::cli
