#include "ir/kernel/program.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace burin::ir {
namespace {

constexpr std::string_view text =
    R"p(program (in0: f32[4], in1: i32[2]) -> (out0: f32[4] = in0, out1: f32[2]) arena 64 {
  const0: f32[4] = [1, 2, -0.5, inf]
  const1: f32[2,2] = 3
  step @add(in0, const0, arena + 16) tasks 1 after 0 "add model.cpp:42"
  step @take(in1, arena + 16, out1) tasks 2 after 1 "take model.cpp:43"
    site "take: index {index} of \"x\" is not below {extent} (model.cpp:43)"
  step @add_2(in0, const1) tasks 1 after 1
  plan "x": f32[4] at arena + 16 steps 0..1
}

kernel @add(in a: f32[4], in b: f32[4], out y: f32[4]) {
  for j in 0..4 vector 4 {
    %0 = load a[j]
    %1 = load b[j]
    %2 = add %0, %1 : f32
    store y[j], %2
  }
}

kernel @take(in ids: i32[2], in x: f32[4], out y: f32[2]) tasks (t in 2) {
  site "an index"
  %0 = load ids[t]
  bind i = %0 in 0..4 error site 0
  %1 = load x[i]
  store y[t], %1
}

kernel @add_2(inout a: f32[4], in b: f32[4]) {
  for j in 0..4 vector 4 {
    %0 = load a[j]
    %1 = load b[j]
    %2 = add %0, %1 : f32
    store a[j], %2
  }
}
)p";

template <class T>
Literal literal(const Type& type, std::vector<T> values) {
  return Literal(type, std::as_bytes(std::span(values)));
}
template <class T>
std::vector<T> values(const Literal& literal) {
  return {literal.data<T>().begin(), literal.data<T>().end()};
}

std::string error_of(std::string_view program) {
  try {
    parse_program(program, "p.txt");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Program changed(std::string_view from, std::string_view to) {
  std::string program(text);
  const std::size_t at = program.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return parse_program(program.replace(at, from.size(), to));
}
std::string verdict(std::string_view from, std::string_view to) { return verify(changed(from, to)); }

TEST(Program, PrintsAsItIsWritten) {
  Program program = parse_program(text);
  EXPECT_EQ(print(program), text);
  EXPECT_EQ(verify(program), "");
  EXPECT_EQ(print(parse_program("program () -> () {}")), "program () -> () {\n}\n");
  // Kernels of one name.
  program.kernels[2].name = "add";
  EXPECT_EQ(print(program), text);
}

TEST(Program, InterpretsItsStepsInOrder) {
  const Program program = parse_program(text);
  const std::vector<Literal> inputs = {literal<float>({f32, {4}}, {1, 2, 3, 4}),
                                       literal<std::int32_t>({i32, {2}}, {1, 2})};
  const std::vector<Literal> outputs = interpret(program, inputs);
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(values<float>(outputs[0]), (std::vector<float>{4, 5, 6, 7}));  // in place of input 0, after it was read
  EXPECT_EQ(values<float>(outputs[1]), (std::vector<float>{4, 2.5}));
  EXPECT_EQ(values<float>(inputs[0]), (std::vector<float>{1, 2, 3, 4}));  // the caller's bytes stay as they are
}

TEST(Program, ReportsAnIndexWithTheMessageOfTheStep) {
  const Program program = parse_program(text);
  const std::vector<Literal> inputs = {literal<float>({f32, {4}}, {1, 2, 3, 4}),
                                       literal<std::int32_t>({i32, {2}}, {9, -1})};
  try {
    interpret(program, inputs);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "take: index 9 of \"x\" is not below 4 (model.cpp:43)");
  }
}

TEST(Program, VerifierNamesTheStep) {
  EXPECT_EQ(verdict("load ids[t]", "load ids[t + 1]"),
            "P1: K3: kernel @take: `%0 = load ids[t + 1]`: axis 0 of ids may reach 2, its extent is 2");
  EXPECT_EQ(verdict("out1: f32[2]", "out1: f32[2] = in0"), "P2: in0 is taken over twice");
  EXPECT_EQ(verdict("out1: f32[2]", "out1: f32[2] = in7"), "P2: out1 takes over in7, which does not exist");
  EXPECT_EQ(verdict("out1: f32[2]", "out1: f32[1] = in1"), "P2: out1 is f32[1], in1 is i32[2]: not the same bytes");
  EXPECT_EQ(verdict("tasks 2 after 1", "tasks 3 after 1"), "P3: step 1 @take: 3 tasks, the kernel has 2");
  EXPECT_EQ(verdict("@add(in0, const0, arena + 16)", "@add(in0, const0)"),
            "P3: step 0 @add: 2 places for 3 parameters");
  EXPECT_EQ(verdict("tasks 1 after 0", "tasks 1 after 2"), "P3: step 0 @add: waits for 2 steps, it is number 0");
  EXPECT_EQ(verdict("tasks 2 after 1", "tasks 2 after 2"), "P3: step 1 @take: waits for 2 steps, it is number 1");
  EXPECT_EQ(verdict("tasks 1 after 1", "tasks 1 after 0"), "P3: step 2 @add_2: waits for 0 steps, the step before for 1");
  EXPECT_EQ(verdict("  site \"an index\"\n", "  site \"an index\"\n  site \"another\"\n"),
            "P3: step 1 @take: 1 site, the kernel has 2");
  EXPECT_EQ(verdict("arena + 16) tasks", "arena + 52) tasks"),
            "P4: step 0 @add: y takes 16 bytes from byte 52 of a place of 64");
  EXPECT_EQ(verdict("arena + 16) tasks", "arena + 18) tasks"), "P4: step 0 @add: y is not aligned to its dtype");
  EXPECT_EQ(verdict("arena + 16) tasks", "out7) tasks"), "P4: step 0 @add: the place of y does not exist");
  EXPECT_EQ(verdict("arena + 16) tasks", "const0) tasks"),
            "P4: step 0 @add: y is stored to, but its place is only read");
  EXPECT_EQ(verdict("out0: f32[4] = in0", "out0: f32[4]"),
            "P4: step 2 @add_2: a is stored to, but its place is only read");
  EXPECT_EQ(verdict("in0, const0, arena + 16", "arena + 8, const0, arena + 16"),
            "P5: step 0 @add: y is stored to and shares bytes with a");
  EXPECT_EQ(verdict("in0, const0, arena + 16", "arena + 0, const0, arena + 16"), "");
  EXPECT_EQ(verdict("in0, const0, arena + 16", "in0, const0, out0"),
            "P5: step 0 @add: y is stored to and shares bytes with a");
  EXPECT_EQ(verdict("tasks 2 after 1", "tasks 2 after 0"), "P6: step 1 @take: x shares bytes with y of step 0, for which it does not wait");
  Program program = parse_program(text);
  program.steps[1].kernel = 5;
  EXPECT_EQ(verify(program), "P3: step 1: there is no such kernel");
  EXPECT_NE(print(program).find("step @undefined("), std::string::npos);
  program.aliases.resize(3);
  EXPECT_EQ(verify(program), "P2: more aliases than outputs");
}

TEST(Program, EveryOutputIsStoredTo) {
  EXPECT_EQ(verify(parse_program("program (in0: f32[4]) -> (out0: f32[4]) {}")), "P7: no step stores to out0: f32[4]");
  EXPECT_EQ(verify(parse_program("program (in0: f32[4]) -> (out0: f32[0], out1: f32[4] = in0) {}")), "");
  // Bytes of a donated input that a step stores to are the output's.
  const std::string_view fill = R"(program (in0: f32[]) -> (out0: f32[] = in0, out1: f32[]) {
  step @one(in0) tasks 1 after 0
}
kernel @one(out y: f32[]) {
  %0 = constant 1 : f32
  store y[], %0
})";
  EXPECT_EQ(verify(parse_program(fill)), "P7: no step stores to out1: f32[]");
}

TEST(Program, KeepsValuesForTheNextCall) {
  const std::string twice = R"(program (in0: f32[4]) -> (out0: f32[4] = in0) {
  keep0: f32[4] of out0
  step @double(in0, keep0) tasks 1 after 0 unless keep0 "double"
  step @both(in0, keep0) tasks 1 after 1
}

kernel @double(in x: f32[4], out y: f32[4]) {
  for j in 0..4 vector 4 {
    %0 = load x[j]
    %1 = add %0, %0 : f32
    store y[j], %1
  }
}

kernel @both(inout x: f32[4], inout y: f32[4]) {
  for j in 0..4 vector 4 {
    %0 = load y[j]
    store x[j], %0
    %1 = add %0, %0 : f32
    store y[j], %1
  }
}
)";
  const Program program = parse_program(twice);
  EXPECT_EQ(print(program), twice);
  EXPECT_EQ(verify(program), "");
  const std::vector<Literal> inputs = {literal<float>({f32, {4}}, {1, 2, 3, 4})};
  EXPECT_EQ(values<float>(interpret(program, inputs)[0]), (std::vector<float>{2, 4, 6, 8}));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = twice;
    return changed.replace(changed.find(from), from.size(), to);
  };
  EXPECT_EQ(verify(parse_program(with("out0: f32[4] = in0", "out0: f32[4]"))), "P10: keep0 belongs to out0, which takes over no input");
  EXPECT_EQ(verify(parse_program(with("unless keep0", "unless keep3"))), "P10: step 0 @double: there is no keep3");
  EXPECT_EQ(verify(parse_program(with("@double(in0, keep0)", "@double(keep0, out0)"))),
            "P10: step 0 @double: y is stored to by a step that may be left out");
  EXPECT_EQ(verify(parse_program(with("@double(in0, keep0)", "@double(in0, keep1)"))), "P4: step 0 @double: the place of y does not exist");
  EXPECT_EQ(verify(parse_program(with("tasks 1 after 1", "tasks 1 after 0"))),
            "P6: step 1 @both: x shares bytes with x of step 0, for which it does not wait");
  EXPECT_EQ(error_of(with("unless keep0", "unless in0")), "p.txt:3:51: expected a kept value, found `in0`");
  EXPECT_EQ(error_of(with("of out0", "of in0")), "p.txt:2:20: expected an output, found `in0`");
}

TEST(Program, TheArenaHasABound) {
  EXPECT_EQ(verify(parse_program("program () -> () arena 9223372036854775807 {}")),
            "P8: an arena of 9223372036854775807 bytes, at most 2^60 are possible");
  const Program huge = parse_program("program () -> () arena 1152921504606846976 {}");
  EXPECT_EQ(verify(huge), "");
  const auto message = [](const Program& program) -> std::string {
    try {
      interpret(program, {});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(huge), "out of memory: the arena takes 1152921504606846976 bytes (1099511627776.0 MiB)");
  const Program scratch = parse_program(R"(program () -> () {
  step @f() tasks 1 after 0
}
kernel @f() {
  scratch s: f32[140737488355328]
})");
  EXPECT_EQ(verify(scratch), "");
  EXPECT_EQ(message(scratch), "out of memory: s takes 562949953421312 bytes (536870912.0 MiB)");
}

TEST(Program, InterleavedColumnsOfOneOutputMayBeStoredAtOnce) {
  const std::string_view interleaved = R"(program (in0: f32[4]) -> (out0: f32[4,2]) {
  step @copy(in0, out0) tasks 1 after 0
  step @copy(in0, out0 + 4) tasks 1 after 0
}
kernel @copy(in x: f32[4], out y: f32[4] strides [2]) {
  for j in 0..4 {
    %0 = load x[j]
    store y[j], %0
  }
})";
  const Program program = parse_program(interleaved);
  EXPECT_EQ(verify(program), "");
  const std::vector<Literal> outputs = interpret(program, std::vector{literal<float>({f32, {4}}, {1, 2, 3, 4})});
  EXPECT_EQ(values<float>(outputs[0]), (std::vector<float>{1, 1, 2, 2, 3, 3, 4, 4}));
}

TEST(Program, SplatInputsAndEmptyValues) {
  const Program program =
      parse_program(R"(program (in0: f32[3], in1: f32[0,2]) -> (out0: f32[3], out1: f32[0,2] = in1) {
  const0: f32[0] = []
  step @copy(in0, out0) tasks 3 after 0
}
kernel @copy(in x: f32[3], out y: f32[3]) tasks (t in 3) {
  %0 = load x[t]
  store y[t], %0
})");
  EXPECT_EQ(verify(program), "");
  EXPECT_EQ(print(parse_program(print(program))), print(program));
  const std::vector<Literal> inputs = {Literal::splat({3}, Literal::scalar(f32, 7)), Literal(Type{f32, {0, 2}})};
  EXPECT_EQ(values<float>(interpret(program, inputs)[0]), (std::vector<float>{7, 7, 7}));
}

TEST(Program, ErrorsSayWhere) {
  EXPECT_EQ(error_of("kernel"), "p.txt:1:1: expected `program`, found `kernel`");
  EXPECT_EQ(error_of("program (in1: f32[2]) -> () {\n}"), "p.txt:1:10: expected `in0`, found `in1`");
  EXPECT_EQ(error_of("program () -> (out0: f32[2] = const0) {\n}"), "p.txt:1:31: expected an input, found `const0`");
  EXPECT_EQ(error_of("program () -> () {\n  const1: f32[] = 2\n}"),
            "p.txt:2:3: expected `const0`, `step`, `plan` or `}`, found `const1`");
  EXPECT_EQ(error_of("program () -> () {\n  step @f() tasks 1 after 0\n}"), "p.txt:2:8: unknown kernel `f`");
  EXPECT_EQ(error_of("program () -> () {\n  step @f(stack) tasks 1 after 0\n}"), "p.txt:2:11: unknown place `stack`");
  EXPECT_EQ(error_of("program () -> () {\n  step @f(in) tasks 1 after 0\n}"), "p.txt:2:11: unknown place `in`");
  EXPECT_EQ(error_of("program () -> () {\n  step @f(in0 + -4) tasks 1 after 0\n}"),
            "p.txt:2:17: expected a number of bytes, found `-4`");
  EXPECT_EQ(error_of("program () -> () {\n  step @f() tasks 1 after 9999999999\n}"),
            "p.txt:2:27: expected a number of steps, found `9999999999`");
  EXPECT_EQ(error_of("program () -> () {\n}\nkernel @f() {\n}\nkernel @f() {\n}"),
            "p.txt:5:8: the kernel `f` is defined twice");
  EXPECT_EQ(error_of("program () -> () {\n}\nkernel @f() {\n  boo\n}"), "p.txt:4:3: expected a statement, found `boo`");
}

TEST(Program, DamagedTextNeverCrashes) {
  for (std::size_t size = 0; size < text.size(); size += 3) error_of(text.substr(0, size));
  for (std::size_t at = 0; at < text.size(); at += 2)
    for (const char c : {'[', '}', '%', '9', '"', '\n'}) {
      std::string damaged(text);
      damaged[at] = c;
      try {
        verify(parse_program(damaged));
      } catch (const Error&) {
      }
    }
}

}  // namespace
}  // namespace burin::ir
