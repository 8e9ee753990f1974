// Texts that are no program, and word for word what the parser says, with line and column.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "ir/parser.h"
#include "ir/printer.h"

namespace burin::ir {
namespace {

std::string error_of(std::string_view text) {
  try {
    parse(text, "x.ir");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The error of one op in a function with arguments %x: f32[2] and %n: i32[2]; the op begins at 2:3.
std::string error_of_op(std::string_view op) {
  return error_of("func @main(%x: f32[2], %n: i32[2]) {\n  " + std::string(op) + "\n  return\n}\n");
}

std::string times(int n, std::string_view part) {
  std::string text;
  for (int i = 0; i < n; ++i) text += part;
  return text;
}

struct Case {
  std::string_view text, error;
};

TEST(MalformedText, Functions) {
  const Case cases[] = {
      {"", "x.ir:1:1: no function: expected `func @main(...) {`"},
      {"// nothing\n", "x.ir:2:1: no function: expected `func @main(...) {`"},
      {"fun @main() {}", "x.ir:1:1: expected `func`, found `fun`"},
      {"func main() {}", "x.ir:1:6: expected the function's name, as in `@main`, found `main`"},
      {"func @main", "x.ir:1:11: expected `{`, found the end of the text"},
      {"func @main(%x: f32[2]", "x.ir:1:22: expected `{`, found the end of the text"},
      {"func @main() {\n  return\n", "x.ir:3:1: expected `}`, found the end of the text"},
      {"func @main() }", "x.ir:1:14: expected `{`, found `}`"},
      {"func @main() func @b() { return }", "x.ir:1:14: expected `{`, found `func`"},
      {"func @main {}", "x.ir:1:12: expected `(`, found `{`"},
      {"func @main() {\n}", "x.ir:2:1: @main has no return"},
      {"func @main(%x: f32[2],) { return }", "x.ir:1:23: expected an argument, as in `%x: f32[2]`, found `)`"},
      {"func @main(%x f32[2]) { return }", "x.ir:1:15: expected `:`, found `f32`"},
      {"func @main(%x: f32[2], %x: f32[2]) { return }", "x.ir:1:24: %x is defined already"},
      {"func @main(%x: f33[2]) { return }", "x.ir:1:16: unknown dtype `f33`, did you mean `f32`?"},
      {"func @main(%x: quaternion[2]) { return }", "x.ir:1:16: unknown dtype `quaternion`"},
      {"func @main(%x: f32) { return }", "x.ir:1:19: expected `[`, found `)`"},
      {"func @main(%x: f32[2,]) { return }", "x.ir:1:22: expected an extent, found `]`"},
      {"func @main(%x: f32[-2]) { return }", "x.ir:1:20: the extent -2 is negative"},
      {"func @main(%x: f32[2.5]) { return }", "x.ir:1:20: expected an extent, found `2.5`"},
      {"func @main(%x: f32[1,1,1,1,1,1,1,1,1]) { return }", "x.ir:1:36: more than 8 axes"},
      {"func @main(%x: f32[99999999999999999999]) { return }", "x.ir:1:20: 99999999999999999999 does not fit 64 bits"},
      {"func @main(%x: f32[4611686018427387904]) { return }",
       "x.ir:1:16: f32[4611686018427387904] has more bytes than 64 bits can count"},
      {"func @main(%x: f32[2]) -> (f32[3]) { return %x }", "x.ir:1:45: %x is f32[2], the head says f32[3]"},
      {"func @main(%x: f32[2]) -> () { return %x }", "x.ir:1:32: 1 value(s) are returned, the head says 0"},
      {"func @main(%x: f32[2]) { return %y }", "x.ir:1:33: %y is not defined before this line"},
      {"func @main() { return\n %0 = iota {dtype = i32, shape = [1]} }", "x.ir:2:2: expected `}`, found `%0`"},
      {"func @main() { return } func @main() { return }", "x.ir:1:30: there are two functions @main"},
      {"func @main() { return } }", "x.ir:1:25: expected `func`, found `}`"},
      {"func @main() { call {body = @gone} return }", "x.ir:1:29: there is no function @gone in this text"},
      {"func @main() { call {body = @main} return }", "x.ir:1:29: @main contains itself"},
      {"func @main() { call {body = @a} return } func @a() { call {body = @b} return } "
       "func @b() { call {body = @a} return }",
       "x.ir:1:105: @a contains itself"},
      {"func @main() { return $ }", "x.ir:1:23: unexpected character `$`"},
      {"func @main() { return \x80 }", "x.ir:1:23: unexpected character 0x80"},
      {"func @main() { return % }", "x.ir:1:23: unexpected character `%`"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(error_of(text), error) << text;
}

TEST(MalformedText, Ops) {
  const Case cases[] = {
      {"%0 = ad %x, %x", "x.ir:2:8: unknown op `ad`, did you mean `add`?"},
      {"%0 = reduce_summ %x", "x.ir:2:8: unknown op `reduce_summ`, did you mean `reduce_sum`?"},
      {"%0 = frobnicate %x", "x.ir:2:8: unknown op `frobnicate`"},
      {"%0 = 3", "x.ir:2:8: expected an op, found `3`"},
      {"%0 add %x, %x", "x.ir:2:6: expected `=`, found `add`"},
      {"%0 = add %x, %y", "x.ir:2:16: %y is not defined before this line"},
      {"%0 = exp %0", "x.ir:2:12: %0 is not defined before this line"},
      {"%0 = add %x,\n {}", "x.ir:3:2: expected a value, found `{`"},
      {"%0 = add %x, %n", "x.ir:2:8: add: dtypes differ: operand 0 is f32[2], operand 1 is i32[2]"},
      {"%x = exp %x", "x.ir:2:3: %x is defined already"},
      {"exp %x", "x.ir:2:3: `exp` gives 1 result(s), 0 name(s) stand before `=`"},
      {"%0, %1 = exp %x", "x.ir:2:12: `exp` gives 1 result(s), 2 name(s) stand before `=`"},
      {"%0, %0 = optimization_barrier %x, %x", "x.ir:2:7: %0 is defined already"},
      {"%0 = exp %x : f32[3]", "x.ir:2:17: %0 is f32[2], the text says f32[3]"},
      {"%0, %1 = optimization_barrier %x, %n : f32[2]", "x.ir:3:3: expected `,`, found `return`"},
      {"%0, %1 = optimization_barrier %x, %n : f32[2], f32[2]", "x.ir:2:50: %1 is i32[2], the text says f32[2]"},
      {"%0 = reduce_sum %x {axis = 0}", "x.ir:2:23: `reduce_sum` has no attribute `axis` (it has: axes)"},
      {"%0 = exp %x {axes = [0]}", "x.ir:2:16: `exp` has no attribute `axes` (it has: none)"},
      {"%0 = reduce_sum %x {axes = [0], axes = [0]}", "x.ir:2:35: the attribute `axes` is written twice"},
      {"%0 = exp %x {linear}", "x.ir:2:16: `exp` has no attribute `linear` (it has: none)"},
      {"%0 = constant 1 {value = 1} : f32[]", "x.ir:2:19: a constant needs its type, as in `constant 0.5 : f32[2]`"},
      {"%0 = reduce_sum %x {axes = 0}", "x.ir:2:30: expected `[`, found `0`"},
      {"%0 = reduce_sum %x {axes = [0.5]}", "x.ir:2:31: expected an integer, found `0.5`"},
      {"%0 = reduce_sum %x {axes = [0}", "x.ir:2:32: expected `]`, found `}`"},
      {"%0 = reduce_sum %x {axes [0]}", "x.ir:2:28: expected `=`, found `[`"},
      {"%0 = reduce_sum %x {\"axes\" = [0]}", "x.ir:2:23: expected an attribute, found `\"axes\"`"},
      {"%0 = argmax %x {axis = 99999999999999999999, dtype = i32}",
       "x.ir:2:26: 99999999999999999999 does not fit 64 bits"},
      {"%0 = argmax %x {axis = 0}", "x.ir:2:8: `argmax` needs the attribute `dtype`"},
      {"%0 = convert %x {dtype = int}", "x.ir:2:28: unknown dtype `int`"},
      {"%0 = call %x", "x.ir:2:8: `call` needs the attribute `body`"},
      {"%0 = call %x {body = main}", "x.ir:2:24: expected a body, as in `@inner`, found `main`"},
      {"%0 = composite %x {name = softmax}", "x.ir:2:29: expected a string, found `softmax`"},
      {"%0 = composite %x {name = \"soft\n", "x.ir:2:29: the string does not end on its line"},
      {"%0 = composite %x {name = \"soft\\\n", "x.ir:2:29: the string does not end on its line"},
      {"%0 = gather %x, %n {mode = wrap}", "x.ir:2:30: expected `error` or `clip`, found `wrap`"},
      {"%0 = scatter %x, %n, %x {combine = sub}",
       "x.ir:2:38: expected `add`, `mul`, `min`, `max` or `set`, found `sub`"},
  };
  for (const auto& [op, error] : cases) EXPECT_EQ(error_of_op(op), error) << op;
}

TEST(MalformedText, Constants) {
  const Case cases[] = {
      {"%0 = constant 0.5", "x.ir:3:3: a constant needs its type, as in `constant 0.5 : f32[2]`"},
      {"%0 = constant : f32[2]", "x.ir:2:17: expected a number or a list, found `:`"},
      {"%0 = constant [1, 2, 3] : f32[2]", "x.ir:2:17: the constant has 3 elements, f32[2] has 2"},
      {"%0 = constant [1, 2] : f32[2,1]", "x.ir:2:18: the lists do not nest as [2,1]"},
      {"%0 = constant [[1, 2]] : f32[2]", "x.ir:2:18: the lists do not nest as [2]"},
      {"%0 = constant [[1], 2] : f32[2,1]", "x.ir:2:23: the lists do not nest as [2,1]"},
      {"%0 = constant [1, 2,] : f32[2]", "x.ir:2:22: the lists do not nest as [2]"},
      {"%0 = constant [1 2] : f32[2]", "x.ir:2:20: the lists do not nest as [2]"},
      {"%0 = constant [1] : f32[]", "x.ir:2:17: the lists do not nest as []"},
      {"%0 = constant [[]] : f32[1,0]", "x.ir:2:18: a constant f32[1,0] without elements is written `[]`"},
      {"%0 = constant [1 : f32[1]", "x.ir:2:20: expected a number, `,` or `]`, found `:`"},
      {"%0 = constant 1.5 : i32[]", "x.ir:2:17: `1.5` is no i32"},
      {"%0 = constant [1, 300] : u8[2]", "x.ir:2:21: `300` is no u8"},
      {"%0 = constant maybe : bool[]", "x.ir:2:17: `maybe` is no bool"},
      {"%0 = constant 1 : bool[]", "x.ir:2:17: `1` is no bool"},
      {"%0 = constant [1, 2] : f32[1000000000]",
       "x.ir:2:17: the constant has 2 elements, f32[1000000000] has 1000000000"},
      {"%0 = constant dense<1, 2, 3, ...> : f32[100]",
       "x.ir:2:17: the constant is abbreviated; print the text with --full-constants to read it back"},
  };
  for (const auto& [op, error] : cases) EXPECT_EQ(error_of_op(op), error) << op;
  // A huge splat is one element.
  EXPECT_EQ(error_of_op("%0 = constant 0.5 : f32[1000000000,1000000000]"), "no error");
}

TEST(MalformedText, DepthIsAnErrorNotAStackOverflow) {
  EXPECT_EQ(error_of_op("%0 = constant " + times(1000000, "[") + " : f32[2]"),
            "x.ir:2:1000018: expected a number, `,` or `]`, found `:`");
  EXPECT_EQ(error_of_op("%0 = constant " + times(1000000, "[") + times(1000000, "]") + " : f32[0]"),
            "x.ir:2:18: a constant f32[0] without elements is written `[]`");
  EXPECT_EQ(error_of("func @main() " + times(100000, "{")), "x.ir:1:100014: expected `}`, found the end of the text");
  std::string chain;
  for (int i = 0; i < 100000; ++i)
    chain += "func @f" + std::to_string(i) + "() {\n call {body = @f" + std::to_string(i + 1) + "}\n return }\n";
  EXPECT_EQ(error_of(chain + "func @f100000() { return }"), "x.ir:602:15: bodies are nested more than 200 deep");
  // The same chain named from its end: no walk is deep, the nesting is.
  std::string reversed = "func @main() { call {body = @f0} return }\n";
  for (int i = 0; i < 300; ++i) {
    reversed += "func @f" + std::to_string(i) + "() { ";
    if (i > 0) reversed += "call {body = @f" + std::to_string(i - 1) + "} ";
    reversed += "return }\n";
  }
  EXPECT_EQ(error_of(reversed), "x.ir:203:29: bodies are nested more than 200 deep");
}

// Every prefix and many one-character changes of a valid text give an Error or a program, never a crash.
TEST(MalformedText, DamagedTextsNeverCrash) {
  const std::string text =
      "func @main(%x: f32[3,5], %i: i32[]) -> (f32[3], i32[2]) {\n"
      "  %0 = reduce_sum %x {axes = [1]} : f32[3]\n"
      "  %c = constant [[1, -2e+3], [inf, 0x7FC00001]] : f32[2,2]\n"
      "  %1, %2 = call %0, %i {body = @inner} : f32[3], i32[]\n"
      "  %3 = composite %1 {name = \"a\\\"b\", body = @one} : f32[3]\n"
      "  %4 = broadcast %2 {shape = [2]} // comment\n"
      "  return %3, %4\n}\n"
      "func @inner(%x: f32[3], %i: i32[]) { return %x, %i }\n"
      "func @one(%x: f32[3]) { %0 = exp %x return %0 }\n";
  ASSERT_EQ(error_of(text), "no error");
  for (std::size_t n = 0; n < text.size(); ++n) error_of(std::string_view(text).substr(0, n));
  std::mt19937 random(7);
  const std::string_view replacements = "%@{}[](),:=->\"\\x0 9.\n$";
  int valid = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = text;
    for (unsigned k = 0; k <= random() % 3; ++k) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0: damaged[at] = replacements[random() % replacements.size()]; break;
        case 1: damaged.erase(at, 1 + random() % 4); break;
        default: damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 12)); break;
      }
    }
    valid += error_of(damaged) == "no error";
  }
  EXPECT_GT(valid, 0);
  EXPECT_LT(valid, 10000);
}

}  // namespace
}  // namespace burin::ir
