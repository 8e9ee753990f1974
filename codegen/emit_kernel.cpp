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

namespace burin::codegen {

KernelEmitter::KernelEmitter(llvm::IRBuilderBase& builder, llvm::Module& module, const ir::Kernel& kernel,
                             const ir::Target& target, const std::string& symbol)
    : b_(builder),
      module_(module),
      kernel_(kernel),
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
}

void KernelEmitter::emit() {
  llvm::LLVMContext& context = module_.getContext();
  b_.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function_));
  bind_buffers();
  emit_tasks();
  b_.CreateRetVoid();
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
  for (const Stmt& s : block) emit_stmt(s);
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

llvm::Type* KernelEmitter::register_type(DType dtype, bool wide) {
  if (dtype == bool_) return b_.getInt1Ty();
  return wide ? b_.getFloatTy() : memory_type(dtype);
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

}  // namespace burin::codegen
