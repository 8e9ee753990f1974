#include "ir/kernel/interpreter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <new>
#include <numeric>
#include <random>
#include <vector>

#include "base/check.h"
#include "base/message_ids.h"
#include "ir/eval/scalar.h"
#include "ir/kernel/pairs.h"
#include "ir/kernel/program.h"

namespace burin::ir {
namespace {

// An affine expression: a constant and a range of the machine's terms.
struct Expr {
  std::int64_t constant = 0;
  std::uint32_t first = 0, count = 0;
};
struct Term {
  std::uint32_t var;
  std::int64_t coefficient;
};
struct ExprList {
  std::uint32_t first = 0, count = 0;
};

struct Node {
  StmtKind kind = StmtKind::loop;
  bool is_vector = false;
  std::uint8_t size = 0;  // bytes of the element moved
  std::uint32_t end = 0;  // loop, when: the node behind the body
  std::uint32_t var = 0, result = 0, buffer = 0, acc = 0, lanes = 1, detail = 0;
  std::array<std::uint32_t, 3> args{};
  Expr first;  // lo; address; index value
  ExprList hi, conditions;
  eval::ElementFunction function = nullptr;
  bool has_start = false;
  bool is_float = false;
  bool is_signed = false;
  DType dtype = DType::f32;
  std::int64_t extent = 0;
  IndexMode mode = IndexMode::clip;
  std::int32_t site = -1;
};

// tile[r, c] += a * b; addresses move by a fixed distance per row, column and step of k.
struct Operand {
  std::uint32_t buffer = 0;
  DType dtype = DType::f32;
  Expr base;
  std::int64_t row = 0, column = 0, depth = 0;
};
struct Mma {
  Operand tile, a, b;
  std::int64_t rows = 0, columns = 0, block = 0;
};

Op op_of(Reduce reduce) {
  static constexpr Op ops[] = {Op::add, Op::mul, Op::max, Op::min, Op::bit_and, Op::bit_or};
  return ops[static_cast<int>(reduce)];
}

// The element that leaves every other one as it is.
Literal identity(Reduce reduce, DType dtype) {
  const int bits = 8 * static_cast<int>(size_of(dtype));
  const std::int64_t top = static_cast<std::int64_t>(~std::uint64_t{0} >> (64 - bits));
  const std::int64_t signed_max = static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits));
  switch (reduce) {
    case Reduce::sum:
    case Reduce::bit_or:
      return Literal::scalar_int(dtype, 0);
    case Reduce::prod:
      return Literal::scalar_int(dtype, 1);
    case Reduce::max:
      if (is_float(dtype)) return Literal::scalar(dtype, -INFINITY);
      return Literal::scalar_int(dtype, is_signed_int(dtype) ? -signed_max - 1 : 0);
    case Reduce::min:
      if (is_float(dtype)) return Literal::scalar(dtype, INFINITY);
      return Literal::scalar_int(dtype, dtype == DType::bool_ ? 1 : is_signed_int(dtype) ? signed_max : top);
    case Reduce::bit_and:
      return Literal::scalar_int(dtype, dtype == DType::bool_ ? 1 : -1);
  }
  return {};
}

template <class Tile, class A, class B>
void multiply(const Mma& mma, std::int64_t depth, Tile* tile, const A* a, const B* b) {
  for (std::int64_t r = 0; r < mma.rows; ++r)
    for (std::int64_t c = 0; c < mma.columns; ++c) {
      Tile& sum = tile[r * mma.tile.row + c * mma.tile.column];
      const A* left = a + r * mma.a.row + c * mma.a.column;
      const B* right = b + r * mma.b.row + c * mma.b.column;
      [[maybe_unused]] PairSums sums;
      for (std::int64_t k = 0; k < depth; ++k, left += mma.a.depth, right += mma.b.depth) {
        if constexpr (std::is_same_v<A, std::uint32_t>) {
          if (mma.block == 0) {
            sum = add_pair(sum, *left, *right);
            continue;
          }
          sums.add(*left, *right);
          if ((k + 1) % mma.block != 0 && k + 1 < depth) continue;
          sum = sums.added_to(sum);
          sums = {};
        } else {
          sum = std::fma(static_cast<Tile>(*left), static_cast<Tile>(*right), sum);
        }
      }
    }
}

template <class F>
void with_float(DType dtype, F&& f) {
  if (dtype == DType::f64) return f(double{});
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::bf16) return f(bfloat16{});
  BURIN_CHECK(dtype == DType::f16, "mma takes floats");
  f(float16{});
}

}  // namespace

std::vector<std::uint64_t> uninitialised_words(std::string_view what, std::int64_t bytes) {
  try {
    return std::vector<std::uint64_t>(static_cast<std::size_t>(bytes + 7) / 8, ~std::uint64_t{0});
  } catch (const std::bad_alloc&) {
    fail(Msg::memory_for, what, bytes, static_cast<double>(bytes) / 1048576.0);
  }
}

class KernelRunner::Machine {
 public:
  explicit Machine(const Kernel& kernel) : name_(kernel.name), buffers_(kernel.buffers), tasks_(kernel.tasks) {
    vars_.resize(kernel.var_names.size());
    slots_.resize(std::max<std::size_t>(kernel.num_scalars, 1));
    scalar_dtypes_.resize(slots_.size());
    accs_.resize(kernel.num_accs);
    for (const Buffer& buffer : buffers_) {
      spans_.push_back(buffer.span());
      if (buffer.space == Space::scratch || buffer.space == Space::tile)
        private_memory_.push_back(
            uninitialised_words(buffer.name, spans_.back() * static_cast<std::int64_t>(size_of(buffer.dtype))));
      else
        ++num_params_;
    }
    block(kernel.body);
  }

  std::optional<IndexReport> run(std::span<std::byte* const> params, TaskOrder order) {
    BURIN_CHECK(params.size() == num_params_, "kernel " + name_ + " runs with a wrong number of buffers");
    bases_.assign(params.begin(), params.end());
    for (auto& memory : private_memory_) bases_.push_back(reinterpret_cast<std::byte*>(memory.data()));
    report_.reset();
    std::int64_t count = 1;
    for (const auto& [var, extent] : tasks_) count *= extent;
    std::vector<std::int64_t> shuffled;
    if (order == TaskOrder::shuffled) {
      shuffled.resize(static_cast<std::size_t>(count));
      std::iota(shuffled.begin(), shuffled.end(), 0);
      std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(20240229));
    }
    for (std::int64_t i = 0; i < count; ++i) {
      task_ = order == TaskOrder::forward ? i : order == TaskOrder::reverse ? count - 1 - i : shuffled[i];
      std::int64_t rest = task_;
      for (std::size_t axis = tasks_.size(); axis-- > 0; rest /= tasks_[axis].second)
        vars_[tasks_[axis].first.index] = rest % tasks_[axis].second;
      for (auto& memory : private_memory_) std::fill(memory.begin(), memory.end(), ~std::uint64_t{0});
      lane_ = -1;
      execute(0, static_cast<std::uint32_t>(nodes_.size()));
    }
    return report_;
  }

 private:
  struct Accumulator {
    eval::ElementFunction combine = nullptr, convert = nullptr;
    std::uint64_t identity = 0;
    std::vector<std::uint64_t> lanes;
    DType dtype = DType::f32;
  };

  // ---- making ready ----
  Expr expr(const Affine& a) {
    Expr e{a.constant, static_cast<std::uint32_t>(terms_.size()), static_cast<std::uint32_t>(a.terms.size())};
    for (const auto& [var, coefficient] : a.terms) terms_.push_back({var.index, coefficient});
    return e;
  }
  ExprList list(const std::vector<Affine>& items) {
    ExprList result{static_cast<std::uint32_t>(exprs_.size()), static_cast<std::uint32_t>(items.size())};
    for (const Affine& a : items) exprs_.push_back(expr(a));
    return result;
  }
  Affine address(BufferId buffer, const std::vector<Affine>& indices) const {
    Affine sum;
    for (std::size_t axis = 0; axis < indices.size(); ++axis)
      sum = sum + indices[axis] * buffers_[buffer.index].strides[axis];
    return sum;
  }
  static std::uint64_t raw(const Literal& literal) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, literal.raw().data(), size_of(literal.dtype()));
    return bits;
  }
  void block(const Block& body) {
    for (const Stmt& s : body) {
      const std::size_t at = nodes_.size();
      nodes_.push_back(node(s));
      if (s.kind == StmtKind::loop || s.kind == StmtKind::when) block(s.body);
      nodes_[at].end = static_cast<std::uint32_t>(nodes_.size());
    }
  }

  Node node(const Stmt& s) {
    Node n;
    n.kind = s.kind;
    n.dtype = s.dtype;
    n.size = static_cast<std::uint8_t>(size_of(s.dtype));
    n.conditions = list(s.conditions);
    for (std::size_t i = 0; i < s.args.size(); ++i) n.args[i] = s.args[i].index;
    if (s.result.valid()) {
      n.result = s.result.index;
      scalar_dtypes_[n.result] = s.dtype;
    }
    switch (s.kind) {
      case StmtKind::loop:
        n.var = s.var.index;
        n.first = expr(s.lo);
        n.hi = list(s.hi);
        n.is_vector = s.loop_kind == LoopKind::vector;
        break;
      case StmtKind::when:
        break;
      case StmtKind::constant:
        n.detail = static_cast<std::uint32_t>(constants_.size());
        constants_.push_back(raw(s.literal));
        break;
      case StmtKind::index:
        n.first = expr(s.value);
        n.function = eval::convert_function(DType::i64, s.dtype);
        break;
      case StmtKind::let: {
        std::vector<DType> dtypes;
        for (ScalarId arg : s.args) dtypes.push_back(scalar_dtypes_[arg.index]);
        n.function = eval::element_function(s.op, dtypes, s.dtype);
        break;
      }
      case StmtKind::load:
      case StmtKind::store:
        n.buffer = s.buffer.index;
        n.size = static_cast<std::uint8_t>(size_of(buffers_[n.buffer].dtype));
        n.first = expr(address(s.buffer, s.indices));
        break;
      case StmtKind::acc: {
        Accumulator& acc = accs_[n.acc = s.acc.index];
        const DType dtypes[] = {s.dtype, s.dtype};
        acc.combine = eval::element_function(op_of(s.reduce), dtypes, s.dtype);
        acc.identity = raw(identity(s.reduce, s.dtype));
        acc.lanes.resize(static_cast<std::size_t>(s.width));
        acc.dtype = s.dtype;
        n.has_start = !s.args.empty();
        break;
      }
      case StmtKind::accumulate:
        n.acc = s.acc.index;
        break;
      case StmtKind::finish:
        n.acc = s.acc.index;
        n.function = eval::convert_function(accs_[n.acc].dtype, s.dtype);
        break;
      case StmtKind::bind:
        n.var = s.var.index;
        n.extent = s.extent;
        n.mode = s.mode;
        n.site = s.site;
        n.dtype = scalar_dtypes_[n.args[0]];
        n.function = eval::convert_function(n.dtype, DType::i64);
        break;
      case StmtKind::mma:
        n.detail = static_cast<std::uint32_t>(mmas_.size());
        n.hi = list(s.hi);
        mmas_.push_back(mma(s));
        break;
    }
    return n;
  }

  Mma mma(const Stmt& s) {
    const auto operand = [&](BufferId buffer, const std::vector<Affine>& indices) {
      const Affine at = address(buffer, indices);
      Operand o{buffer.index,          buffers_[buffer.index].dtype, {},
                at.coefficient(s.row), at.coefficient(s.column),     at.coefficient(s.depth)};
      o.base = expr(at - Affine(s.row, o.row) - Affine(s.column, o.column) - Affine(s.depth, o.depth));
      return o;
    };
    Mma m{operand(s.buffer, {Affine(s.row), Affine(s.column)}), operand(s.a, s.a_indices), operand(s.b, s.b_indices)};
    m.rows = buffers_[s.buffer.index].shape[0];
    m.columns = buffers_[s.buffer.index].shape[1];
    m.block = s.block;
    return m;
  }

  // ---- running ----
  std::int64_t value(const Expr& e) const {
    std::int64_t sum = e.constant;
    for (std::uint32_t i = e.first; i < e.first + e.count; ++i) sum += terms_[i].coefficient * vars_[terms_[i].var];
    return sum;
  }
  std::int64_t least(const ExprList& list) const {
    std::int64_t result = value(exprs_[list.first]);
    for (std::uint32_t i = 1; i < list.count; ++i) result = std::min(result, value(exprs_[list.first + i]));
    return result;
  }
  bool hold(const ExprList& list) const {
    for (std::uint32_t i = 0; i < list.count; ++i)
      if (value(exprs_[list.first + i]) < 0) return false;
    return true;
  }
  std::byte* slot(std::uint32_t i) { return reinterpret_cast<std::byte*>(&slots_[i]); }
  std::byte* element(const Node& n) {
    const std::int64_t at = value(n.first);
    check_inside(n.buffer, at, at);
    return bases_[n.buffer] + at * n.size;
  }
  void check_inside(std::uint32_t buffer, std::int64_t lowest, std::int64_t highest) const {
    BURIN_CHECK(lowest >= 0 && highest < spans_[buffer],
                "kernel " + name_ + " reaches element " + std::to_string(lowest < 0 ? lowest : highest) + " of " +
                    buffers_[buffer].name + ", which has " + std::to_string(spans_[buffer]));
  }

  void execute(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t i = begin; i < end; i = nodes_[i].end) {
      const Node& n = nodes_[i];
      switch (n.kind) {
        case StmtKind::loop:
          loop(i, n);
          break;
        case StmtKind::when:
          if (hold(n.conditions)) execute(i + 1, n.end);
          break;
        case StmtKind::constant:
          slots_[n.result] = constants_[n.detail];
          break;
        case StmtKind::index: {
          const std::int64_t number = value(n.first);
          const auto* from = reinterpret_cast<const std::byte*>(&number);
          n.function(&from, slot(n.result));
          break;
        }
        case StmtKind::let: {
          const std::byte* operands[] = {slot(n.args[0]), slot(n.args[1]), slot(n.args[2])};
          n.function(operands, slot(n.result));
          break;
        }
        case StmtKind::load:
          if (hold(n.conditions))
            std::memcpy(slot(n.result), element(n), n.size);
          else
            slots_[n.result] = slots_[n.args[0]];
          break;
        case StmtKind::store:
          if (hold(n.conditions)) std::memcpy(element(n), slot(n.args[0]), n.size);
          break;
        case StmtKind::acc: {
          Accumulator& acc = accs_[n.acc];
          std::ranges::fill(acc.lanes, acc.identity);
          if (n.has_start) acc.lanes[0] = slots_[n.args[0]];
          break;
        }
        case StmtKind::accumulate: {
          Accumulator& acc = accs_[n.acc];
          const std::size_t lane = lane_ < 0 ? 0 : static_cast<std::size_t>(lane_) % acc.lanes.size();
          combine(acc, acc.lanes[lane], slots_[n.args[0]]);
          break;
        }
        case StmtKind::finish:
          finish(n);
          break;
        case StmtKind::bind:
          bind(n);
          break;
        case StmtKind::mma:
          multiply_tiles(n);
          break;
      }
    }
  }

  void loop(std::uint32_t at, const Node& n) {
    const std::int64_t lo = value(n.first), hi = least(n.hi);
    for (std::int64_t i = lo; i < hi; ++i) {
      vars_[n.var] = i;
      if (n.is_vector) lane_ = i - lo;
      execute(at + 1, n.end);
    }
    if (n.is_vector) lane_ = -1;
  }

  static void combine(const Accumulator& acc, std::uint64_t& into, std::uint64_t value) {
    const std::byte* operands[] = {reinterpret_cast<const std::byte*>(&into),
                                   reinterpret_cast<const std::byte*>(&value)};
    std::uint64_t result = 0;
    acc.combine(operands, reinterpret_cast<std::byte*>(&result));
    into = result;
  }

  void finish(const Node& n) {
    Accumulator& acc = accs_[n.acc];
    for (std::size_t half = acc.lanes.size() / 2; half >= 1; half /= 2)
      for (std::size_t i = 0; i < half; ++i) combine(acc, acc.lanes[i], acc.lanes[i + half]);
    const auto* from = reinterpret_cast<const std::byte*>(acc.lanes.data());
    n.function(&from, slot(n.result));
  }

  void bind(const Node& n) {
    const std::byte* from = slot(n.args[0]);
    std::int64_t index = 0;
    n.function(&from, reinterpret_cast<std::byte*>(&index));
    if (n.dtype == DType::u64 && index < 0) index = INT64_MAX;  // beyond any extent either way
    if (index >= 0 && index < n.extent) {
      vars_[n.var] = index;
    } else if (n.mode == IndexMode::clip) {
      vars_[n.var] = index < 0 ? 0 : n.extent - 1;
    } else {
      if (!report_ || task_ < report_->task) report_ = IndexReport{task_, n.site, index, n.extent};
      vars_[n.var] = 0;
    }
  }

  void multiply_tiles(const Node& n) {
    const Mma& m = mmas_[n.detail];
    const std::int64_t depth = least(n.hi);
    if (depth <= 0 || m.rows == 0 || m.columns == 0) return;
    const auto start = [&](const Operand& o) {
      const std::int64_t at = value(o.base);
      std::int64_t lowest = at, highest = at;
      for (const std::int64_t reach : {o.row * (m.rows - 1), o.column * (m.columns - 1), o.depth * (depth - 1)})
        (reach < 0 ? lowest : highest) += reach;
      check_inside(o.buffer, lowest, highest);
      return bases_[o.buffer] + at * static_cast<std::int64_t>(size_of(o.dtype));
    };
    std::byte* const tile = start(m.tile);
    const std::byte* const a = start(m.a);
    const std::byte* const b = start(m.b);
    if (m.a.dtype == DType::u32)
      return multiply(m, depth, reinterpret_cast<float*>(tile), reinterpret_cast<const std::uint32_t*>(a),
                      reinterpret_cast<const std::uint32_t*>(b));
    with_float(m.a.dtype, [&]<class A>(A) {
      with_float(m.b.dtype, [&]<class B>(B) {
        if (m.tile.dtype == DType::f64)
          multiply(m, depth, reinterpret_cast<double*>(tile), reinterpret_cast<const A*>(a),
                   reinterpret_cast<const B*>(b));
        else
          multiply(m, depth, reinterpret_cast<float*>(tile), reinterpret_cast<const A*>(a),
                   reinterpret_cast<const B*>(b));
      });
    });
  }

  std::string name_;
  std::vector<Buffer> buffers_;
  std::vector<std::pair<VarId, std::int64_t>> tasks_;
  std::vector<std::int64_t> spans_;
  std::size_t num_params_ = 0;
  std::vector<Node> nodes_;
  std::vector<Term> terms_;
  std::vector<Expr> exprs_;
  std::vector<Mma> mmas_;
  std::vector<std::uint64_t> constants_;
  std::vector<DType> scalar_dtypes_;

  std::vector<std::int64_t> vars_;
  std::vector<std::uint64_t> slots_;  // the bytes of each value, at the front of 8
  std::vector<Accumulator> accs_;
  std::vector<std::vector<std::uint64_t>> private_memory_;
  std::vector<std::byte*> bases_;
  std::optional<IndexReport> report_;
  std::int64_t task_ = 0;
  std::int64_t lane_ = -1;  // iteration of the vector loop around, counted from its start; -1 outside
};

KernelRunner::KernelRunner(const Kernel& kernel) : machine_(std::make_unique<Machine>(kernel)) {}
KernelRunner::~KernelRunner() = default;
KernelRunner::KernelRunner(KernelRunner&&) noexcept = default;

std::optional<IndexReport> KernelRunner::run(std::span<std::byte* const> params, TaskOrder order) {
  return machine_->run(params, order);
}

std::string report_text(const Site& site, const IndexReport& report) {
  std::string text = site.message;
  const auto fill = [&](std::string_view placeholder, std::int64_t number) {
    for (std::size_t at = 0; (at = text.find(placeholder, at)) != std::string::npos;)
      text.replace(at, placeholder.size(), std::to_string(number));
  };
  fill("{index}", report.index);
  fill("{extent}", report.extent);
  return text;
}

std::string interpret(const Kernel& kernel, std::span<std::byte* const> buffers) {
  const auto report = KernelRunner(kernel).run(buffers);
  if (!report) return "";
  BURIN_CHECK(report->site >= 0 && static_cast<std::size_t>(report->site) < kernel.sites.size());
  return report_text(kernel.sites[static_cast<std::size_t>(report->site)], *report);
}

}  // namespace burin::ir
