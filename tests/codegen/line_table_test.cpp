// Code that gdb and perf are told of: lines of the kernel's text, and no other instructions than without them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "ir/kernel/printer.h"
#include "tests/codegen/machine.h"
#include "tests/support/assembly.h"
#include "tests/support/temporary_folder.h"

// The interface of gdb to code that a process makes; LLVM defines both.
extern "C" {
struct jit_code_entry {
  jit_code_entry *next, *previous;
  const char* symbols;
  std::uint64_t size;
};
struct jit_descriptor {
  std::uint32_t version, action;
  jit_code_entry *relevant, *first;
};
extern jit_descriptor __jit_debug_descriptor;
}

namespace burin::test {
namespace {

using ir::Kernel;

std::string nowhere(const Kernel& kernel) { return "/nowhere/" + kernel.name + ".txt"; }

const std::string text = R"(kernel @scale(in x: f32[5,100], in n: i32[], out y: f32[5,100]) tasks (t in 5) {
  site "scale: row {index}, there are {extent}"
  %0 = load n[]
  bind row = %0 in 0..5 error site 0
  %1 = constant 2 : f32
  for j in 0..100 vector 8 {
    %2 = load x[row, j]
    %3 = mul %2, %1 : f32
    store y[t, j], %3
  }
}
)";

TEST(LineTable, StatementsAreNumberedByTheirLines) {
  const Kernel kernel = ir::parse_kernel(text);
  ASSERT_EQ(print(kernel), text);
  EXPECT_EQ(ir::statement_lines(kernel), (std::vector<unsigned>{3, 4, 5, 6, 7, 8, 9}));

  // A head of several lines.
  Kernel wide = kernel;
  for (int i = 0; i < 9; ++i)
    add_param(wide, "a_name_that_takes_room_" + std::to_string(i), {f32, {3, 5}}, ir::Space::in);
  const std::vector<unsigned> lines = ir::statement_lines(wide);
  std::istringstream printed(print(wide));
  std::vector<std::string> by_line = {""};
  for (std::string line; std::getline(printed, line);) by_line.push_back(line);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_GT(lines[0], 10u);
  for (std::size_t i = 0; i < lines.size(); ++i)
    EXPECT_NE(by_line.at(lines[i]).find(ir::print_statement(wide, i)), std::string::npos) << by_line[lines[i]];
}

TEST(LineTable, InstructionsNameTheStatementThatTheyComeFrom) {
  const Kernel kernel = ir::parse_kernel(text);
  const std::vector<const Kernel*> kernels = {&kernel};
  const std::string assembly = codegen::emit_assembly(kernels, avx2_target(), nowhere);
  EXPECT_NE(assembly.find("\"/nowhere\" \"scale.txt\""), std::string::npos) << assembly;
  // What all tasks share is loaded once, before them, and belongs to no line; the constant is part of another instruction.
  std::set<unsigned> found = lines_named(assembly);
  for (unsigned line : {1u, 4u, 6u, 7u, 8u, 9u}) EXPECT_TRUE(found.contains(line)) << line << "\n" << assembly;
  found.erase(0);
  EXPECT_LE(*found.rbegin(), 9u);

  const std::string plain = codegen::emit_assembly(kernels, avx2_target());
  EXPECT_EQ(plain.find(".loc"), std::string::npos);
  EXPECT_EQ(plain.find(".debug"), std::string::npos);
  EXPECT_EQ(instructions(assembly), instructions(plain));
}

std::size_t objects_known_to_gdb() {
  std::size_t n = 0;
  for (const jit_code_entry* entry = __jit_debug_descriptor.first; entry != nullptr; entry = entry->next) {
    EXPECT_EQ(std::string_view(entry->symbols, 4), "\177ELF");
    ++n;
  }
  return n;
}

TEST(LineTable, DebuggersKnowCodeAsLongAsItIsThere) {
  TemporaryFolder folder;
  const Kernel kernel = ir::parse_kernel(text);
  const std::vector<const Kernel*> kernels = {&kernel};
  const ir::Target target = runnable_targets().front();
  std::size_t before = objects_known_to_gdb();
  const auto plain = codegen::compile(kernels, target);
  EXPECT_EQ(objects_known_to_gdb(), before);
  int asked = 0;
  const codegen::TextOf text_of = [&](const Kernel& k) {
    ++asked;
    EXPECT_EQ(print(k), text);
    return folder.path() + "/scale.txt";
  };
  auto visible = codegen::compile(kernels, target, 1, nullptr, text_of);
  EXPECT_NE(visible->entries()[0], plain->entries()[0]);  // that one has no lines
  EXPECT_EQ(objects_known_to_gdb(), before + 1);
  auto shared = codegen::compile(kernels, target, 1, nullptr, text_of);
  EXPECT_EQ(shared->entries()[0], visible->entries()[0]);
  EXPECT_EQ(asked, 1);
  visible.reset();
  EXPECT_EQ(objects_known_to_gdb(), before + 1);
  shared.reset();
  EXPECT_EQ(objects_known_to_gdb(), before);
  std::filesystem::remove("/tmp/perf-" + std::to_string(getpid()) + ".map");  // where perf looks for it
}

}  // namespace
}  // namespace burin::test
