// Kernels given as text, as machine code against the kernel interpreter, bit for bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/kernel/interpreter.h"
#include "tests/codegen/machine.h"
#include "tests/kernel/kernels.h"

namespace burin::test {
namespace {

using ir::Kernel;
using ir::Literal;

enum class Fill { bits, small };

std::vector<Literal> inputs(const Kernel& kernel, Fill fill, std::uint64_t seed) {
  std::vector<Literal> params;
  for (std::size_t i = 0; i < kernel.num_params(); ++i) {
    // A flat literal that covers the view, whatever its strides.
    const ir::Type type{kernel.buffers[i].dtype, Shape::of(kernel.buffers[i].span())};
    params.push_back(fill == Fill::bits ? random_bits(type, seed + i) : small_numbers(type, seed + i));
  }
  return params;
}

/// Runs text in both ways on every target and compares every parameter, and the first report.
void compare(const std::string& text, Fill fill = Fill::small, std::vector<Literal> given = {}) {
  SCOPED_TRACE(text);
  const Kernel kernel = ir::parse_kernel(text);
  if (given.empty()) given = inputs(kernel, fill, 11);
  std::vector<Literal> expected = given;
  std::vector<std::byte*> pointers;
  for (Literal& literal : expected) pointers.push_back(literal.mutable_raw().data());
  const std::optional<ir::IndexReport> report = ir::KernelRunner(kernel).run(pointers);
  for (const ir::Target& target : runnable_targets()) {
    std::vector<Literal> found = given;
    runtime::StatusSlot status;
    run(kernel, target, found, &status);
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(difference(found[i], expected[i]), "") << kernel.buffers[i].name << " on " << label(target);
    EXPECT_EQ(status.any(), report.has_value()) << label(target);
    if (!status.any() || !report) continue;
    EXPECT_EQ(status.first().task, report->task);
    EXPECT_EQ(status.first().site, report->site);
    EXPECT_EQ(status.first().index, report->index);
    EXPECT_EQ(status.first().extent, report->extent);
  }
}

TEST(CodegenKernel, shared_kernels) {
  for (std::string_view text : ir::kernels::all) {
    if (text == ir::kernels::softmax) continue;  // its exp is approximated
    compare(std::string(text));
  }
}

TEST(CodegenKernel, tails_of_every_size) {
  for (int width : {4, 16}) {
    for (int n = 0; n <= 2 * width + 1; ++n) {
      compare(fmt::format(R"(kernel @k(in x: f32[{0}], in h: bf16[{0}], in m: bool[{0}], out y: f32[{0}], out z: bf16[{0}], out q: bool[{0}], out s: f32[2]) {{
  acc %sum: f32 sum lanes {1}
  acc %max: f32 max lanes {1}
  for j in 0..{0} vector {1} {{
    %0 = load x[j]
    %1 = load h[j]
    %2 = load m[j]
    %3 = mul %0, %0 : f32
    %4 = add %1, %1 : bf16
    %5 = select %2, %3, %0 : f32
    %6 = bit_not %2 : bool
    accumulate %sum, %5
    accumulate %max, %0
    store y[j], %5
    store z[j], %4
    store q[j], %6
  }}
  %7 = finish %sum : f32
  %8 = finish %max : f32
  store s[0], %7
  store s[1], %8
}})", n, width));
    }
  }
}

TEST(CodegenKernel, bounds_that_depend_on_the_task) {
  for (int width : {1, 4, 8, 64}) {
    compare(fmt::format(R"(kernel @k(in x: f64[6,20], out y: f64[6,20]) tasks (t in 6) {{
  for j in t..min(20, 4*t + 1, 25 - 3*t) vector {} {{
    %0 = load x[t, j]
    %1 = neg %0 : f64
    store y[t, j], %1
  }}
}})", width), Fill::small);
  }
}

// Inside an unrolled loop all bounds of a loop may be numbers, the least of them in any place.
TEST(CodegenKernel, several_bounds_that_unrolling_makes_numbers) {
  for (const char* bounds : {"min(4 - 2*a, 3, 5)", "min(3, 4 - 2*a, 5)", "min(5, 3, 4 - 2*a)", "min(7, 1 + 3*a)"})
    for (const char* kind : {"", "unroll", "vector 4"})
      compare(fmt::format("kernel @k(in x: f32[3,8], inout y: f32[3,8]) {{\n  for a in 0..3 unroll {{\n    for j in 0..{} {} {{\n"
                          "      %0 = load x[a, j]\n      store y[a, j], %0\n    }}\n  }}\n}}\n",
                          bounds, kind));
}

TEST(CodegenKernel, moves_keep_every_bit) {
  for (const char* dtype : {"f64", "f32", "bf16", "f16", "i8", "i16", "i32", "u64"}) {
    compare(fmt::format(R"(kernel @k(in x: {0}[37], in m: bool[37], out a: {0}[37], out b: {0}[37], out c: {0}[73], out d: {0}[37], out e: {0}[37], out f: {0}[1]) {{
  for j in 0..37 vector 16 {{
    %0 = load x[j]
    store a[36 - j], %0
    %1 = load x[36 - j]
    store b[j], %1
    store c[2*j], %0
    %2 = load m[j]
    %3 = select %2, %0, %1 : {0}
    store d[j], %3
    %4 = load x[5]
    store e[j], %4
    store f[0], %0
  }}
}})", dtype), Fill::bits);
    compare(fmt::format(R"(kernel @k(in x: {0}[74], in t: {0}[5,33] strides [1,5], out a: {0}[35], out b: {0}[5,33]) {{
  for j in 0..35 vector 8 {{
    %0 = load x[2*j + 1]
    store a[j], %0
  }}
  for i in 0..5 {{
    for j in 0..33 vector 16 {{
      %1 = load t[i, j]
      store b[i, j], %1
    }}
  }}
}})", dtype), Fill::bits);
  }
}

TEST(CodegenKernel, blocks_are_turned_in_registers) {
  for (const char* dtype : {"f64", "f32", "bf16", "u8"}) {
    for (int columns : {3, 4, 19, 32}) {
      for (int width : {8, 16}) {
        compare(fmt::format(R"(kernel @turn(in x: {0}[{1},70], in m: bool[70], out y: {0}[70,{1}], out z: {0}[35,{1}]) {{
  for k in 0..70 vector {2} {{
    for c in 0..{1} unroll {{
      %0 = load x[c, k]
      store y[k, c], %0
    }}
    %1 = load m[k]
    for c in 0..{1} unroll {{
      %2 = load x[{3} - c, k]
      %3 = select %1, %2, %2 : {0}
      store z[0, c], %3 if 0 - k >= 0
    }}
  }}
  for k in 0..35 vector {2} {{
    for c in 0..{1} unroll {{
      %4 = load x[c, 2*k]
      store z[34 - k, c], %4
    }}
  }}
}})", dtype, columns, width, columns - 1), Fill::bits);
      }
    }
  }
}

TEST(CodegenKernel, turning_leaves_the_order_of_reads_and_writes) {
  compare(R"(kernel @shift(inout x: f32[33,16], out y: f32[640]) {
  for k in 0..32 vector 8 {
    for c in 0..15 unroll {
      %0 = load x[k, c]
      store x[k, c + 1], %0
      store y[16*k + c], %0
    }
    for c in 0..16 unroll {
      %1 = load x[k, c]
      store y[3*k + c + 512], %1 if c - 15 >= 0
    }
  }
})", Fill::bits);
}

TEST(CodegenKernel, reductions_of_every_kind_and_dtype) {
  for (const char* dtype : {"f64", "f32", "i8", "i32", "i64", "u8", "u16", "u64", "bool"}) {
    for (const char* reduce : {"sum", "prod", "max", "min", "and", "or"}) {
      const std::string d = dtype, r = reduce;
      if (d[0] == 'f' && (r == "and" || r == "or")) continue;
      for (int lanes : {1, 2, 4, 16}) {
        compare(fmt::format(R"(kernel @k(in x: {0}[3,37], out y: {0}[3]) tasks (i in 3) {{
  %s = load x[i, 36]
  acc %a: {0} {1} lanes {2}
  acc %b: {0} {1} lanes {2} from %s
  for j in 0..37 vector 16 {{
    %0 = load x[i, j]
    accumulate %a, %0
    accumulate %b, %0
  }}
  accumulate %a, %s
  %1 = finish %a : {0}
  %2 = finish %b : {0}
  %3 = {3} %1, %2 : {0}
  store y[i], %3
}})", dtype, reduce, lanes, d == "bool" ? "bit_xor" : "add"), Fill::small);
      }
    }
  }
}

TEST(CodegenKernel, an_accumulator_per_iteration_of_a_vector_loop) {
  compare(R"(kernel @columns(in x: f32[5,37], in m: bf16[5,37], out y: f32[37]) {
  for j in 0..37 vector 16 {
    %0 = load x[0, j]
    acc %s: f32 sum lanes 1 from %0
    acc %p: f32 max lanes 1
    for i in 0..5 unroll {
      %1 = load x[i, j]
      %2 = load m[i, j]
      %3 = convert %2 : f32
      %4 = mul %1, %3 : f32
      accumulate %s, %4
      if j - 3 >= 0 {
        accumulate %p, %1
      }
    }
    %5 = finish %s : f32
    %6 = finish %p : f32
    %7 = add %5, %6 : f32
    store y[j], %7
  }
})");
}

TEST(CodegenKernel, conditions_of_the_task_and_of_the_lane) {
  for (int width : {1, 16}) {
    compare(fmt::format(R"(kernel @k(in x: f32[3,37], in h: f16[3,37], out y: f32[3,37], out z: f16[3,37], out s: f32[3]) tasks (t in 3) {{
  %c = constant -1.5 : f32
  %d = constant 0.25 : f16
  acc %sum: f32 sum lanes {0}
  for j in 0..37 vector {0} {{
    %0 = load x[t, j - 2] if j - 2 >= 0 and 30 - j - t >= 0 else %c
    %1 = load h[2 - t, j] if t - 1 >= 0 else %d
    %2 = load x[t - 1, 3] if t - 1 >= 0 else %c
    %3 = load x[t - 1, 3] if t - 1 >= 0 else %0
    %4 = load x[t, 5] if 20 - j >= 0 else %c
    %5 = load h[t, 36 - j] if j - 7 >= 0 else %1
    %6 = add %0, %2 : f32
    %7 = add %3, %4 : f32
    %8 = sub %6, %7 : f32
    %9 = mul %5, %1 : f16
    store y[t, j], %8 if j + t - 2 >= 0 and 2 - t >= 0
    store z[t, j], %9 if 1 - t >= 0
    if j - 4 >= 0 and 33 - j >= 0 {{
      accumulate %sum, %8
      if 1 - t >= 0 {{
        store y[t, j], %7
        if j - 10*t >= 0 {{
          store y[t, j], %6
        }}
      }}
    }}
  }}
  %10 = finish %sum : f32
  store s[t], %10
}})", width));
  }
}

TEST(CodegenKernel, index_values_in_every_dtype) {
  for (const char* dtype : {"f64", "f32", "bf16", "f16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}) {
    compare(fmt::format(R"(kernel @iota(out y: {0}[3,41]) tasks (t in 3) {{
  for j in 0..41 vector 16 {{
    %0 = index 1000*t + 7*j - 3 : {0}
    store y[t, j], %0
  }}
}})", dtype));
  }
}

TEST(CodegenKernel, tasks_in_pieces_and_scratch) {
  const Kernel kernel = ir::parse_kernel(R"(kernel @k(in x: f32[2,3,4,9], out y: f32[2,3,4,9]) tasks (a in 2, b in 3, c in 4) {
  scratch odd: u8[3]
  scratch row: f32[9]
  for j in 0..9 vector 4 {
    %0 = load x[a, b, c, j]
    store row[j], %0
  }
  for j in 0..9 vector 4 {
    %1 = load row[8 - j]
    store y[a, b, c, j], %1
  }
})");
  for (const ir::Target& target : runnable_targets()) {
    const Kernel* kernels[] = {&kernel};
    const auto module = codegen::compile(kernels, target);
    std::vector<Literal> params = inputs(kernel, Fill::bits, 3);
    params[1] = Literal(params[1].type());
    const std::vector<Literal> before = params;
    alignas(64) std::byte scratch[256];
    void* pointers[] = {params[0].mutable_raw().data(), params[1].mutable_raw().data()};
    module->entries()[0](pointers, 5, 5, scratch, nullptr);
    EXPECT_EQ(difference(params[1], before[1]), "");
    for (std::int64_t task : {7, 23, 0}) module->entries()[0](pointers, task, task + 1, scratch, nullptr);
    for (std::int64_t i = 0; i < 24 * 9; ++i) {
      const bool ran = i / 9 == 7 || i / 9 == 23 || i / 9 == 0;
      const auto* x = reinterpret_cast<const std::uint32_t*>(before[0].raw().data());
      const auto* y = reinterpret_cast<const std::uint32_t*>(params[1].raw().data());
      EXPECT_EQ(y[i], ran ? x[i / 9 * 9 + 8 - i % 9] : 0);
    }
  }
}

std::string bind_kernel(std::string_view dtype, std::string_view mode, bool lanes) {
  return fmt::format(R"(kernel @take(in table: f32[7,3], in ids: {0}[37], out y: f32[37,3]) tasks (t in 1) {{
{1}  for i in 0..37 {2} {{
    %0 = load ids[i]
    bind row = %0 in 0..7 {3}
    for j in 0..3 unroll {{
      %1 = load table[row, j]
      store y[i, j], %1
    }}
  }}
}})", dtype, mode == "error" ? "  site \"take: {index} of {extent}\"\n" : "", lanes ? "vector 16" : "",
                     mode == "error" ? "error site 0" : "clip");
}

TEST(CodegenKernel, indices_from_memory) {
  for (bool lanes : {false, true}) {
    for (std::string_view dtype : {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}) {
      for (std::string_view mode : {"clip", "error"}) {
        const std::string text = bind_kernel(dtype, mode, lanes);
        compare(text, Fill::bits);
        const Kernel kernel = ir::parse_kernel(text);
        for (std::int64_t bad : {-1, 2, 15, 16, 36}) {  // no bad one, or one at this place
          std::vector<Literal> given = inputs(kernel, Fill::bits, 5);
          for (std::int64_t i = 0; i < 37; ++i) given[1].set_int(i, i == bad ? 100 : i % 7);
          compare(text, Fill::bits, given);
        }
      }
    }
  }
}

TEST(CodegenKernel, a_missing_lane_reports_nothing) {
  // Row 5 of the indices is bad, but only rows below 5 are read.
  const std::string text = R"(kernel @k(in x: f32[4], in ids: i32[8], out y: f32[8]) {
  site "no"
  for i in 0..5 vector 8 {
    %0 = load ids[i]
    bind at = %0 in 0..4 error site 0
    %1 = load x[at]
    store y[i], %1
  }
})";
  const Kernel kernel = ir::parse_kernel(text);
  std::vector<Literal> given = inputs(kernel, Fill::small, 5);
  for (std::int64_t i = 0; i < 8; ++i) given[1].set_int(i, i < 5 ? i % 4 : 77);
  compare(text, Fill::small, given);
}

}  // namespace
}  // namespace burin::test
