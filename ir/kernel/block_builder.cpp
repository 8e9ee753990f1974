#include "ir/kernel/block_builder.h"

#include <algorithm>

namespace burin::ir {

Stmt& BlockBuilder::push(Stmt s) {
  block_->push_back(std::move(s));
  return block_->back();
}

ScalarId BlockBuilder::constant(const Literal& value) {
  Stmt s{.kind = StmtKind::constant};
  s.result = kernel_.new_scalar();
  s.dtype = value.dtype();
  s.literal = value;
  return push(std::move(s)).result;
}

ScalarId BlockBuilder::index(const Affine& value, DType dtype) {
  Stmt s{.kind = StmtKind::index};
  s.result = kernel_.new_scalar();
  s.dtype = dtype;
  s.value = value;
  return push(std::move(s)).result;
}

ScalarId BlockBuilder::let(Op op, std::vector<ScalarId> args, DType dtype) {
  Stmt s{.kind = StmtKind::let};
  s.result = kernel_.new_scalar();
  s.op = op;
  s.args = std::move(args);
  s.dtype = dtype;
  return push(std::move(s)).result;
}

ScalarId BlockBuilder::load(BufferId buffer, std::vector<Affine> indices, std::vector<Affine> conditions,
                            ScalarId otherwise) {
  Stmt s{.kind = StmtKind::load};
  s.result = kernel_.new_scalar();
  s.dtype = kernel_.buffers[buffer.index].dtype;
  s.buffer = buffer;
  s.indices = std::move(indices);
  s.conditions = std::move(conditions);
  if (otherwise.valid()) s.args.push_back(otherwise);
  return push(std::move(s)).result;
}

void BlockBuilder::store(BufferId buffer, std::vector<Affine> indices, ScalarId value, std::vector<Affine> conditions) {
  Stmt s{.kind = StmtKind::store};
  s.dtype = kernel_.buffers[buffer.index].dtype;
  s.buffer = buffer;
  s.indices = std::move(indices);
  s.conditions = std::move(conditions);
  s.args.push_back(value);
  push(std::move(s));
}

AccId BlockBuilder::acc(Reduce reduce, DType dtype, std::int64_t lanes, ScalarId start) {
  Stmt s{.kind = StmtKind::acc};
  s.acc = kernel_.new_acc();
  s.reduce = reduce;
  s.dtype = dtype;
  s.width = lanes;
  if (start.valid()) s.args.push_back(start);
  return push(std::move(s)).acc;
}

void BlockBuilder::accumulate(AccId acc, ScalarId value) {
  Stmt s{.kind = StmtKind::accumulate};
  s.acc = acc;
  s.args.push_back(value);
  push(std::move(s));
}

ScalarId BlockBuilder::finish(AccId acc, DType dtype) {
  Stmt s{.kind = StmtKind::finish};
  s.acc = acc;
  s.result = kernel_.new_scalar();
  s.dtype = dtype;
  return push(std::move(s)).result;
}

VarId BlockBuilder::task(std::string var_name, std::int64_t extent) {
  const VarId var = new_var(std::move(var_name), extent);
  kernel_.tasks.emplace_back(var, extent);
  return var;
}

VarId BlockBuilder::new_var(std::string var_name, std::int64_t extent) {
  const VarId var = kernel_.new_var(std::move(var_name));
  limit(var, extent);
  return var;
}

void BlockBuilder::limit(VarId var, std::int64_t extent) {
  if (extents_.size() <= var.index) extents_.resize(var.index + 1, -1);
  std::int64_t& known = extents_[var.index];
  known = known < 0 ? extent : std::min(known, extent);
}

VarId BlockBuilder::bind(ScalarId value, std::int64_t extent, IndexMode mode, std::int32_t site) {
  Stmt s{.kind = StmtKind::bind};
  s.var = kernel_.new_var();
  s.args.push_back(value);
  s.extent = extent;
  s.mode = mode;
  s.site = site;
  limit(s.var, extent);
  return push(std::move(s)).var;
}

}  // namespace burin::ir
