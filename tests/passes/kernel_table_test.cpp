// What the kernels of training steps of other shapes than the tutorial's are: nothing is lost between them. The table of the
// tutorial's own step is a test of the frontend, which traces it.
#include <gtest/gtest.h>

#include "passes/pipeline.h"
#include "tests/passes/training_step.h"
#include "tests/support/kernel_table.h"

namespace burin::passes {
namespace {

TEST(KernelTable, NothingOnlyMovesDataOrStandsAlone) {
  for (const char* path : {"tests/data/transformer_loss_seed.ir", "tests/data/transformer_loss_odd.ir"}) {
    const ir::Function fused = run_function_passes(training_step(read_function(path)), {});
    for (const test::KernelRow& row : test::step_rows(fused, run_lowering(fused, ir::Target{}, {}))) {
      EXPECT_FALSE(row.only_moves()) << path << ": " << row.text;
      EXPECT_FALSE(row.alone()) << path << ": " << row.text;
    }
  }
}

}  // namespace
}  // namespace burin::passes
