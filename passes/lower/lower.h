// Fusion bodies to Kernels. Each kind of fusion has one lowering; loops, tiles and task grids depend on shapes and Target alone.
#pragma once
#include <vector>

#include "ir/function.h"
#include "ir/kernel/kernel.h"
#include "ir/target.h"
#include "passes/lower/kept_pack.h"

namespace burin::passes::lower {

using namespace ir;

/// A parameter of a lowered kernel: an argument or result of the body, a buffer between its kernels, or a packed copy that is kept.
struct Param {
  enum Kind : std::uint8_t { arg, result, temp, kept } kind = arg;
  std::uint32_t index = 0;
  friend bool operator==(const Param&, const Param&) = default;
};

struct LoweredKernel {
  Kernel kernel;
  std::vector<Param> params;  // one per parameter of the kernel
  /// Of a kernel that does nothing but pack its first parameter, a whole argument, into its second one: how it does.
  std::optional<PackedMatrix> packs;
};

/// Kernels in the order they run.
struct Lowering {
  std::vector<LoweredKernel> kernels;
  std::vector<Type> temps;
  std::size_t main = 0;  // the kernel that does what the body says; others pack for it or combine what it leaves
  bool keeps = false;    // whether it updates the packed copies that it was asked to
};

/// By result: the argument whose memory it takes over, or -1. That argument's parameter is then both (inout).
using InPlace = std::vector<std::int32_t>;

/// Elementwise, compare, movement and index ops of one iteration space: the results have equal element counts.
Lowering lower_loop(const Function& body, const Target& target, const InPlace& in_place = {}, std::span<const KeptPack> kept = {});
/// Reductions over the same axes of one domain, with what feeds them and what they feed.
Lowering lower_rows(const Function& body, const Target& target, const InPlace& in_place = {});
/// One dot_general with what its operands are made from and what is made of its result.
Lowering lower_matmul(const Function& body, const Target& target, const InPlace& in_place = {}, std::span<const KeptPack> kept = {});
/// A scatter into its operand, and elementwise ops on the result.
Lowering lower_scatter(const Function& body, const Target& target, const InPlace& in_place = {});
/// Sums over one axis of scores that are products themselves: softmax and the second product, and their derivatives.
Lowering lower_attention(const Function& body, const Target& target);

/// By the kind of a fusion op. `kept`: packed copies of results, which the kernel updates where it can (Lowering::keeps: all of them, or
/// none); they are its last parameters then, in this order.
Lowering lower_fusion(std::string_view kind, const Function& body, const Target& target, const InPlace& in_place = {},
                      std::span<const KeptPack> kept = {});
/// May the argument's memory take `result` of a fusion of that kind that reads it? Only when it flows to results position by
/// position, and to this one: each element is read, at the latest for this result, before its place is written.
bool can_overwrite(std::string_view kind, const Function& body, ValueId arg, ValueId result);

/// The parameters of a kernel that has all arguments and results of `body`: buffers by argument and by result.
struct Parameters {
  std::vector<BufferId> args, results;
};
/// Of a kernel that computes `value` alone: a buffer for each argument that it is made of, none for others.
std::vector<BufferId> add_arguments(LoweredKernel& lowered, const Function& body, ValueId value);
Parameters add_parameters(LoweredKernel& lowered, const Function& body, const InPlace& in_place);

}  // namespace burin::passes::lower
