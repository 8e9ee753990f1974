#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/check.h"
#include "codegen/emitter.h"

namespace burin::codegen {

ir::Affine KernelEmitter::offset_of(const ir::Buffer& buffer, std::span<const ir::Affine> indices) const {
  ir::Affine offset;
  const bool tile = buffer.space == ir::Space::tile;
  // A tile's rows are padded; its strides are codegen's own.
  std::int64_t tile_stride = 1;
  for (std::size_t axis = indices.size(); axis-- > 0;) {
    offset = offset + indices[axis] * (tile ? tile_stride : buffer.strides[axis]);
    if (!tile) continue;
    const std::int64_t extent = buffer.shape[axis];
    tile_stride *= axis + 1 == indices.size() ? (extent + 63) / 64 * 64 : extent;
  }
  return offset;
}

// Outer loops move one pointer, the innermost indexes it, the constant is a displacement: the form that the machine
// addresses in one instruction and that LICM takes apart, so that no later pass has to reduce strength.
KernelEmitter::Address KernelEmitter::address_of(ir::BufferId buffer, std::span<const ir::Affine> indices) {
  const ir::Buffer& info = kernel_.buffers[buffer.index];
  const ir::Affine offset = offset_of(info, indices);
  llvm::Type* element = memory_type(info.dtype);
  ir::Affine inner, outer = offset;
  if (offset.terms.size() > 1) {
    const auto deepest = std::ranges::max_element(offset.terms, {}, [&](const auto& term) {
      const Variable& variable = variables_[term.first.index];
      return llvm::isa<llvm::ConstantInt>(variable.index.uniform) ? 0 : variable.depth + 1;
    });
    inner = ir::Affine(deepest->first, deepest->second);
    outer = outer - inner;
  }
  std::int64_t displacement = 0;
  const Index far = evaluate(outer, &displacement), near = evaluate(inner, &displacement);
  Address address{places_[buffer.index].pointer, {i64(0), far.lane + near.lane, far.varying}};
  if (near.varying != nullptr)
    address.lanes.varying = far.varying == nullptr ? near.varying : b_.CreateAdd(far.varying, near.varying);
  for (llvm::Value* step : {far.uniform, near.uniform, i64(displacement)}) {
    auto* number = llvm::dyn_cast<llvm::ConstantInt>(step);
    // Not inbounds: a part of the sum alone may point outside the buffer.
    if (number == nullptr || !number->isZero()) address.pointer = b_.CreateGEP(element, address.pointer, step);
  }
  return address;
}

llvm::Value* KernelEmitter::annotate(llvm::Value* access, ir::BufferId buffer) {
  auto* instruction = llvm::cast<llvm::Instruction>(access);
  const Place& place = places_[buffer.index];
  if (place.scope != nullptr) instruction->setMetadata(llvm::LLVMContext::MD_alias_scope, place.scope);
  if (kernel_.buffers[buffer.index].space == ir::Space::in && llvm::isa<llvm::LoadInst>(instruction))
    instruction->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(module_.getContext(), {}));
  if (place.others != nullptr) instruction->setMetadata(llvm::LLVMContext::MD_noalias, place.others);
  return access;
}

/// 0, 1, 2, ... as a vector of the type.
llvm::Value* KernelEmitter::lane_numbers(llvm::Type* type) {
  auto* vector = llvm::cast<llvm::FixedVectorType>(type);
  std::vector<llvm::Constant*> numbers;
  for (unsigned lane = 0; lane < vector->getNumElements(); ++lane)
    numbers.push_back(llvm::ConstantInt::get(vector->getElementType(), lane));
  return llvm::ConstantVector::get(numbers);
}

llvm::Value* KernelEmitter::combine_masks(llvm::Value* a, llvm::Value* b) {
  if (a == nullptr) return b;
  return b == nullptr ? a : b_.CreateAnd(a, b);
}

llvm::Value* KernelEmitter::load_uniform(ir::BufferId buffer, llvm::Value* pointer) {
  const DType dtype = kernel_.buffers[buffer.index].dtype;
  return annotate(b_.CreateAlignedLoad(memory_type(dtype), pointer, llvm::Align(size_of(dtype))), buffer);
}

// One load where the lanes are neighbours, a gather where they are not.
llvm::Value* KernelEmitter::load_lanes(ir::BufferId buffer, const Address& address, llvm::Value* mask) {
  const ir::Buffer& info = kernel_.buffers[buffer.index];
  const llvm::Align align(size_of(info.dtype));
  llvm::Type* element = memory_type(info.dtype);
  llvm::Type* type = vector_type(element, lanes_);
  llvm::Value* zero = llvm::Constant::getNullValue(type);
  if (address.lanes.varying == nullptr && std::abs(address.lanes.lane) == 1) {
    const bool reversed = address.lanes.lane == -1;
    std::vector<int> order(static_cast<std::size_t>(lanes_));
    std::iota(order.rbegin(), order.rend(), 0);
    llvm::Value* pointer = reversed ? b_.CreateGEP(element, address.pointer, i64(1 - lanes_)) : address.pointer;
    llvm::Value* result;
    if (mask == nullptr || info.space == ir::Space::tile) {
      result = annotate(b_.CreateAlignedLoad(type, pointer, align), buffer);
    } else {
      if (reversed) mask = b_.CreateShuffleVector(mask, order);
      result = annotate(b_.CreateMaskedLoad(type, pointer, align, mask, zero), buffer);
    }
    return reversed ? b_.CreateShuffleVector(result, order) : result;
  }
  if (mask == nullptr) mask = llvm::Constant::getAllOnesValue(vector_type(b_.getInt1Ty(), lanes_));
  if (address.lanes.varying == nullptr && address.lanes.lane == 2 && size_of(info.dtype) == 2 &&
      target_.vector_bits() == 512) {
    // Every other 16-bit element: one masked load of twice as many, of which each 32-bit word keeps its low half.
    std::vector<int> order(static_cast<std::size_t>(2 * lanes_));
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = static_cast<int>(i % 2 == 0 ? i / 2 : static_cast<std::size_t>(lanes_));
    llvm::Value* every_other = b_.CreateShuffleVector(mask, llvm::Constant::getNullValue(mask->getType()), order);
    llvm::Type* bits = b_.getInt16Ty();
    llvm::Value* both =
        annotate(b_.CreateMaskedLoad(vector_type(bits, 2 * lanes_), address.pointer, align, every_other), buffer);
    llvm::Value* words = b_.CreateBitCast(both, vector_type(b_.getInt32Ty(), lanes_));
    return b_.CreateBitCast(b_.CreateTrunc(words, vector_type(bits, lanes_)), type);
  }
  llvm::Value* pointers = b_.CreateGEP(element, address.pointer, expand(address.lanes));
  return annotate(b_.CreateMaskedGather(type, pointers, align, mask, zero), buffer);
}

void KernelEmitter::store_lanes(ir::BufferId buffer, const Address& address, llvm::Value* value, llvm::Value* mask) {
  const ir::Buffer& info = kernel_.buffers[buffer.index];
  const llvm::Align align(size_of(info.dtype));
  llvm::Type* element = memory_type(info.dtype);
  if (address.lanes.varying == nullptr && std::abs(address.lanes.lane) == 1) {
    const bool reversed = address.lanes.lane == -1;
    std::vector<int> order(static_cast<std::size_t>(lanes_));
    std::iota(order.rbegin(), order.rend(), 0);
    if (reversed) {
      value = b_.CreateShuffleVector(value, order);
      if (mask != nullptr) mask = b_.CreateShuffleVector(mask, order);
    }
    llvm::Value* pointer = reversed ? b_.CreateGEP(element, address.pointer, i64(1 - lanes_)) : address.pointer;
    if (mask != nullptr && info.space == ir::Space::tile) {
      value = b_.CreateSelect(mask, value, annotate(b_.CreateAlignedLoad(value->getType(), pointer, align), buffer));
      mask = nullptr;
    }
    if (mask == nullptr) {
      annotate(b_.CreateAlignedStore(value, pointer, align), buffer);
    } else {
      annotate(b_.CreateMaskedStore(value, pointer, align, mask), buffer);
    }
    return;
  }
  llvm::Value* pointers = b_.CreateGEP(element, address.pointer, expand(address.lanes));
  if (mask == nullptr) mask = llvm::Constant::getAllOnesValue(vector_type(b_.getInt1Ty(), lanes_));
  annotate(b_.CreateMaskedScatter(value, pointers, align, mask), buffer);
}

/// As it lies in memory: *pointer where the condition holds, else `otherwise`. The address need not be good otherwise.
llvm::Value* KernelEmitter::load_guarded(ir::BufferId buffer, llvm::Value* pointer, llvm::Value* condition,
                                         llvm::Value* otherwise) {
  llvm::LLVMContext& context = module_.getContext();
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* read = llvm::BasicBlock::Create(context, "read", function_);
  auto* after = llvm::BasicBlock::Create(context, "after", function_);
  b_.CreateCondBr(condition, read, after);
  b_.SetInsertPoint(read);
  llvm::Value* loaded = load_uniform(buffer, pointer);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* result = b_.CreatePHI(loaded->getType(), 2);
  result->addIncoming(otherwise, before);
  result->addIncoming(loaded, read);
  return result;
}

void KernelEmitter::emit_load(const Stmt& s) {
  const ir::Buffer& buffer = kernel_.buffers[s.buffer.index];
  const Address address = address_of(s.buffer, s.indices);
  bool varying_condition = false;
  llvm::Value* condition = all_hold(s.conditions, &varying_condition);
  if (condition == nullptr) {
    // A group runs only if some lane does, so an address that all lanes share is good.
    const bool uniform = address.lanes.is_uniform();
    llvm::Value* loaded = uniform ? load_uniform(s.buffer, address.pointer) : load_lanes(s.buffer, address, mask_);
    return set(s.result, from_memory(loaded, buffer.dtype, !uniform));
  }
  BURIN_CHECK(!s.args.empty(), "a conditional load says what it gives otherwise");
  const Register otherwise = get(s.args[0]);
  if (address.lanes.is_uniform() && !varying_condition && !otherwise.varying) {
    llvm::Value* value = load_guarded(s.buffer, address.pointer, condition, storable(otherwise));
    return set(s.result, from_memory(value, buffer.dtype, false));
  }
  llvm::Value* lanes = varying_condition ? condition : spread(condition);
  llvm::Value* loaded;
  if (address.lanes.is_uniform()) {
    llvm::Value* any = b_.CreateOrReduce(combine_masks(mask_, lanes));
    llvm::Value* zero = llvm::Constant::getNullValue(memory_type(buffer.dtype));
    loaded = spread(load_guarded(s.buffer, address.pointer, any, zero));
  } else {
    loaded = load_lanes(s.buffer, address, combine_masks(mask_, lanes));
  }
  loaded = b_.CreateSelect(lanes, loaded, storable(spread(otherwise)));
  set(s.result, from_memory(loaded, buffer.dtype, true));
}

void KernelEmitter::emit_store(const Stmt& s) {
  const ir::Buffer& buffer = kernel_.buffers[s.buffer.index];
  bool varying_condition = false;
  llvm::Value* condition = all_hold(s.conditions, &varying_condition);
  const Address address = address_of(s.buffer, s.indices);
  const Register value = get(s.args[0]);
  if (lanes_ == 1) {
    auto write = [&] {
      annotate(b_.CreateAlignedStore(storable(value), address.pointer, llvm::Align(size_of(buffer.dtype))), s.buffer);
    };
    if (condition == nullptr) return write();
    llvm::LLVMContext& context = module_.getContext();
    auto* then = llvm::BasicBlock::Create(context, "write", function_);
    auto* after = llvm::BasicBlock::Create(context, "after", function_);
    b_.CreateCondBr(condition, then, after);
    b_.SetInsertPoint(then);
    write();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    return;
  }
  if (condition != nullptr && !varying_condition) condition = spread(condition);
  llvm::Value* mask = combine_masks(mask_, condition);
  llvm::Value* lanes = storable(spread(value));
  if (delays_stores_) {
    auto known = std::ranges::find(delayed_, &s, [](const auto& entry) { return entry.first; });
    if (known == delayed_.end()) known = delayed_.insert(known, {&s, {}});
    return known->second.push_back({address, lanes});
  }
  // Lanes that write one place do so in order: the last one wins, as in a scatter.
  store_lanes(s.buffer, address, lanes, mask);
}

}  // namespace burin::codegen
