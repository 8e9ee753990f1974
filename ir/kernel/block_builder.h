// Writes the body of a Kernel: one method per statement kind, loops and conditions as callables.
#pragma once
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "ir/kernel/kernel.h"

namespace burin::ir {

class BlockBuilder {
 public:
  explicit BlockBuilder(Kernel& kernel) : kernel_(kernel), block_(&kernel.body) {}

  /// One more axis of the grid, the innermost.
  VarId task(std::string var_name, std::int64_t extent);
  /// A variable that no statement written here defines.
  VarId new_var(std::string var_name, std::int64_t extent);
  /// What a variable's values are below: the least constant bound of its loop, the extent of its bind or axis; -1 where neither says.
  std::int64_t extent(VarId var) const { return var.index < extents_.size() ? extents_[var.index] : -1; }

  /// f(VarId) writes the body. hi is the least of several bounds.
  template <class F>
  void loop(std::string var_name, Affine lo, std::vector<Affine> hi, LoopKind kind, std::int64_t width, F&& f) {
    Stmt s{.kind = StmtKind::loop};
    s.var = kernel_.new_var(std::move(var_name));
    s.lo = std::move(lo);
    s.hi = std::move(hi);
    s.loop_kind = kind;
    s.width = width;
    const VarId var = s.var;
    for (const Affine& bound : s.hi)
      if (bound.terms.empty()) limit(var, bound.constant);
    nest(std::move(s), [&] { f(var); });
  }
  template <class F>
  void when(std::vector<Affine> conditions, F&& f) {
    Stmt s{.kind = StmtKind::when};
    s.conditions = std::move(conditions);
    nest(std::move(s), std::forward<F>(f));
  }
  ScalarId constant(const Literal& value);
  ScalarId constant(DType dtype, double value) { return constant(Literal::scalar(dtype, value)); }
  ScalarId index(const Affine& value, DType dtype);
  ScalarId let(Op op, std::vector<ScalarId> args, DType dtype);
  ScalarId load(BufferId buffer, std::vector<Affine> indices, std::vector<Affine> conditions = {}, ScalarId otherwise = {});
  void store(BufferId buffer, std::vector<Affine> indices, ScalarId value, std::vector<Affine> conditions = {});
  AccId acc(Reduce reduce, DType dtype, std::int64_t lanes, ScalarId start = {});
  void accumulate(AccId acc, ScalarId value);
  ScalarId finish(AccId acc, DType dtype);
  VarId bind(ScalarId value, std::int64_t extent, IndexMode mode, std::int32_t site);
  Stmt& push(Stmt s);
  Kernel& kernel() { return kernel_; }

 private:
  void limit(VarId var, std::int64_t extent);
  template <class F>
  void nest(Stmt s, F&& f) {
    Block* outer = block_;
    Block inner;
    block_ = &inner;
    f();
    block_ = outer;
    s.body = std::move(inner);
    block_->push_back(std::move(s));
  }
  Kernel& kernel_;
  Block* block_;
  std::vector<std::int64_t> extents_;  // by VarId
};

}  // namespace burin::ir
