#include <fmt/format.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <limits>

#include "base/check.h"
#include "codegen/emit/elementwise.h"
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
  llvm::Type* element = register_type(s.dtype, true);
  if (!is_half(s.dtype)) element = register_type(s.dtype);
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

}  // namespace burin::codegen
