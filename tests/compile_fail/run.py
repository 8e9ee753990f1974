#!/usr/bin/env python3
"""Programs that must not compile, and the first error that each compiler must print for them.

usage: run.py SOURCE_DIR COMPILER

Each .cpp beside this script starts with `// expect g++: REGEX` and `// expect clang: REGEX`; the pattern must match the first
`error:` line. A control program, which differs in nothing but that it is right, must compile, and so must the programs of tests/api,
without a warning. The control includes all public headers; it and must_compile.cpp, which instantiates what they have, are compiled
under more warnings than this project's, those that a user's program may ask for.
"""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys

CONTROL = "burin::Tensor f(burin::Tensor x) { return x.at(0).set(burin::sqrt(x[0])); }\n"
USERS_WARNINGS = ["-Wshadow", "-Wconversion", "-Wsign-conversion"]


def control(root):
    headers = sorted(os.path.basename(path) for path in glob.glob(os.path.join(root, "frontend/burin/*.h")))
    headers.remove("xtensor.h")  # what it includes is not ours
    return "".join(f"#include <burin/{header}>\n" for header in headers) + CONTROL


def compile_text(compiler, root, text, warnings=()):
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", *warnings, "-Werror", "-I", root, "-I", os.path.join(root, "frontend"), "-x", "c++", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    return done.returncode, done.stderr


def check(compiler, root, path):
    with open(path) as source:
        text = source.read()
    expected = re.search(rf"// expect {'clang' if 'clang' in compiler else 'g[+][+]'}: (.*)", text)[1]
    status, output = compile_text(compiler, root, text)
    if status == 0:
        return "compiles"
    first = next((line for line in output.splitlines() if "error:" in line), output)
    return None if re.search(expected, first) else f"expected /{expected}/, found: {first}"


def main():
    root, compiler = sys.argv[1:]
    if not shutil.which(compiler):
        print(f"skipped: {compiler} is not installed")
        return 0
    failures = 0
    here = os.path.dirname(os.path.abspath(__file__))
    valid = {"the control program": control(root)}
    for path in sorted(glob.glob(os.path.join(here, "../api/*.cpp"))):
        with open(path) as source:
            valid[os.path.basename(path)] = source.read()
    paths = sorted(glob.glob(os.path.join(here, "*.cpp")))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        strict = {"the control program", "must_compile.cpp"}
        compiled = list(pool.map(lambda name: compile_text(compiler, root, valid[name], USERS_WARNINGS if name in strict else ()), valid))
        problems = list(pool.map(lambda path: check(compiler, root, path), paths))
    for name, (status, output) in zip(valid, compiled):
        if status != 0:
            print(f"FAIL {compiler}: {name} does not compile:\n{output}")
            failures += 1
    for path, problem in zip(paths, problems):
        print(f"{'FAIL' if problem else 'ok  '} {compiler} {os.path.basename(path)}{': ' + problem if problem else ''}")
        failures += problem is not None
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
