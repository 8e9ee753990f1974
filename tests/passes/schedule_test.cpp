// Which steps wait for which, and which values may share bytes then.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/kernel/program.h"
#include "passes/lower/program.h"
#include "tests/support/errors.h"

namespace burin::passes {
namespace {

using namespace ir;
using test::error_of;

// By step, after how many others it begins.
std::vector<std::uint32_t> scheduled(const std::string& steps) {
  Program program = parse_program("program (in0: f32[4], in1: i32[2], in2: f32[4]) -> (out0: f32[4] = in0) unplanned {\n" + steps + R"(
  plan "a": f32[4] at value0
  plan "b": f32[4] at value1
  plan "t": f32[2] at value2
}
kernel @copy(in x: f32[4], out y: f32[4]) {
  for j in 0..4 vector 4 {
    %0 = load x[j]
    store y[j], %0
  }
}
kernel @update(inout x: f32[4]) {
  for j in 0..4 vector 4 {
    %0 = load x[j]
    %1 = add %0, %0 : f32
    store x[j], %1
  }
}
kernel @take(in ids: i32[2], in x: f32[4], out y: f32[2]) tasks (t in 2) {
  site "an index"
  %0 = load ids[t]
  bind i = %0 in 0..4 error site 0
  %1 = load x[i]
  store y[t], %1
}
)");
  for (Step& step : program.steps) step.sites = program.kernels[step.kernel].sites;
  schedule(program);
  EXPECT_EQ(verify(program), "");
  std::vector<std::uint32_t> after;
  for (const Step& step : program.steps) after.push_back(step.after);
  return after;
}

using After = std::vector<std::uint32_t>;

TEST(schedule, a_step_waits_for_what_it_reads_and_no_more) {
  EXPECT_EQ(scheduled("step @copy(in2, value0) tasks 1 after 0 step @copy(in2, value1) tasks 1 after 1 step @take(in1, value0, value2) tasks 2 after 2"),
            (After{0, 0, 1}));
  EXPECT_EQ(scheduled("step @copy(in2, value0) tasks 1 after 0 step @copy(in2, value1) tasks 1 after 1 step @take(in1, value1, value2) tasks 2 after 2"),
            (After{0, 0, 2}));
  // Who stands behind one that waits can wait for no less.
  EXPECT_EQ(scheduled("step @copy(in2, value0) tasks 1 after 0 step @take(in1, value0, value2) tasks 2 after 1 step @copy(in2, value1) tasks 1 after 2"),
            (After{0, 1, 1}));
}

TEST(schedule, an_update_waits_for_readers_and_for_checks) {
  EXPECT_EQ(scheduled("step @copy(in0, value0) tasks 1 after 0 step @copy(in2, value1) tasks 1 after 1 step @update(in0) tasks 1 after 2"), (After{0, 0, 1}));
  EXPECT_EQ(scheduled("step @copy(in2, value1) tasks 1 after 0 step @take(in1, in2, value2) tasks 2 after 1 step @update(in0) tasks 1 after 2"), (After{0, 0, 2}));
  // A check that comes later cannot be waited for, and what is no argument need not survive.
  EXPECT_EQ(scheduled("step @update(in0) tasks 1 after 0 step @take(in1, in2, value2) tasks 2 after 1"), (After{0, 0}));
  EXPECT_EQ(scheduled("step @take(in1, in2, value2) tasks 2 after 0 step @copy(in2, value0) tasks 1 after 1 step @update(value0) tasks 1 after 2"), (After{0, 0, 2}));
}

// %a is read until the third step is done, which the fourth does not wait for: the fourth's result does not take %a's bytes, the fifth's does.
TEST(plan_memory, bytes_are_free_when_a_step_waits_for_the_last_that_used_them) {
  const auto planned = [](std::uint32_t fourth, std::uint32_t fifth) {
    Program program = parse_program(fmt::format(R"(program (in0: f32[64]) -> (out0: f32[64], out1: f32[64], out2: f32[64]) unplanned {{
  step @copy(in0, value0) tasks 1 after 0
  step @copy(in0, value1) tasks 1 after 0
  step @copy(value0, out0) tasks 1 after 1
  step @copy(in0, value2) tasks 1 after {}
  step @copy(in0, value3) tasks 1 after {}
  step @copy(value2, out1) tasks 1 after 5
  step @copy(value3, out2) tasks 1 after 5
  plan "a": f32[64] at value0
  plan "b": f32[64] at value1
  plan "c": f32[64] at value2
  plan "d": f32[64] at value3
}}
kernel @copy(in x: f32[64], out y: f32[64]) {{
  for j in 0..64 vector 16 {{
    %0 = load x[j]
    store y[j], %0
  }}
}}
)", fourth, fifth));
    plan_memory(program);
    EXPECT_EQ(verify(program), "");
    std::vector<std::int64_t> offsets;
    for (const PlannedValue& value : program.plan)
      if (value.place.storage == Storage::arena) offsets.push_back(value.place.offset);
    return offsets;
  };
  using Offsets = std::vector<std::int64_t>;
  EXPECT_EQ(planned(1, 3), (Offsets{0, 256, 512, 0}));
  EXPECT_EQ(planned(2, 3), (Offsets{0, 256, 256, 0}));
  EXPECT_EQ(planned(3, 3), (Offsets{0, 256, 0, 256}));
}

TEST(plan_memory, an_arena_that_no_offset_can_count_is_refused) {
  const auto of_values = [](std::uint32_t count) {  // of 2^51 bytes each, all at one time
    Program program;
    program.planned = false;
    Kernel kernel;
    Step step;
    const std::int64_t n = std::int64_t{1} << 48;
    for (std::uint32_t i = 0; i < count; ++i) {
      kernel.add_buffer({"x" + std::to_string(i), f64, {n}, {1}, Space::in});
      step.args.push_back({Storage::arena, i, 0});
      program.plan.push_back({"v", {f64, {n}}, {Storage::arena, i, 0}});
    }
    program.kernels.push_back(kernel);
    program.steps.push_back(step);
    return program;
  };
  Program most = of_values(512), more = of_values(513);
  plan_memory(most);
  EXPECT_EQ(most.arena_bytes, std::int64_t{1} << 60);
  EXPECT_EQ(error_of([&] { plan_memory(more); }), "the values that live at one time take more than 2^60 bytes");
}

}  // namespace
}  // namespace burin::passes
