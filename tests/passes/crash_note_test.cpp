// A check that fails in a pass names the pass, the function and the op, and leaves what is needed to repeat it.
#include "passes/crash_note.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "ir/parser.h"
#include "ir/target.h"
#include "passes/lower/lower.h"

namespace burin::passes {
namespace {

using namespace ir;

const char* const program =
    "func @step(%x: f32[3,5]) -> (f32[3,5]) {\n  %y = mul %x, %x\n  %z = exp %y\n  return %z\n}\n";

// A pass with a bug, here alone.
void fall_over_exp(const Function& f) {
  const CrashNote note("fall_over_exp", f, "--passes=simplify,fall_over_exp");
  f.for_each_op([&](OpId op) { BURIN_CHECK(f.kind(op) != Op::exp, "planted"); });
}

TEST(crash_note_death, names_pass_function_and_op_and_how_to_repeat_it) {
  EXPECT_DEATH(fall_over_exp(parse(program, "x.ir")),
               "internal error at .*: planted\n  at op 1 of @step: exp .x.ir:3.\n  in pass `fall_over_exp` on @step\n"
               "  whose input is in .*burin-crash-[0-9]+.ir; repeat with: burin-opt .*burin-crash-[0-9]+.ir "
               "--passes=simplify,fall_over_exp");
}

TEST(crash_note_death, lowering_names_the_op_of_the_body) {
  // No element of a scatter is computed alone.
  const Function body = parse(
      "func @body(%x: f32[5,3], %i: i32[2,1], %u: f32[2,3]) -> (f32[5,3]) {\n"
      "  %y = exp %x\n"
      "  %s = scatter %y, %i, %u {update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
      "index_vector_dim = 1}\n"
      "  %z = neg %s\n"
      "  return %z\n}\n",
      "x.ir");
  EXPECT_DEATH(lower::lower_fusion("loop", body, Target{}), "no element of scatter\n  at op 1 of @body: scatter .x.ir:3.\n$");
}

TEST(crash_note, names_the_target_that_is_not_this_machine) {
  Target narrow;
  narrow.l1_bytes = 1 << 10;  // no machine's
  EXPECT_EQ(target_option(host_target()), "");
  EXPECT_EQ(target_option(narrow), " --target=avx2");
}

TEST(crash_note, leaves_text_that_parses_back) {
  const std::string path = save_crash_input(program);
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(same_program(parse(text), parse(program)));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace burin::passes
