// What adds up over iterations: accumulators and tiles of products.
#include <fmt/format.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "base/check.h"
#include "codegen/emit/elementwise.h"
#include "codegen/emit/pairs.h"
#include "codegen/emitter.h"

namespace burin::codegen {

namespace {

ir::Op op_of(ir::Reduce reduce) {
  switch (reduce) {
    case ir::Reduce::sum: return ir::Op::add;
    case ir::Reduce::prod: return ir::Op::mul;
    case ir::Reduce::max: return ir::Op::max;
    case ir::Reduce::min: return ir::Op::min;
    case ir::Reduce::bit_and: return ir::Op::bit_and;
    case ir::Reduce::bit_or: return ir::Op::bit_or;
  }
  return ir::Op::add;
}

/// The value that changes nothing, as a register of the type.
llvm::Constant* identity(ir::Reduce reduce, DType dtype, llvm::Type* type) {
  const unsigned bits = type->getScalarSizeInBits();
  if (is_float(dtype)) {
    switch (reduce) {
      case ir::Reduce::prod: return llvm::ConstantFP::get(type, 1.0);
      case ir::Reduce::max: return llvm::ConstantFP::getInfinity(type, true);
      case ir::Reduce::min: return llvm::ConstantFP::getInfinity(type, false);
      default: return llvm::ConstantFP::get(type, 0.0);
    }
  }
  const bool is_signed = is_signed_int(dtype);
  switch (reduce) {
    case ir::Reduce::prod: return llvm::ConstantInt::get(type, 1);
    case ir::Reduce::max:
      return llvm::ConstantInt::get(type, is_signed ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getZero(bits));
    case ir::Reduce::min:
      return llvm::ConstantInt::get(type, is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getAllOnes(bits));
    case ir::Reduce::bit_and: return llvm::ConstantInt::get(type, llvm::APInt::getAllOnes(bits));
    default: return llvm::ConstantInt::get(type, 0);
  }
}

}  // namespace

llvm::Value* KernelEmitter::combine(const Stmt& acc, llvm::Value* a, llvm::Value* b) {
  llvm::Value* args[] = {a, b};
  llvm::Value* result = emit_elementwise(b_, op_of(acc.reduce), acc.dtype, acc.dtype, args);
  return result;
}

void KernelEmitter::emit_acc(const Stmt& s) {
  Accumulator& acc = accumulators_[s.acc.index];
  acc.stmt = &s;
  acc.per_iteration = lanes_ > 1;
  BURIN_CHECK(!acc.per_iteration || s.width <= 1, "an accumulator inside a vector loop has one lane per iteration");
  llvm::Type* element = register_type(s.dtype);
  const std::int64_t lanes = acc.per_iteration ? lanes_ : std::max<std::int64_t>(s.width, 1);
  llvm::Type* type = vector_type(element, lanes);
  acc.slot = allocate(type, "acc");
  llvm::Value* start = identity(s.reduce, s.dtype, type);
  if (!s.args.empty() && s.args[0].valid()) {
    const Register given = widened(get(s.args[0]));
    if (acc.per_iteration) {
      start = spread(given).value;
    } else if (lanes == 1) {
      start = given.value;
    } else {
      start = b_.CreateInsertElement(start, given.value, std::uint64_t{0});
    }
  }
  b_.CreateStore(start, acc.slot);
}

void KernelEmitter::emit_accumulate(const Stmt& s) {
  const Accumulator& acc = accumulators_[s.acc.index];
  BURIN_CHECK(acc.stmt != nullptr, "an accumulator is used before it is defined");
  llvm::Type* type = acc.slot->getAllocatedType();
  llvm::Value* old = b_.CreateLoad(type, acc.slot);
  Register value = widened(get(s.args[0]));
  if (lanes_ == 1) {
    llvm::Value* result;
    if (acc.stmt->width <= 1) {
      result = combine(*acc.stmt, old, value.value);
    } else {  // outside a vector loop everything goes to lane 0
      llvm::Value* first = b_.CreateExtractElement(old, std::uint64_t{0});
      result = b_.CreateInsertElement(old, combine(*acc.stmt, first, value.value), std::uint64_t{0});
    }
    b_.CreateStore(result, acc.slot);
    return;
  }
  value = spread(value);
  const std::int64_t width = acc.per_iteration ? lanes_ : std::max<std::int64_t>(acc.stmt->width, 1);
  if (width == lanes_) {
    llvm::Value* result = combine(*acc.stmt, old, value.value);
    if (mask_ != nullptr) result = b_.CreateSelect(mask_, result, old);
    b_.CreateStore(result, acc.slot);
    return;
  }
  BURIN_CHECK(lanes_ % width == 0,
              fmt::format("kernel {}: an accumulator of {} lanes in a loop of {}", kernel_.name, width, lanes_));
  // Fewer lanes than iterations: one slice of the group after another.
  for (std::int64_t first = 0; first < lanes_; first += width) {
    std::vector<int> order;
    for (std::int64_t i = 0; i < width; ++i) order.push_back(static_cast<int>(first + i));
    auto slice = [&](llvm::Value* v) {
      return width == 1 ? b_.CreateExtractElement(v, static_cast<std::uint64_t>(first)) : b_.CreateShuffleVector(v, order);
    };
    llvm::Value* result = combine(*acc.stmt, old, slice(value.value));
    old = mask_ == nullptr ? result : b_.CreateSelect(slice(mask_), result, old);
  }
  b_.CreateStore(old, acc.slot);
}

// lane[i] op= lane[i + h] for h = L/2, L/4, ..., 1.
void KernelEmitter::emit_finish(const Stmt& s) {
  const Accumulator& acc = accumulators_[s.acc.index];
  const Stmt& declared = *acc.stmt;
  llvm::Value* value = b_.CreateLoad(acc.slot->getAllocatedType(), acc.slot);
  if (!acc.per_iteration && declared.width > 1) {
    BURIN_CHECK((declared.width & (declared.width - 1)) == 0, "the lanes of an accumulator are a power of two");
    for (std::int64_t half = declared.width / 2; half >= 1; half /= 2) {
      std::vector<int> low, high;
      for (std::int64_t i = 0; i < half; ++i) {
        low.push_back(static_cast<int>(i));
        high.push_back(static_cast<int>(i + half));
      }
      if (half == 1) {
        value = combine(declared, b_.CreateExtractElement(value, std::uint64_t{0}),
                        b_.CreateExtractElement(value, std::uint64_t{1}));
      } else {
        value = combine(declared, b_.CreateShuffleVector(value, low), b_.CreateShuffleVector(value, high));
      }
    }
  }
  if (declared.dtype != s.dtype) value = emit_convert(b_, value, declared.dtype, s.dtype);
  set(s.result, {value, s.dtype, acc.per_iteration, is_half(s.dtype)});
}

KernelEmitter::Operand KernelEmitter::operand_of(const Stmt& s, ir::BufferId buffer, std::span<const ir::Affine> indices) {
  const ir::Affine offset = offset_of(kernel_.buffers[buffer.index], indices);
  std::vector<ir::Affine> first(indices.begin(), indices.end());
  for (ir::VarId var : {s.row, s.column, s.depth}) {
    for (ir::Affine& index : first) index = ir::substitute(index, var, 0);
  }
  return {buffer, address_of(buffer, first).pointer, offset.coefficient(s.row), offset.coefficient(s.column),
          offset.coefficient(s.depth)};
}

llvm::Value* KernelEmitter::load_columns(const Operand& o, llvm::Value* pointer, std::int64_t width, std::int64_t left) {
  const ir::Buffer& buffer = kernel_.buffers[o.buffer.index];
  const llvm::Align align(size_of(buffer.dtype));
  llvm::Type* stored = memory_type(buffer.dtype);
  llvm::Type* several = vector_type(stored, width);
  std::vector<llvm::Constant*> inside;
  for (std::int64_t lane = 0; lane < width; ++lane) inside.push_back(b_.getInt1(lane < left));
  llvm::Value* mask = llvm::ConstantVector::get(inside);
  llvm::Value* zero = llvm::Constant::getNullValue(several);
  llvm::Value* loaded;
  if (o.per_column == 1) {
    loaded = left >= width ? static_cast<llvm::Value*>(b_.CreateAlignedLoad(several, pointer, align))
                           : b_.CreateMaskedLoad(several, pointer, align, mask, zero);
  } else {
    std::vector<std::uint64_t> offsets;
    for (std::int64_t lane = 0; lane < width; ++lane)
      offsets.push_back(static_cast<std::uint64_t>(lane * o.per_column));
    llvm::Value* pointers = b_.CreateGEP(stored, pointer, llvm::ConstantDataVector::get(module_.getContext(), offsets));
    loaded = b_.CreateMaskedGather(several, pointers, align, mask, zero);
  }
  return annotate(loaded, o.buffer);
}

// The whole tile is held in vectors along its columns across the loop over k: one fused multiply-add per vector and k.
// An operand that does not depend on the column is one scalar, spread; LLVM makes an embedded broadcast of it.
void KernelEmitter::emit_mma(const Stmt& s) {
  const ir::Buffer& tile = kernel_.buffers[s.buffer.index];
  BURIN_CHECK(tile.dtype == f32 || tile.dtype == f64, "a matrix tile is f32 or f64");
  BURIN_CHECK(lanes_ == 1 && tile.shape.rank() == 2 && s.hi.size() == 1, "mma stands outside vector loops");
  if (s.block != 0) return uses_tiles(s) ? emit_tile_mma(s) : emit_block_mma(s);
  const std::int64_t rows = tile.shape[0], columns = tile.shape[1];
  const std::int64_t width = target_.vector_bits() / static_cast<std::int64_t>(8 * size_of(tile.dtype));
  const std::int64_t groups = (columns + width - 1) / width;
  llvm::Type* element = memory_type(tile.dtype);
  llvm::Type* vector = vector_type(element, width);

  const std::array<Operand, 2> operands = {operand_of(s, s.a, s.a_indices), operand_of(s, s.b, s.b_indices)};

  llvm::Type* const_type = b_.getInt64Ty();
  auto tile_slot = [&](std::int64_t r, std::int64_t g) {
    return b_.CreateConstInBoundsGEP1_64(
        element, places_[s.buffer.index].pointer,
        static_cast<std::uint64_t>(r * places_[s.buffer.index].row_stride + g * width));
  };
  const llvm::Align align(size_of(tile.dtype));
  const std::size_t count = static_cast<std::size_t>(rows * groups);

  const Index depth = evaluate(s.hi[0]);
  llvm::LLVMContext& context = module_.getContext();
  auto* enter = llvm::BasicBlock::Create(context, "mma.enter", function_);
  auto* body = llvm::BasicBlock::Create(context, "mma", function_);
  auto* done = llvm::BasicBlock::Create(context, "mma.done", function_);
  auto* after = llvm::BasicBlock::Create(context, "mma.after", function_);
  b_.CreateCondBr(b_.CreateICmpSGT(depth.uniform, i64(0)), enter, after);
  b_.SetInsertPoint(enter);
  std::vector<llvm::Value*> start;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t g = 0; g < groups; ++g)
      start.push_back(annotate(b_.CreateAlignedLoad(vector, tile_slot(r, g), align), s.buffer));
  }
  const std::vector<Ahead> ahead = s.hi[0].is_constant() ? read_behind(s) : std::vector<Ahead>{};
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  llvm::PHINode* k = b_.CreatePHI(const_type, 2, "k");
  k->addIncoming(i64(0), enter);
  std::vector<llvm::PHINode*> sums;
  for (llvm::Value* value : start) {
    sums.push_back(b_.CreatePHI(vector, 2));
    sums.back()->addIncoming(value, enter);
  }

  const bool pairs = kernel_.buffers[s.a.index].dtype == DType::u32;
  auto widen = [&](llvm::Value* stored, DType dtype) -> llvm::Value* {
    if (pairs) return stored;
    Register r = widened({stored, dtype, false, false});
    return emit_convert(b_, r.value, dtype, tile.dtype);
  };
  // One pointer per operand walks along k.
  std::array<llvm::PHINode*, 2> at;
  for (std::size_t i = 0; i < 2; ++i) {
    at[i] = b_.CreatePHI(b_.getPtrTy(), 2);
    at[i]->addIncoming(operands[i].base, enter);
  }
  // One step of k: each distinct piece of an operand is read once.
  std::array<std::map<std::pair<std::int64_t, std::int64_t>, llvm::Value*>, 2> read;
  auto piece = [&](std::size_t i, std::int64_t r, std::int64_t g) {
    const Operand& o = operands[i];
    const ir::Buffer& buffer = kernel_.buffers[o.buffer.index];
    llvm::Value*& known = read[i][{o.per_row == 0 ? 0 : r, o.per_column == 0 ? 0 : g}];
    if (known != nullptr) return known;
    const llvm::Align stored_align(size_of(buffer.dtype));
    llvm::Type* stored = memory_type(buffer.dtype);
    const std::int64_t offset = o.per_row * r + o.per_column * g * width;
    llvm::Value* pointer = offset == 0 ? static_cast<llvm::Value*>(at[i]) : b_.CreateGEP(stored, at[i], i64(offset));
    if (o.per_column == 0) {
      llvm::Value* scalar = annotate(b_.CreateAlignedLoad(stored, pointer, stored_align), o.buffer);
      return known = b_.CreateVectorSplat(static_cast<unsigned>(width), widen(scalar, buffer.dtype));
    }
    return known = widen(load_columns(o, pointer, width, columns - g * width), buffer.dtype);
  };
  prefetch(ahead, rows, k, s.hi[0].constant);
  if (s.hi[0].is_constant()) {
    prefetch_next(operands[0], s.a_indices, rows, at[0], k, s.hi[0].constant);
    prefetch_next(operands[1], s.b_indices, columns, at[1], k, s.hi[0].constant);
  }
  std::vector<llvm::Value*> next(count);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::size_t i = static_cast<std::size_t>(r * groups + g);
      llvm::Value* a = piece(0, r, g);
      llvm::Value* b = piece(1, r, g);
      next[i] = pairs ? add_pairs(b_, target_, sums[i], a, b)
                      : b_.CreateIntrinsic(llvm::Intrinsic::fma, {vector}, {a, b, sums[i]});
    }
  }
  llvm::Value* next_k = b_.CreateAdd(k, i64(1), "", true, true);
  llvm::BasicBlock* latch = b_.GetInsertBlock();
  k->addIncoming(next_k, latch);
  for (std::size_t i = 0; i < 2; ++i) {
    llvm::Type* stored = memory_type(kernel_.buffers[operands[i].buffer.index].dtype);
    at[i]->addIncoming(b_.CreateGEP(stored, at[i], i64(operands[i].per_depth)), latch);
  }
  for (std::size_t i = 0; i < count; ++i) sums[i]->addIncoming(next[i], latch);
  b_.CreateCondBr(b_.CreateICmpSLT(next_k, depth.uniform), body, done);
  b_.SetInsertPoint(done);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t g = 0; g < groups; ++g)
      annotate(b_.CreateAlignedStore(next[static_cast<std::size_t>(r * groups + g)], tile_slot(r, g), align), s.buffer);
  }
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

}  // namespace burin::codegen
