#include <gtest/gtest.h>

#include "ir/kernel/block_builder.h"
#include "tests/kernel/kernels.h"

namespace burin::ir {
namespace {

std::string verdict(std::string_view text) { return verify(parse_kernel(text)); }
std::string body(std::string_view params, std::string_view statements) {
  return verdict("kernel @f(" + std::string(params) + ") {\n" + std::string(statements) + "\n}");
}
std::string tasks(std::string_view params, std::string_view statements) {
  return verdict("kernel @f(" + std::string(params) + ") tasks (t in 4) {\n" + std::string(statements) + "\n}");
}

TEST(KernelVerifier, AcceptsTheKernelsOfTheOtherTests) {
  for (std::string_view text : kernels::all) EXPECT_EQ(verdict(text), "");
}

TEST(KernelVerifier, K1NamesAreDefinedBeforeAndInScope) {
  EXPECT_EQ(body("out y: f32[4]", "for i in 0..4 {\n  %0 = constant 1 : f32\n}\nstore y[0], %0"),
            "K1: kernel @f: `store y[0], %0`: a value is used that is not defined before, or not in this scope");
  EXPECT_EQ(body("out y: f32[4]", "%0 = constant 1 : f32\nfor i in 0..4 {\n}\nstore y[i], %0"),
            "K1: kernel @f: `store y[i], %0`: an index uses a variable that is not in scope");
  EXPECT_EQ(body("out y: f32[4]", "for i in 0..4 {\n  acc %s: f32 sum lanes 1\n}\n%0 = finish %s : f32"),
            "K1: kernel @f: `%0 = finish %sum0 : f32`: an accumulator is used that is not defined before, or not in "
            "this scope");
  Kernel kernel;
  kernel.name = "f";
  Stmt s{.kind = StmtKind::store, .args = {ScalarId{std::size_t{3}}}, .buffer = BufferId{std::size_t{7}}};
  kernel.body.push_back(s);
  EXPECT_EQ(verify(kernel), "K1: kernel @f: `store undefined[], %undefined3`: there is no such buffer");
  kernel.body = {Stmt{.kind = StmtKind::constant, .literal = Literal::scalar(f32, 1)}};
  EXPECT_EQ(verify(kernel), "K1: kernel @f: `%0 = constant 1 : f32`: the result has no number below num_scalars");
  kernel.body[0].result = kernel.new_scalar();
  kernel.body.push_back(kernel.body[0]);
  EXPECT_EQ(verify(kernel), "K1: kernel @f: `%1 = constant 1 : f32`: the result is defined already");
}

TEST(KernelVerifier, K2DtypesAgree) {
  const std::string start = "%0 = constant 1 : f32\n%1 = constant 1 : i32\n";
  EXPECT_EQ(body("out y: f32[4]", start + "%2 = add %0, %1 : f32"),
            "K2: kernel @f: `%2 = add %0, %1 : f32`: add: dtypes differ: operand 0 is f32[], operand 1 is i32[]");
  EXPECT_EQ(body("out y: f32[4]", start + "%2 = add %0, %0 : f64"),
            "K2: kernel @f: `%2 = add %0, %0 : f64`: the result is f64, expected f32");
  EXPECT_EQ(body("out y: f32[4]", start + "%2 = lt %0, %0 : f32"),
            "K2: kernel @f: `%2 = lt %0, %0 : f32`: the result is f32, expected bool");
  EXPECT_EQ(body("out y: f32[4]", start + "%2 = add %0 : f32"),
            "K2: kernel @f: `%2 = add %0 : f32`: 1 operand, expected 2");
  EXPECT_EQ(body("out y: f32[4]", start + "%2 = reduce_sum %0 : f32"),
            "K2: kernel @f: `%2 = reduce_sum %0 : f32`: reduce_sum is no elementwise op");
  EXPECT_EQ(body("out y: f32[4]", start + "store y[0], %1"),
            "K2: kernel @f: `store y[0], %1`: the stored value is i32, expected f32");
  EXPECT_EQ(body("in x: f32[4]", start + "%2 = load x[0] if 1 >= 0 else %1"),
            "K2: kernel @f: `%2 = load x[0] if 1 >= 0 else %1`: the value behind else is i32, expected f32");
  EXPECT_EQ(body("out y: f32[4]", start + "acc %s: f32 sum lanes 1\naccumulate %s, %1"),
            "K2: kernel @f: `accumulate %sum0, %1`: the value is i32, expected f32");
  EXPECT_EQ(body("out y: f32[4]", start + "acc %s: f32 sum lanes 1 from %1"),
            "K2: kernel @f: `acc %sum0: f32 sum lanes 1 from %1`: the start is i32, expected f32");
  EXPECT_EQ(body("out y: f32[4]", start + "acc %s: f32 and lanes 1"),
            "K2: kernel @f: `acc %and0: f32 and lanes 1`: and is defined for integers and bool, found f32");
  EXPECT_EQ(body("out y: f32[4]", start + "bind i = %0 in 0..3 clip"),
            "K2: kernel @f: `bind i = %0 in 0..3 clip`: an index is an integer, found f32");
  EXPECT_EQ(body("out y: f32[4]", "%0 = index 3 : bool"),
            "K2: kernel @f: `%0 = index 3 : bool`: an index is a number, found bool");
  EXPECT_EQ(body("in x: f64[2,2]", "tile t: f32[2,2]\nmma t[r, c] += x[r, k] * x[k, c] for k in 0..2"),
            "K2: kernel @f: `mma t[r, c] += x[r, k] * x[k, c] for k in 0..2`: mma multiplies f64 in f32");
  EXPECT_EQ(body("in x: u32[2,2], in y: f32[2,2]", "tile t: f32[2,2]\nmma t[r, c] += x[r, k] * y[k, c] for k in 0..2"),
            "K2: kernel @f: `mma t[r, c] += x[r, k] * y[k, c] for k in 0..2`: mma multiplies u32 in f32");
  const std::string filled =
      "tile t: f32[2,2]\n%0 = constant 0 : f32\nfor i in 0..2 unroll {\n  for j in 0..2 unroll {\n    store t[i, j], %0\n  }\n}\n";
  EXPECT_EQ(body("in x: u32[2,2]", filled + "mma t[r, c] += x[r, k] * x[k, c] for k in 0..2"), "");
  EXPECT_EQ(body("in x: f32[2,2]", filled + "mma t[r, c] += x[r, k] * x[k, c] for k in 0..2 blocks 2"),
            "K2: kernel @f: `mma t[r, c] += x[r, k] * x[k, c] for k in 0..2 blocks 2`: mma goes by blocks over pairs of bf16 alone");
  EXPECT_EQ(body("in x: u32[2,2]", filled + "mma t[r, c] += x[r, k] * x[k, c] for k in 0..2 blocks 2"), "");
  EXPECT_EQ(body("in x: bf16[2,2]", "tile t: bf16[2,2]\nmma t[r, c] += x[r, k] * x[k, c] for k in 0..2"),
            "K2: kernel @f: `mma t[r, c] += x[r, k] * x[k, c] for k in 0..2`: mma sums in f32 or f64, found bf16");
  Kernel kernel = parse_kernel("kernel @f() {\n  %0 = constant 1 : f32\n}");
  kernel.body[0].dtype = i32;
  EXPECT_EQ(verify(kernel), "K2: kernel @f: `%0 = constant 1 : i32`: the constant is no i32");
}

TEST(KernelVerifier, K3AccessesStayInside) {
  EXPECT_EQ(body("in x: f32[4]", "for i in 0..5 {\n  %0 = load x[i]\n}"),
            "K3: kernel @f: `%0 = load x[i]`: axis 0 of x may reach 4, its extent is 4");
  EXPECT_EQ(body("in x: f32[4]", "for i in 0..4 {\n  %0 = load x[i - 1]\n}"),
            "K3: kernel @f: `%0 = load x[i - 1]`: axis 0 of x may reach -1");
  EXPECT_EQ(body("in x: f32[4,5]", "for i in 0..4 {\n  %0 = load x[i]\n}"),
            "K3: kernel @f: `%0 = load x[i]`: x has 2 axes, found 1 index");
  EXPECT_EQ(body("in x: f32[4,5]", "for i in 0..5 {\n  for j in 0..4 {\n    %0 = load x[i, j]\n  }\n}"),
            "K3: kernel @f: `%0 = load x[i, j]`: axis 0 of x may reach 4, its extent is 4");
  // Conditions and second bounds count.
  const std::string guard =
      "%0 = constant 0 : f32\nfor j in 0..9 {\n  %1 = load x[j - 1] if j - 1 >= 0 and 4 - j >= 0 else %0\n}";
  EXPECT_EQ(body("in x: f32[4]", guard), "");
  EXPECT_EQ(body("in x: f32[3]", guard),
            "K3: kernel @f: `%1 = load x[j - 1] if j - 1 >= 0 and 4 - j >= 0 else %0`: axis 0 of x may reach 3, its "
            "extent is 3");
  EXPECT_EQ(
      body("in x: f32[100]", "for t in 0..7 {\n  for j in 0..min(16, 100 - 16*t) {\n    %0 = load x[16*t + j]\n  }\n}"),
      "");
  EXPECT_EQ(
      body("in x: f32[99]", "for t in 0..7 {\n  for j in 0..min(16, 100 - 16*t) {\n    %0 = load x[16*t + j]\n  }\n}"),
      "K3: kernel @f: `%0 = load x[16*t + j]`: axis 0 of x may reach 99, its extent is 99");
  EXPECT_EQ(body("in x: f32[10]", "for i in 0..20 {\n  if 9 - i >= 0 {\n    %0 = load x[9 - i]\n  }\n}"), "");
  EXPECT_EQ(body("in x: f32[10]", "for i in 0..20 {\n  if 10 - i >= 0 {\n    %0 = load x[i]\n  }\n}"),
            "K3: kernel @f: `%0 = load x[i]`: axis 0 of x may reach 10, its extent is 10");
  // A triangle: the inner bound depends on the outer index.
  EXPECT_EQ(body("in x: f32[9]", "for i in 0..5 {\n  for j in 0..i {\n    %0 = load x[i + j]\n  }\n}"), "");
  EXPECT_EQ(body("in x: f32[9]", "for i in 0..5 {\n  for j in 0..i + 1 {\n    %0 = load x[i + j]\n  }\n}"), "");
  EXPECT_EQ(body("in x: f32[8]", "for i in 0..5 {\n  for j in 0..i + 1 {\n    %0 = load x[i + j]\n  }\n}"),
            "K3: kernel @f: `%0 = load x[i + j]`: axis 0 of x may reach 8, its extent is 8");
  // Nothing runs, so nothing is outside.
  EXPECT_EQ(body("in x: f32[0,3]", "for i in 0..0 {\n  %0 = load x[i, 2]\n}"), "");
  EXPECT_EQ(body("in x: f32[0,3]", "for i in 0..1 {\n  %0 = load x[i, 2]\n}"),
            "K3: kernel @f: `%0 = load x[i, 2]`: axis 0 of x may reach 0, its extent is 0");
  EXPECT_EQ(
      body("in x: f32[3,8], in w: f32[8,4]", "tile t: f32[3,4]\nmma t[r, c] += x[r, k] * w[k, c] for k in 0..9"),
      "K3: kernel @f: `mma t[r, c] += x[r, k] * w[k, c] for k in 0..9`: axis 1 of x may reach 8, its extent is 8");
  EXPECT_EQ(
      body("in x: f32[2,8], in w: f32[8,4]", "tile t: f32[3,4]\nmma t[r, c] += x[r, k] * w[k, c] for k in 0..8"),
      "K3: kernel @f: `mma t[r, c] += x[r, k] * w[k, c] for k in 0..8`: axis 0 of x may reach 2, its extent is 2");
}

TEST(KernelVerifier, K4TasksAreIndependent) {
  const std::string one = "%0 = constant 1 : f32\n";
  EXPECT_EQ(tasks("out y: f32[4]", one + "store y[t], %0"), "");
  EXPECT_EQ(tasks("out y: f32[4]", one + "store y[3 - t], %0"), "");
  EXPECT_EQ(tasks("out y: f32[4]", one + "store y[0], %0"),
            "K4: kernel @f: `store y[0], %0`: two tasks may store the same element of y");
  EXPECT_EQ(tasks("out y: f32[4]", one + "store y[0], %0 if 0 - t >= 0"), "");
  EXPECT_EQ(tasks("out y: f32[20]", one + "for j in 0..5 {\n  store y[5*t + j], %0\n}"), "");
  EXPECT_EQ(tasks("out y: f32[20]", one + "for j in 0..5 {\n  store y[4*t + j], %0\n}"),
            "K4: kernel @f: `store y[4*t + j], %0`: two tasks may store the same element of y");
  EXPECT_EQ(tasks("out y: f32[20]", one + "for j in 0..5 {\n  store y[t + 4*j], %0\n}"), "");
  EXPECT_EQ(tasks("out y: f32[20]", one + "for j in 0..5 {\n  store y[t + 3*j], %0\n}"),
            "K4: kernel @f: `store y[t + 3*j], %0`: two tasks may store the same element of y");
  EXPECT_EQ(tasks("out y: f32[17]", one + "for j in 0..min(5, 17 - 5*t) {\n  store y[5*t + j], %0\n}"), "");
  // Strides that repeat elements make different indices the same element.
  EXPECT_EQ(tasks("out y: f32[4,3] strides [3,1]", one + "store y[t, 0], %0"), "");
  EXPECT_EQ(tasks("out y: f32[4,3] strides [0,1]", one + "store y[t, 0], %0"),
            "K4: kernel @f: `store y[t, 0], %0`: two tasks may store the same element of y");
  EXPECT_EQ(tasks("out y: f32[4,3] strides [2,1]", one + "store y[t, 1], %0"), "");
  EXPECT_EQ(tasks("out y: f32[4,3] strides [2,1]", one + "for j in 0..3 {\n  store y[t, j], %0\n}"),
            "K4: kernel @f: `store y[t, j], %0`: two tasks may store the same element of y");
  // Loads of what another task stores, and two stores.
  EXPECT_EQ(tasks("inout y: f32[4]", "%0 = load y[t]\nstore y[t], %0"), "");
  EXPECT_EQ(tasks("inout y: f32[5]", "%0 = load y[t + 1]\nstore y[t], %0"),
            "K4: kernel @f: `store y[t], %0`: two tasks may meet in an element of y with `%0 = load y[t + 1]`");
  EXPECT_EQ(tasks("out y: f32[8]", one + "store y[2*t], %0\nstore y[2*t + 1], %0"), "");
  EXPECT_EQ(tasks("out y: f32[8]", one + "store y[t], %0\nstore y[t + 1], %0"),
            "K4: kernel @f: `store y[t], %0`: two tasks may meet in an element of y with `store y[t + 1], %0`");
  // A place that data decides on.
  EXPECT_EQ(tasks("in i: i32[4], out y: f32[4]", one + "%1 = load i[t]\nbind row = %1 in 0..4 clip\nstore y[row], %0"),
            "K4: kernel @f: `store y[row], %0`: two tasks may store the same element of y");
  EXPECT_EQ(
      tasks("in i: i32[4], out y: f32[4,4]", one + "%1 = load i[t]\nbind row = %1 in 0..4 clip\nstore y[row, t], %0"),
      "");
  // Several coordinates: flattened by hand, or one axis each.
  const std::string grid =
      "kernel @f(out y: f32[60]) tasks (a in 3, b in 4) {\n  %0 = constant 1 : f32\n  for c in 0..5 {\n";
  EXPECT_EQ(verdict(grid + "    store y[20*a + 5*b + c], %0\n  }\n}"), "");
  EXPECT_EQ(verdict(grid + "    store y[15*a + 5*b + c], %0\n  }\n}"),
            "K4: kernel @f: `store y[15*a + 5*b + c], %0`: two tasks may store the same element of y");
  EXPECT_EQ(verdict(grid + "    store y[20*a + c], %0\n  }\n}"),
            "K4: kernel @f: `store y[20*a + c], %0`: two tasks may store the same element of y");
  // Columns in blocks of 4, 17 of them to a row.
  EXPECT_EQ(verdict("kernel @f(out y: f32[51]) tasks (t in 5) {\n  %0 = constant 1 : f32\n  for i in 0..3 {\n"
                    "    for j in 0..min(4, 17 - 4*t) {\n      store y[4*t + 17*i + j], %0\n    }\n  }\n}"),
            "");
  EXPECT_EQ(verdict("kernel @f(out y: f32[51]) tasks (t in 5) {\n  %0 = constant 1 : f32\n  for i in 0..3 {\n"
                    "    for j in 0..min(4, 17 - 4*t) {\n      store y[4*t + 16*i + j], %0\n    }\n  }\n}"),
            "K4: kernel @f: `store y[4*t + 16*i + j], %0`: two tasks may store the same element of y");
  // Three digits at once, the tasks in the middle: rows of 64, blocks of 16 columns, tiles of 22 rows.
  const std::string tiles =
      "kernel @f(out y: f32[4096]) tasks (a in 4, b in 2) {\n  %0 = constant 1 : f32\n"
      "  for i in 0..min(2, 2 - 2*b) {\n    for r in 0..22 {\n      for c in 0..16 {\n";
  EXPECT_EQ(verdict(tiles + "        store y[16*a + 2816*b + 1408*i + 64*r + c], %0\n      }\n    }\n  }\n}"), "");
  EXPECT_EQ(
      verdict(tiles + "        store y[15*a + 2816*b + 1408*i + 64*r + c], %0\n      }\n    }\n  }\n}"),
      "K4: kernel @f: `store y[15*a + 2816*b + 1408*i + 64*r + c], %0`: two tasks may store the same element of y");
  // One task has nobody to meet; scratch is private.
  EXPECT_EQ(body("out y: f32[4]", one + "store y[0], %0"), "");
  EXPECT_EQ(tasks("out y: f32[4]", "scratch s: f32[1]\n" + one + "store s[0], %0"), "");
}

TEST(KernelVerifier, K5LanesOfAVectorLoopStayTogether) {
  const std::string vector = "for i in 0..4 vector 4 {\n";
  EXPECT_EQ(body("out y: f32[4]", vector + "  for j in 0..2 unroll {\n  }\n}"), "");
  EXPECT_EQ(tasks("out y: f32[4]", vector + "  for j in 0..t {\n    for k in j..2*t {\n    }\n  }\n}"), "");
  EXPECT_EQ(body("out y: f32[4]", vector + "  for j in 0..i {\n  }\n}"),
            "K5: kernel @f: `for j in 0..i`: the bounds of a loop inside a vector loop are the same for all lanes");
  EXPECT_EQ(body("in x: i32[4]", vector + "  %0 = load x[i]\n  bind b = %0 in 0..9 clip\n  for j in b..9 {\n  }\n}"),
            "K5: kernel @f: `for j in b..9`: the bounds of a loop inside a vector loop are the same for all lanes");
  EXPECT_EQ(body("out y: f32[4]", vector + "  for j in 0..2 vector 2 {\n  }\n}"),
            "K5: kernel @f: `for j in 0..2 vector 2`: a vector loop holds no other one");
  EXPECT_EQ(
      body("in x: f32[2,2]", "tile t: f32[2,2]\n" + vector + "  mma t[r, c] += x[r, k] * x[k, c] for k in 0..2\n}"),
      "K5: kernel @f: `mma t[r, c] += x[r, k] * x[k, c] for k in 0..2`: a vector loop holds no mma");
}

TEST(KernelVerifier, K6TilesAreAddressedWithNumbers) {
  const std::string one = "tile t: f32[4,16]\n%0 = constant 1 : f32\n";
  EXPECT_EQ(body("", one + "for r in 0..4 unroll {\n  for j in 0..16 vector 8 {\n    store t[r, j], %0\n  }\n}"), "");
  EXPECT_EQ(
      body("", one + "for r in 0..2 unroll {\n  for j in 2*r..2*r + 2 unroll {\n    store t[2*r + 1, j], %0\n  }\n}"),
      "");
  EXPECT_EQ(body("", one + "for r in 0..4 {\n  store t[r, 0], %0\n}"),
            "K6: kernel @f: `store t[r, 0], %0`: axis 0 of the tile t is not known after unrolling");
  EXPECT_EQ(body("", one + "for j in 0..4 vector 4 {\n  store t[j, 0], %0\n}"),
            "K6: kernel @f: `store t[j, 0], %0`: axis 0 of the tile t is not known after unrolling");
  EXPECT_EQ(body("", one + "for j in 0..8 vector 4 {\n  store t[0, 2*j], %0\n}"),
            "K6: kernel @f: `store t[0, 2*j], %0`: axis 1 of the tile t is not known after unrolling");
  EXPECT_EQ(tasks("", one + "for j in t..t + 4 vector 4 {\n  store t[0, j], %0\n}"),
            "K6: kernel @f: `store t[0, j], %0`: axis 1 of the tile t is not known after unrolling");
  EXPECT_EQ(body("in x: f32[2,2]", "tile t: f32[2,2]\nmma t[r, c] += t[r, k] * x[k, c] for k in 0..2"),
            "K6: kernel @f: `mma t[r, c] += t[r, k] * x[k, c] for k in 0..2`: mma reads its factors from memory");
}

TEST(KernelVerifier, K7AccumulatorsHaveOneOrder) {
  const std::string start = "%0 = constant 1 : f32\nacc %s: f32 sum lanes 4\n";
  EXPECT_EQ(body("", start + "for i in 0..9 vector 4 {\n  accumulate %s, %0\n}\n%1 = finish %s : f32"), "");
  EXPECT_EQ(body("", start + "for i in 0..9 vector 8 {\n  accumulate %s, %0\n}\n%1 = finish %s : bf16"), "");
  EXPECT_EQ(body("", "acc %s: bf16 sum lanes 4\n%1 = finish %s : bf16"),
            "K2: kernel @f: `acc %sum0: bf16 sum lanes 4`: an accumulator of bf16, which rounds each term: expected f32");
  EXPECT_EQ(body("", start + "for i in 0..9 vector 2 {\n  accumulate %s, %0\n}"),
            "K7: kernel @f: `accumulate %sum0, %0`: the accumulator's 4 lanes do not divide the vector loop's 2");
  EXPECT_EQ(body("", start + "for i in 0..9 {\n  accumulate %s, %0\n}"),
            "K7: kernel @f: `accumulate %sum0, %0`: 4 lanes outside a vector loop, expected 1");
  EXPECT_EQ(body("", start + "%1 = finish %s : f32\nfor i in 0..9 vector 4 {\n  accumulate %s, %0\n}"),
            "K7: kernel @f: `accumulate %sum0, %0`: the accumulator is finished already");
  EXPECT_EQ(body("", start + "%1 = finish %s : f32\n%2 = finish %s : f32"),
            "K7: kernel @f: `%2 = finish %sum0 : f32`: the accumulator is finished already");
  EXPECT_EQ(body("", start + "for i in 0..9 {\n  %1 = finish %s : f32\n}"),
            "K7: kernel @f: `%1 = finish %sum0 : f32`: an accumulator is finished in the block that begins it");
  EXPECT_EQ(body("", "acc %s: f32 sum lanes 3"),
            "K7: kernel @f: `acc %sum0: f32 sum lanes 3`: 3 lanes, expected a power of two up to 64");
  EXPECT_EQ(body("", "for i in 0..4 vector 4 {\n  acc %s: f32 sum lanes 4\n}"),
            "K7: kernel @f: `acc %sum0: f32 sum lanes 4`: an accumulator inside a vector loop has one lane: each "
            "iteration has its own");
  // One per iteration.
  EXPECT_EQ(
      body("in x: f32[3,4], out y: f32[4]",
           "for i in 0..4 vector 4 {\n  acc %s: f32 sum lanes 1\n  for r in 0..3 unroll {\n    %0 = load x[r, i]\n"
           "    accumulate %s, %0\n  }\n  %1 = finish %s : f32\n  store y[i], %1\n}"),
      "");
}

TEST(KernelVerifier, K8StoresGoWhereTheyMay) {
  EXPECT_EQ(body("in x: f32[4]", "%0 = constant 1 : f32\nstore x[0], %0"),
            "K8: kernel @f: `store x[0], %0`: x is only read");
  EXPECT_EQ(body("in x: f32[2,2], out y: f32[2,2]", "mma y[r, c] += x[r, k] * x[k, c] for k in 0..2"),
            "K8: kernel @f: `mma y[r, c] += x[r, k] * x[k, c] for k in 0..2`: mma adds to a tile of two axes");
}

TEST(KernelVerifier, K9NumbersMakeSense) {
  EXPECT_EQ(body("in x: f32[4] strides [-1]", ""), "K9: kernel @f: x has the negative stride -1");
  EXPECT_EQ(body("in x: f32[1000000,1000000] strides [1000000000,1]", ""),
            "K9: kernel @f: x spans more than 2^48 elements");
  EXPECT_EQ(body("", "for i in 0..4 vector 0 {\n}"),
            "K9: kernel @f: `for i in 0..4 vector 0`: a vector loop of 0 lanes, expected a power of two up to 64");
  EXPECT_EQ(body("", "for i in 0..4 vector 3 {\n}"),
            "K9: kernel @f: `for i in 0..4 vector 3`: a vector loop of 3 lanes, expected a power of two up to 64");
  EXPECT_EQ(body("", "for i in 0..4 vector 128 {\n}"),
            "K9: kernel @f: `for i in 0..4 vector 128`: a vector loop of 128 lanes, expected a power of two up to 64");
  EXPECT_EQ(body("", "for i in 0..4 vector 64 {\n}"), "");
  EXPECT_EQ(tasks("", "for i in 0..t unroll {\n}"),
            "K9: kernel @f: `for i in 0..t unroll`: the bounds of an unrolled loop are not known");
  EXPECT_EQ(tasks("", "for i in 0..min(4, t) unroll {\n}"), "");
  EXPECT_EQ(body("in x: i32[1]", "%0 = load x[0]\nbind i = %0 in 0..0 clip"),
            "K9: kernel @f: `bind i = %0 in 0..0 clip`: no index lies in 0..0");
  Kernel kernel;
  kernel.name = "f";
  kernel.buffers.push_back({"s", f32, {4}, {1}, Space::scratch});
  kernel.buffers.push_back({"x", f32, {4}, {1}, Space::in});
  EXPECT_EQ(verify(kernel), "K9: kernel @f: the parameter x stands behind scratch buffers or tiles");
  kernel.buffers = {{"x", f32, {4, 2}, {1}, Space::in}};
  EXPECT_EQ(verify(kernel), "K9: kernel @f: x has 1 stride for 2 axes");
  kernel.buffers.clear();
  kernel.body = {Stmt{.kind = StmtKind::loop, .var = kernel.new_var("i")}};
  EXPECT_EQ(verify(kernel), "K9: kernel @f: `for i in 0..min()`: a loop without an upper bound");
  kernel.body = {Stmt{.kind = StmtKind::when}};
  EXPECT_EQ(verify(kernel), "K9: kernel @f: `if  >= 0`: a condition without terms");
  kernel.body.clear();
  kernel.tasks = {{kernel.new_var("t"), -1}};
  EXPECT_EQ(verify(kernel), "K9: kernel @f: -1 tasks");
}

TEST(KernelVerifier, K9BoundsWhatGeneratedCodeRepeatsAndHolds) {
  const auto repeats = [](const std::string& statement) {
    return "K9: kernel @f: `" + statement + "`: unrolled loops repeat a statement more than 1024 times";
  };
  EXPECT_EQ(body("", "for i in 0..1024 unroll {\n}"), "");
  EXPECT_EQ(body("", "for i in 0..1025 unroll {\n}"), repeats("for i in 0..1025 unroll"));
  EXPECT_EQ(body("", "for i in 7..1031 unroll {\n}"), "");
  EXPECT_EQ(body("", "for i in 0..40 unroll {\n  for j in 0..40 unroll {\n  }\n}"), repeats("for j in 0..40 unroll"));
  EXPECT_EQ(body("", "for i in 0..40 unroll {\n}\nfor j in 0..40 unroll {\n}"), "");
  EXPECT_EQ(body("", "for i in 0..2000 unroll {\n  for j in 0..0 unroll {\n  }\n}"), repeats("for i in 0..2000 unroll"));
  EXPECT_EQ(body("", "for i in 0..40 unroll {\n  for j in 0..i unroll {\n  }\n}"), repeats("for j in 0..i unroll"));
  EXPECT_EQ(body("", "for i in 0..20 unroll {\n  for j in 0..i unroll {\n  }\n}"), "");
  EXPECT_EQ(tasks("", "for i in 0..min(4, t) unroll {\n}"), "");
  EXPECT_EQ(tasks("", "for i in 0..min(4000, t) unroll {\n}"), repeats("for i in 0..min(4000, t) unroll"));
  // A vector loop over a tile is written out vector by vector.
  const std::string tile = "tile t: f32[16,1024]\nfor i in 0..16 unroll {\n  for j in 0..1024 vector ";
  const std::string store = " {\n    %0 = constant 1 : f32\n    store t[i, j], %0\n  }\n}";
  EXPECT_EQ(body("", tile + "16" + store), "");
  EXPECT_EQ(body("", tile + "8" + store), repeats("for j in 0..1024 vector 8"));
  EXPECT_EQ(body("", "tile t: f32[16,1025]"), "K9: kernel @f: the tile t has more than 2^14 elements");
  EXPECT_EQ(body("", "scratch s: f32[140737488355328]\nscratch r: f64[140737488355328]"),
            "K9: kernel @f: more than 2^50 bytes of scratch");
  Kernel kernel;
  kernel.name = "f";
  kernel.tasks = {{kernel.new_var("t"), std::int64_t{1} << 40}, {kernel.new_var("u"), std::int64_t{1} << 40}};
  EXPECT_EQ(verify(kernel), "K9: kernel @f: more than 2^62 tasks");
}

TEST(KernelVerifier, K3HoldsHoweverManyOtherVariablesThereAre) {
  std::string statements = "%0 = load x[0]\n";
  for (int i = 0; i < 1100; ++i) statements += "bind b" + std::to_string(i) + " = %0 in 0..3 clip\n";
  const std::string load = statements + "%1 = load y[2*b5 + 3*b1099]\n";
  EXPECT_EQ(body("in x: i32[1], in y: f32[11]", load), "");
  EXPECT_EQ(body("in x: i32[1], in y: f32[10]", load),
            "K3: kernel @f: `%1 = load y[2*b5 + 3*b1099]`: axis 0 of y may reach 10, its extent is 10");
}

TEST(KernelVerifier, K10ReportsHaveASite) {
  EXPECT_EQ(body("in x: i32[1]", "%0 = load x[0]\nbind i = %0 in 0..4 error"),
            "K10: kernel @f: `bind i = %0 in 0..4 error`: an index out of range is reported at no site");
  EXPECT_EQ(body("in x: i32[1]", "site \"here\"\n%0 = load x[0]\nbind i = %0 in 0..4 error site 0"), "");
  EXPECT_EQ(body("in x: i32[1]", "site \"here\"\n%0 = load x[0]\nbind i = %0 in 0..4 error site 1"),
            "K10: kernel @f: `bind i = %0 in 0..4 error site 1`: an index out of range is reported at no site");
}

TEST(KernelVerifier, K11IterationsOfAVectorLoopAreIndependent) {
  const std::string loop = "for j in 0..8 vector 4 {\n";
  EXPECT_EQ(body("inout y: f32[9]", loop + "  %0 = load y[j]\n  store y[j], %0\n}"), "");
  EXPECT_EQ(body("inout y: f32[9]", loop + "  %0 = load y[j]\n  store y[j + 1], %0\n}"),
            "K11: kernel @f: `store y[j + 1], %0`: two iterations may meet in an element of y with `%0 = load y[j]`");
  EXPECT_EQ(body("inout y: f32[9]", loop + "  %0 = load y[j]\n  store y[0], %0\n}"),
            "K11: kernel @f: `store y[0], %0`: two iterations may store the same element of y");
  EXPECT_EQ(body("", "scratch s: f32[8]\n" + loop + "  %0 = constant 1 : f32\n  store s[7 - j], %0\n}"), "");
  EXPECT_EQ(body("inout y: f32[9]", "for j in 0..8 {\n  %0 = load y[j]\n  store y[j + 1], %0\n}"), "");
  EXPECT_EQ(tasks("out y: f32[32]", "%0 = constant 1 : f32\n" + loop + "  store y[8*t + j], %0\n}"), "");
}

TEST(KernelVerifier, K12ScratchIsStoredToBeforeItIsLoaded) {
  const std::string y = "out y: f32[8]", load = "for j in 0..8 {\n  %0 = load s[j]\n  store y[j], %0\n}",
                    fill = "for k in 0..8 {\n  %1 = constant 0 : f32\n  store s[k], %1\n}\n";
  EXPECT_EQ(body(y, "scratch s: f32[8]\n" + fill + load), "");
  EXPECT_EQ(body(y, "scratch s: f32[8]\n" + load),
            "K12: kernel @f: `%0 = load s[j]`: s is loaded before anything is stored to it");
  EXPECT_EQ(body(y, "scratch s: f32[8]\nscratch r: f32[8]\nfor k in 0..8 {\n  %1 = constant 0 : f32\n  store r[k], %1\n}\n" + load),
            "K12: kernel @f: `%1 = load s[j]`: s is loaded before anything is stored to it");
  EXPECT_EQ(body("in x: f32[2,2]", "tile t: f32[2,2]\nmma t[r, c] += x[r, k] * x[k, c] for k in 0..2"),
            "K12: kernel @f: `mma t[r, c] += x[r, k] * x[k, c] for k in 0..2`: t is loaded before anything is stored to it");
}

}  // namespace
}  // namespace burin::ir
