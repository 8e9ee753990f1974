// What an epilogue reads and writes is asked for while the product before it runs: each row of a tile lies on lines of its own, far from
// those of the next row, which no processor foresees. So is what the next product reads.
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>
#include <set>

#include "codegen/emitter.h"

namespace burin::codegen {
namespace {

constexpr std::int64_t line_bytes = 64;
constexpr std::size_t most_accesses = 4;
/// Below, a product is over before what it asks for has come.
constexpr std::int64_t fewest_steps = 4;
/// A shorter product reads little, and instructions of its own weigh.
constexpr std::int64_t fewest_steps_of_next = 64;

}  // namespace

std::vector<KernelEmitter::Ahead> KernelEmitter::read_behind(const Stmt& mma) {
  const Shape& shape = kernel_.buffers[mma.buffer.index].shape;
  std::vector<Ahead> ahead;
  std::vector<std::pair<ir::BufferId, ir::Affine>> known;  // with the first element's offset
  for (const Stmt& loop : behind_) {
    if (loop.kind == ir::StmtKind::mma && loop.buffer == mma.buffer) break;
    if (!runs_over(loop, shape[0]) || loop.body.size() != 1 || !runs_over(loop.body[0], shape[1])) continue;
    const ir::VarId row = loop.var, column = loop.body[0].var;
    std::set<ir::VarId> bound;
    for (const Stmt& s : loop.body[0].body) {
      if (s.kind == ir::StmtKind::bind) bound.insert(s.var);
      if ((s.kind != ir::StmtKind::load && s.kind != ir::StmtKind::store) || !s.conditions.empty()) continue;
      const ir::Buffer& buffer = kernel_.buffers[s.buffer.index];
      if (buffer.space == ir::Space::scratch || buffer.space == ir::Space::tile) continue;
      const ir::Affine offset = offset_of(buffer, s.indices);
      if (offset.coefficient(column) != 1 || offset.coefficient(row) == 0) continue;
      if (std::ranges::any_of(offset.terms, [&](const auto& term) { return bound.contains(term.first); })) continue;
      const std::pair first(s.buffer, ir::substitute(ir::substitute(offset, row, 0), column, 0));
      if (ahead.size() == most_accesses || std::ranges::find(known, first) != known.end()) continue;
      known.push_back(first);
      const Operand memory = operand_of({&s, row, column});
      const std::int64_t size = static_cast<std::int64_t>(size_of(buffer.dtype));
      ahead.push_back({memory.base, memory.per_row * size, shape[1] * size});
    }
  }
  return ahead;
}

// A row per step, or several; where there are more steps than rows, some ask for the same row again, which costs nothing but the instruction.
void KernelEmitter::prefetch(std::span<const Ahead> ahead, std::int64_t rows, llvm::Value* step, std::int64_t steps) {
  if (ahead.empty() || steps < fewest_steps) return;
  const std::int64_t per_step = (rows + steps - 1) / steps;
  const auto shift = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(steps / rows, 1))) - 1);
  for (std::int64_t i = 0; i < per_step; ++i) {
    llvm::Value* row = per_step == 1 ? b_.CreateLShr(step, shift) : b_.CreateAdd(b_.CreateMul(step, i64(per_step)), i64(i));
    row = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, row, i64(rows - 1));
    for (const Ahead& a : ahead) {
      llvm::Value* first = b_.CreatePtrAdd(a.base, b_.CreateMul(row, i64(a.row_bytes)));
      for (std::int64_t byte = 0; byte < a.bytes; byte += line_bytes) prefetch_line(b_.CreatePtrAdd(first, i64(byte)));
    }
  }
}

// An operand is moved by the innermost loop that its place depends on: rows of A from tile to tile, columns of B once all rows are done, which
// then are in the second cache already when the rounds of several tiles have asked for them.
void KernelEmitter::prefetch_next(const Operand& o, std::span<const ir::Affine> indices, std::int64_t extent, llvm::Value* at, llvm::Value* step,
                                  std::int64_t steps) {
  const ir::Buffer& buffer = kernel_.buffers[o.buffer.index];
  if (buffer.space == ir::Space::scratch || steps < fewest_steps_of_next) return;
  const ir::Affine offset = offset_of(buffer, indices);
  std::int64_t away = 0;
  for (std::size_t i = open_loops_.size(); i-- > 0 && away == 0;) away = offset.coefficient(open_loops_[i]);
  if (away == 0) return;
  const std::int64_t size = static_cast<std::int64_t>(size_of(buffer.dtype));
  if (o.per_depth == 1 && o.per_row > 1) {  // rows along k: a line of one of them in each step
    const std::int64_t lines = (steps * size + line_bytes - 1) / line_bytes;
    llvm::Value* row = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b_.CreateUDiv(step, i64(lines)), i64(extent - 1));
    llvm::Value* line = b_.CreateURem(step, i64(lines));
    prefetch_line(b_.CreatePtrAdd(o.base, b_.CreateAdd(b_.CreateMul(row, i64(o.per_row * size)), b_.CreateAdd(b_.CreateMul(line, i64(line_bytes)), i64(away * size)))));
  } else {  // the same step of the next
    for (std::int64_t byte = 0; byte < extent * size; byte += line_bytes)
      prefetch_line(b_.CreatePtrAdd(at, i64(away * size + byte)));
  }
}

void KernelEmitter::prefetch_line(llvm::Value* pointer) {
  constexpr unsigned is_read = 0, second_cache = 2, is_data = 1;
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()}, {pointer, b_.getInt32(is_read), b_.getInt32(second_cache), b_.getInt32(is_data)});
}

}  // namespace burin::codegen
