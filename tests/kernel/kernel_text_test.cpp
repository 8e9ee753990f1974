#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "ir/kernel/block_builder.h"
#include "tests/kernel/kernels.h"

namespace burin::ir {
namespace {

Hash128 hash_of(const Kernel& kernel) {
  Hasher hasher;
  kernel.hash(hasher);
  return hasher.finish();
}

std::string error_of(std::string_view text) {
  try {
    parse_kernel(text, "k.txt");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(KernelText, EveryKernelPrintsAsItIsWritten) {
  for (std::string_view text : kernels::all) {
    const Kernel kernel = parse_kernel(text);
    EXPECT_EQ(print(kernel), text);
    EXPECT_EQ(hash_of(parse_kernel(print(kernel))), hash_of(kernel));
  }
}

TEST(KernelText, BuiltKernelPrintsAndReadsBack) {
  Kernel kernel;
  kernel.name = "strange name!";
  kernel.sites.push_back({"a \"quoted\"\n message"});
  const BufferId x = kernel.add_buffer({"params.w", f32, {4, 6}, {6, 1}, Space::in});
  const BufferId y = kernel.add_buffer({"params.w", f32, {4, 6}, {1, 4}, Space::out});
  const VarId unused = kernel.new_var("unused");
  const VarId t = kernel.new_var("t");
  kernel.tasks.emplace_back(t, 4);
  BlockBuilder b(kernel);
  // The ids of these two are in the other order than their definitions.
  const VarId late = kernel.new_var("j");
  b.loop("j", 0, {Affine(6)}, LoopKind::vector, 4, [&](VarId j) {
    const ScalarId value = b.load(x, {Affine(t), Affine(j)});
    b.store(y, {Affine(t), Affine(5) - Affine(j)}, value);
    Stmt inner{.kind = StmtKind::loop, .var = late, .lo = -3, .hi = {Affine(late.index * 0 + 2) - Affine(j, 2)}};
    inner.loop_kind = LoopKind::unroll;
    b.push(inner);
  });
  EXPECT_FALSE(t == unused);
  const std::string text = print(kernel);
  EXPECT_EQ(text,
            R"(kernel @strange_name_(in params_w: f32[4,6], out params_w_: f32[4,6] strides [1,4]) tasks (t in 4) {
  site "a \"quoted\"\n message"
  for j in 0..6 vector 4 {
    %0 = load params_w[t, j]
    store params_w_[t, 5 - j], %0
    for j_ in -3..2 - 2*j unroll {
    }
  }
}
)");
  const Kernel read = parse_kernel(text);
  EXPECT_EQ(print(read), text);
  EXPECT_EQ(read.sites[0].message, kernel.sites[0].message);
  EXPECT_EQ(hash_of(read), hash_of(kernel));
}

// What a `finish` converts to shows in no other statement when comparisons read it.
TEST(KernelText, HashSeesTheDTypeOfAFinish) {
  const auto kernel = [](std::string dtype) {
    return parse_kernel("kernel @k(in x: f32[4], out y: bool[1]) {\n  acc %s: f32 sum lanes 1\n  for j in 0..4 {\n    %0 = load x[j]\n"
                        "    accumulate %s, %0\n  }\n  %1 = finish %s : " + dtype + "\n  %2 = lt %1, %1 : bool\n  store y[0], %2\n}\n");
  };
  for (const char* dtype : {"f16", "bf16", "i32"}) {
    EXPECT_EQ(verify(kernel(dtype)), "") << dtype;
    EXPECT_NE(hash_of(kernel("f32")), hash_of(kernel(dtype))) << dtype;
  }
}

TEST(KernelText, HashSeesStructureAndNotNames) {
  const Hash128 hash = hash_of(parse_kernel(kernels::pad));
  std::string renamed(kernels::pad);
  for (std::size_t at; (at = renamed.find('j')) != std::string::npos;) renamed.replace(at, 1, "column");
  EXPECT_EQ(hash_of(parse_kernel(renamed)), hash);
  EXPECT_NE(print(parse_kernel(renamed)), print(parse_kernel(kernels::pad)));
  EXPECT_EQ(print_structure(parse_kernel(renamed)), print_structure(parse_kernel(kernels::pad)));
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string text(kernels::pad);
    text.replace(text.find(from), from.size(), to);
    return hash_of(parse_kernel(text));
  };
  EXPECT_NE(changed("13 vector", "12 vector"), hash);
  EXPECT_NE(changed("vector 4", "vector 8"), hash);
  EXPECT_NE(changed("vector 4", "unroll"), hash);
  EXPECT_NE(changed("j - 2]", "j - 1]"), hash);
  EXPECT_NE(changed("constant 0", "constant -0"), hash);
  EXPECT_NE(changed("x: f32[10]", "x: f32[10] strides [2]"), hash);
  EXPECT_NE(changed(" and 11 - j >= 0", ""), hash);
  EXPECT_NE(changed("out y", "inout y"), hash);
  std::string blocks(kernels::pairs);
  blocks.replace(blocks.find("blocks 2"), 8, "blocks 4");
  EXPECT_NE(hash_of(parse_kernel(blocks)), hash_of(parse_kernel(kernels::pairs)));
  std::string site(kernels::gather_error);
  site.replace(site.find("take:"), 5, "gather:");
  EXPECT_EQ(hash_of(parse_kernel(site)), hash_of(parse_kernel(kernels::gather_error)));
  EXPECT_EQ(print_structure(parse_kernel(site)), print_structure(parse_kernel(kernels::gather_error)));
  EXPECT_NE(hash_of(parse_kernel(kernels::gather_clip)), hash_of(parse_kernel(kernels::gather_error)));
}

TEST(KernelText, ErrorsSayWhere) {
  EXPECT_EQ(error_of(""), "k.txt:1:1: expected `kernel`, found the end of the text");
  EXPECT_EQ(error_of("kernel @f("), "k.txt:1:11: expected `in`, `out` or `inout`, found the end of the text");
  EXPECT_EQ(error_of("kernel f"), "k.txt:1:8: expected a kernel name like @add, found `f`");
  EXPECT_EQ(error_of("kernel @f(in x: f31[2]) {\n}"), "k.txt:1:17: unknown dtype `f31`, did you mean `f32`?");
  EXPECT_EQ(error_of("kernel @f(in x: f32[-2]) {\n}"), "k.txt:1:21: the extent -2 is negative");
  EXPECT_EQ(error_of("kernel @f(in x: f32[1,1,1,1,1,1,1,1,1]) {\n}"), "k.txt:1:37: more than 8 axes");
  EXPECT_EQ(error_of("kernel @f(in x: f32[99999999999,9999999]) {\n}"),
            "k.txt:1:14: expected a buffer of at most 2^48 elements, found f32[99999999999,9999999]");
  EXPECT_EQ(error_of("kernel @f(in x: f32[2] strides [1,2]) {\n}"),
            "k.txt:1:35: expected one stride per axis, found `2`");
  EXPECT_EQ(error_of("kernel @f(in x: f32[2], in x: f32[2]) {\n}"), "k.txt:1:28: the buffer `x` is defined twice");
  EXPECT_EQ(error_of("kernel @f() {\n  store y[1], %0\n}"), "k.txt:2:9: unknown buffer `y`");
  EXPECT_EQ(error_of("kernel @f(out y: f32[2]) {\n  store y[1], %0\n}"), "k.txt:2:15: unknown value `0`");
  EXPECT_EQ(error_of("kernel @f(out y: f32[2]) {\n  store y[j], %0\n}"), "k.txt:2:11: unknown variable `j`");
  EXPECT_EQ(error_of("kernel @f() {\n  %0 = constant 1.5 : i32\n}"), "k.txt:2:17: `1.5` is no i32");
  EXPECT_EQ(error_of("kernel @f() {\n  %0 = constant 300 : u8\n}"), "k.txt:2:17: `300` is no u8");
  EXPECT_EQ(error_of("kernel @f() {\n  %0 = frob %1 : i32\n}"), "k.txt:2:8: unknown op `frob`");
  EXPECT_EQ(error_of("kernel @f() {\n  %0 = constant 1 : i32\n  %0 = constant 1 : i32\n}"),
            "k.txt:3:3: the value `0` is defined twice");
  EXPECT_EQ(error_of("kernel @f() {\n  finish\n}"), "k.txt:2:3: expected a statement, found `finish`");
  EXPECT_EQ(error_of("kernel @f() {\n  for i in 0..99999999999999999999 {\n  }\n}"),
            "k.txt:2:15: 99999999999999999999 does not fit 64 bits");
  EXPECT_EQ(error_of("kernel @f() {\n  for i in 0..281474976710657 {\n  }\n}"),
            "k.txt:2:15: expected an integer of at most 2^48, found `281474976710657`");
  EXPECT_EQ(error_of("kernel @f() {\n  for i in 0..281474976710656 + 1 {\n  }\n}"),
            "k.txt:2:15: expected an index expression with factors of at most 2^48, found a larger one");
  EXPECT_EQ(error_of("kernel @f() {\n  site \"open\n}"), "k.txt:2:8: the string does not end on its line");
  EXPECT_EQ(error_of("kernel @f() {\n  %a.. = x\n}"), "k.txt:2:10: unknown op `x`");
  EXPECT_EQ(error_of("kernel @f() {\n  accumulate %s, %0\n}"), "k.txt:2:14: unknown accumulator `s`");
  EXPECT_EQ(error_of("kernel @f(in x: u32[1,1]) {\n  tile t: f32[1,1]\n  mma t[r, c] += x[r, k] * x[k, c] for k in 0..1 blocks 0\n}"),
            "k.txt:3:57: expected the pairs of a block, at least one, found `0`");
  EXPECT_EQ(error_of("kernel @f() {\n} }"), "k.txt:2:3: expected the end of the text, found `}`");
  std::string deep = "kernel @f() {\n";
  for (int i = 0; i < 100000; ++i) deep += "for i in 0..1 {\n";
  EXPECT_EQ(error_of(deep), "k.txt:66:1: more than 64 nested blocks");
}

TEST(KernelText, TheKernelsOfTheManualAreReal) {
  std::ifstream file("docs/kernel.md");
  const std::string manual{std::istreambuf_iterator<char>(file), {}};
  int found = 0;
  for (std::size_t at = 0; (at = manual.find("```\nkernel @", at)) != std::string::npos; ++at) {
    const std::size_t begin = at + 4;
    const std::string text = manual.substr(begin, manual.find("```", begin) - begin);
    const Kernel kernel = parse_kernel(text, "docs/kernel.md");
    EXPECT_EQ(print(kernel), text);
    EXPECT_EQ(verify(kernel), "");
    ++found;
  }
  EXPECT_EQ(found, 1);
}

// Whatever is cut off or replaced, the parser answers with an error or a kernel.
TEST(KernelText, DamagedTextNeverCrashes) {
  for (std::string_view text : kernels::all) {
    for (std::size_t size = 0; size < text.size(); ++size)
      EXPECT_TRUE(error_of(text.substr(0, size)).starts_with("k.txt:") || size + 1 == text.size()) << size;
    for (std::size_t at = 0; at < text.size(); ++at)
      for (const char c : {'[', '}', '%', '9', '"', '\n'}) {
        std::string damaged(text);
        damaged[at] = c;
        error_of(damaged);
      }
  }
}

}  // namespace
}  // namespace burin::ir
