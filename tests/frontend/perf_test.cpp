// BURIN_PERF: what a process leaves for perf, in processes of their own, as perf finds it.
#include "frontend/perf.h"

#include <burin/burin.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "passes/pipeline.h"
#include "tests/frontend/traced_step.h"
#include "tests/support/assembly.h"
#include "tests/support/errors.h"
#include "tests/support/machine.h"
#include "tests/support/temporary_folder.h"

#if BURIN_WITH_LLVM
#include "codegen/codegen.h"
#endif

namespace burin {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Reads perf's jitdump format, whose description is jitdump-specification.txt of Linux' tools/perf.
struct Dump {
  struct Line {
    std::uint64_t address = 0;
    std::uint32_t number = 0;
    std::string file;
  };
  struct Code {
    std::string name;
    std::uint64_t address = 0, size = 0;
    std::string bytes;
    std::vector<Line> lines;
  };
  explicit Dump(const std::string& text) : bytes_(text) {
    EXPECT_EQ(take<std::uint32_t>(), 0x4A695444u);  // "JiTD"
    EXPECT_EQ(take<std::uint32_t>(), 1u);
    const auto header = take<std::uint32_t>();
    machine = take<std::uint32_t>();
    take<std::uint32_t>();
    process = take<std::uint32_t>();
    for (at_ = header; at_ < bytes_.size();) record();
  }
  std::uint32_t machine = 0, process = 0;
  std::vector<Code> codes;

 private:
  template <class T>
  T take() {
    T value{};
    EXPECT_LE(at_ + sizeof value, bytes_.size());
    if (at_ + sizeof value <= bytes_.size()) std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string take_text() {
    const std::size_t end = bytes_.find('\0', at_);
    std::string text = bytes_.substr(at_, end - at_);
    at_ = end == std::string::npos ? bytes_.size() : end + 1;
    return text;
  }
  void record() {
    const std::size_t start = at_;
    const auto kind = take<std::uint32_t>();
    const auto size = take<std::uint32_t>();
    take<std::uint64_t>();  // time
    if (kind == 0) {
      Code code;
      EXPECT_EQ(take<std::uint32_t>(), process);
      at_ += 4 + 8;  // thread, address as loaded
      code.address = take<std::uint64_t>();
      code.size = take<std::uint64_t>();
      take<std::uint64_t>();
      code.name = take_text();
      code.bytes = bytes_.substr(at_, code.size);
      code.lines = std::move(lines_[code.address]);
      codes.push_back(std::move(code));
    } else if (kind == 2) {
      std::vector<Line>& lines = lines_[take<std::uint64_t>()];
      for (auto left = take<std::uint64_t>(); left > 0; --left) {
        Line line;
        line.address = take<std::uint64_t>();
        line.number = take<std::uint32_t>();
        take<std::uint32_t>();
        line.file = take_text();
        lines.push_back(std::move(line));
      }
    }
    ASSERT_GT(size, 0u);
    at_ = start + size;
  }
  const std::string bytes_;
  std::size_t at_ = 0;
  std::map<std::uint64_t, std::vector<Line>> lines_;
};

class PerfFiles : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_machine) GTEST_SKIP() << test::no_machine;
    testing::FLAGS_gtest_death_test_style = "threadsafe";
  }
};

[[noreturn]] void compute_and_exit(const char* folder) {
  setenv("BURIN_BACKEND", "machine", 1);
  const Tensor x = reshape(arange(15), {3, 5}).astype(f32);
  const auto f = [](Tensor t) { return softmax(t * 1.5, -1).sum(0); };
  const std::vector<float> before = jit(f, {.num_threads = 1})(x).to_vector<float>();
  setenv("JITDUMPDIR", folder, 1);
  setenv("BURIN_CACHE_DIR", (std::string(folder) + "/cache").c_str(), 1);
  setenv("BURIN_PERF", "1", 1);
  std::exit(jit(f, {.num_threads = 2})(x).to_vector<float>() == before ? 0 : 3);
}

TEST_F(PerfFiles, NameKernelsAndTheLinesOfTheirTexts) {
  // The child makes the folder's name anew, so both agree on one.
  const std::string folder = fs::temp_directory_path() / "burin_perf_files";
  fs::remove_all(folder);
  fs::create_directory(folder);
  EXPECT_EXIT(compute_and_exit(folder.c_str()), testing::ExitedWithCode(0), "");
  const fs::path root = fs::path(folder) / ".debug" / "jit";
  ASSERT_TRUE(fs::is_directory(root));
  EXPECT_TRUE(!fs::exists(folder + "/cache") || fs::is_empty(folder + "/cache"));  // its objects have no lines

  std::string process;
  std::vector<std::string> dumps;
  std::map<std::string, std::size_t> texts;  // and their numbers of lines
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("burin-")) process = name.substr(6);
    if (name.starts_with("jit-")) dumps.push_back(entry.path());
    if (!name.ends_with(".txt")) continue;
    const std::string text = contents(entry.path());
    EXPECT_EQ(print(ir::parse_kernel(text)), text);
    texts[entry.path()] = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }
  ASSERT_FALSE(texts.empty());

  // The file of names, which needs no dump.
  const std::string names = "/tmp/perf-" + process + ".map";
  std::istringstream lines(contents(names));
  fs::remove(names);
  std::set<std::string> named;
  for (std::string address, size, name; lines >> address >> size >> name;) {
    EXPECT_GT(std::stoull(address, nullptr, 16), 4096u);
    EXPECT_GT(std::stoull(size, nullptr, 16), 16u);
    named.insert(name);
  }
  EXPECT_TRUE(named.contains("rows_0"));

  ASSERT_EQ(dumps.size(), 1u);
  const Dump dump(contents(dumps[0]));
  EXPECT_EQ(dump.machine, 62u);  // x86-64, in the numbers of ELF
  EXPECT_EQ(std::to_string(dump.process), process);
  std::set<std::string> dumped;
  for (const Dump::Code& code : dump.codes) {
    dumped.insert(code.name);
    EXPECT_EQ(code.bytes.size(), code.size);
    ASSERT_GT(code.lines.size(), 2u) << code.name;
    for (const Dump::Line& line : code.lines) {
      ASSERT_TRUE(texts.contains(line.file)) << line.file;
      EXPECT_LE(line.number, texts[line.file]);
      EXPECT_GE(line.address, code.address);
      EXPECT_LT(line.address, code.address + code.size);
      EXPECT_GE(line.number, 1u);
    }
  }
  EXPECT_EQ(dumped, named);
  fs::remove_all(folder);
}

TEST_F(PerfFiles, NothingIsWrittenUnlessAsked) {
  setenv("BURIN_PERF", "0", 1);
  EXPECT_FALSE(detail::kernel_texts());
  unsetenv("BURIN_PERF");
  EXPECT_FALSE(detail::kernel_texts());
}

#if BURIN_WITH_LLVM
TEST(PerfCode, HasTheSameInstructions) {
  const test::TracedStep step = test::traced_step({37, 9, 24, 3, 1, 2});
  for (const ir::Target& target : test::runnable_targets()) {
    passes::Options options;
    options.donated = step.donated;
    const ir::Program program = passes::build_program(step.function, target, options);
    std::vector<const ir::Kernel*> kernels;
    for (const ir::Kernel& kernel : program.kernels) kernels.push_back(&kernel);
    ASSERT_GT(kernels.size(), 10u);
    const std::string with = codegen::emit_assembly(
        kernels, target, [](const ir::Kernel& kernel) { return "/nowhere/" + kernel.name + ".txt"; });
    EXPECT_GT(test::lines_named(with).size(), 20u);
    EXPECT_TRUE(test::instructions(with) == test::instructions(codegen::emit_assembly(kernels, target)))
        << to_string(target);
  }
}
#endif

TEST(PerfFolder, ThatCannotBeWrittenIsAnError) {
  const char* before = std::getenv("JITDUMPDIR");
  const std::string kept = before ? before : "";
  setenv("BURIN_PERF", "1", 1);
  const auto text_of = detail::kernel_texts();
  unsetenv("BURIN_PERF");
  ASSERT_TRUE(text_of);
  const ir::Kernel kernel = ir::parse_kernel("kernel @a_b(in x: f32[3]) {\n}\n");
  setenv("JITDUMPDIR", "/dev/null", 1);
  EXPECT_EQ(test::error_of([&] { text_of(kernel); }),
            "BURIN_PERF: /dev/null/.debug/jit/burin-" + std::to_string(getpid()) + ": Not a directory");
  {
    const test::TemporaryFolder folder;
    setenv("JITDUMPDIR", folder.path().c_str(), 1);
    const std::string path = text_of(kernel);
    EXPECT_TRUE(path.starts_with(folder.path() + "/.debug/jit/burin-" + std::to_string(getpid()) + "/")) << path;
    EXPECT_EQ(contents(path), print(kernel));
  }
  if (before)
    setenv("JITDUMPDIR", kept.c_str(), 1);
  else
    unsetenv("JITDUMPDIR");
}

}  // namespace
}  // namespace burin
