// Where elements lie: indices, loads, stores.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <set>

#include "base/check.h"
#include "codegen/emit/elementwise.h"
#include "codegen/emitter.h"

namespace burin::codegen {

// Terms of outer variables are added first: the sum so far is invariant in the inner loops.
Index KernelEmitter::evaluate(const ir::Affine& affine, std::int64_t* apart) {
  std::vector<std::pair<ir::VarId, std::int64_t>> terms = affine.terms;
  std::ranges::sort(terms, {}, [&](const auto& term) { return variables_[term.first.index].depth; });
  Index result;
  std::int64_t constant = affine.constant;
  llvm::Value* sum = nullptr;
  for (const auto& [var, coefficient] : terms) {
    const Index& index = variables_[var.index].index;
    BURIN_CHECK(index.uniform != nullptr, "a variable is used before it is defined");
    result.lane += coefficient * index.lane;
    if (auto* number = llvm::dyn_cast<llvm::ConstantInt>(index.uniform)) {
      constant += coefficient * number->getSExtValue();
    } else {
      llvm::Value* term = coefficient == 1 ? index.uniform : b_.CreateMul(index.uniform, i64(coefficient), "", false, true);
      sum = sum == nullptr ? term : b_.CreateAdd(sum, term, "", false, true);
    }
    if (index.varying != nullptr) {
      llvm::Value* factor = llvm::ConstantInt::getSigned(index.varying->getType(), coefficient);
      llvm::Value* term = coefficient == 1 ? index.varying : b_.CreateMul(index.varying, factor, "", false, true);
      result.varying = result.varying == nullptr ? term : b_.CreateAdd(result.varying, term, "", false, true);
    }
  }
  if (apart != nullptr) {
    *apart += constant;
    constant = 0;
  }
  if (sum == nullptr) {
    result.uniform = i64(constant);
  } else {
    result.uniform = constant == 0 ? sum : b_.CreateAdd(sum, i64(constant), "", false, true);
  }
  return result;
}

llvm::Value* KernelEmitter::expand(const Index& index) {
  if (lanes_ == 1) return index.uniform;
  llvm::Value* result = spread(index.uniform);
  if (index.lane != 0) {
    std::vector<std::uint64_t> numbers;
    for (std::int64_t lane = 0; lane < lanes_; ++lane) numbers.push_back(static_cast<std::uint64_t>(lane * index.lane));
    result = b_.CreateAdd(result, llvm::ConstantDataVector::get(module_.getContext(), numbers));
  }
  return index.varying == nullptr ? result : b_.CreateAdd(result, index.varying);
}

llvm::Value* KernelEmitter::all_hold(std::span<const ir::Affine> conditions, bool* varying) {
  llvm::Value* uniform = nullptr;
  llvm::Value* per_lane = nullptr;
  for (const ir::Affine& condition : conditions) {
    const Index index = evaluate(condition);
    llvm::Value* value = index.is_uniform() ? index.uniform : expand(index);
    llvm::Value*& all = index.is_uniform() ? uniform : per_lane;
    llvm::Value* holds = b_.CreateICmpSGE(value, llvm::Constant::getNullValue(value->getType()));
    all = all == nullptr ? holds : b_.CreateAnd(all, holds);
  }
  *varying = per_lane != nullptr;
  if (per_lane != nullptr && uniform != nullptr) return b_.CreateAnd(per_lane, spread(uniform));
  return per_lane != nullptr ? per_lane : uniform;
}

void KernelEmitter::emit_index(const Stmt& s) {
  const Index index = evaluate(s.value);
  const bool varying = !index.is_uniform();
  llvm::Value* value = varying ? expand(index) : index.uniform;
  set(s.result, {emit_convert(b_, value, DType::i64, s.dtype), s.dtype, varying, is_half(s.dtype)});
}

// Compared in 32 bits where that decides it: read as unsigned, an index below zero is beyond any extent.
void KernelEmitter::emit_bind(const Stmt& s) {
  const Register r = get(s.args[0]);
  const bool is_signed = is_signed_int(r.dtype);
  const bool narrow = size_of(r.dtype) <= 4 && s.extent <= INT32_MAX;
  auto typed = [&](llvm::Type* element) { return r.varying ? vector_type(element, lanes_) : element; };
  auto extend = [&](llvm::Value* v, llvm::Type* type) { return is_signed ? b_.CreateSExt(v, type) : b_.CreateZExt(v, type); };
  llvm::Type* wide = typed(b_.getInt64Ty());
  llvm::Type* type = narrow ? typed(b_.getInt32Ty()) : wide;
  llvm::Value* index = extend(r.value, type);
  llvm::Value* zero = llvm::Constant::getNullValue(type);
  if (s.mode == ir::IndexMode::error) {
    llvm::Value* inside = b_.CreateICmpULT(index, llvm::ConstantInt::getSigned(type, s.extent));
    llvm::Value* bad = b_.CreateNot(inside);
    if (r.varying) {
      report_lanes(s, r, combine_masks(mask_, bad));
    } else {
      report_uniform(s, r, bad);
    }
    index = b_.CreateSelect(inside, index, zero);
  } else {
    llvm::Value* last = llvm::ConstantInt::getSigned(type, s.extent - 1);
    if (is_signed) index = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, index, zero);
    index = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, last);
  }
  index = b_.CreateZExt(index, wide, "", true);
  Index& target = variables_[s.var.index].index;
  target = r.varying ? Index{i64(0), 0, index} : Index{index, 0, nullptr};
  variables_[s.var.index].depth = next_depth_++;
}

/// An index of u64 beyond i64 is reported as the largest i64.
void KernelEmitter::call_report(const Stmt& s, llvm::Value* index, DType dtype) {
  llvm::Type* long_type = b_.getInt64Ty();
  index = is_signed_int(dtype) ? b_.CreateSExt(index, long_type) : b_.CreateZExt(index, long_type);
  if (dtype == DType::u64)
    index = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, i64(INT64_MAX));
  llvm::Type* params[] = {b_.getPtrTy(), long_type, b_.getInt32Ty(), long_type, long_type};
  llvm::FunctionCallee report =
      module_.getOrInsertFunction("burin_report_index", llvm::FunctionType::get(b_.getVoidTy(), params, false));
  llvm::CallInst* call = b_.CreateCall(
      report, {status_, task_, b_.getInt32(static_cast<std::uint32_t>(s.site)), index, i64(s.extent)});
  call->addFnAttr(llvm::Attribute::Cold);
  call->setDoesNotThrow();
}

template <class F>
void KernelEmitter::unlikely(llvm::Value* condition, F&& f) {
  llvm::LLVMContext& context = module_.getContext();
  auto* rare = llvm::BasicBlock::Create(context, "report", function_);
  auto* resume = llvm::BasicBlock::Create(context, "resume", function_);
  b_.CreateCondBr(condition, rare, resume, llvm::MDBuilder(context).createUnlikelyBranchWeights());
  b_.SetInsertPoint(rare);
  f();
  b_.CreateBr(resume);
  b_.SetInsertPoint(resume);
}

// A block runs only where some lane does, so an index that all lanes share has been met.
void KernelEmitter::report_uniform(const Stmt& s, const Register& index, llvm::Value* bad) {
  unlikely(bad, [&] { call_report(s, index.value, index.dtype); });
}

// The first bad lane is the one that a run in order meets first.
void KernelEmitter::report_lanes(const Stmt& s, const Register& index, llvm::Value* bad) {
  unlikely(b_.CreateOrReduce(bad), [&] {
    llvm::Value* bits = b_.CreateBitCast(bad, b_.getIntNTy(static_cast<unsigned>(lanes_)));
    llvm::Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, b_.getTrue());
    call_report(s, b_.CreateExtractElement(index.value, lane), index.dtype);
  });
}

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

// Stores of an unrolled loop whose iterations are neighbours in memory while the lanes are far apart: not one scatter per
// iteration, but a block of iterations turned in registers and one vector store per lane.

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
