// Matrix tiles: machine code against the interpreter, and the instructions that a micro-kernel must consist of.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/kernel/interpreter.h"
#include "tests/codegen/machine.h"

namespace burin::test {
namespace {

using ir::Kernel;
using ir::Literal;

struct Shape2 {
  int rows, columns, depth;
};

/// c = c0 + a b over packed panels: a[k, r], b[k, j].
std::string packed(const char* tile, const char* operand, Shape2 s, int width, const char* bound = nullptr) {
  const std::string depth = std::to_string(s.depth);
  return fmt::format(R"(kernel @mma(in a: {1}[{4},{2}], in b: {1}[{4},{3}], inout c: {0}[{2},{3}]) tasks (t in 2) {{
  tile acc: {0}[{2},{3}]
  for r in 0..{2} unroll {{
    for j in 0..{3} vector {5} {{
      %0 = load c[r, j]
      store acc[r, j], %0
    }}
  }}
  mma acc[r, j] += a[k, r] * b[k, j] for k in 0..{6}
  for r in 0..{2} unroll {{
    for j in 0..{3} vector {5} {{
      %1 = load acc[r, j]
      store c[r, j], %1 if 0 - t >= 0
    }}
  }}
}})",
                     tile, operand, s.rows, s.columns, s.depth, width, bound == nullptr ? depth : bound);
}

void compare(const Kernel& kernel, const std::vector<Literal>& given) {
  std::vector<Literal> expected = given;
  std::vector<std::byte*> pointers;
  for (Literal& literal : expected) pointers.push_back(literal.mutable_raw().data());
  ir::KernelRunner(kernel).run(pointers);
  for (const ir::Target& target : runnable_targets()) {
    std::vector<Literal> found = given;
    run(kernel, target, found);
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(difference(found[i], expected[i]), "") << kernel.buffers[i].name << " on " << label(target);
  }
}

void compare(const std::string& text) {
  SCOPED_TRACE(text);
  const Kernel kernel = ir::parse_kernel(text);
  std::vector<Literal> given;
  for (std::size_t i = 0; i < kernel.num_params(); ++i) {
    Literal x = small_numbers({kernel.buffers[i].dtype, Shape::of(kernel.buffers[i].span())}, i);
    for (std::int64_t j = 0; j < x.type().size(); ++j) x.set(j, x.at(j) * 0.37 + 0.011 * static_cast<double>(j % 5));
    given.push_back(x);
  }
  compare(kernel, given);
}

std::string assembly(const std::string& text, const ir::Target& target) {
  const Kernel kernel = ir::parse_kernel(text);
  const Kernel* kernels[] = {&kernel};
  return codegen::emit_assembly(kernels, target);
}

std::size_t count(const std::string& text, std::string_view word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(CodegenMma, packed_panels) {
  for (Shape2 s : {Shape2{14, 32, 33},
                   {6, 16, 7},
                   {8, 48, 5},
                   {1, 64, 9},
                   {3, 5, 3},
                   {5, 1, 4},
                   {1, 1, 1},
                   {4, 24, 2},
                   {2, 17, 3}}) {
    for (const char* operand : {"f32", "bf16", "f16"}) compare(packed("f32", operand, s, 16));
    compare(packed("f64", "f64", s, 8));
    compare(packed("f64", "f32", s, 16));
  }
}

// Pairs of bf16 of every magnitude, subnormals, infinities and NaN among them, on the instruction and on what stands
// for it.
TEST(CodegenMma, pairs) {
  for (Shape2 s : {Shape2{14, 32, 33}, {6, 16, 7}, {3, 5, 3}, {5, 1, 4}, {4, 24, 2}}) {
    const Kernel kernel = ir::parse_kernel(packed("f32", "u32", s, 16));
    for (const std::uint32_t exponents :
         {0x7f807f80u, 0x1f801f80u, 0x01000100u}) {  // masks that leave any, small and subnormal factors
      std::vector<Literal> given;
      std::uint32_t bits = 12345;
      for (std::size_t i = 0; i < kernel.num_params(); ++i) {
        Literal x({kernel.buffers[i].dtype, Shape::of(kernel.buffers[i].span())});
        for (std::int64_t j = 0; j < x.type().size(); ++j) {
          bits = bits * 1664525 + 1013904223;
          if (i == 2)
            x.set(j, 1e-38 * static_cast<double>(j % 7));
          else
            x.set_int(j, static_cast<std::int64_t>((bits & exponents) | (bits & 0x807f807fu)));
        }
        given.push_back(x);
      }
      SCOPED_TRACE(std::to_string(s.rows) + "x" + std::to_string(s.columns) + "x" + std::to_string(s.depth));
      compare(kernel, given);
    }
  }
}

/// c = c0 + a b over packed pairs as tiles read them, a[r, k] in rows that lie apart, b[k, j].
std::string packed_rows(Shape2 s, int block) {
  return fmt::format(R"(kernel @mma(in a: u32[{0},{2}] strides [{3},1], in b: u32[{2},{1}], inout c: f32[{0},{1}]) {{
  tile acc: f32[{0},{1}]
  for r in 0..{0} unroll {{
    for j in 0..{1} vector 16 {{
      %0 = load c[r, j]
      store acc[r, j], %0
    }}
  }}
  mma acc[r, j] += a[r, k] * b[k, j] for k in 0..{2} blocks {4}
  for r in 0..{0} unroll {{
    for j in 0..{1} vector 16 {{
      %1 = load acc[r, j]
      store c[r, j], %1
    }}
  }}
}})",
                     s.rows, s.columns, s.depth, s.depth + 5, block);
}

/// Pairs with as many leading bits of the exponent as `exponents` leaves; what is added to is around the smallest normal number.
std::vector<Literal> pairs_for(const Kernel& kernel, std::uint32_t exponents) {
  std::vector<Literal> given;
  std::uint32_t bits = 54321;
  for (std::size_t i = 0; i < kernel.num_params(); ++i) {
    Literal x({kernel.buffers[i].dtype, Shape::of(kernel.buffers[i].span())});
    for (std::int64_t j = 0; j < x.type().size(); ++j) {
      bits = bits * 1664525 + 1013904223;
      if (x.dtype() == f32)
        x.set(j, 1e-38 * static_cast<double>(j % 7));
      else
        x.set_int(j, static_cast<std::int64_t>((bits & exponents) | (bits & 0x807f807fu)));
    }
    given.push_back(x);
  }
  return given;
}

// Sums by blocks: shapes that tiles hold, and others; a depth that blocks divide, and others.
TEST(CodegenMma, pairs_by_blocks) {
  for (const auto& [s, block] : {std::pair{Shape2{32, 32, 64}, 16}, {{16, 16, 16}, 16}, {{22, 32, 18}, 9}, {{1, 16, 5}, 5}, {{9, 32, 32}, 16},
                                 {{17, 24, 33}, 16}, {{3, 5, 3}, 2}, {{5, 1, 40}, 20}, {{32, 16, 8}, 16}, {{1, 1, 1}, 1}}) {
    SCOPED_TRACE(fmt::format("{}x{}x{} by {}", s.rows, s.columns, s.depth, block));
    const std::string blocks = " blocks " + std::to_string(block) + "\n  for r in";
    std::string along_rows = packed("f32", "u32", s, 16);
    along_rows.replace(along_rows.find("\n  for r in", along_rows.find("mma acc")), 11, blocks);
    for (const std::string& text : {packed_rows(s, block), along_rows})
      for (const std::uint32_t exponents : {0x7f807f80u, 0x1f801f80u, 0x01000100u}) {
        const Kernel kernel = ir::parse_kernel(text);
        compare(kernel, pairs_for(kernel, exponents));
      }
    EXPECT_EQ(ir::verify(ir::parse_kernel(packed_rows(s, block))), "");
  }
}

/// With a tile that starts as `start`, stored in a loop over `rows` of it.
std::string cleared(Shape2 s, const char* start, int rows) {
  std::string text = packed_rows(s, 16);
  const std::string load = "%0 = load c[r, j]";
  text.replace(text.find(load), load.size(), std::string("%0 = constant ") + start + " : f32");
  const std::string loop = fmt::format("for r in 0..{} unroll", s.rows);
  return text.replace(text.find(loop), loop.size(), fmt::format("for r in 0..{} unroll", rows));
}

TEST(CodegenMma, tiles_that_are_cleared) {
  for (const Shape2 s : {Shape2{32, 32, 32}, {16, 16, 16}, {12, 16, 16}, {17, 16, 16}}) {
    const Kernel kernel = ir::parse_kernel(cleared(s, "0", s.rows));
    compare(kernel, pairs_for(kernel, 0x1f801f80u));
  }
  const ir::Target target{.isa = ir::Isa::amx};
  const std::string text = assembly(cleared({32, 32, 32}, "0", 32), target);
  EXPECT_EQ(count(text, "tilezero"), 4u);
  EXPECT_EQ(count(text, "tileloadd"), 4u);
  // Another start, or zeros in some rows alone.
  EXPECT_EQ(count(assembly(cleared({32, 32, 32}, "-0", 32), target), "tilezero"), 0u);
  EXPECT_EQ(count(assembly(cleared({32, 32, 32}, "1", 32), target), "tilezero"), 0u);
  EXPECT_EQ(count(assembly(cleared({32, 32, 32}, "0", 31), target), "tilezero"), 0u);
}

// 2^-126 - 2^-150 is subnormal before it is rounded to a subnormal's 2^-149, which would make it 2^-126 again.
TEST(CodegenMma, pairs_just_below_the_normal_numbers) {
  for (const char* blocks : {"", " blocks 2"})
    for (const auto& [factor, result] : {std::pair{0x9a000000u, 0.0}, {0x99800000u, 0x1p-126}}) {  // -2^-75, and half of that
      const std::string text = fmt::format(R"(kernel @pairs(in a: u32[1,2], in b: u32[2,1], inout c: f32[1,1]) {{
  tile t: f32[1,1]
  %0 = load c[0, 0]
  store t[0, 0], %0
  mma t[r, j] += a[r, k] * b[k, j] for k in 0..2{}
  %1 = load t[0, 0]
  store c[0, 0], %1
}})",
                                           blocks);
      const Kernel kernel = ir::parse_kernel(text);
      std::vector<Literal> given = pairs_for(kernel, 0);
      const bool summed_apart = blocks[0] != 0;  // then from zero: the normal number is the first product
      given[0].set_int(0, summed_apart ? 0x00800000 : 0);
      given[1].set_int(0, summed_apart ? 0x3f800000 : 0);
      given[0].set_int(1, 0x1a000000);
      given[1].set_int(1, factor);
      given[2].set(0, summed_apart ? 0 : 0x1p-126);
      compare(kernel, given);
      std::vector<std::byte*> pointers;
      for (Literal& literal : given) pointers.push_back(literal.mutable_raw().data());
      ir::KernelRunner(kernel).run(pointers);
      EXPECT_EQ(given[2].at(0), result) << blocks;
    }
}

TEST(CodegenMma, blocks_of_a_depth_that_depends_on_the_task) {
  for (const char* bound : {"9*t", "7 - 7*t"}) {
    std::string text = packed("f32", "u32", {6, 16, 9}, 16, bound);
    const std::string range = std::string("in 0..") + bound;
    text.replace(text.find(range), range.size(), range + " blocks 4");
    const Kernel kernel = ir::parse_kernel(text);
    compare(kernel, pairs_for(kernel, 0x1f801f80u));
  }
}

// A call between products, which an index out of range makes.
TEST(CodegenMma, tiles_around_a_call) {
  const Kernel kernel = ir::parse_kernel(R"(kernel @call(in a: u32[16,32], in b: u32[32,16], inout c: f32[16,16], in ids: i32[2]) {
  tile t: f32[16,16]
  site "row {index} of {extent}"
  for r in 0..16 unroll {
    for j in 0..16 vector 16 {
      %0 = load c[r, j]
      store t[r, j], %0
    }
  }
  for i in 0..2 {
    %1 = load ids[i]
    bind row = %1 in 0..2 error site 0
    mma t[r, j] += a[r, k + 16*row] * b[k + 16*i, j] for k in 0..16 blocks 16
  }
  for r in 0..16 unroll {
    for j in 0..16 vector 16 {
      %2 = load t[r, j]
      store c[r, j], %2
    }
  }
})");
  ASSERT_EQ(ir::verify(kernel), "");
  std::vector<Literal> given = pairs_for(kernel, 0x1f801f80u);
  given[3].set_int(0, 1);
  given[3].set_int(1, 7);
  std::vector<Literal> expected = given;
  std::vector<std::byte*> pointers;
  for (Literal& literal : expected) pointers.push_back(literal.mutable_raw().data());
  EXPECT_TRUE(ir::KernelRunner(kernel).run(pointers));
  for (const ir::Target& target : runnable_targets()) {
    std::vector<Literal> found = given;
    runtime::StatusSlot status;
    run(kernel, target, found, &status);
    EXPECT_EQ(difference(found[2], expected[2]), "") << label(target);
  }
}

// A tile that is copied to memory behind the product, and read again; rows that overlap where they are stored; a start in memory.
TEST(CodegenMma, tiles_that_are_copied) {
  const auto text = [](const char* start, const char* first, const char* then, const char* rest) {
    return fmt::format(R"(kernel @copies(in a: u32[32,32], in b: u32[32,32], inout c: f32[32,32], out d: f32[63], out e: f32[40,40]) {{
  tile t: f32[32,32]
  for r in 0..32 unroll {{
    for j in 0..32 vector 16 {{
      %0 = load c[{}]
      store t[r, j], %0
    }}
  }}
  mma t[r, j] += a[r, k] * b[k, j] for k in 0..32 blocks 16
  for r in 0..32 unroll {{
    for j in 0..32 vector 16 {{
      %1 = load t[r, j]
      store {}, %1
    }}
  }}
  for r in 0..32 unroll {{
    for j in 0..32 vector 16 {{
      %2 = load t[r, j]
      store {}, %2 {}
    }}
  }}
}})",
                       start, first, then, rest);
  };
  const auto check = [](const std::string& kernel_text, std::size_t stores) {
    SCOPED_TRACE(kernel_text);
    const Kernel kernel = ir::parse_kernel(kernel_text);
    ASSERT_EQ(ir::verify(kernel), "");
    compare(kernel, pairs_for(kernel, 0x1f801f80u));
    EXPECT_EQ(count(assembly(kernel_text, {.isa = ir::Isa::amx}), "tilestored"), stores);
  };
  check(text("r, j", "e[r + 8, j + 3]", "c[r, j]", ""), 8);
  check(text("r, j", "d[r + j]", "c[r, j]", ""), 4);
  check(text("31 - r, j", "e[r, j]", "c[r, j]", "if r + j - 9 >= 0"), 8);
  check(text("j, r", "e[r, j]", "c[r, j]", ""), 8);
  check(text("3, j", "e[j, r]", "c[r, j]", ""), 4);
  check(text("r, j", "e[39 - r, j]", "c[r, j]", ""), 4);
}

// What a product leaves in its tile is read in the next round of a loop, before the tile is cleared.
TEST(CodegenMma, tiles_that_are_read_around_a_loop) {
  const auto nest = [](const char* load, const char* store, const char* value) {
    return fmt::format("    for r in 0..16 unroll {{\n      for j in 0..16 vector 16 {{\n        {} = {}\n        store {}, {}\n      }}\n    }}\n", value,
                       load, store, value);
  };
  const std::string text = "kernel @round(in a: u32[16,32], in b: u32[32,16], inout c: f32[16,16], out d: f32[48,16]) {\n  tile t: f32[16,16]\n" +
                           nest("constant 3 : f32", "t[r, j]", "%0") + "  for i in 0..3 {\n" + nest("load t[r, j]", "d[r + 16*i, j]", "%1") +
                           nest("constant 0 : f32", "t[r, j]", "%2") +
                           "    mma t[r, j] += a[r, k + 8*i] * b[k + 8*i, j] for k in 0..16 blocks 16\n" + nest("load t[r, j]", "c[r, j]", "%3") +
                           "  }\n}\n";
  const Kernel kernel = ir::parse_kernel(text);
  ASSERT_EQ(ir::verify(kernel), "");
  compare(kernel, pairs_for(kernel, 0x1f801f80u));
  EXPECT_EQ(count(assembly(text, {.isa = ir::Isa::amx}), "tilestored"), 2u);
}

// One product behind another on the same tile goes on in its registers.
TEST(CodegenMma, products_one_behind_another) {
  const std::string text = R"(kernel @sum(in a: u32[32,32], in b: u32[32,32], inout c: f32[32,32]) {
  tile t: f32[32,32]
  for r in 0..32 unroll {
    for j in 0..32 vector 16 {
      %0 = load c[r, j]
      store t[r, j], %0
    }
  }
  mma t[r, j] += a[r, k] * b[k, j] for k in 0..16 blocks 16
  mma t[r, j] += a[r, k + 16] * b[k + 16, j] for k in 0..16 blocks 16
  mma t[r, j] += a[r, k] * b[k + 16, j] for k in 0..16 blocks 16
  for r in 0..32 unroll {
    for j in 0..32 vector 16 {
      %1 = load t[r, j]
      store c[r, j], %1
    }
  }
})";
  const Kernel kernel = ir::parse_kernel(text);
  ASSERT_EQ(ir::verify(kernel), "");
  compare(kernel, pairs_for(kernel, 0x1f801f80u));
  const std::string code = assembly(text, {.isa = ir::Isa::amx});
  EXPECT_EQ(count(code, "tdpbf16ps"), 12u);
  EXPECT_EQ(count(code, "tilestored"), 4u);
}

// Tile registers have one shape each throughout a function: what does not fit beside the first product is done without.
TEST(CodegenMma, products_of_different_shapes_in_one_kernel) {
  const std::string text = R"(kernel @two(in a: u32[40,32], in b: u32[32,32], inout c: f32[40,32]) {
  tile large: f32[32,32]
  tile small: f32[8,32]
  for r in 0..32 unroll {
    for j in 0..32 vector 16 {
      %0 = load c[r, j]
      store large[r, j], %0
    }
  }
  for r in 0..8 unroll {
    for j in 0..32 vector 16 {
      %1 = load c[r + 32, j]
      store small[r, j], %1
    }
  }
  for i in 0..2 {
    mma large[r, j] += a[r, k + 16*i] * b[k + 16*i, j] for k in 0..16 blocks 16
    mma small[r, j] += a[r + 32, k + 16*i] * b[k + 16*i, j] for k in 0..16 blocks 16
  }
  for r in 0..32 unroll {
    for j in 0..32 vector 16 {
      %2 = load large[r, j]
      store c[r, j], %2
    }
  }
  for r in 0..8 unroll {
    for j in 0..32 vector 16 {
      %3 = load small[r, j]
      store c[r + 32, j], %3
    }
  }
})";
  const Kernel kernel = ir::parse_kernel(text);
  ASSERT_EQ(ir::verify(kernel), "");
  compare(kernel, pairs_for(kernel, 0x1f801f80u));
  EXPECT_EQ(count(assembly(text, {.isa = ir::Isa::amx}), "tdpbf16ps"), 4u);
}

// One instruction per line of a row: 128 bytes of c, of d, and of e, which is read and written; nothing for scratch, nor where a condition
// or the column's distance says that not all of a row is touched.
TEST(CodegenMma, what_an_epilogue_touches_is_asked_for) {
  const auto text = [](const char* condition, const char* place) {
    return fmt::format(R"(kernel @epilogue(in a: f32[28,64], in b: f32[64,32], in c: f32[28,40], out d: f32[28,64], inout e: f32[28,32]) tasks (t in 2) {{
  scratch s: f32[14,32]
  tile t14: f32[14,32]
  for r in 0..14 unroll {{
    for j in 0..32 vector 16 {{
      %0 = constant 0 : f32
      store t14[r, j], %0
      store s[r, j], %0
    }}
  }}
  mma t14[r, j] += a[r + 14*t, k] * b[k, j] for k in 0..64
  for r in 0..14 unroll {{
    for j in 0..32 vector 16 {{
      %1 = load t14[r, j]
      %2 = load c[r + 14*t, j]
      %3 = load e[r + 14*t, j]
      %4 = load s[r, j]
      %5 = add %1, %2 : f32
      %6 = add %5, %3 : f32
      %7 = add %6, %4 : f32
      store d[r + 14*t, {1}], %7 {0}
      store e[r + 14*t, j], %6
    }}
  }}
}})", condition, place);
  };
  for (const auto& [condition, place, lines] : {std::tuple{"", "j", 6u}, {"if r + j - 3 >= 0", "j", 4u}, {"", "2*j", 4u}}) {
    compare(text(condition, place));
    EXPECT_EQ(count(assembly(text(condition, place), {.isa = ir::Isa::avx512}), "prefetcht1"), lines) << condition << place;
  }
}

// A line of a's and two of b's, of the next round, beside the two that are written; not where nothing moves, of scratch, of a short product.
TEST(CodegenMma, what_the_next_product_reads_is_asked_for) {
  const auto text = [](int depth, const char* a_row, const char* b_tile, const char* b) {
    return fmt::format(R"(kernel @streams(in a: f32[28,{0}], in b: f32[2,{0},32], out c: f32[28,64]) {{
  scratch s: f32[2,{0},32]
  tile t14: f32[14,32]
  for n in 0..2 {{
    for k in 0..{0} {{
      for j in 0..32 vector 16 {{
        %0 = load b[n, k, j]
        store s[n, k, j], %0
      }}
    }}
    for m in 0..2 {{
      for r in 0..14 unroll {{
        for j in 0..32 vector 16 {{
          %1 = constant 0 : f32
          store t14[r, j], %1
        }}
      }}
      mma t14[r, j] += a[{1}, k] * {3}[{2}, k, j] for k in 0..{0}
      for r in 0..14 unroll {{
        for j in 0..32 vector 16 {{
          %2 = load t14[r, j]
          store c[r + 14*m, j + 32*n], %2
        }}
      }} }} }} }})", depth, a_row, b_tile, b);
  };
  for (const auto& [kernel, lines] : {std::pair{text(256, "r + 14*m", "n", "b"), 5u}, {text(200, "r + 14*m", "n", "b"), 5u}, {text(256, "r", "n", "b"), 4u},
                                      {text(256, "r + 14*m", "0", "b"), 3u}, {text(256, "r + 14*m", "n", "s"), 3u}, {text(32, "r + 14*m", "n", "b"), 2u}}) {
    compare(kernel);
    EXPECT_EQ(count(assembly(kernel, {.isa = ir::Isa::avx512}), "prefetcht1"), lines) << kernel;
  }
}

TEST(CodegenMma, depth_that_depends_on_the_task) {
  compare(packed("f32", "f32", {6, 16, 9}, 16, "4*t"));
  compare(packed("f32", "f32", {6, 16, 9}, 16, "9 - 9*t"));
}

TEST(CodegenMma, operands_as_they_lie_in_any_layout) {
  const char* text = R"(kernel @mma(in a: f32[6,9], in b: f32[9,{2}] strides [{0},{1}], out c: f32[6,{2}]) {{
  tile acc: f32[6,{2}]
  %z = constant 0.5 : f32
  for r in 0..6 unroll {{
    for j in 0..{2} vector 8 {{
      store acc[r, j], %z
    }}
  }}
  for half in 0..3 {{
    mma acc[r, j] += a[r, k + 3*half] * b[k + 3*half, j] for k in 0..3
  }}
  for r in 0..6 unroll {{
    for j in 0..{2} unroll {{
      %1 = load acc[r, j]
      store c[r, j], %1
    }}
  }}
}})";
  // 13 columns: the last vector of a row has lanes that lie behind the operand's end.
  for (const int columns : {16, 13}) {
    compare(fmt::format(fmt::runtime(text), columns, 1, columns));
    compare(fmt::format(fmt::runtime(text), 1, 9, columns));
    compare(fmt::format(fmt::runtime(text), 0, 1, columns));
  }
}

TEST(CodegenMma, an_edge_is_written_through_a_mask) {
  compare(R"(kernel @edge(in a: f32[9,6], in b: f32[9,32], out c: f32[4,45]) tasks (t in 2) {
  tile acc: f32[6,32]
  %z = constant 0 : f32
  for r in 0..6 unroll {
    for j in 0..32 vector 16 {
      store acc[r, j], %z
    }
  }
  mma acc[r, j] += a[k, r] * b[k, j] for k in 0..9
  for r in 0..min(6, 4 - 3*t) unroll {
    for j in 0..min(32, 45 - 32*t) vector 16 {
      %1 = load acc[r, j]
      store c[r, j + 32*t], %1
    }
  }
})");
}

TEST(CodegenMma, avx512_micro_kernel_stays_in_registers) {
  const std::string text = assembly(packed("f32", "f32", {14, 32, 256}, 16), avx512_target());
  std::size_t fused = 0;
  for (std::size_t at = text.find("vfmadd"); at != std::string::npos; at = text.find("vfmadd", at + 1))
    fused += text.substr(at, text.find('\n', at) - at).find("%zmm") != std::string::npos;
  EXPECT_EQ(fused, 28u);
  EXPECT_EQ(count(text, "%rsp"), 0u) << text;
}

// A product's epilogue has more constants than there are registers beside the accumulators.
TEST(CodegenMma, constants_of_an_epilogue_do_not_displace_accumulators) {
  const std::string text = assembly(R"(kernel @gelu(in a: f32[56,256], in b: f32[256,64], out c: f32[56,64]) tasks (t in 2) {
  tile acc: f32[14,32]
  for block in 0..4 {
    %z = constant 0 : f32
    for r in 0..14 unroll {
      for j in 0..32 vector 16 {
        store acc[r, j], %z
      }
    }
    mma acc[r, j] += a[r + 14*block, k] * b[k, j + 32*t] for k in 0..256
    for r in 0..14 unroll {
      for j in 0..32 vector 16 {
        %1 = load acc[r, j]
        store c[r + 14*block, j + 32*t], %1
      }
    }
    for r in 0..14 {
      for j in 0..32 vector 16 {
        %2 = load c[r + 14*block, j + 32*t]
        %3 = tanh %2 : f32
        %4 = constant 0.044715 : f32
        %5 = mul %3, %4 : f32
        %6 = constant 0.7978846 : f32
        %7 = add %5, %6 : f32
        %8 = exp %7 : f32
        store c[r + 14*block, j + 32*t], %8
      }
    }
  }
})", avx512_target());
  const std::size_t first = text.find("vfmadd231ps"), last = text.find("\tj", first);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(count(text.substr(first, last - first), "vfmadd231ps"), 28u) << text;
  EXPECT_EQ(count(text.substr(first, last - first), "%rsp"), 0u) << text;
}

TEST(CodegenMma, avx2_micro_kernel_stays_in_registers) {
  const std::string text = assembly(packed("f32", "f32", {6, 16, 256}, 8), avx2_target());
  EXPECT_EQ(count(text, "vfmadd"), 12u);
  EXPECT_EQ(count(text, "%rsp"), 0u) << text;
  EXPECT_EQ(count(text, "%zmm"), 0u);
}

// The loop: four products, two loads of either factor and nothing else of tiles; the tiles are configured once, before it.
TEST(CodegenMma, tiles_stay_in_registers) {
  const std::string text = assembly(packed_rows({32, 32, 256}, 16), {.isa = ir::Isa::amx});
  EXPECT_EQ(count(text, "tdpbf16ps"), 4u) << text;
  EXPECT_EQ(count(text, "tileloadd"), 8u) << text;
  EXPECT_EQ(count(text, "tilestored"), 4u) << text;
  EXPECT_EQ(count(text, "ldtilecfg"), 1u);
  EXPECT_EQ(count(text, "tilerelease"), 1u);
  const std::size_t first = text.find("tdpbf16ps"), last = text.rfind("tdpbf16ps");
  const std::size_t head = text.rfind("\n.L", first);
  const std::string loop = text.substr(head, text.find('\n', text.find("\tj", last)) - head);
  EXPECT_EQ(count(loop, "tdpbf16ps"), 4u) << loop;
  EXPECT_EQ(count(loop, "tileloadd"), 4u) << loop;
  EXPECT_EQ(count(loop, "(%rsp"), 0u) << loop;
  EXPECT_LT(text.find("ldtilecfg"), head);
}

}  // namespace
}  // namespace burin::test
