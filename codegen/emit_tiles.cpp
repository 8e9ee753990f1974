// Products of pairs of bf16 by blocks of k: tile instructions where the target has them and the shapes fit them, else vectors that
// sum in the same order. LLVM configures the tiles, once for a function: all of its tile registers have one shape each throughout.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <algorithm>

#include "codegen/emit/pairs.h"
#include "codegen/emitter.h"

namespace burin::codegen {
namespace {

constexpr std::int64_t most_rows = 16, pair_bytes = 4, num_tile_registers = 8;

/// How a tile of the kernel is cut into registers: equal pieces of up to 16 rows of up to 16 elements.
struct Cut {
  std::int64_t pieces = 0, size = 0;
};
std::optional<Cut> cut(std::int64_t extent) {
  const std::int64_t pieces = (extent + most_rows - 1) / most_rows;
  if (pieces < 1 || extent % pieces != 0) return std::nullopt;
  return Cut{pieces, extent / pieces};
}

/// Registers by shape: rows, and bytes of a row.
using Registers = std::map<std::pair<std::int64_t, std::int64_t>, int>;

}  // namespace

// The statements, in the order of the text, whose registers still fit with those before.
void KernelEmitter::choose_tiles(const ir::Block& block, Registers& registers) {
  for (const Stmt& s : block) {
    choose_tiles(s.body, registers);
    if (s.kind != ir::StmtKind::mma || s.block == 0 || s.block > most_rows) continue;
    const ir::Buffer& tile = kernel_.buffers[s.buffer.index];
    const std::optional<Cut> rows = cut(tile.shape[0]), columns = cut(tile.shape[1]);
    if (!rows || !columns || !s.hi[0].is_constant() || s.hi[0].constant <= 0 || s.hi[0].constant % s.block != 0) continue;
    const auto offset = [&](ir::BufferId buffer, std::span<const ir::Affine> indices) {
      return offset_of(kernel_.buffers[buffer.index], indices);
    };
    const ir::Affine a = offset(s.a, s.a_indices), b = offset(s.b, s.b_indices);
    if (a.coefficient(s.column) != 0 || a.coefficient(s.depth) != 1) continue;
    if (b.coefficient(s.row) != 0 || b.coefficient(s.column) != 1) continue;
    Registers own;
    own[{rows->size, columns->size * pair_bytes}] += static_cast<int>(rows->pieces * columns->pieces);
    own[{rows->size, s.block * pair_bytes}] += static_cast<int>(rows->pieces);
    own[{s.block, columns->size * pair_bytes}] += static_cast<int>(columns->pieces);
    Registers together = registers;
    int sum = 0;
    for (const auto& [shape, count] : own) together[shape] = std::max(together[shape], count);
    for (const auto& [shape, count] : together) sum += count;
    if (sum > num_tile_registers) continue;
    registers = std::move(together);
    tile_plan_->products.emplace(&s, TileMoves{});
  }
}

std::optional<KernelEmitter::Nest> KernelEmitter::nest_over(const Stmt& loop, const Shape& shape) {
  if (!runs_over(loop, shape[0]) || loop.body.size() != 1 || !runs_over(loop.body[0], shape[1])) return std::nullopt;
  const ir::Block& body = loop.body[0].body;
  if (body.size() != 2 || body[1].kind != ir::StmtKind::store || body[1].args[0] != body[0].result) return std::nullopt;
  if (!body[0].conditions.empty() || !body[1].conditions.empty()) return std::nullopt;
  return Nest{&body[0], &body[1], loop.var, loop.body[0].var};
}

// What stands just before and just behind a product.
void KernelEmitter::find_moves(const ir::Block& block) {
  for (std::size_t i = 0; i < block.size(); ++i) {
    find_moves(block[i].body);
    const auto found = tile_plan_->products.find(&block[i]);
    if (found == tile_plan_->products.end()) continue;
    const ir::BufferId tile = block[i].buffer;
    const Shape& shape = kernel_.buffers[tile.index].shape;
    const auto is_element = [&](const Stmt& access, const Nest& nest) {
      return access.buffer == tile && access.indices == std::vector<ir::Affine>{ir::Affine(nest.row), ir::Affine(nest.column)};
    };
    const auto in_memory = [&](const Stmt& access, const Nest& nest) {
      const ir::Buffer& buffer = kernel_.buffers[access.buffer.index];
      return buffer.space != ir::Space::tile && offset_of(buffer, access.indices).coefficient(nest.column) == 1;
    };
    // Registers are not stored in the order of rows.
    const auto rows_apart = [&](const Stmt& access, const Nest& nest) {
      return offset_of(kernel_.buffers[access.buffer.index], access.indices).coefficient(nest.row) >= shape[1];
    };
    TileMoves& moves = found->second;
    moves.goes_on = i > 0 && block[i - 1].buffer == tile && tile_plan_->products.contains(&block[i - 1]);
    if (const auto nest = i > 0 ? nest_over(block[i - 1], shape) : std::nullopt; nest && is_element(*nest->store, *nest)) {
      if (nest->first->kind == ir::StmtKind::constant)
        moves.cleared = std::ranges::all_of(nest->first->literal.raw(), [](std::byte b) { return b == std::byte{0}; });
      else if (nest->first->kind == ir::StmtKind::load && in_memory(*nest->first, *nest))
        moves.from = {nest->first, nest->row, nest->column};
      if (moves.cleared || moves.from.access != nullptr) tile_plan_->done.insert(&block[i - 1]);
    }
    if (const auto nest = i + 1 < block.size() ? nest_over(block[i + 1], shape) : std::nullopt;
        nest && nest->first->kind == ir::StmtKind::load && is_element(*nest->first, *nest) && in_memory(*nest->store, *nest) &&
        rows_apart(*nest->store, *nest)) {
      moves.to = {nest->store, nest->row, nest->column};
      tile_plan_->done.insert(&block[i + 1]);
    }
  }
}

// Every statement that reads a tile's memory sees the product before it in its block or in one around, or, around a loop, any
// product of the loop.
void KernelEmitter::find_readers(const ir::Block& block, std::vector<std::pair<const Stmt*, std::span<const Stmt>>>& around) {
  const auto store_all = [&](const auto& self, std::span<const Stmt> statements, ir::BufferId tile) -> void {
    for (const Stmt& s : statements) {
      if (const auto product = tile_plan_->products.find(&s); product != tile_plan_->products.end() && s.buffer == tile)
        product->second.stored = true;
      self(self, s.body, tile);
    }
  };
  const auto is_read = [&](ir::BufferId tile) {
    for (std::size_t level = around.size(); level-- > 0;) {
      const auto& [loop, before] = around[level];
      for (std::size_t i = before.size(); i-- > 0;) {
        store_all(store_all, before.subspan(i, 1), tile);
        if (before[i].kind == ir::StmtKind::mma && before[i].buffer == tile && tile_plan_->products.contains(&before[i])) return;
      }
      if (loop != nullptr && loop->kind == ir::StmtKind::loop) store_all(store_all, loop->body, tile);
    }
  };
  for (std::size_t i = 0; i < block.size(); ++i) {
    const Stmt& s = block[i];
    if (tile_plan_->done.contains(&s)) continue;
    around.back().second = std::span(block).first(i);
    const auto product = tile_plan_->products.find(&s);
    const bool starts_apart = product != tile_plan_->products.end() && (product->second.cleared || product->second.goes_on || product->second.from.access != nullptr);
    if (s.kind == ir::StmtKind::load || (s.kind == ir::StmtKind::mma && !starts_apart)) is_read(s.buffer);
    around.emplace_back(&s, std::span<const Stmt>{});
    find_readers(s.body, around);
    around.pop_back();
  }
}

const KernelEmitter::TilePlan& KernelEmitter::tile_plan() {
  if (tile_plan_) return *tile_plan_;
  tile_plan_.emplace();
  Registers registers;
  choose_tiles(kernel_.body, registers);
  find_moves(kernel_.body);
  std::vector<std::pair<const Stmt*, std::span<const Stmt>>> around = {{nullptr, {}}};
  find_readers(kernel_.body, around);
  return *tile_plan_;
}

KernelEmitter::Operand KernelEmitter::operand_of(const TileCopy& copy) {
  const Stmt& access = *copy.access;
  std::vector<ir::Affine> first = access.indices;
  for (ir::VarId var : {copy.row, copy.column})
    for (ir::Affine& index : first) index = ir::substitute(index, var, 0);
  return {access.buffer, address_of(access.buffer, first).pointer,
          offset_of(kernel_.buffers[access.buffer.index], access.indices).coefficient(copy.row), 1, 0};
}

void KernelEmitter::emit_tile_mma(const Stmt& s) {
  const ir::Buffer& tile = kernel_.buffers[s.buffer.index];
  const Cut rows = *cut(tile.shape[0]), columns = *cut(tile.shape[1]);
  const std::int64_t depth = s.hi[0].constant;
  const TileMoves& moves = tile_plan().products.at(&s);
  const auto number = [&](std::int64_t x) { return b_.getInt16(static_cast<std::uint16_t>(x)); };
  llvm::Value* const row_count = number(rows.size);
  llvm::Value* const column_bytes = number(columns.size * pair_bytes);
  llvm::Value* const block_bytes = number(s.block * pair_bytes);
  llvm::Type* const word = b_.getInt32Ty();
  const Operand a = operand_of(s, s.a, s.a_indices), b = operand_of(s, s.b, s.b_indices);
  const auto moved = [&](llvm::Value* pointer, std::int64_t words) {
    return words == 0 ? pointer : b_.CreateGEP(word, pointer, i64(words));
  };
  const auto load = [&](llvm::Value* row_number, llvm::Value* bytes, llvm::Value* pointer, std::int64_t words_per_row) {
    return b_.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64_internal,
                              {row_number, bytes, pointer, i64(words_per_row * pair_bytes)});
  };
  const Operand memory = {s.buffer, places_[s.buffer.index].pointer, places_[s.buffer.index].row_stride, 1, 0};
  /// f for each register of the tile, with the place in `o` that stands for it.
  const auto over_registers = [&](const Operand& o, const auto& f) {
    for (std::int64_t i = 0; i < rows.pieces; ++i)
      for (std::int64_t j = 0; j < columns.pieces; ++j)
        f(static_cast<std::size_t>(i * columns.pieces + j), moved(o.base, i * rows.size * o.per_row + j * columns.size));
  };

  llvm::LLVMContext& context = module_.getContext();
  const Operand from = moves.from.access != nullptr ? operand_of(moves.from) : memory;
  std::vector<llvm::Value*> start;
  if (moves.goes_on)
    start = std::move(tile_registers_);
  else
    over_registers(from, [&](std::size_t, llvm::Value* place) {
      start.push_back(moves.cleared ? b_.CreateIntrinsic(llvm::Intrinsic::x86_tilezero_internal, {row_count, column_bytes})
                                    : load(row_count, column_bytes, place, from.per_row));
    });
  const std::vector<Ahead> ahead = read_behind(s);
  llvm::BasicBlock* const before = b_.GetInsertBlock();
  auto* body = llvm::BasicBlock::Create(context, "mma", function_);
  auto* done = llvm::BasicBlock::Create(context, "mma.done", function_);
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  const auto phi = [&](llvm::Value* first) {
    llvm::PHINode* node = b_.CreatePHI(first->getType(), 2);
    node->addIncoming(first, before);
    return node;
  };
  llvm::PHINode* const k = phi(i64(0));
  llvm::PHINode* const a_at = phi(a.base);
  llvm::PHINode* const b_at = phi(b.base);
  std::vector<llvm::PHINode*> sums;
  for (llvm::Value* value : start) sums.push_back(phi(value));
  prefetch(ahead, tile.shape[0], b_.CreateUDiv(k, i64(s.block)), depth / s.block);
  std::vector<llvm::Value*> left, right, next;
  for (std::int64_t i = 0; i < rows.pieces; ++i)
    left.push_back(load(row_count, block_bytes, moved(a_at, i * rows.size * a.per_row), a.per_row));
  for (std::int64_t j = 0; j < columns.pieces; ++j)
    right.push_back(load(number(s.block), column_bytes, moved(b_at, j * columns.size), b.per_depth));
  for (std::int64_t i = 0; i < rows.pieces; ++i)
    for (std::int64_t j = 0; j < columns.pieces; ++j)
      next.push_back(b_.CreateIntrinsic(llvm::Intrinsic::x86_tdpbf16ps_internal,
                                        {row_count, column_bytes, block_bytes, sums[next.size()],
                                         left[static_cast<std::size_t>(i)], right[static_cast<std::size_t>(j)]}));
  llvm::Value* const next_k = b_.CreateAdd(k, i64(s.block), "", true, true);
  k->addIncoming(next_k, body);
  a_at->addIncoming(moved(a_at, s.block), body);
  b_at->addIncoming(moved(b_at, s.block * b.per_depth), body);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i]->addIncoming(next[i], body);
  b_.CreateCondBr(b_.CreateICmpSLT(next_k, i64(depth)), body, done);
  b_.SetInsertPoint(done);
  const auto store = [&](const Operand& to) {
    over_registers(to, [&](std::size_t i, llvm::Value* place) {
      b_.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64_internal,
                         {row_count, column_bytes, place, i64(to.per_row * pair_bytes), next[i]});
    });
  };
  if (moves.stored) store(memory);
  if (moves.to.access != nullptr) store(operand_of(moves.to));
  tile_registers_ = std::move(next);
}

// One vector of the tile after the other, block by block: what runs where tiles do not.
void KernelEmitter::emit_block_mma(const Stmt& s) {
  const ir::Buffer& tile = kernel_.buffers[s.buffer.index];
  const std::int64_t num_rows = tile.shape[0], num_columns = tile.shape[1];
  if (num_rows == 0 || num_columns == 0) return;
  const std::int64_t width = target_.vector_bits() / 32;
  llvm::LLVMContext& context = module_.getContext();
  llvm::Type* const word = b_.getInt32Ty();
  llvm::Type* const vector = vector_type(b_.getFloatTy(), width);
  llvm::Constant* const zero = llvm::Constant::getNullValue(vector);
  llvm::Value* const depth = evaluate(s.hi[0]).uniform;
  const Operand factors[] = {operand_of(s, s.a, s.a_indices), operand_of(s, s.b, s.b_indices)};
  llvm::BasicBlock* before = b_.GetInsertBlock();
  const auto block = [&](const char* name) { return llvm::BasicBlock::Create(context, name, function_); };
  auto *blocks = block("mma.block"), *rows = block("mma.row"), *rows_done = block("mma.rows.done"), *done = block("mma.done");
  b_.CreateCondBr(b_.CreateICmpSGT(depth, i64(0)), blocks, done);
  b_.SetInsertPoint(blocks);
  llvm::PHINode* const first = b_.CreatePHI(b_.getInt64Ty(), 2, "k0");
  first->addIncoming(i64(0), before);
  llvm::Value* const next_first = b_.CreateAdd(first, i64(s.block));
  llvm::Value* const end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, depth, next_first);
  b_.CreateBr(rows);
  b_.SetInsertPoint(rows);
  llvm::PHINode* const r = b_.CreatePHI(b_.getInt64Ty(), 2, "r");
  r->addIncoming(i64(0), blocks);
  for (std::int64_t column = 0; column < num_columns; column += width) {
    before = b_.GetInsertBlock();
    auto *inner = block("mma"), *inner_done = block("mma.sum");
    b_.CreateBr(inner);
    b_.SetInsertPoint(inner);
    llvm::PHINode* const k = b_.CreatePHI(b_.getInt64Ty(), 2, "k");
    llvm::PHINode* const low = b_.CreatePHI(vector, 2);
    llvm::PHINode* const high = b_.CreatePHI(vector, 2);
    k->addIncoming(first, before);
    low->addIncoming(zero, before);
    high->addIncoming(zero, before);
    const auto load = [&](const Operand& o) -> llvm::Value* {
      llvm::Value* offset = b_.CreateAdd(b_.CreateMul(r, i64(o.per_row)), b_.CreateMul(k, i64(o.per_depth)));
      llvm::Value* at = b_.CreateGEP(word, o.base, b_.CreateAdd(offset, i64(o.per_column * column)));
      if (o.per_column != 0) return load_columns(o, at, width, num_columns - column);
      return b_.CreateVectorSplat(static_cast<unsigned>(width), annotate(b_.CreateAlignedLoad(word, at, llvm::Align(4)), o.buffer));
    };
    const PairSums sums = add_pairs(b_, PairSums{low, high}, load(factors[0]), load(factors[1]));
    llvm::Value* const next_k = b_.CreateAdd(k, i64(1));
    k->addIncoming(next_k, inner);
    low->addIncoming(sums.low, inner);
    high->addIncoming(sums.high, inner);
    b_.CreateCondBr(b_.CreateICmpSLT(next_k, end), inner, inner_done);
    b_.SetInsertPoint(inner_done);
    // A tile's rows end on the boundary of any vector.
    const Place& place = places_[s.buffer.index];
    llvm::Value* at = b_.CreateGEP(b_.getFloatTy(), place.pointer, b_.CreateAdd(b_.CreateMul(r, i64(place.row_stride)), i64(column)));
    const llvm::Align align(4);
    llvm::Value* old = annotate(b_.CreateAlignedLoad(vector, at, align), s.buffer);
    annotate(b_.CreateAlignedStore(added_to(b_, sums, old), at, align), s.buffer);
  }
  llvm::Value* const next_r = b_.CreateAdd(r, i64(1));
  r->addIncoming(next_r, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next_r, i64(num_rows)), rows, rows_done);
  b_.SetInsertPoint(rows_done);
  first->addIncoming(next_first, rows_done);
  b_.CreateCondBr(b_.CreateICmpSLT(next_first, depth), blocks, done);
  b_.SetInsertPoint(done);
}

}  // namespace burin::codegen
