// Loop nests over a domain: extents, their split into tasks, and the retry when an index needs a finer split.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "ir/target.h"
#include "passes/lower/element.h"

namespace burin::passes::lower {

/// f32 elements in one vector register.
inline std::int64_t native_lanes(const Target& target) { return target.vector_bits() / 32; }
/// Elements that one task should at least touch, so that handing it out costs little.
inline constexpr std::int64_t task_grain = 8192;

/// Nested loops from outer to inner.
struct Nest {
  std::vector<std::int64_t> extents;

  explicit Nest(std::vector<std::int64_t> e) : extents(std::move(e)) {}
  std::int64_t size() const;
  /// Loop i of extent factor * n becomes loops of extents n and factor.
  void split(std::size_t i, std::int64_t factor);
};

/// The variables of a nest while it is emitted, and the row-major position that they stand for.
struct NestVars {
  std::vector<VarId> vars;
  Affine flat() const;
  std::vector<std::int64_t> extents;
};

/// What a task or a block does before and after its loops.
struct TaskFrame {
  std::function<void()> before, after;
};

/// Opens the loops of `nest` around `body`. With a grain, outer loops become the kernel's grid until one task holds about
/// that many iterations; 0: no grid. The innermost loop is a vector loop of `lanes` lanes (1: serial).
/// NeedSplit names loop i by numbers[i]; loops without a number cannot be split.
void open_nest(BlockBuilder& b, IndexSpace& space, const Nest& nest, const std::vector<std::size_t>& numbers, std::int64_t grain, std::int64_t lanes,
               const std::function<void(const NestVars&)>& body, const TaskFrame& frame = {});

/// Iterations of a nest that one lane of an accumulator of `lanes` lanes takes.
std::int64_t chain_of(const Nest& nest, std::int64_t lanes);
/// Opens all loops of `nest`, of a longer chain than `chain`, as open_nest without a grid does, but in blocks of at most `chain`
/// iterations per lane, with `frame` around each block.
void open_blocks(BlockBuilder& b, IndexSpace& space, const Nest& nest, const std::vector<std::size_t>& numbers, std::int64_t chain, std::int64_t lanes,
                 const std::function<void(const NestVars&)>& body, const TaskFrame& frame);

/// Estimated nanoseconds of one element of `body` on one core: a few tenths per op, more for transcendental functions.
double element_cost(const Function& body, const Target& target);
/// Only says where an element of its operand lies.
bool is_movement(Op op);
/// exp, tanh, ...: dearer than storing a value and loading it again.
bool is_expensive(Op op);

}  // namespace burin::passes::lower
