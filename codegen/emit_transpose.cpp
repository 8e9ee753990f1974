// Stores of an unrolled loop whose iterations are neighbours in memory while the lanes are far apart: not one scatter per
// iteration, but a block of iterations turned in registers and one vector store per lane.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <set>

#include "codegen/emitter.h"

namespace burin::codegen {

namespace {

/// Row r, lane c becomes row c, lane r; as many rows as lanes, a power of two. First within the 128 bits that shuffles work
/// on cheaply, then those pieces as wholes; each round turns the bits of (row, lane) by one.
void turn(llvm::IRBuilderBase& b, std::vector<llvm::Value*>& rows, std::size_t element_bytes) {
  const std::size_t n = rows.size(), piece = std::min(n, 16 / element_bytes), pieces = n / piece;
  auto shuffled = [&](llvm::Value* x, llvm::Value* y, auto source) {
    std::vector<int> mask;
    for (std::size_t i = 0; i < n; ++i) mask.push_back(static_cast<int>(source(i)));
    return b.CreateShuffleVector(x, y, mask);
  };
  for (std::size_t round = 1; round < piece; round *= 2) {
    std::vector<llvm::Value*> next;
    for (std::size_t group = 0; group < n; group += piece) {
      for (std::size_t i = group; i < group + piece / 2; ++i) {
        for (std::size_t half : {std::size_t{0}, piece / 2}) {  // x0 y0 x1 y1 ... of either half of each piece
          next.push_back(shuffled(rows[i], rows[i + piece / 2], [&](std::size_t j) {
            return j / piece * piece + half + j % piece / 2 + (j % 2) * n;
          }));
        }
      }
    }
    rows = std::move(next);
  }
  for (std::size_t round = 1; round < pieces; round *= 2) {
    std::vector<llvm::Value*> next(n);
    for (std::size_t i = 0; i < pieces / 2; ++i) {
      for (std::size_t c = 0; c < piece; ++c) {
        for (std::size_t odd : {0, 1}) {  // the even or odd pieces of both rows
          next[(odd * pieces / 2 + i) * piece + c] =
              shuffled(rows[2 * i * piece + c], rows[(2 * i + 1) * piece + c], [&](std::size_t j) {
                return (2 * (j / piece) + odd) * piece + j % piece;  // pieces of the second row follow those of the first
              });
        }
      }
    }
    rows = std::move(next);
  }
}

}  // namespace

// Delaying a store is safe when nothing in the loop reads its buffer, and no two of the delayed ones meet.
bool KernelEmitter::stores_transposed(const Stmt& loop, std::int64_t count) const {
  if (lanes_ == 1 || mask_ != nullptr || count < 4 || (lanes_ & (lanes_ - 1)) != 0) return false;
  std::set<ir::BufferId> read, written;
  for (const Stmt& s : loop.body) {
    if (!s.body.empty() || s.kind == ir::StmtKind::bind || s.kind == ir::StmtKind::mma) return false;
    if (s.kind == ir::StmtKind::load) read.insert(s.buffer);
    if (s.kind != ir::StmtKind::store) continue;
    const ir::Buffer& buffer = kernel_.buffers[s.buffer.index];
    if (!s.conditions.empty() || buffer.space == ir::Space::tile || !written.insert(s.buffer).second) return false;
    const ir::Affine offset = offset_of(buffer, s.indices);
    std::int64_t lane = 0;
    for (const auto& [var, coefficient] : offset.terms) {
      if (var == loop.var) continue;
      const Index& index = variables_[var.index].index;
      if (index.varying != nullptr) return false;
      lane += coefficient * index.lane;
    }
    if (offset.coefficient(loop.var) != 1 || lane < count) return false;
  }
  return !written.empty() && std::ranges::none_of(written, [&](ir::BufferId b) { return read.contains(b); });
}

void KernelEmitter::flush_transposed() {
  for (auto& [stmt, pending] : delayed_) {
    const DType dtype = kernel_.buffers[stmt->buffer.index].dtype;
    llvm::Type* element = memory_type(dtype);
    const std::size_t block = transposed_block();
    for (std::size_t first = 0; first < pending.size(); first += block) {
      const std::size_t filled = std::min(block, pending.size() - first);
      for (std::size_t lane = 0; lane < static_cast<std::size_t>(lanes_); lane += block) {
        std::vector<int> part;
        for (std::size_t i = 0; i < block; ++i) part.push_back(static_cast<int>(lane + i));
        std::vector<llvm::Value*> rows;
        for (std::size_t i = 0; i < block; ++i)
          rows.push_back(i < filled ? b_.CreateShuffleVector(pending[first + i].value, part)
                                    : llvm::PoisonValue::get(vector_type(element, static_cast<std::int64_t>(block))));
        turn(b_, rows, size_of(dtype));
        part.resize(filled);
        for (std::size_t i = 0; i < filled; ++i) part[i] = static_cast<int>(i);
        const Address& at = pending[first].address;
        for (std::size_t i = 0; i < block; ++i) {
          const std::int64_t distance = at.lanes.lane * static_cast<std::int64_t>(lane + i);
          llvm::Value* pointer = b_.CreateGEP(element, at.pointer, i64(distance));
          llvm::Value* row = filled == block ? rows[i] : b_.CreateShuffleVector(rows[i], part);
          annotate(b_.CreateAlignedStore(row, pointer, llvm::Align(size_of(dtype))), stmt->buffer);
        }
      }
    }
  }
  delayed_.clear();
}

/// Iterations that are turned at once: as many as fit the registers.
std::size_t KernelEmitter::transposed_block() const {
  const std::int64_t most = target_.vector_registers() / 2;
  return static_cast<std::size_t>(std::min(lanes_, most));
}

}  // namespace burin::codegen
