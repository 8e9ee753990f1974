#include "ir/kernel/kernel.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"

namespace burin::ir {

Ints dense_strides(const Shape& shape) {
  Ints strides(shape.rank(), 1);
  for (std::size_t axis = shape.rank(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * std::max<std::int64_t>(shape[axis], 1);
  return strides;
}

std::int64_t Buffer::span() const {
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 0) return 0;
    last += (shape[axis] - 1) * strides[axis];
  }
  return last + 1;
}

std::int64_t Kernel::num_tasks() const {
  std::int64_t count = 1;
  for (const auto& [var, extent] : tasks) count *= extent;
  return count;
}

std::size_t Kernel::num_params() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      buffers, [](const Buffer& b) { return b.space != Space::scratch && b.space != Space::tile; }));
}

std::int64_t Kernel::scratch_bytes() const {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : buffers) {
    if (buffer.space != Space::scratch) continue;
    const std::int64_t size = buffer.span() * static_cast<std::int64_t>(size_of(buffer.dtype));
    bytes += (size + 63) / 64 * 64;
  }
  return bytes;
}

VarId Kernel::new_var(std::string var_name) {
  var_names.push_back(std::move(var_name));
  return VarId{var_names.size() - 1};
}

BufferId Kernel::add_buffer(Buffer buffer) {
  BURIN_CHECK(buffer.strides.size() == buffer.shape.rank(), "buffer " + buffer.name + " needs one stride per axis");
  const bool is_param = buffer.space != Space::scratch && buffer.space != Space::tile;
  BURIN_CHECK(!is_param || num_params() == buffers.size(),
              "parameter " + buffer.name + " after a scratch buffer or tile");
  buffers.push_back(std::move(buffer));
  return BufferId{buffers.size() - 1};
}

namespace {

// Numbers ids in the order of their first appearance, so that two kernels built in a different order of new_* calls but
// equal as text have equal hashes.
class KernelHash {
 public:
  explicit KernelHash(Hasher& hasher) : hasher_(hasher) {}

  void add(const Kernel& kernel) {
    hasher_.add(kernel.buffers.size());
    for (const Buffer& buffer : kernel.buffers) add(buffer);
    hasher_.add(kernel.tasks.size());
    for (const auto& [var, extent] : kernel.tasks) {
      add(var);
      hasher_.add(extent);
    }
    hasher_.add(kernel.sites.size());
    add(kernel.body);
  }

 private:
  template <class Tag>
  static std::uint32_t number(std::unordered_map<Id<Tag>, std::uint32_t>& numbers, Id<Tag> id) {
    if (!id.valid()) return Id<Tag>::none;
    return numbers.emplace(id, static_cast<std::uint32_t>(numbers.size())).first->second;
  }
  void add(VarId id) { hasher_.add(number(vars_, id)); }
  void add(ScalarId id) { hasher_.add(number(scalars_, id)); }
  void add(AccId id) { hasher_.add(number(accs_, id)); }

  void add(const Buffer& buffer) {
    hasher_.add(buffer.dtype);
    hasher_.add(buffer.space);
    hasher_.add(buffer.shape.rank());
    for (std::int64_t extent : buffer.shape) hasher_.add(extent);
    for (std::int64_t stride : buffer.strides) hasher_.add(stride);
  }
  void add(const Affine& a) {
    std::vector<std::pair<std::uint32_t, std::int64_t>> terms;
    for (const auto& [var, coefficient] : a.terms) terms.emplace_back(number(vars_, var), coefficient);
    std::ranges::sort(terms);
    hasher_.add(a.constant);
    hasher_.add(terms.size());
    for (const auto& [var, coefficient] : terms) {
      hasher_.add(var);
      hasher_.add(coefficient);
    }
  }
  void add(const std::vector<Affine>& list) {
    hasher_.add(list.size());
    for (const Affine& a : list) add(a);
  }
  void add(const Block& block) {
    hasher_.add(block.size());
    for (const Stmt& stmt : block) add(stmt);
  }
  // Only the fields that the kind uses: what a builder left in the others is no part of the kernel.
  void add(const Stmt& s) {
    hasher_.add(s.kind);
    switch (s.kind) {
      case StmtKind::loop:
        add(s.lo);
        add(s.hi);
        add(s.var);
        hasher_.add(s.loop_kind);
        if (s.loop_kind == LoopKind::vector) hasher_.add(s.width);
        add(s.body);
        return;
      case StmtKind::when:
        add(s.conditions);
        add(s.body);
        return;
      case StmtKind::constant:
        add(s.result);
        s.literal.hash(hasher_);
        return;
      case StmtKind::index:
        add(s.result);
        hasher_.add(s.dtype);
        add(s.value);
        return;
      case StmtKind::let:
        hasher_.add(s.op);
        add_args(s);
        add(s.result);
        hasher_.add(s.dtype);
        return;
      case StmtKind::load:
      case StmtKind::store:
        hasher_.add(s.buffer.index);
        add(s.indices);
        add(s.conditions);
        add_args(s);
        add(s.result);
        return;
      case StmtKind::acc:
        add(s.acc);
        hasher_.add(s.reduce);
        hasher_.add(s.dtype);
        hasher_.add(s.width);
        add_args(s);
        return;
      case StmtKind::accumulate:
        add(s.acc);
        add_args(s);
        return;
      case StmtKind::finish:
        add(s.acc);
        add(s.result);
        hasher_.add(s.dtype);  // which it converts to
        return;
      case StmtKind::bind:
        add_args(s);
        add(s.var);
        hasher_.add(s.extent);
        hasher_.add(s.mode);
        hasher_.add(s.site);
        return;
      case StmtKind::mma:
        add(s.row);
        add(s.column);
        add(s.depth);
        add(s.hi);
        hasher_.add(s.buffer.index);
        hasher_.add(s.a.index);
        hasher_.add(s.b.index);
        add(s.a_indices);
        add(s.b_indices);
        hasher_.add(s.block);
        return;
    }
  }
  void add_args(const Stmt& s) {
    hasher_.add(s.args.size());
    for (ScalarId arg : s.args) add(arg);
  }

  Hasher& hasher_;
  std::unordered_map<VarId, std::uint32_t> vars_;
  std::unordered_map<ScalarId, std::uint32_t> scalars_;
  std::unordered_map<AccId, std::uint32_t> accs_;
};

}  // namespace

void Kernel::hash(Hasher& hasher) const { KernelHash(hasher).add(*this); }

}  // namespace burin::ir
