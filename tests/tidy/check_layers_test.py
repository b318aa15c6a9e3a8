#!/usr/bin/env python3
"""Breaks every rule once, in a tree of its own, and sees each named with its file, line and text."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_layers

SCRIPT = pathlib.Path(__file__).with_name("check_layers.py")

# A small tree that keeps every rule, near misses included.
CLEAN = {
    "include/simile/row.h": '#pragma once\n#include <span>\n#include <absl/status/statusor.h>\n#include "simile/key.h"\n',
    "include/simile/key.h": "#pragma once\n#include <cstdint>\n",
    "kernels/row_norms.cu": '#include <cuda_runtime.h>\n#if __CUDA_ARCH__ >= 800\n#endif\n#include "observe/log.h"\n',
    "kernels/device.h": "#include <cuda_runtime.h>\n#ifdef EMULATED_CUDA\n#endif\n",
    "tests/emulated_cuda/memory_test.cpp": "#include <cuda_fp16.h>\n#ifndef EMULATED_CUDA\n#endif\n",
    "tests/backend/cuda/workspace_test.cpp": "#include <cuda_runtime_api.h>\n",
    "tests/bench/gpu/scan_bench.cpp": "#include <cuda_runtime_api.h>\n",
    "src/observe/log.cpp": '#include <spdlog/spdlog.h>\n#include <prometheus/gauge.h>\n#include "observe/log.h"\n',
    "src/data/jsonl.cpp": '#include "data/jsonl.h"\n#include "simile/row.h"\n',
    "src/backend/registry.cpp": "#ifdef SIMILE_BUILD_CUDA\n#endif\n",
    "src/backend/cuda/plugin.cpp": "#include <cublas_v2.h>\n#include \"kernels/row_norms.h\"\n",
    "src/engine/executor.cpp": '#include "simile/backend.h"\n#include "filter/text_index.h"\n',
    "src/service/search.cpp": '#include <grpcpp/grpcpp.h>\n#include "simile/v1/search.pb.h"\n#include "engine/executor.h"\n',
    "src/cli/serve.cpp": '#include <nlohmann/json.hpp>\n#include "app/config.h"\n#include "simile/v1/search.grpc.pb.h"\n',
    "tests/engine/executor_test.cpp": '#include "engine/fakes.h"\nTEST(ExecutorTest, AnswersWhenAsked) {}\n// no slee" "p_for here\n',
    "tests/data/corpus/bad.py": "import time; time.slee" "p(1)\n",
    "docs/guide.md": "Forbidden: -ffast" "-math.\n",
    "CMakeLists.txt": "add_library(x a.cpp)\nadd_compile_options(-ffp-contract=off)\n",
}

# rule: (file, its text, the line that breaks the rule)
BREAKS = {
    "layer-order": ("src/data/npy.cpp", '#include <span>\n#include "engine/executor.h"\n', 2),
    "unknown-layer": ("src/shortcuts/search.cpp", "int answer;\n", 1),
    "include-form": ("src/data/npy.cpp", '#include "npy.h"\n', 1),
    "contract-include": ("include/simile/hits.h", "#pragma once\n#include <fmt/format.h>\n", 2),
    "engine-backend": ("src/engine/queue.cpp", '#include "backend/registry.h"\n', 1),
    "cuda-header": ("src/engine/queue.cpp", "\n\n#include <cuda_runtime.h>\n", 3),
    "protobuf-header": ("src/recommend/user.cpp", '#include "simile/v1/types.pb.h"\n', 1),
    "grpc-header": ("src/app/server.h", "#pragma once\n#include <grpcpp/server.h>\n", 2),
    "json-header": ("src/data/npy.cpp", "#include <nlohmann/json.hpp>\n", 1),
    "log-header": ("src/engine/queue.cpp", "#include <spdlog/spdlog.h>\n", 1),
    "metrics-header": ("src/service/reply.cpp", "#include <prometheus/counter.h>\n", 1),
    "file-name": ("src/data/file_uti" "ls.cpp", "int answer;\n", 1),
    "file-length": ("src/data/long.cpp", "int answer;\n" * 701, 701),
    "unfinished": ("src/data/npy.cpp", "int a;\n// TO" "DO: read version 3\n", 2),
    "inexact-arithmetic": ("CMakeLists.txt", "project(x)\nadd_compile_options(-ffast" "-math)\n", 2),
    "cuda-switch": ("src/app/wiring.cpp", "int a;\n#ifdef SIMILE_CUDA\n#endif\n", 2),
    "sleep-in-test": ("tests/engine/queue_test.cpp", "\nvoid F() { std::this_thread::sleep" "_for(ms); }\n", 2),
    "test-name": ("tests/engine/queue_test.cpp", "TEST(Queue, works_well) {}\n", 1),
    "source-glob": ("src/data/CMakeLists.txt", "file(GLO" "B sources *.cpp)\n", 1),
}

# Further ways to break a rule that one example does not show.
MORE_BREAKS = (
    ("layer-order", "src/data/npy.cpp", '#include "certificate/canonical_score.h"\n', 1),
    ("layer-order", "src/app/wiring.cpp", '#include "cli/table.h"\n', 1),
    ("layer-order", "include/simile/hits.h", '#include "observe/log.h"\n', 1),
    ("include-form", "src/app/wiring.cpp", "#include <engine/executor.h>\n", 1),
    ("cuda-header", "tests/backend/registry_test.cpp", "#include <cuda_runtime_api.h>\n", 1),
    ("cuda-switch", "kernels/halve.cu", "#ifdef EMULATED_CUDA\n#endif\n", 1),
    ("cuda-switch", "src/backend/cuda/plugin.cpp", "\n#ifndef EMULATED_CUDA\n#endif\n", 2),
    ("file-name", "src/data/NpyReader.cpp", "int answer;\n", 1),
    ("inexact-arithmetic", "src/backend/cpu/worker.cpp", "\n_MM_SET_FLUSH" "_ZERO_MODE(1);\n", 2),
    ("sleep-in-test", "tests/integration/drive.py", "import time\ntime.slee" "p(1)\n", 2),
    ("sleep-in-test", "tests/integration/drive.sh", "slee" "p 1\n", 1),
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
        self.assertEqual(set(BREAKS), set(check_layers.RULES), "every rule has its break here")
        for rule, (path, text, line) in BREAKS.items():
            with self.subTest(rule=rule):
                self.expect_named(rule, path, text, line)

    def test_names_the_rule_when_broken_otherwise(self):
        for rule, path, text, line in MORE_BREAKS:
            with self.subTest(rule=rule, text=text):
                self.expect_named(rule, path, text, line)


if __name__ == "__main__":
    unittest.main()
