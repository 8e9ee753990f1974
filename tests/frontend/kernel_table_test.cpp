// What the kernels of the tutorial's training step are, as traced and as lowered: a table that changes only on purpose.
// `BURIN_BLESS=1 build/dev/bin/burin_frontend_tests --gtest_filter='KernelTable.*'` rewrites it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "passes/fuse/fuse.h"
#include "passes/pipeline.h"
#include "tests/frontend/traced_step.h"
#include "tests/support/kernel_table.h"

namespace burin::test {
namespace {

struct LoweredStep {
  ir::Function fused;
  ir::Program program;
};

LoweredStep lower(const StepShape& shape) {
  const TracedStep step = traced_step(shape);
  const ir::Target target;  // the same table on every machine
  passes::Options options;
  options.donated = step.donated;
  ir::Function fused = passes::run_function_passes(step.function, options);
  ir::Program program = passes::run_lowering(fused, target, options);
  return {std::move(fused), std::move(program)};
}

TEST(KernelTable, OfTheSeedStep) {
  const std::string path = "tests/data/seed_step_kernels.txt";
  const LoweredStep seed = lower(seed_shape);
  const std::string table = step_table(seed.fused, seed.program);
  if (std::getenv("BURIN_BLESS")) {
    std::ofstream(path) << table;
    GTEST_SKIP() << "rewrote " << path;
  }
  std::ifstream file(path);
  const std::string expected(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(table, expected);
}

TEST(KernelTable, NothingOfAStepOnlyMovesDataOrStandsAlone) {
  for (const StepShape& shape : {seed_shape, small_shape, StepShape{11, 5, 6, 3, 3, 3}}) {
    const LoweredStep step = lower(shape);
    for (const KernelRow& row : step_rows(step.fused, step.program)) {
      EXPECT_FALSE(row.only_moves()) << row.step << "  " << row.text;
      EXPECT_FALSE(row.alone()) << row.step << "  " << row.text;
    }
  }
}

// Hashes of the kernels that multiply [B,T,D] by [D,F] and by [D,F] turned, F = 4 D, and how many steps run them.
std::pair<std::vector<Hash128>, std::size_t> wide_matmuls(int batch, int seq_len) {
  const StepShape& s = seed_shape;
  const LoweredStep step = lower({s.vocabulary, seq_len, s.dim, s.heads, s.layers, batch});
  const std::vector<KernelRow> rows = step_rows(step.fused, step.program);
  std::vector<Hash128> hashes;
  std::size_t count = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].dots != std::vector{ir::Type{f32, {batch, seq_len, 4 * s.dim}}}) continue;
    ++count;
    Hasher hasher;
    step.program.kernels[step.program.steps[i].kernel].hash(hasher);
    const Hash128 hash = hasher.finish();
    if (std::find(hashes.begin(), hashes.end(), hash) == hashes.end()) hashes.push_back(hash);
  }
  return {hashes, count};
}

// How B times T rows are split into batches leaves no trace in the kernel. A loop over batches would.
TEST(KernelTable, AMatmulOfBatchesIsOneOfAllTheirRows) {
  const auto [hashes, count] = wide_matmuls(2, 16);
  EXPECT_EQ(count, 4u);          // in each of two layers forward and backward
  EXPECT_EQ(hashes.size(), 2u);  // both layers run the same
  for (const auto& [batch, seq_len] : {std::pair{1, 32}, {4, 8}, {32, 1}})
    EXPECT_EQ(wide_matmuls(batch, seq_len), std::pair(hashes, count)) << batch << " batches of " << seq_len;
  EXPECT_NE(wide_matmuls(2, 17).first, hashes);
}

// Compile time is that of the distinct kernels: more layers add none.
TEST(KernelTable, DeepStepsHaveTheKernelsOfShallowOnes) {
  for (StepShape shape : {seed_shape, small_shape}) {
    shape.layers = 2;
    const ir::Program two = lower(shape).program;
    shape.layers = 12;
    const ir::Program twelve = lower(shape).program;
    EXPECT_GT(twelve.steps.size(), 5 * two.steps.size());
    EXPECT_EQ(twelve.kernels.size(), two.kernels.size());
  }
}

}  // namespace
}  // namespace burin::test
