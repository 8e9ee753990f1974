// What the compiler makes of each program of the corpus is what tests/tables/expected says: an op, a load or a byte of scratch more
// is a change that somebody reads. `BURIN_BLESS=1 build/dev/bin/burin_tables_tests` rewrites the files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>

#include "tests/support/machine.h"
#include "tests/tables/llvm_text.h"
#include "tests/tables/rows.h"

namespace burin::tables {
namespace {

const std::filesystem::path folder = "tests/tables/expected";

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// With BURIN_TEXTS=FOLDER, what the digests are of is put there: of two trees, to be compared by diff -r.
void write_texts(const Program& program, const Described& d) {
  const char* texts = std::getenv("BURIN_TEXTS");
  if (texts == nullptr) return;
  const std::filesystem::path to = std::filesystem::path(texts) / program.name;
  std::filesystem::create_directories(to);
  for (const auto& [name, text] : d.texts) std::ofstream(to / name) << text;
}

class Tables : public testing::TestWithParam<Program> {};

TEST_P(Tables, AreAsExpected) {
  const Program& program = GetParam();
  const std::filesystem::path path = folder / (program.name + ".txt");
  const Described d = describe(program);
  write_texts(program, d);
  if (std::getenv("BURIN_BLESS") != nullptr) {
    if (!test::has_machine) GTEST_SKIP() << "the tables have columns that this build lacks: " << test::no_machine;
    std::ofstream(path) << print(d.table);
    return;
  }
  Table expected = parse(read(path));
  if (!test::has_machine) expected = without_machine(std::move(expected));
  const std::string changed = difference(expected, d.table);
  EXPECT_TRUE(changed.empty()) << program.name << " (" << program.path << "), expected -> found:\n"
                               << changed << "to see the texts, in a tree before and after:\n  BURIN_TEXTS=FOLDER build/dev/bin/burin_tables_tests "
                               << "--gtest_filter='*/" << program.name << "'\nif that is as it should be:\n  BURIN_BLESS=1 build/dev/bin/burin_tables_tests "
                               << "--gtest_filter='*/" << program.name << "'";
}

INSTANTIATE_TEST_SUITE_P(Programs, Tables, testing::ValuesIn(corpus()), [](const auto& info) { return info.param.name; });

TEST(Tables, EachFileHasAProgram) {
  std::set<std::string> names, files;
  for (const Program& program : corpus()) EXPECT_TRUE(names.insert(program.name).second) << program.name << " stands twice in the corpus";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.insert(entry.path().stem());
  EXPECT_EQ(files, names);
}

TEST(Tables, TheDifferenceNamesCells) {
  const Table table = {{"avx2", {"after", "kernel", "load", "|", "llvm"}, {{"3", "@rows_1", "3", "|", "1a2b"}, {"4", "@loop_2", "1", "|", "0"}}}};
  EXPECT_EQ(difference(parse(print(table)), table), "");
  Table other = table;
  other[0].rows[0][2] = "4";
  other[0].rows[0][4] = "5e6f";
  EXPECT_EQ(difference(table, other), "avx2, after 3 @rows_1: load 3 -> 4, llvm 1a2b -> 5e6f\n");
  EXPECT_EQ(difference(without_machine(table), without_machine(other)), "avx2, after 3 @rows_1: load 3 -> 4\n");
  other = table;
  other[0].rows.pop_back();
  EXPECT_EQ(difference(table, other), "avx2: 2 rows -> 1\n");
  EXPECT_EQ(difference(table, {}), "section 0: `avx2` -> ``\n");
}

constexpr std::string_view llvm_function = R"(define void @f(ptr %x) #0 {
entry:
  %slot = alloca i64, align 8
  br label %loop

loop:                                             ; preds = %loop, %entry
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %a = mul i64 %i, 3
  %b = mul i64 %i, 5
  %c = sub i64 %a, %b
  store i64 %c, ptr %slot, align 8, !noalias !4
  %next = add i64 %i, 1
  br label %loop
}
)";

std::string with(std::string_view line, std::string_view other) {
  std::string text(llvm_function);
  return text.replace(text.find(line), line.size(), other);
}

TEST(LlvmText, OrderAndNumbersOfWhatIsPureDoNotMatter) {
  const std::string form = normal_form(llvm_function);
  EXPECT_EQ(normal_form(with("  %a = mul i64 %i, 3\n  %b = mul i64 %i, 5\n  %c = sub i64 %a, %b",
                             "  %a = mul i64 %i, 5\n  %7 = mul i64 %i, 3\n  %c = sub i64 %7, %a")),
            form);
  EXPECT_EQ(normal_form(with("!noalias !4", "!noalias !5")), form);
  EXPECT_NE(normal_form(with(", !noalias !4", "")), form);
  EXPECT_NE(normal_form(with("sub i64 %a, %b", "sub i64 %b, %a")), form);
  EXPECT_NE(normal_form(with("mul i64 %i, 5", "mul i64 %i, 6")), form);
  EXPECT_NE(normal_form(with("ptr %slot", "ptr %x")), form);
  EXPECT_NE(normal_form(with("[ %next", "[ %a")), form);
}

TEST(LlvmText, CountsByOpcodeAndIntrinsic) {
  const auto counts = count_instructions(std::string(llvm_function) + "  %5 = tail call <8 x float> @llvm.masked.load.v8f32.p0(ptr align 4 %4)\n");
  EXPECT_EQ(counts.at("mul"), 2);
  EXPECT_EQ(counts.at("br"), 2);
  EXPECT_EQ(counts.at("llvm.masked.load.v8f32.p0"), 1);
}

}  // namespace
}  // namespace burin::tables
