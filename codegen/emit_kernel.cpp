#include <fmt/format.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "codegen/emit/elementwise.h"
#include "codegen/emitter.h"
#include "codegen/line_table.h"

namespace burin::codegen {

KernelEmitter::KernelEmitter(llvm::IRBuilderBase& builder, llvm::Module& module, const ir::Kernel& kernel,
                             const ir::Target& target, const std::string& symbol, LineTable* lines, const std::string& text)
    : b_(builder),
      module_(module),
      kernel_(kernel),
      lines_(lines),
      target_(target),
      places_(kernel.buffers.size()),
      variables_(kernel.var_names.size()),
      scalars_(kernel.num_scalars),
      accumulators_(kernel.num_accs) {
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Type* params[] = {pointer, b_.getInt64Ty(), b_.getInt64Ty(), pointer, pointer};
  function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), params, false),
                                     llvm::Function::ExternalLinkage, symbol, module_);
  function_->setDoesNotThrow();
  function_->addFnAttr("no-trapping-math", "true");
  function_->addFnAttr("no-builtins");
  const std::string bits = std::to_string(target.vector_bits());
  function_->addFnAttr("prefer-vector-width", bits);
  function_->addFnAttr("min-legal-vector-width", bits);
  const char* names[] = {"buffers", "begin", "end", "scratch", "status"};
  for (unsigned i = 0; i < 5; ++i) function_->getArg(i)->setName(names[i]);
  for (unsigned i : {0u, 3u, 4u}) function_->addParamAttr(i, llvm::Attribute::NoAlias);
  status_ = function_->getArg(4);
  if (lines_ != nullptr) lines_->start(*function_, kernel_, text);
}

llvm::Function* KernelEmitter::emit() {
  llvm::LLVMContext& context = module_.getContext();
  b_.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function_));
  go_to(nullptr);
  bind_buffers();
  emit_tasks();
  b_.CreateRetVoid();
  return function_;
}

// Parameters are disjoint from one another and from scratch, which is said once per access: alias scopes. Each access
// names all others, so kernels of very many buffers go without.
void KernelEmitter::bind_buffers() {
  llvm::MDBuilder metadata(module_.getContext());
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain();
  std::vector<llvm::Metadata*> scopes;
  std::int64_t scratch_offset = 0;
  std::size_t param = 0;
  for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const ir::Buffer& buffer = kernel_.buffers[i];
    Place& place = places_[i];
    scopes.push_back(metadata.createAnonymousAliasScope(domain, buffer.name));
    if (buffer.space == ir::Space::tile) {
      std::int64_t rows = 1, columns = buffer.shape.rank() == 0 ? 1 : buffer.shape.back();
      for (std::size_t axis = 0; axis + 1 < buffer.shape.rank(); ++axis) rows *= buffer.shape[axis];
      // Rows end on the boundary of any vector that reads them, so that no access needs a mask.
      place.row_stride = (columns + 63) / 64 * 64;
      place.pointer = allocate(llvm::ArrayType::get(memory_type(buffer.dtype),
                                                    static_cast<std::uint64_t>(rows * place.row_stride)),
                               buffer.name);
    } else if (buffer.space == ir::Space::scratch) {
      place.pointer = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), function_->getArg(3),
                                                    static_cast<std::uint64_t>(scratch_offset), buffer.name);
      scratch_offset += (buffer.span() * static_cast<std::int64_t>(size_of(buffer.dtype)) + 63) / 64 * 64;
    } else {
      llvm::Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), function_->getArg(0), param++);
      llvm::LoadInst* load = b_.CreateLoad(b_.getPtrTy(), slot, buffer.name);
      load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(module_.getContext(), {}));
      place.pointer = load;
    }
  }
  constexpr std::size_t most_scopes = 64;
  if (scopes.size() > most_scopes) return;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    std::vector<llvm::Metadata*> others = scopes;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    places_[i].scope = llvm::MDNode::get(module_.getContext(), scopes[i]);
    places_[i].others = others.empty() ? nullptr : llvm::MDNode::get(module_.getContext(), others);
  }
}

// The flat task number, taken apart into the grid's indices in row-major order.
void KernelEmitter::emit_tasks() {
  llvm::LLVMContext& context = module_.getContext();
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(context, "task", function_);
  auto* exit = llvm::BasicBlock::Create(context, "exit", function_);
  llvm::Value* begin = function_->getArg(1);
  llvm::Value* end = function_->getArg(2);
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), head, exit);
  b_.SetInsertPoint(head);
  llvm::PHINode* task = b_.CreatePHI(b_.getInt64Ty(), 2, "task");
  task->addIncoming(begin, before);
  task_ = task;

  std::int64_t outer = kernel_.num_tasks();
  llvm::Value* rest = task;
  for (std::size_t i = 0; i < kernel_.tasks.size(); ++i) {
    const auto& [var, extent] = kernel_.tasks[i];
    outer /= std::max<std::int64_t>(extent, 1);
    llvm::Value* index = rest;
    if (extent <= 1) {
      index = i64(0);
    } else if (outer > 1) {
      index = b_.CreateUDiv(rest, i64(outer));
      rest = b_.CreateSub(rest, b_.CreateMul(index, i64(outer)));
    }
    variables_[var.index] = {{index}, next_depth_++};
  }
  emit_block(kernel_.body);

  llvm::Value* next = b_.CreateAdd(task, i64(1), "", true, true);
  task->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), head, exit);
  b_.SetInsertPoint(exit);
}

void KernelEmitter::emit_block(const ir::Block& block) {
  const Stmt* outer = statement_;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const Stmt& s = block[i];
    if (is_done_by_tiles(s)) continue;
    go_to(&s);
    behind_ = std::span(block).subspan(i + 1);
    emit_stmt(s);
  }
  go_to(outer);
}

void KernelEmitter::go_to(const Stmt* s) {
  statement_ = s;
  if (lines_ != nullptr) lines_->go_to(b_, s);
}

void KernelEmitter::emit_stmt(const Stmt& s) {
  switch (s.kind) {
    case ir::StmtKind::loop: return emit_loop(s);
    case ir::StmtKind::when: return emit_when(s);
    case ir::StmtKind::constant: return emit_constant(s);
    case ir::StmtKind::index: return emit_index(s);
    case ir::StmtKind::let: return emit_let(s);
    case ir::StmtKind::load: return emit_load(s);
    case ir::StmtKind::store: return emit_store(s);
    case ir::StmtKind::acc: return emit_acc(s);
    case ir::StmtKind::accumulate: return emit_accumulate(s);
    case ir::StmtKind::finish: return emit_finish(s);
    case ir::StmtKind::bind: return emit_bind(s);
    case ir::StmtKind::mma: return emit_mma(s);
  }
  BURIN_CHECK(false, "a statement of no known kind");
}

void KernelEmitter::emit_constant(const Stmt& s) {
  const DType dtype = s.literal.dtype();
  const std::span<const std::byte> raw = s.literal.raw();
  std::uint64_t bits = 0;
  std::memcpy(&bits, raw.data(), std::min(raw.size(), sizeof bits));
  llvm::Type* integer = b_.getIntNTy(static_cast<unsigned>(8 * size_of(dtype)));
  llvm::Constant* stored = llvm::ConstantInt::get(integer, bits);
  llvm::Value* value = dtype == f32 || dtype == f64 ? b_.CreateBitCast(stored, memory_type(dtype)) : stored;
  set(s.result, from_memory(value, dtype, false));
}

void KernelEmitter::emit_let(const Stmt& s) {
  std::vector<Register> args;
  bool varying = false;
  for (ir::ScalarId id : s.args) {
    args.push_back(get(id));
    varying |= args.back().varying;
  }
  const DType operand = args.back().dtype;
  if (s.op == ir::Op::stop_gradient || (s.op == ir::Op::convert && operand == s.dtype)) return set(s.result, args[0]);
  const bool from_half = is_half(operand), to_half = is_half(s.dtype);
  // Moves keep the bits of half types: no detour through f32, which would quiet a signalling NaN.
  if (s.op == ir::Op::bitcast && (from_half || to_half)) {
    llvm::Value* bits = from_half ? storable(args[0]) : args[0].value;
    return set(s.result, {bits, s.dtype, varying, false});
  }
  std::vector<llvm::Value*> values;
  const bool keep_bits = s.op == ir::Op::select && from_half && !args[1].wide && !args[2].wide;
  for (Register r : args) {
    if (is_half(r.dtype) && !keep_bits) r = widened(r);
    values.push_back(varying ? spread(r).value : r.value);
  }
  if (keep_bits) return set(s.result, {b_.CreateSelect(values[0], values[1], values[2]), s.dtype, varying, false});
  set(s.result, {emit_elementwise(b_, s.op, operand, s.dtype, values), s.dtype, varying, to_half});
}

void KernelEmitter::set(ir::ScalarId id, Register r) { scalars_[id.index] = r; }

const Register& KernelEmitter::get(ir::ScalarId id) const {
  const Register& r = scalars_[id.index];
  BURIN_CHECK(r.value != nullptr, fmt::format("kernel {}: scalar {} is used before it is defined", kernel_.name, id.index));
  return r;
}

llvm::Value* KernelEmitter::spread(llvm::Value* uniform) {
  return lanes_ == 1 ? uniform : b_.CreateVectorSplat(static_cast<unsigned>(lanes_), uniform);
}

Register KernelEmitter::spread(Register r) {
  if (r.varying || lanes_ == 1) return r;
  r.value = spread(r.value);
  r.varying = true;
  return r;
}

Register KernelEmitter::widened(Register r) {
  if (!is_half(r.dtype) || r.wide) return r;
  r.value = half_value(b_, r.value, r.dtype);
  r.wide = true;
  return r;
}

llvm::Value* KernelEmitter::storable(const Register& r) {
  if (r.dtype == bool_) {
    llvm::Type* type = b_.getInt8Ty();
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(r.value->getType()))
      type = llvm::FixedVectorType::get(type, vector->getNumElements());
    return b_.CreateZExt(r.value, type);
  }
  return r.wide ? half_bits(b_, r.value, r.dtype) : r.value;
}

Register KernelEmitter::from_memory(llvm::Value* stored, DType dtype, bool varying) {
  if (dtype == bool_) stored = b_.CreateICmpNE(stored, llvm::Constant::getNullValue(stored->getType()));
  return {stored, dtype, varying, false};
}

llvm::Type* KernelEmitter::register_type(DType dtype) {
  return dtype == bool_ ? b_.getInt1Ty() : memory_type(dtype);
}

llvm::Type* KernelEmitter::memory_type(DType dtype) {
  if (dtype == f32) return b_.getFloatTy();
  if (dtype == f64) return b_.getDoubleTy();
  return b_.getIntNTy(static_cast<unsigned>(8 * size_of(dtype)));
}

llvm::Type* KernelEmitter::vector_type(llvm::Type* element, std::int64_t lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

// In the entry block, where SROA and mem2reg look for slots to turn into registers.
llvm::AllocaInst* KernelEmitter::allocate(llvm::Type* type, const std::string& name) {
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  llvm::BasicBlock& entry = function_->getEntryBlock();
  b_.SetInsertPoint(&entry, entry.begin());
  llvm::AllocaInst* slot = b_.CreateAlloca(type, nullptr, name);
  slot->setAlignment(llvm::Align(64));
  return slot;
}

llvm::Value* KernelEmitter::i64(std::int64_t value) { return b_.getInt64(static_cast<std::uint64_t>(value)); }

template <class F>
void KernelEmitter::guarded(llvm::Value* condition, F&& f) {
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (known->isOne()) f();
    return;
  }
  llvm::LLVMContext& context = module_.getContext();
  auto* then = llvm::BasicBlock::Create(context, "then", function_);
  auto* after = llvm::BasicBlock::Create(context, "after", function_);
  b_.CreateCondBr(condition, then, after);
  b_.SetInsertPoint(then);
  f();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

/// for (i = lo; i < hi; i += step) f(i); lo < hi is not known.
template <class F>
void KernelEmitter::counted(llvm::Value* lo, llvm::Value* hi, std::int64_t step, const std::string& name, F&& f) {
  guarded(b_.CreateICmpSLT(lo, hi), [&] {
    llvm::BasicBlock* before = b_.GetInsertBlock();
    auto* body = llvm::BasicBlock::Create(module_.getContext(), name, function_);
    auto* done = llvm::BasicBlock::Create(module_.getContext(), name + ".done", function_);
    b_.CreateBr(body);
    b_.SetInsertPoint(body);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2, name);
    i->addIncoming(lo, before);
    f(i);
    llvm::Value* next = b_.CreateAdd(i, i64(step), "", false, true);
    i->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpSLT(next, hi), body, done);
    b_.SetInsertPoint(done);
  });
}

void KernelEmitter::emit_loop(const Stmt& s) {
  if (s.loop_kind == ir::LoopKind::unroll) return emit_unrolled(s);
  if (s.loop_kind == ir::LoopKind::vector && s.width > 1) return emit_vector(s);
  emit_serial(s);
}

llvm::Value* KernelEmitter::upper_bound(const Stmt& s) {
  llvm::Value* least = nullptr;
  for (const ir::Affine& bound : s.hi) {
    const Index index = evaluate(bound);
    BURIN_CHECK(index.is_uniform(), "the bound of a loop depends on the lane");
    least = least == nullptr ? index.uniform : b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, least, index.uniform);
  }
  return least;
}

std::optional<std::int64_t> KernelEmitter::constant_value(const ir::Affine& affine) const {
  std::int64_t value = affine.constant;
  for (const auto& [var, coefficient] : affine.terms) {
    const Index& index = variables_[var.index].index;
    auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(index.uniform);
    if (number == nullptr || !index.is_uniform()) return std::nullopt;
    value += coefficient * number->getSExtValue();
  }
  return value;
}

/// The least of the bounds that are constant here; `only` says that there is no other.
std::optional<std::int64_t> KernelEmitter::constant_upper_bound(const Stmt& s, bool* only) const {
  std::optional<std::int64_t> least;
  *only = true;
  for (const ir::Affine& bound : s.hi) {
    const std::optional<std::int64_t> value = constant_value(bound);
    if (!value) {
      *only = false;
    } else {
      least = least ? std::min(*least, *value) : *value;
    }
  }
  return least;
}

void KernelEmitter::emit_serial(const Stmt& s) {
  const Index lo = evaluate(s.lo);
  BURIN_CHECK(lo.is_uniform(), "the bound of a loop depends on the lane");
  bool constant = false;
  const std::optional<std::int64_t> first = constant_value(s.lo), last = constant_upper_bound(s, &constant);
  if (constant && first && last && *last - *first <= 1) return emit_unrolled(s);
  const std::uint32_t depth = next_depth_++;
  counted(lo.uniform, upper_bound(s), 1, "i", [&](llvm::Value* i) {
    variables_[s.var.index] = {{i}, depth};
    open_loops_.push_back(s.var);
    emit_block(s.body);
    open_loops_.pop_back();
  });
}

void KernelEmitter::emit_unrolled(const Stmt& s) {
  bool only = false;
  const std::optional<std::int64_t> lo = constant_value(s.lo), hi = constant_upper_bound(s, &only);
  BURIN_CHECK(lo && hi, fmt::format("kernel {}: the bounds of an unrolled loop are not constant", kernel_.name));
  const std::uint32_t depth = next_depth_++;
  llvm::Value* limit = only ? nullptr : upper_bound(s);
  if (only && stores_transposed(s, *hi - *lo)) {
    delays_stores_ = true;
    for (std::int64_t i = *lo; i < *hi; ++i) {
      variables_[s.var.index] = {{i64(i)}, depth};
      emit_block(s.body);
      if ((i + 1 - *lo) % static_cast<std::int64_t>(transposed_block()) == 0) flush_transposed();
    }
    flush_transposed();
    delays_stores_ = false;
    return;
  }
  for (std::int64_t i = *lo; i < *hi; ++i) {
    auto body = [&] {
      variables_[s.var.index] = {{i64(i)}, depth};
      emit_block(s.body);
    };
    if (limit == nullptr) {
      body();
    } else {
      guarded(b_.CreateICmpSLT(i64(i), limit), body);
    }
  }
}

bool KernelEmitter::touches_tile(const ir::Block& block) const {
  return std::ranges::any_of(block, [&](const Stmt& s) {
    const bool accesses = s.kind == ir::StmtKind::load || s.kind == ir::StmtKind::store;
    return (accesses && kernel_.buffers[s.buffer.index].space == ir::Space::tile) || touches_tile(s.body);
  });
}

void KernelEmitter::emit_group(const Stmt& s, llvm::Value* first, llvm::Value* mask) {
  lanes_ = s.width;
  mask_ = mask;
  variables_[s.var.index].index = {first, 1, nullptr};
  emit_block(s.body);
  lanes_ = 1;
  mask_ = nullptr;
}

// Full groups without masks, then at most one group with the missing lanes switched off.
void KernelEmitter::emit_vector(const Stmt& s) {
  BURIN_CHECK(lanes_ == 1, "a vector loop inside a vector loop");
  variables_[s.var.index].depth = next_depth_++;
  bool constant = false;
  const std::optional<std::int64_t> known_lo = constant_value(s.lo), known_hi = constant_upper_bound(s, &constant);
  // Tiles live in registers, which cannot be indexed.
  if (touches_tile(s.body) && known_lo && known_hi) return emit_vector_unrolled(s, *known_lo, *known_hi);

  llvm::Value* lo = evaluate(s.lo).uniform;
  llvm::Value* hi = upper_bound(s);
  llvm::Value* whole;  // where the full groups end; not before lo
  if (known_lo && known_hi && constant) {
    whole = i64(*known_lo + std::max<std::int64_t>(*known_hi - *known_lo, 0) / s.width * s.width);
  } else {
    llvm::Value* count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateSub(hi, lo, "", false, true), i64(0));
    llvm::Value* groups = b_.CreateAnd(count, i64(-s.width));  // the width is a power of two
    whole = b_.CreateAdd(lo, groups, "", false, true);
  }
  counted(lo, whole, s.width, "v", [&](llvm::Value* first) { emit_group(s, first, nullptr); });
  guarded(b_.CreateICmpSLT(whole, hi), [&] {
    llvm::Value* left = b_.CreateTrunc(b_.CreateSub(hi, whole), b_.getInt32Ty());
    llvm::Value* lefts = b_.CreateVectorSplat(static_cast<unsigned>(s.width), left);
    emit_group(s, whole, b_.CreateICmpSLT(lane_numbers(lefts->getType()), lefts));
  });
}

void KernelEmitter::emit_vector_unrolled(const Stmt& s, std::int64_t lo, std::int64_t hi) {
  llvm::Value* limit = upper_bound(s);
  for (std::int64_t first = lo; first < hi; first += s.width) {
    llvm::Value* mask = nullptr;
    if (!llvm::isa<llvm::ConstantInt>(limit) || first + s.width > hi) {
      llvm::Value* left = b_.CreateSub(limit, i64(first));
      llvm::Value* lefts = b_.CreateVectorSplat(static_cast<unsigned>(s.width), left);
      mask = b_.CreateICmpSLT(lane_numbers(lefts->getType()), lefts);
    }
    emit_group(s, i64(first), mask);
  }
}

void KernelEmitter::emit_when(const Stmt& s) {
  bool varying = false;
  llvm::Value* condition = all_hold(s.conditions, &varying);
  if (condition == nullptr) return emit_block(s.body);
  if (!varying) return guarded(condition, [&] { emit_block(s.body); });
  llvm::Value* outer = mask_;
  mask_ = combine_masks(outer, condition);
  guarded(b_.CreateOrReduce(mask_), [&] { emit_block(s.body); });
  mask_ = outer;
}

}  // namespace burin::codegen
