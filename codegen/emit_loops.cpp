#include <fmt/format.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>

#include "base/check.h"
#include "codegen/emitter.h"

namespace burin::codegen {

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
    emit_block(s.body);
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
    const bool power_of_two = (s.width & (s.width - 1)) == 0;
    llvm::Value* groups = power_of_two ? b_.CreateAnd(count, i64(-s.width))
                                       : b_.CreateMul(b_.CreateUDiv(count, i64(s.width)), i64(s.width));
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
