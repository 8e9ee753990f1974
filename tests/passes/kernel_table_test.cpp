// What the kernels of the tutorial's training step are: a table that changes only on purpose.
// `BURIN_BLESS=1 build/dev/bin/burin_passes_tests --gtest_filter='KernelTable.*'` rewrites it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "passes/fuse/fuse.h"
#include "passes/pipeline.h"
#include "tests/passes/training_step.h"

namespace burin::passes {
namespace {

using namespace ir;

bool computes(Op op) { return family_of(op) != Family::movement && op != Op::constant && op != Op::iota; }

struct Row {
  std::string kind, text;
  std::size_t anchors = 0, elementwise = 0;
  bool alone() const { return anchors + elementwise == 1 && elementwise == 1; }
  bool only_moves() const { return anchors + elementwise == 0; }
};

Row row_of(const Function& f, OpId op) {
  const auto a = f.attrs<Op::fusion>(op);
  Row row;
  row.kind = a.kind;
  std::string anchors;
  a.body->for_each_op([&](OpId inner) {
    const Op kind = a.body->kind(inner);
    if (!computes(kind)) return;
    const Family family = family_of(kind);
    if (family == Family::elementwise || family == Family::compare) {
      ++row.elementwise;
      return;
    }
    ++row.anchors;
    anchors += fmt::format(" {} {}", name(kind), to_string(a.body->type(a.body->result(inner))));
  });
  row.text = fmt::format("{:<8}{} + {} elementwise ->", a.kind, anchors, row.elementwise);
  for (std::size_t r = 0; r < f.num_results(op); ++r) row.text += " " + to_string(f.type(f.result(op, r)));
  return row;
}

std::vector<Row> table_of(const std::string& path) {
  const Function fused = run_function_passes(training_step(read_function(path)), Target{}, {});
  std::vector<Row> rows;
  fused.for_each_op([&](OpId op) {
    if (fused.kind(op) == Op::fusion) rows.push_back(row_of(fused, op));
  });
  return rows;
}

TEST(KernelTable, OfTheSeedStep) {
  const std::string path = "tests/data/seed_step_kernels.txt";
  std::string table;
  for (const Row& row : table_of("tests/data/transformer_loss_seed.ir")) table += row.text + "\n";
  if (std::getenv("BURIN_BLESS")) {
    std::ofstream(path) << table;
    GTEST_SKIP() << "rewrote " << path;
  }
  std::ifstream file(path);
  const std::string expected(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(table, expected);
}

TEST(KernelTable, NothingOnlyMovesDataOrStandsAlone) {
  for (const char* path : {"tests/data/transformer_loss_seed.ir", "tests/data/transformer_loss_odd.ir"})
    for (const Row& row : table_of(path)) {
      EXPECT_FALSE(row.only_moves()) << path << ": " << row.text;
      EXPECT_FALSE(row.alone()) << path << ": " << row.text;
    }
}

}  // namespace
}  // namespace burin::passes
