#!/usr/bin/env python3
"""Breaks every rule once, in a tree of its own, and sees each named with its file, line and text."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_layers
import words

SCRIPT = pathlib.Path(__file__).with_name("check_layers.py")

# A small tree that keeps every rule, near misses included.
CLEAN = {
    "include/simile/row.h": '#pragma once\n#include <span>\n#include <absl/status/statusor.h>\n#include "simile/key.h"\n',
    "include/simile/key.h": "#pragma once\n#include <cstdint>\n",
    "kernels/row_norms.cu": '#include <cuda_runtime.h>\n#if __CUDA_ARCH__ >= 800\n#endif\n#include "kernels/device.h"\n#include "simile/row.h"\n',
    "kernels/device.h": "#include <cuda_runtime.h>\n#ifdef EMULATED_CUDA\n#endif\n",
    "tests/emulated_cuda/memory_test.cpp": "#include <cuda_fp16.h>\n#ifndef EMULATED_CUDA\n#endif\n",
    "tests/backend/cuda/workspace_test.cpp": "#include <cuda_runtime_api.h>\n",
    "tests/bench/gpu/scan_bench.cpp": "#include <cuda_runtime_api.h>\n",
    "src/observe/log.cpp": '#include <spdlog/spdlog.h>\n#include <prometheus/gauge.h>\n#include "observe/log.h"\n',
    "src/data/rows.h": """#pragma once
namespace simile::data {
class RowIndex;
enum class RowKind { kWhole, kPart };
inline constexpr int kRowsMax = 7;
class RowTable {
 public:
  int Total() const;
};
// Counts the rows; kRowsGone is no more.
int CountRows(const RowTable& table);
}  // namespace simile::data
""",
    "src/data/rows.cpp": """#include "data/rows.h"
namespace simile::data {
int RowTable::Total() const { return kRowsMax; }
int CountRows(const RowTable& table) {
  return table.Total();
}
}  // namespace simile::data
""",
    "src/service/total.cpp": """#include "data/rows.h"
int Sum(const Rows& rows) {
  if (rows.empty()) return CountRows(rows);
  Add(CountRows(rows), RowTable{});
  const int sum = CountRows(rows);
  CountRows(rows);
}
""",
    "tests/bench/rows.py": "def row_counts():\n    return []\n",
    "tests/data/rows_test.cpp": "TEST(RowsTest, CountsRows) {}\n",
    "src/data/jsonl.cpp": '#include "data/jsonl.h"\n#include "simile/row.h"\n',
    "src/backend/accelerator_kinds.cpp": '{"cuda", "libsimile_cuda.so", "libcublas.so"},\n',
    "src/backend/cuda/plugin.cpp": "#include <cublas_v2.h>\n#include \"kernels/row_norms.h\"\n",
    "src/backend/gpu_search.h": 'std::string description;  // "NVIDIA H200, CUDA 13.0"\n',
    "src/engine/queue/executor.cpp": '#include "simile/backend.h"\n#include "engine/search/batch.h"\n#include "filter/text_index.h"\n',
    "src/engine/search/batch.h": '#pragma once\n#include "engine/snapshots/snapshot.h"\n#include "data/load/dataset.h"\n',
    "src/engine/snapshots/snapshot.h": "#pragma once\n#include \"engine/snapshots/version.h\"\n",
    "src/service/search.cpp": '#include <grpcpp/grpcpp.h>\n#include "simile/v1/search.pb.h"\n#include "net/server.h"\n#include "engine/query/user.h"\n',
    "src/cli/serve.cpp": '#include <nlohmann/json.hpp>\n#include "app/config/config.h"\n#include "simile/v1/search.grpc.pb.h"\n',
    "tests/engine/executor_test.cpp": '#include "engine/fakes.h"\nTEST(ExecutorTest, AnswersWhenAsked) {}\n// no slee" "p_for here\n',
    "tests/cli/interrupt_test.cpp": "void F() { server_.kill(); kill(getpid(), SIGINT); }\n",
    "tests/integration/drive.py": "def kill(self): self.process.kill()\n",
    "tests/data/corpus/bad.py": "import time; time.slee" "p(1)\n",
    "docs/guide.md": "# The guide\nForbidden: -ffast" "-math. [Here](#the-guide), `[code](none.md)`\n```\n# no heading\n[code](none.md)\n```\n",
    "docs/design/note.md": "[A](../guide.md#the-guide) [B](../api.md) [C](https://example.org/x#y) [source](../../src/data/jsonl.cpp)\n"
                           "## `Limits` & more: [k](../api.md)\n## Twice\n## Twice\n[D](#limits--more-k) [E](#twice-1) [F](..)\n",
    "include/simile/limits.h": """#pragma once
inline constexpr std::uint32_t kHitsMax = 10'000;
struct Limits {
  std::uint32_t k_max = kHitsMax;  // not 20'000
  std::uint32_t filter_bytes_max = 8U << 10;
  std::uint64_t rows_max =
      0xffff'fff0U;
  std::chrono::milliseconds search_deadline_max{10'000};
};
inline constexpr double kNormMax = 0x1p60;
""",
    "proto/simile/v1/types.proto": """// `N (limits.NAME)` is the default of a limit in include/simile/limits.h.
// A call gets 10 s (limits.search_deadline_max) at most.
message SearchRequest {}
uint32 k = 1;       // 1..10,000 (limits.k_max) of 4294967280
                    // (limits.rows_max) rows
string filter = 2;  // 8 KiB (limits.filter_bytes_max); 8,192 bytes (limits.filter_bytes_max); not 8 ms, 9,000, 0.10000
""",
    "docs/api.md": "A search returns at most 10,000 hits (limits.k_max); 8192 is not named in a document.\n",
    "CMakeLists.txt": "add_library(x a.cpp)\nadd_compile_options(-ffp-contract=off)\n",
}

# rule: (file, its text, the line that breaks the rule)
BREAKS = {
    "layer-order": ("src/data/npy.cpp", '#include <span>\n#include "engine/queue/executor.h"\n', 2),
    "room-order": ("src/engine/snapshots/store.cpp", '\n#include "engine/queue/executor.h"\n', 2),
    "cuda-word": ("src/app/start_output.h", "\n// the version of CUDA\n", 2),
    "gpu-include": ("src/backend/registry.cpp", '#include "kernels/row_norms.h"\n', 1),
    "unknown-layer": ("src/shortcuts/search.cpp", "int answer;\n", 1),
    "include-form": ("src/data/npy.cpp", '#include "npy.h"\n', 1),
    "contract-include": ("include/simile/hits.h", "#pragma once\n#include <fmt/format.h>\n", 2),
    "engine-backend": ("src/engine/queue/fairness.cpp", '#include "backend/registry.h"\n', 1),
    "check-apart": ("src/cli/verify/sample.cpp", '#include "data/load/dataset.h"\n#include "filter/text_index.h"\n', 2),
    "cuda-header": ("src/engine/queue/fairness.cpp", "\n\n#include <cuda_runtime.h>\n", 3),
    "protobuf-header": ("src/engine/query/user.cpp", '#include "simile/v1/types.pb.h"\n', 1),
    "grpc-header": ("src/app/server.h", "#pragma once\n#include <grpcpp/server.h>\n", 2),
    "json-header": ("src/data/npy.cpp", "#include <nlohmann/json.hpp>\n", 1),
    "log-header": ("src/engine/queue/fairness.cpp", "#include <spdlog/spdlog.h>\n", 1),
    "metrics-header": ("src/service/reply.cpp", "#include <prometheus/counter.h>\n", 1),
    "file-name": ("src/data/file_uti" "ls.cpp", "int answer;\n", 1),
    "file-length": ("src/data/long.cpp", "int answer;\n" * 701, 701),
    "unfinished": ("src/data/npy.cpp", "int a;\n// TO" "DO: read version 3\n", 2),
    "inexact-arithmetic": ("CMakeLists.txt", "project(x)\nadd_compile_options(-ffast" "-math)\n", 2),
    "cuda-switch": ("src/app/wiring.cpp", "int a;\n#ifdef SIMILE_CUDA\n#endif\n", 2),
    "sleep-in-test": ("tests/engine/queue_test.cpp", "\nvoid F() { std::this_thread::sleep" "_for(ms); }\n", 2),
    "signal-to-group": ("tests/app/signals_test.cpp", "\nvoid F(int pid) { kil" "l(pid, SIGKILL); }\n", 2),
    "shared-temporary-name": ("tests/app/signals_test.cpp", "\nauto path = testing::TempD" "ir() + \"a.json\";\n", 2),
    "test-name": ("tests/engine/queue_test.cpp", "TEST(Queue, works_well) {}\n", 1),
    "limit-value": ("proto/simile/v1/search.proto", "uint32 k = 1;  // 1..20,000 (limits.k_max)\n", 1),
    "limit-name": ("proto/simile/v1/search.proto", "\nuint32 k = 1;  // 1..10,000\n", 2),
    "broken-link": ("docs/filters.md", "# Filters\n[here](#filters) and [nowhere](guide.md#limits)\n", 2),
    "source-glob": ("src/data/CMakeLists.txt", "file(GLO" "B sources *.cpp)\n", 1),
    "python-syntax": ("tests/bench/drive.py", "import os\nos.path . exists(if\n", 2),
    "file-link": ("docs/filters.md", "# Filters\n[`npy.cpp`](../src/data/jsonl.cpp)\n", 2),
}

# A document, what it says of the code in CLEAN, and what is found.
SYMBOLS = (
    ("docs/hacking.md", "[`CountRows`](../src/engine/queue/executor.cpp) counts",
     "symbol-link: CountRows is not declared in src/engine/queue/executor.cpp; today it is in: src/data/rows.cpp, src/data/rows.h"),
    ("docs/api.md", "[`RowTable::Total`](../src/data/jsonl.cpp)",
     "symbol-link: RowTable::Total is not declared in src/data/jsonl.cpp; today it is in: src/data/rows.cpp, src/data/rows.h"),
    ("docs/api.md", "[`RowTable::CountRows`](../src/data/rows.h)",
     "symbol-link: RowTable::CountRows is not declared in src/data/rows.h; today it is in: nowhere"),
    ("docs/api.md", "[`kRowsGone`](../src/data/rows.h)",
     "symbol-link: kRowsGone is not declared in src/data/rows.h; today it is in: nowhere"),
    ("docs/api.md", "what `CountColumns` counts", "unknown-symbol: CountColumns: the tree has no CountColumns"),
    ("docs/design/note.md", "what `RowTable` is", "unlinked-symbol: RowTable is in: src/data/rows.h"),
)
# What a document may say of the code in CLEAN.
LINKED = """[`CountRows`](../src/data/rows.cpp), [`CountRows`](../src/data/rows.h), [`RowTable::Total`](../src/data/rows.cpp),
[`RowTable`](../src/data/rows.h), [`kRowsMax`](../src/data/rows.h), [`RowKind`](../src/data/rows.h), [`kWhole`](../src/data/rows.h),
[`row_counts`](../tests/bench/rows.py), [`RowsTest`](../tests/data/rows_test.cpp), [`rows.{h,cpp}`](../src/data/rows.h),
[`tests/bench`](../tests/bench/rows.py), [`SearchRequest`](../proto/simile/v1/types.proto), `CountRows`, `RowTable`, `rows.cpp`
"""

# Further ways to break a rule that one example does not show.
MORE_BREAKS = (
    ("layer-order", "src/app/wiring.cpp", '#include "cli/table.h"\n', 1),
    ("layer-order", "include/simile/hits.h", '#include "observe/log.h"\n', 1),
    ("layer-order", "src/engine/query/user.cpp", '#include "net/server.h"\n', 1),
    ("layer-order", "src/net/server.cpp", '#include "engine/query/user.h"\n', 1),
    ("layer-order", "src/data/npy.cpp", '#include "certificate/quantizer.h"\n', 1),
    ("layer-order", "src/backend/scan.cpp", '#include "filter/row_set.h"\n', 1),
    ("layer-order", "src/filter/parser.cpp", '#include "backend/registry.h"\n', 1),
    ("layer-order", "src/base/utf8.cpp", '#include "observe/log.h"\n', 1),
    ("layer-order", "src/service/reply.cpp", '#include "app/config/config.h"\n', 1),
    ("layer-order", "kernels/row_norms.cu", '#include "observe/log.h"\n', 1),
    ("layer-order", "kernels/row_norms.h", '#include "certificate/device_bounds.h"\n', 1),
    ("gpu-include", "include/simile/hits.h", '#include "kernels/device.h"\n', 1),
    ("room-order", "src/engine/search/batch.cpp", '#include "engine/queue/executor.h"\n', 1),
    ("room-order", "src/engine/snapshots/store.cpp", '#include "engine/search/batch.h"\n', 1),
    ("cuda-word", "src/backend/failover.h", "int cuda_error;\n", 1),
    ("cuda-word", "src/observe/metrics.cpp", "CountCudaError(code);\n", 1),
    ("cuda-word", "src/backend/gpu_search.cpp", 'Describe("CUDA 13.0");\n', 1),
    ("cuda-word", "src/backend/gpu_options.h", "int blas_bytes;  // cuBLAS's own\n", 1),
    ("cuda-switch", "src/backend/registry.cpp", "#ifdef SIMILE_BUILD_CUDA\n#endif\n", 1),
    ("gpu-include", "src/backend/failover.cpp", '#include "backend/cuda/plugin.h"\n', 1),
    ("gpu-include", "src/backend/cpu/scan.cpp", '#include "kernels/row_norms.h"\n', 1),
    ("unknown-layer", "src/engine/executor.cpp", "int answer;\n", 1),
    ("unknown-layer", "src/engine/batches/executor.cpp", "int answer;\n", 1),
    ("include-form", "src/app/wiring.cpp", "#include <engine/executor.h>\n", 1),
    ("cuda-header", "tests/backend/registry_test.cpp", "#include <cuda_runtime_api.h>\n", 1),
    ("cuda-switch", "kernels/convert_to_fp16.cu", "#ifdef EMULATED_CUDA\n#endif\n", 1),
    ("cuda-switch", "src/backend/cuda/plugin.cpp", "\n#ifndef EMULATED_CUDA\n#endif\n", 2),
    ("file-name", "src/data/NpyReader.cpp", "int answer;\n", 1),
    ("inexact-arithmetic", "src/backend/cpu/worker.cpp", "\n_MM_SET_FLUSH" "_ZERO_MODE(1);\n", 2),
    ("inexact-arithmetic", "src/backend/cpu/worker.cpp", "\nasm volatile(\"msr fp" "cr, %0\" : : \"r\"(bits));\n", 2),
    ("limit-value", "proto/simile/v1/search.proto", "uint32 a = 1;  // at most 10,000 (limits.page_max)\n", 1),
    ("limit-value", "proto/simile/v1/search.proto", "uint32 a = 1;  // at most limits.page_max\n", 1),
    ("limit-value", "proto/simile/v1/search.proto", "// up to 9 KiB (limits.filter_bytes_max)\n", 1),
    ("limit-value", "proto/simile/v1/search.proto", "// up to 10,000\n// bytes (limits.search_deadline_max)\n", 2),
    ("limit-value", "proto/simile/v1/search.proto", "// after 9 s (limits.search_deadline_max)\n", 1),
    ("limit-value", "proto/simile/v1/search.proto", "// up to 10,000 s (limits.k_max)\n", 1),
    ("limit-value", "docs/api.md", "A filter is at most 9 KiB (limits.filter_bytes_max).\n", 1),
    ("limit-name", "proto/simile/v1/search.proto", "// offset + k <= 10,000, and 10,000 (limits.k_max)\n", 1),
    ("limit-name", "proto/simile/v1/search.proto", "// at most 8 KiB\n", 1),
    ("limit-name", "proto/simile/v1/search.proto", "// at most 8192 bytes\n", 1),
    ("limit-name", "proto/simile/v1/search.proto", "// after 10,000 ms\n", 1),
    ("broken-link", "docs/filters.md", "[a file](none.md)\n", 1),
    ("broken-link", "docs/design/filters.md", "```\n[x](none.md)\n```\n![a drawing](../none.png)\n", 4),
    ("broken-link", "README.md", "# Simile\n[twice](#simile-1)\n", 2),
    ("sleep-in-test", "tests/integration/drive.py", "import time\ntime.slee" "p(1)\n", 2),
    ("sleep-in-test", "tests/integration/drive.sh", "slee" "p 1\n", 1),
    ("signal-to-group", "tests/integration/drive.cpp", "::kil" "lpg(group_, SIGHUP);\n", 1),
    ("signal-to-group", "tests/integration/drive.py", "import os\nos.kil" "l(pid, 9)\n", 2),
    ("shared-temporary-name", "tests/integration/drive.py", "path = '/tm" "p/answers.json'\n", 1),
)

# For each entry of words.py a line that uses its word, and one that nearly does and is allowed.
WORDS = (
    ("docs/guide.md", "The ro" "ad of a query", "a broad roadmap"),
    ("src/data/npy.cpp", "int free_ro" "om;", "int mushrooms;"),
    ("src/data/npy.cpp", "class Stand" "In;", "use one instead of the other"),
    ("docs/guide.md", "It has no pati" "ence.", "an impatient caller"),
    ("src/engine/search/batch.cpp", "int kQues" "tions;", "a questionable row"),
    ("src/engine/search/batch.cpp", "struct As" "k {", "Ask the server."),
    ("kernels/norms.h", "void ToHal" "ves();", "on behalf of half the rows"),
    ("src/certificate/codes.h", "int Nib" "ble;", "a nib"),
    ("src/certificate/codes.h", "// the surv" "ivors", "// the rows that survive"),
    ("src/certificate/codes.h", "// the ver" "dict", "// a judgement"),
    ("src/data/npy.cpp", "// the wor" "ding of a message", "// rewording a message"),
    ("src/cli/table.cpp", "std::string sho" "wn_;", "// is shown below"),
    ("src/engine/queue/executor.cpp", "int unt" "old;", "// callers that are told"),
    ("src/engine/queue/executor.cpp", "int Ta" "ke();", "int Overtake();"),
    ("docs/guide.md", "Who" "ever asks is answered.", "as every reader knows"),
    ("docs/guide.md", "What sta" "nds in a row", "k stands for the number of hits"),
    ("docs/guide.md", "hol" "ds this against that", "holds rows; checks them against limits"),
    ("src/engine/query/user.cpp", "int fall" "back;", "int fallen_back;"),
    ("docs/guide.md", "The bat" "cher waits.", "a batch"),
)

# For each entry of words.SENTENCES a document that uses its phrase, the line of the phrase, and a document that may say what it says.
SENTENCES = (
    ("so many", "After so ma" "ny rows it ends.", 1, "There are so many that it ends."),
    ("as many again", "It holds as\nma" "ny bytes ag" "ain.", 1, "as many as before, again"),
    ("each of which", "There are rows, ea" "ch of which counts.", 1, "Each of the rows counts."),
    ("of which", "There are rows,\nof wh" "ich one counts.", 2, "One of the rows, which counts."),
    ("those that", "Only tho" "se that pass.", 1, "Only the rows that pass, in those collections."),
    ("such of", "Su" "ch of large rows.", 1, "Such a row."),
    ("than the others", "longer than the oth" "ers", 1, "The others' rows; the others wait."),
)


class CheckLayersTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for path, text in CLEAN.items():
            self.write(path, text)

    def write(self, path: str, text: str):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def run_script(self) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root], capture_output=True, text=True, check=False)

    def expect_named(self, rule: str, path: str, text: str, line: int):
        before = (self.root / path).read_text(encoding="utf-8") if (self.root / path).exists() else None
        self.write(path, text)
        result = self.run_script()
        offending = text.splitlines()[line - 1].strip()
        self.assertIn(f"{path}:{line}: {rule}: {offending}\n", result.stdout)
        self.assertEqual(result.returncode, 1)
        if before is None:
            (self.root / path).unlink()
        else:
            self.write(path, before)

    def test_passes_when_the_tree_is_clean(self):
        result = self.run_script()
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn(" 0 breaks\n", result.stdout)

    def test_fails_when_there_is_nothing_to_check(self):
        with tempfile.TemporaryDirectory() as empty:
            result = subprocess.run([sys.executable, SCRIPT, "--root", empty], capture_output=True, check=False)
        self.assertEqual(result.returncode, 1)

    def test_names_every_rule_when_broken_once(self):
        elsewhere = {"plain-words", "plain-sentences"} | {finding.split(":")[0] for _, _, finding in SYMBOLS}
        self.assertEqual(set(BREAKS) | elsewhere, set(check_layers.RULES), "every rule has its break here")
        for rule, (path, text, line) in BREAKS.items():
            with self.subTest(rule=rule):
                self.expect_named(rule, path, text, line)

    def test_names_the_rule_when_broken_otherwise(self):
        for rule, path, text, line in MORE_BREAKS:
            with self.subTest(rule=rule, text=text):
                self.expect_named(rule, path, text, line)

    def test_names_every_word_and_what_to_write_when_used(self):
        found = set()
        for path, used, _ in WORDS:
            self.write(path, f"\n{used}\n")
            result = self.run_script()
            (self.root / path).unlink()
            with self.subTest(used=used):
                lines = [line for line in result.stdout.splitlines() if line.startswith(f"{path}:2: plain-words (write: ")]
                self.assertTrue(lines, result.stdout)
                self.assertTrue(all(line.endswith(f"): {used}") for line in lines), result.stdout)
            found |= {entry.instead for entry in words.WORDS if any(f"(write: {entry.instead})" in line for line in lines)}
        self.assertEqual(found, {entry.instead for entry in words.WORDS}, "every entry of words.py has its line here")

    def test_passes_when_a_word_is_only_nearly_used(self):
        for path, _, allowed in WORDS:
            file = self.root / path
            before = file.read_text(encoding="utf-8") if file.exists() else ""
            self.write(path, f"{before}{allowed}\n")
        result = self.run_script()
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_finds_each_name_of_code_that_is_not_where_a_document_says(self):
        for path, text, finding in SYMBOLS:
            before = (self.root / path).read_text(encoding="utf-8") if (self.root / path).exists() else ""
            self.write(path, f"{before}\n{text}\n")
            line = before.count("\n") + 2
            result = self.run_script()
            with self.subTest(text=text):
                self.assertIn(f"{path}:{line}: {finding}\n", result.stdout)
                self.assertEqual(result.returncode, 1)
            self.write(path, before)

    def test_passes_when_names_of_code_are_where_documents_say(self):
        self.write("docs/hacking.md", LINKED)
        result = self.run_script()
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_names_every_phrase_that_leaves_out_a_noun(self):
        self.assertEqual({name for name, *_ in SENTENCES}, set(words.SENTENCES), "every entry of words.py has its line here")
        for name, used, line, allowed in SENTENCES:
            self.write("docs/cards.md", f"{used}\n```\n{used}\n```\n")
            broken = self.run_script()
            self.write("docs/cards.md", f"{allowed}\n")
            passed = self.run_script()
            with self.subTest(name=name):
                found = [row for row in broken.stdout.splitlines() if "plain-sentences" in row]
                self.assertEqual(len(found), 1, broken.stdout)
                self.assertTrue(found[0].startswith(f"docs/cards.md:{line}: plain-sentences ({name}; write: "), found)
                self.assertEqual(passed.returncode, 0, passed.stdout)

    def test_names_a_phrase_in_a_comment(self):
        self.write("src/data/phrase.h", f"#pragma once\n// {SENTENCES[0][1]}\n")
        result = self.run_script()
        self.assertEqual(result.returncode, 1)
        self.assertIn("src/data/phrase.h:2: plain-sentences (so many; write: ", result.stdout)

    def test_prints_the_order_and_every_rule_when_asked_for_the_list(self):
        result = subprocess.run([sys.executable, SCRIPT, "--list"], capture_output=True, text=True, check=True)
        self.assertIn("cli > app > service > { net | engine | doctor } > { backend | filter } > { data | certificate } > "
                      "observe > base > include/simile\n", result.stdout)
        self.assertIn("backend/cuda > kernels > include/simile\n", result.stdout)
        for rule in check_layers.RULES:
            self.assertIn(f"\n{rule} ", result.stdout)


if __name__ == "__main__":
    unittest.main()
