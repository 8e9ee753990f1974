// Every elementwise and compare op on every dtype that it takes, as machine code against the evaluator, bit for bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "ir/approximated.h"
#include "tests/codegen/machine.h"
#include "tests/support/values.h"

namespace burin::test {
namespace {

using ir::Literal;
using ir::Op;

std::string edge_words(DType dtype) {
  switch (dtype) {
    case f64:
      return "0 -0 1 -1 0.5 -0.5 1.5 2.5 -2.5 3 7 0.1 1e-310 -5e-324 1e308 -1e308 inf -inf nan 2147483647.5 4294967296 "
             "9.3e18 -9.3e18 1.9e19 65519.99 65520 1.00390625000001 1.00390625 5.9e-8 3e-8 1e-40 123456789.123 -255.9";
    case f32:
      return "0 -0 1 -1 0.5 -0.5 1.5 2.5 -2.5 3 7 0.1 1e-40 -1e-45 3e38 -3e38 inf -inf nan 2147483648 4294967296 "
             "9.3e18 -9.3e18 1.9e19 65519.99 65520 1.00390625 1.0117187 5.9e-8 3e-8 0.49999997 8388607.5 -255.9";
    case bf16: return "0 -0 1 -1 0.5 1.5 2.5 -2.5 3 7 0.1 1e-40 3e38 -3e38 inf -inf nan 65536 2e9 5e9 1e19 2e19 6e-8 -255";
    case f16: return "0 -0 1 -1 0.5 1.5 2.5 -2.5 3 7 0.1 6e-8 -1e-6 65504 -65504 inf -inf nan 127.5 255 256 1e-4 2049";
    case i8: return "0 1 -1 2 -2 3 7 8 127 -127 -128 64 100";
    case i16: return "0 1 -1 2 -3 7 15 16 127 128 255 256 32767 -32767 -32768 16384";
    case i32: return "0 1 -1 2 -3 7 31 32 33 255 65535 65536 16777217 2147483647 -2147483647 -2147483648 1073741824";
    case i64:
      return "0 1 -1 2 -3 7 63 64 65 255 65536 16777217 2147483648 9007199254740993 9223372036854775807 "
             "-9223372036854775807 -9223372036854775808 36028797018963969 1152921504606846977 4294967297";
    case u8: return "0 1 2 3 7 8 127 128 255 200";
    case u16: return "0 1 2 3 15 16 17 127 255 256 32768 65535";
    case u32: return "0 1 2 3 31 32 33 255 65536 16777217 2147483648 4294967295";
    case u64:
      return "0 1 2 3 63 64 65 255 16777217 4294967295 4294967296 9007199254740993 9223372036854775808 "
             "18446744073709551615 18446744073709550592 36028797018963969 9223371761976868863";
    case bool_: return "0 1";
  }
  return "";
}

Literal concatenate(const Literal& a, const Literal& b) {
  Literal result(ir::Type{a.dtype(), Shape::of(a.type().size() + b.type().size())});
  std::ranges::copy(b.raw(), std::ranges::copy(a.raw(), result.mutable_raw().begin()).out);
  return result;
}

/// Element i is source[(i / period) % size].
Literal cycle(const Literal& source, std::int64_t size, std::int64_t period) {
  Literal result(ir::Type{source.dtype(), Shape::of(size)});
  const std::size_t bytes = size_of(source.dtype());
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t from = (i / period) % source.type().size();
    std::copy_n(source.raw().begin() + from * static_cast<std::int64_t>(bytes), bytes,
                result.mutable_raw().begin() + i * static_cast<std::int64_t>(bytes));
  }
  return result;
}

struct Case {
  std::string name;
  Op op;
  std::vector<Literal> operands;
  Literal expected;
  ir::Kernel kernel;
};

/// result[i] = op(operands[i]...) in groups of `width`.
ir::Kernel kernel_of(const Case& c, std::int64_t width) {
  ir::Kernel kernel;
  kernel.name = fmt::format("{}_w{}", c.name, width);
  std::vector<ir::BufferId> in;
  for (const Literal& operand : c.operands) in.push_back(add_param(kernel, "x", operand.type(), ir::Space::in));
  const ir::BufferId out = add_param(kernel, "y", c.expected.type(), ir::Space::out);
  ir::BlockBuilder b(kernel);
  const ir::LoopKind kind = width == 1 ? ir::LoopKind::serial : ir::LoopKind::vector;
  b.loop("i", 0, {c.expected.type().size()}, kind, width, [&](ir::VarId i) {
    std::vector<ir::ScalarId> args;
    for (ir::BufferId buffer : in) args.push_back(b.load(buffer, {ir::Affine(i)}));
    b.store(out, {ir::Affine(i)}, b.let(c.op, args, c.expected.dtype()));
  });
  return kernel;
}

/// Steps between two floats of a dtype in the order of their bits; 0 for two NaNs.
double ulps_between(DType dtype, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : 1e300;
  const Literal pair[] = {Literal::scalar(dtype, a), Literal::scalar(dtype, b)};
  std::int64_t order[2] = {};
  for (int i = 0; i < 2; ++i) {
    std::memcpy(&order[i], pair[i].raw().data(), size_of(dtype));
    const int unused = 64 - 8 * static_cast<int>(size_of(dtype));
    order[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(order[i]) << unused) >> unused;
    const std::int64_t lowest = static_cast<std::int64_t>(~std::uint64_t{0} << (63 - unused));
    if (order[i] < 0) order[i] = lowest - order[i];
  }
  const auto [low, high] = std::minmax(order[0], order[1]);
  return static_cast<double>(static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low));
}

void add_case(std::vector<Case>& cases, Op op, DType dtype, std::vector<ir::AttrValue> attributes, std::string suffix) {
  const int arity = ir::info(op).arity;
  Literal edges = values(dtype, edge_words(dtype));
  if (dtype != bool_ && arity < 3) edges = concatenate(edges, random_bits({dtype, Shape::of(arity == 1 ? 40 : 8)}, 7));
  const std::int64_t count = edges.type().size();
  std::int64_t size = 1;
  for (int i = 0; i < arity; ++i) size *= count;
  // Odd, so that there is a tail.
  size = std::min<std::int64_t>(size | 1, 5003);
  Case c{std::string(ir::name(op)) + "_" + std::string(name(dtype)) + suffix, op, {}, {}, {}};
  std::int64_t period = 1;
  for (int i = 0; i < arity; ++i) {
    const bool condition = op == Op::select && i == 0;
    c.operands.push_back(cycle(condition ? values(bool_, "1 0 0") : edges, size, period));
    period *= condition ? 1 : count;
  }
  try {
    c.expected = apply_op(op, c.operands, attributes)[0];
  } catch (const Error&) {
    return;  // the op does not take this dtype
  }
  cases.push_back(std::move(c));
}

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> all;
    for (int i = 0; i < ir::num_ops; ++i) {
      const Op op = static_cast<Op>(i);
      if (ir::family_of(op) != ir::Family::elementwise && ir::family_of(op) != ir::Family::compare) continue;
      for (int d = 0; d < num_dtypes; ++d) {
        const DType dtype = static_cast<DType>(d);
        if (op != Op::convert && op != Op::bitcast) {
          add_case(all, op, dtype, {}, "");
          continue;
        }
        for (int to = 0; to < num_dtypes; ++to)
          add_case(all, op, dtype, {static_cast<DType>(to)}, "_" + std::string(name(static_cast<DType>(to))));
      }
    }
    return all;
  }();
  return cases;
}

std::vector<ir::Kernel> all_kernels(std::int64_t width) {
  std::vector<ir::Kernel> kernels;
  for (const Case& c : all_cases()) kernels.push_back(kernel_of(c, width));
  return kernels;
}

std::vector<const ir::Kernel*> pointers(const std::vector<ir::Kernel>& kernels) {
  std::vector<const ir::Kernel*> result;
  for (const ir::Kernel& kernel : kernels) result.push_back(&kernel);
  return result;
}

TEST(CodegenElementwise, covers_every_op) {
  std::set<Op> covered;
  for (const Case& c : all_cases()) covered.insert(c.op);
  for (int i = 0; i < ir::num_ops; ++i) {
    const Op op = static_cast<Op>(i);
    if (ir::family_of(op) != ir::Family::elementwise && ir::family_of(op) != ir::Family::compare) continue;
    EXPECT_TRUE(covered.contains(op)) << ir::name(op);
  }
}

class CodegenElementwiseWidth : public ::testing::TestWithParam<int> {};

TEST_P(CodegenElementwiseWidth, equals_the_evaluator) {
  const std::vector<ir::Kernel> kernels = all_kernels(GetParam());
  for (const ir::Target& target : runnable_targets()) {
    const auto module = codegen::compile(pointers(kernels), target, 2);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const Case& c = all_cases()[i];
      std::vector<Literal> params = c.operands;
      params.push_back(Literal(c.expected.type()));
      run(module->entries()[i], kernels[i], params);
      if (ir::is_approximated(c.op) && is_float(c.operands[0].dtype())) {
        const DType dtype = c.expected.dtype();
        const double allowed = dtype == f64 ? 4 : dtype == f32 ? 2 : 1;
        for (std::int64_t j = 0; j < c.expected.type().size(); ++j) {
          const double found = params.back().at(j), wanted = c.expected.at(j);
          EXPECT_LE(ulps_between(dtype, found, wanted), allowed)
              << kernels[i].name << " on " << label(target) << " of " << c.operands[0].at(j) << ": " << found << " for " << wanted;
        }
        continue;
      }
      EXPECT_EQ(difference(params.back(), c.expected), "") << kernels[i].name << " on " << label(target);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(widths, CodegenElementwiseWidth, ::testing::Values(1, 16),
                         [](const auto& info) { return fmt::format("w{}", info.param); });

TEST(CodegenElementwise, scalars_and_vectors_of_approximated_functions_agree) {
  for (const ir::Target& target : runnable_targets()) {
    std::vector<const Case*> cases;
    std::vector<ir::Kernel> kernels;
    for (const Case& c : all_cases()) {
      if (!(ir::is_approximated(c.op) && is_float(c.operands[0].dtype()))) continue;
      for (std::int64_t width : {1, 16}) {
        cases.push_back(&c);
        kernels.push_back(kernel_of(c, width));
      }
    }
    const auto module = codegen::compile(pointers(kernels), target, 2);
    Literal scalar;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      std::vector<Literal> params = cases[i]->operands;
      params.push_back(Literal(cases[i]->expected.type()));
      run(module->entries()[i], kernels[i], params);
      if (i % 2 == 0) {
        scalar = params.back();
      } else {
        EXPECT_EQ(difference(params.back(), scalar), "") << kernels[i].name << " on " << label(target);
      }
    }
  }
}

TEST(CodegenElementwise, leaves_nothing_undefined) {
  for (const ir::Target& target : {avx2_target(), avx512_target()}) {
    for (std::int64_t width : {1, 16}) {
      const std::vector<ir::Kernel> kernels = all_kernels(width);
      // What the target lacks does not appear either, whatever the op.
      if (target.isa == ir::Isa::avx2) {
        const std::string text = codegen::emit_assembly(pointers(kernels), target);
        for (const char* wide : {"%zmm", "%k1", "%xmm16", "%ymm16"}) EXPECT_EQ(text.find(wide), std::string::npos) << wide;
      }
      EXPECT_EQ(undefined_symbols(codegen::emit_object(pointers(kernels), target)), std::vector<std::string>{})
          << label(target) << " width " << width;
    }
  }
}

}  // namespace
}  // namespace burin::test
