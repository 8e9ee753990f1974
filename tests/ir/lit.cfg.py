"""lit configuration of the pass tests: tests/ir/<pass>/*.ir, each with its RUN lines.

Run one folder with `lit -v -Dbuild=build/dev tests/ir/<pass>`. In RUN lines, %burin-opt, %burin-run and %burin-bench are the tools of that build
tree and %inputs the folder tests/ir/inputs. Features for REQUIRES and
UNSUPPORTED: llvm, avx2, avx512f, avx512_bf16, amx_bf16, sanitized.

A test that runs passes must also execute their input and output: it needs a RUN line with --check, or a line
`// NOT-EXECUTED: <reason>`.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pass_test

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
build = os.path.abspath(lit_config.params.get("build", os.path.join(root, "build", "dev")))
tool = os.path.join(build, "bin", "burin-opt")
if not os.access(tool, os.X_OK):
    lit_config.fatal(f"there is no {tool}; build it, or name another build tree with -Dbuild=DIR")


config.name = "ir"
config.test_format = pass_test.PassTest(execute_external=False)
config.suffixes = [".ir"]
config.excludes = ["inputs"]
config.test_source_root = os.path.join(root, "tests", "ir")
config.test_exec_root = os.path.join(build, "lit")
llvm_bin = os.environ.get("BURIN_LLVM_BIN", "/usr/lib/llvm-22/bin")
config.environment["PATH"] = os.pathsep.join([llvm_bin, os.path.join(build, "bin"), os.environ["PATH"]])
config.substitutions += [("%burin-opt", tool), ("%burin-run", os.path.join(build, "bin", "burin-run")),
                         ("%burin-bench", os.path.join(build, "bin", "burin-bench")),
                         ("%inputs", os.path.join(root, "tests", "ir", "inputs"))]

with open(os.path.join(build, "CMakeCache.txt")) as cache:
    settings = cache.read()
    if "BURIN_WITH_LLVM:BOOL=ON" in settings:
        config.available_features.add("llvm")
    if "-fsanitize=" in settings:
        config.available_features.add("sanitized")
if os.path.exists("/proc/cpuinfo"):
    with open("/proc/cpuinfo") as info:
        flags = next((line for line in info if line.startswith("flags")), "").split()
    config.available_features.update(set(flags) & {"avx2", "avx512f", "avx512_bf16", "amx_bf16"})
