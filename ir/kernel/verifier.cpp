#include "ir/kernel/verifier.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"
#include "ir/builder.h"
#include "ir/kernel/printer.h"

namespace burin::ir {
namespace {

// What one kernel may ask of registers and of generated code; lowerings stay far below.
constexpr std::int64_t max_lanes = 64;            // bytes of the widest vector
constexpr std::int64_t max_copies = 1024;         // of one statement by the unrolled loops around it
constexpr double max_tile_elements = 0x1p14;
constexpr double max_scratch_bytes = 0x1p50;
constexpr double max_tasks = 0x1p62;

bool is_power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

class KernelVerifier {
 public:
  explicit KernelVerifier(const Kernel& kernel)
      : kernel_(kernel),
        var_states_(kernel.var_names.size()),
        scalars_(kernel.num_scalars),
        accs_(kernel.num_accs),
        filled_(kernel.buffers.size()) {}

  std::string run() {
    check_buffers();
    double num_tasks = 1;
    for (const auto& [var, extent] : kernel_.tasks) {
      if (extent < 0) fail("K9", fmt::format("{} tasks", extent));
      num_tasks *= static_cast<double>(extent);
      if (num_tasks > max_tasks) fail("K9", "more than 2^62 tasks");
      define(var, Fixed::no);
      add_range(var, extent);
    }
    if (message_.empty()) block(kernel_.body);
    if (message_.empty()) check_tasks();
    return message_;
  }

 private:
  enum class State : std::uint8_t { undefined, in_scope, gone };
  enum class Fixed : std::uint8_t { no, yes, lane };  // after unrolling: a number, the lane of a vector loop
  struct Var {
    State state = State::undefined;
    Fixed fixed = Fixed::no;
    bool varies = false;  // among the lanes of a vector loop
  };
  struct Scalar {
    State state = State::undefined;
    DType dtype = DType::f32;
  };
  struct Acc {
    State state = State::undefined;
    DType dtype = DType::f32;
    std::int64_t lanes = 1;
    std::size_t depth = 0;  // blocks around its statement
    bool inside_vector = false;
    bool finished = false;
  };

  // ---- reporting ----
  void fail(std::string_view invariant, const std::string& what) {
    if (!message_.empty()) return;
    message_ = fmt::format("{}: kernel @{}: ", invariant, identifier(kernel_.name, "kernel"));
    if (statement_ > 0) message_ += "`" + print_statement(kernel_, statement_ - 1) + "`: ";
    message_ += what;
  }
  bool failed() const { return !message_.empty(); }
  std::string buffer_name(BufferId id) const { return kernel_.buffers[id.index].name; }

  // ---- K9: buffers ----
  void check_buffers() {
    bool params_done = false;
    double scratch = 0;
    for (const Buffer& b : kernel_.buffers) {
      const bool is_param = b.space != Space::scratch && b.space != Space::tile;
      if (is_param && params_done)
        fail("K9", fmt::format("the parameter {} stands behind scratch buffers or tiles", b.name));
      params_done |= !is_param;
      if (b.strides.size() != b.shape.rank()) {
        fail("K9", fmt::format("{} has {} for {}", b.name, counted(b.strides.size(), "stride"), counted(b.shape.rank(), "axis", "axes")));
        return;
      }
      double size = 1;
      for (std::size_t axis = 0; axis < b.shape.rank(); ++axis) {
        if (b.strides[axis] < 0) fail("K9", fmt::format("{} has the negative stride {}", b.name, b.strides[axis]));
        size +=
            static_cast<double>(std::max<std::int64_t>(b.shape[axis] - 1, 0)) * static_cast<double>(b.strides[axis]);
      }
      if (size > 0x1p48) fail("K9", fmt::format("{} spans more than 2^48 elements", b.name));
      if (b.space == Space::tile && size > max_tile_elements)
        fail("K9", fmt::format("the tile {} has more than 2^14 elements", b.name));
      if (b.space == Space::scratch) scratch += size * static_cast<double>(size_of(b.dtype));
      if (scratch > max_scratch_bytes) fail("K9", "more than 2^50 bytes of scratch");
    }
  }

  // ---- K1: names ----
  void define(VarId var, Fixed fixed) {
    if (var.index >= var_states_.size()) return fail("K1", fmt::format("there is no variable {}", var.index));
    if (var_states_[var.index].state != State::undefined) return fail("K1", "a variable is defined twice");
    var_states_[var.index] = {State::in_scope, fixed, false};
    scope_vars_.push_back(var);
  }
  void add_range(VarId var, std::int64_t extent) {
    facts_.add(Affine(var));
    facts_.add(Affine(extent - 1) - Affine(var));
  }
  void check_vars(const Affine& a) {
    for (const auto& [var, coefficient] : a.terms)
      if (var.index >= var_states_.size() || var_states_[var.index].state != State::in_scope)
        return fail("K1", "an index uses a variable that is not in scope");
  }
  void check_vars(const std::vector<Affine>& list) {
    for (const Affine& a : list) check_vars(a);
  }
  /// False, having reported it, when the value is not there to be used.
  bool use(ScalarId id) {
    if (id.index < scalars_.size() && scalars_[id.index].state == State::in_scope) return true;
    fail("K1", "a value is used that is not defined before, or not in this scope");
    return false;
  }
  void define_result(const Stmt& s) {
    if (s.result.index >= scalars_.size()) return fail("K1", "the result has no number below num_scalars");
    if (scalars_[s.result.index].state != State::undefined) return fail("K1", "the result is defined already");
    scalars_[s.result.index] = {State::in_scope, s.dtype};
    scope_scalars_.push_back(s.result);
  }
  Acc* use_acc(AccId id) {
    if (id.index < accs_.size() && accs_[id.index].state == State::in_scope) return &accs_[id.index];
    fail("K1", "an accumulator is used that is not defined before, or not in this scope");
    return nullptr;
  }
  bool use_buffer(BufferId id) {
    if (id.index < kernel_.buffers.size()) return true;
    fail("K1", "there is no such buffer");
    return false;
  }

  // ---- K2: dtypes ----
  bool arg_count(const Stmt& s, std::size_t count) {
    if (s.args.size() == count) return true;
    fail("K2", fmt::format("{}, expected {}", counted(s.args.size(), "operand"), count));
    return false;
  }
  void expect_dtype(ScalarId id, DType expected, std::string_view what) {
    if (!use(id)) return;
    const DType found = scalars_[id.index].dtype;
    if (found != expected) fail("K2", fmt::format("{} is {}, expected {}", what, name(found), name(expected)));
  }

  void let(const Stmt& s) {
    const Family family = family_of(s.op);
    if (family != Family::elementwise && family != Family::compare)
      return fail("K2", fmt::format("{} is no elementwise op", name(s.op)));
    if (!arg_count(s, static_cast<std::size_t>(info(s.op).arity))) return;
    std::vector<Type> types;
    for (ScalarId arg : s.args) {
      if (!use(arg)) return;
      types.push_back({scalars_[arg.index].dtype, {}});
    }
    std::vector<AttrValue> attributes;
    if (!info(s.op).attributes.empty()) attributes.emplace_back(s.dtype);
    try {
      const DType inferred = infer_types(s.op, types, attributes).at(0).dtype;
      if (inferred != s.dtype) fail("K2", fmt::format("the result is {}, expected {}", name(s.dtype), name(inferred)));
    } catch (const Error& error) {
      fail("K2", error.what());
    }
  }

  // ---- K3, K6, K8: accesses ----
  void access(BufferId id, const std::vector<Affine>& indices, bool is_store) {
    if (!use_buffer(id)) return;
    check_vars(indices);
    if (failed()) return;
    const Buffer& b = kernel_.buffers[id.index];
    if (indices.size() != b.shape.rank())
      return fail("K3", fmt::format("{} has {}, found {}", b.name, counted(b.shape.rank(), "axis", "axes"), counted(indices.size(), "index", "indices")));
    if (is_store && b.space == Space::in) return fail("K8", fmt::format("{} is only read", b.name));
    for (std::size_t axis = 0; axis < indices.size() && !failed(); ++axis) check_axis(b, axis, indices[axis]);
    if (b.space == Space::tile) check_tile_access(b, indices);
    check_filled(id, is_store);
    const bool shared = b.space == Space::out || b.space == Space::inout;
    if (shared || (vector_depth_ > 0 && b.space != Space::in))
      accesses_.push_back({id, indices, is_store, statement_, facts_.all(), scope_vars_});
  }
  // K12 asks for a store earlier in the text; whether it has met this very element is left to the interpreter's NaN patterns.
  void check_filled(BufferId id, bool is_store) {
    const Space space = kernel_.buffers[id.index].space;
    if (space != Space::scratch && space != Space::tile) return;
    if (is_store) filled_[id.index] = true;
    if (!filled_[id.index]) fail("K12", fmt::format("{} is loaded before anything is stored to it", buffer_name(id)));
  }
  void check_axis(const Buffer& b, std::size_t axis, const Affine& index) {
    if (!facts_.prove(index)) {
      const auto reached = facts_.lowest(index);
      return fail("K3", reached ? fmt::format("axis {} of {} may reach {}", axis, b.name, *reached)
                                : fmt::format("axis {} of {} has no lower bound", axis, b.name));
    }
    if (!facts_.prove(Affine(b.shape[axis] - 1) - index)) {
      const auto reached = facts_.highest(index);
      return fail(
          "K3", reached
                    ? fmt::format("axis {} of {} may reach {}, its extent is {}", axis, b.name, *reached, b.shape[axis])
                    : fmt::format("axis {} of {} has no upper bound, its extent is {}", axis, b.name, b.shape[axis]));
    }
  }
  void check_tile_access(const Buffer& b, const std::vector<Affine>& indices) {
    for (std::size_t axis = 0; axis < indices.size(); ++axis)
      for (const auto& [var, coefficient] : indices[axis].terms) {
        const Fixed fixed = var_states_[var.index].fixed;
        const bool lane = fixed == Fixed::lane && axis + 1 == indices.size() && coefficient == 1;
        if (fixed != Fixed::yes && !lane)
          return fail("K6", fmt::format("axis {} of the tile {} is not known after unrolling", axis, b.name));
      }
  }
  bool is_fixed(const Affine& a) const {
    return std::ranges::all_of(a.terms,
                               [&](const auto& term) { return var_states_[term.first.index].fixed == Fixed::yes; });
  }

  bool varies(const Affine& a) const {
    return std::ranges::any_of(a.terms, [&](const auto& term) { return var_states_[term.first.index].varies; });
  }

  // ---- statements ----
  void block(const Block& body) {
    const std::size_t facts = facts_.size(), vars = scope_vars_.size(), scalars = scope_scalars_.size(),
                      accs = scope_accs_.size();
    ++depth_;
    for (const Stmt& s : body) {
      if (failed()) return;
      ++statements_;
      statement_ = statements_;
      stmt(s);
    }
    if (failed()) return;
    for (std::size_t i = accs; i < scope_accs_.size(); ++i) accs_[scope_accs_[i].index].state = State::gone;
    for (std::size_t i = scalars; i < scope_scalars_.size(); ++i) scalars_[scope_scalars_[i].index].state = State::gone;
    for (std::size_t i = vars; i < scope_vars_.size(); ++i) var_states_[scope_vars_[i].index].state = State::gone;
    --depth_;
    facts_.truncate(facts);
    scope_vars_.resize(vars);
    scope_scalars_.resize(scalars);
    scope_accs_.resize(accs);
  }

  void stmt(const Stmt& s) {
    switch (s.kind) {
      case StmtKind::loop:
        return loop(s);
      case StmtKind::when: {
        check_vars(s.conditions);
        if (s.conditions.empty()) fail("K9", "a condition without terms");
        const std::size_t facts = facts_.size();
        for (const Affine& condition : s.conditions) facts_.add(condition);
        block(s.body);
        return facts_.truncate(facts);
      }
      case StmtKind::constant:
        if (!s.literal.valid() || s.literal.type() != Type{s.dtype, {}})
          return fail("K2", fmt::format("the constant is no {}", name(s.dtype)));
        return define_result(s);
      case StmtKind::index:
        check_vars(s.value);
        if (s.dtype == DType::bool_) return fail("K2", "an index is a number, found bool");
        return define_result(s);
      case StmtKind::let:
        let(s);
        return define_result(s);
      case StmtKind::load:
      case StmtKind::store:
        return load_or_store(s);
      case StmtKind::acc:
        return acc(s);
      case StmtKind::accumulate:
        return accumulate(s);
      case StmtKind::finish:
        return finish(s);
      case StmtKind::bind:
        return bind(s);
      case StmtKind::mma:
        return mma(s);
    }
  }

  void loop(const Stmt& s) {
    check_vars(s.lo);
    check_vars(s.hi);
    if (failed()) return;
    if (s.hi.empty()) return fail("K9", "a loop without an upper bound");
    const bool is_vector = s.loop_kind == LoopKind::vector;
    const bool known = is_fixed(s.lo) && std::ranges::any_of(s.hi, [&](const Affine& a) { return is_fixed(a); });
    if (s.loop_kind == LoopKind::unroll && !known) return fail("K9", "the bounds of an unrolled loop are not known");
    if (is_vector && (!is_power_of_two(s.width) || s.width > max_lanes))
      return fail("K9", fmt::format("a vector loop of {} lanes, expected a power of two up to {}", s.width, max_lanes));
    if (vector_depth_ > 0 && is_vector) return fail("K5", "a vector loop holds no other one");
    if (varies(s.lo) || std::ranges::any_of(s.hi, [&](const Affine& a) { return varies(a); }))
      return fail("K5", "the bounds of a loop inside a vector loop are the same for all lanes");

    const std::size_t facts = facts_.size(), vars = scope_vars_.size(), first_access = accesses_.size();
    define(s.var, !known                            ? Fixed::no
                  : is_vector                       ? Fixed::lane
                  : s.loop_kind == LoopKind::unroll ? Fixed::yes
                                                    : Fixed::no);
    if (!failed()) var_states_[s.var.index].varies = is_vector;
    facts_.add(Affine(s.var) - s.lo);
    for (const Affine& hi : s.hi) facts_.add(hi - Affine(1) - Affine(s.var));
    if (is_vector) {
      vector_depth_ = depth_;
      vector_width_ = s.width;
    }
    const std::size_t own = statement_;
    const std::int64_t outer_copies = copies_;
    if (known && (s.loop_kind == LoopKind::unroll || (is_vector && touches_tile(s.body)))) count_copies(s);
    block(s.body);
    if (failed()) return;
    copies_ = outer_copies;
    if (is_vector) {
      vector_depth_ = 0;
      statement_ = own;
      check_iterations(s.var, vars, first_access);
      // Kept for check_tasks: what tasks share.
      std::erase_if(accesses_, [&](const Access& a) { return !is_shared(a); });
    }
    var_states_[s.var.index].state = State::gone;
    scope_vars_.resize(vars);
    facts_.truncate(facts);
  }

  /// How often machine code repeats the body: once per iteration of an unrolled loop, or per vector of one over a tile,
  /// whose registers have no index.
  void count_copies(const Stmt& s) {
    std::optional<std::int64_t> most;
    for (const Affine& hi : s.hi)
      if (is_fixed(hi))
        if (const auto trips = facts_.highest(hi - s.lo)) most = most ? std::min(*most, *trips) : *trips;
    const std::int64_t width = s.loop_kind == LoopKind::vector ? s.width : 1;
    if (most) most = std::max<std::int64_t>((*most + width - 1) / width, 1);
    if (!most || *most > max_copies / copies_)
      return fail("K9", fmt::format("unrolled loops repeat a statement more than {} times", max_copies));
    copies_ *= *most;
  }
  bool touches_tile(const Block& body) const {
    return std::ranges::any_of(body, [&](const Stmt& s) {
      const bool accesses = s.kind == StmtKind::load || s.kind == StmtKind::store;
      return (accesses && s.buffer.index < kernel_.buffers.size() &&
              kernel_.buffers[s.buffer.index].space == Space::tile) ||
             touches_tile(s.body);
    });
  }

  void load_or_store(const Stmt& s) {
    const bool is_store = s.kind == StmtKind::store;
    if (!use_buffer(s.buffer)) return;
    check_vars(s.conditions);
    const DType dtype = kernel_.buffers[s.buffer.index].dtype;
    if (s.dtype != dtype)
      return fail("K2", fmt::format("{} holds {}, found {}", buffer_name(s.buffer), name(dtype), name(s.dtype)));
    if (!arg_count(s, is_store || !s.conditions.empty() ? 1 : 0)) return;
    if (!s.args.empty()) expect_dtype(s.args[0], dtype, is_store ? "the stored value" : "the value behind else");
    const std::size_t facts = facts_.size();
    for (const Affine& condition : s.conditions) facts_.add(condition);
    access(s.buffer, s.indices, is_store);
    facts_.truncate(facts);
    if (!is_store) define_result(s);
  }

  void acc(const Stmt& s) {
    if (s.acc.index >= accs_.size()) return fail("K1", "the accumulator has no number below num_accs");
    if (accs_[s.acc.index].state != State::undefined) return fail("K1", "the accumulator is defined already");
    if (is_float(s.dtype) && (s.reduce == Reduce::bit_and || s.reduce == Reduce::bit_or))
      return fail("K2", fmt::format("{} is defined for integers and bool, found {}", name(s.reduce), name(s.dtype)));
    if (is_half(s.dtype)) return fail("K2", fmt::format("an accumulator of {}, which rounds each term: expected f32", name(s.dtype)));
    if (s.args.size() > 1) return void(arg_count(s, 1));
    if (!s.args.empty()) expect_dtype(s.args[0], s.dtype, "the start");
    if (!is_power_of_two(s.width) || s.width > max_lanes)
      return fail("K7", fmt::format("{} lanes, expected a power of two up to {}", s.width, max_lanes));
    if (vector_depth_ > 0 && s.width != 1)
      return fail("K7", "an accumulator inside a vector loop has one lane: each iteration has its own");
    accs_[s.acc.index] = {State::in_scope, s.dtype, s.width, depth_, vector_depth_ > 0, false};
    scope_accs_.push_back(s.acc);
  }

  void accumulate(const Stmt& s) {
    const Acc* acc = use_acc(s.acc);
    if (acc == nullptr || !arg_count(s, 1)) return;
    expect_dtype(s.args[0], acc->dtype, "the value");
    if (acc->finished) return fail("K7", "the accumulator is finished already");
    const bool across = vector_depth_ > 0 && !acc->inside_vector;
    if (across && vector_width_ % acc->lanes != 0)
      return fail("K7", fmt::format("the accumulator's {} do not divide the vector loop's {}", counted(acc->lanes, "lane"), vector_width_));
    if (vector_depth_ == 0 && acc->lanes != 1)
      return fail("K7", fmt::format("{} lanes outside a vector loop, expected 1", acc->lanes));
  }

  void finish(const Stmt& s) {
    Acc* acc = use_acc(s.acc);
    if (acc == nullptr) return;
    if (acc->finished) return fail("K7", "the accumulator is finished already");
    if (acc->depth != depth_) return fail("K7", "an accumulator is finished in the block that begins it");
    acc->finished = true;
    define_result(s);
  }

  void bind(const Stmt& s) {
    if (!arg_count(s, 1) || !use(s.args[0])) return;
    const DType dtype = scalars_[s.args[0].index].dtype;
    if (!is_int(dtype)) return fail("K2", fmt::format("an index is an integer, found {}", name(dtype)));
    if (s.extent < 1) return fail("K9", fmt::format("no index lies in 0..{}", s.extent));
    if (s.mode == IndexMode::error && (s.site < 0 || static_cast<std::size_t>(s.site) >= kernel_.sites.size()))
      return fail("K10", "an index out of range is reported at no site");
    define(s.var, Fixed::no);
    if (!failed()) var_states_[s.var.index].varies = vector_depth_ > 0;
    add_range(s.var, s.extent);
  }

  void mma(const Stmt& s) {
    if (!use_buffer(s.buffer) || !use_buffer(s.a) || !use_buffer(s.b)) return;
    if (vector_depth_ > 0) return fail("K5", "a vector loop holds no mma");
    const Buffer& tile = kernel_.buffers[s.buffer.index];
    if (tile.space != Space::tile || tile.shape.rank() != 2) return fail("K8", "mma adds to a tile of two axes");
    if (tile.dtype != DType::f32 && tile.dtype != DType::f64)
      return fail("K2", fmt::format("mma sums in f32 or f64, found {}", name(tile.dtype)));
    const auto dtype_of = [&](BufferId factor) { return kernel_.buffers[factor.index].dtype; };
    const bool pairs = dtype_of(s.a) == DType::u32 && dtype_of(s.b) == DType::u32 && tile.dtype == DType::f32;
    for (BufferId factor : {s.a, s.b}) {
      const DType dtype = dtype_of(factor);
      if (!pairs && (!is_float(dtype) || size_of(dtype) > size_of(tile.dtype)))
        return fail("K2", fmt::format("mma multiplies {} in {}", name(dtype), name(tile.dtype)));
      if (kernel_.buffers[factor.index].space == Space::tile) return fail("K6", "mma reads its factors from memory");
    }
    if (s.hi.size() != 1) return fail("K9", "mma has one bound for its depth");
    if (s.block != 0 && !pairs) return fail("K2", "mma goes by blocks over pairs of bf16 alone");
    if (s.block < 0) return fail("K9", fmt::format("blocks of {}", s.block));
    check_vars(s.hi);
    if (failed()) return;
    const std::size_t facts = facts_.size(), vars = scope_vars_.size();
    for (VarId var : {s.row, s.column, s.depth}) define(var, Fixed::no);
    if (failed()) return;
    add_range(s.row, tile.shape[0]);
    add_range(s.column, tile.shape[1]);
    facts_.add(Affine(s.depth));
    facts_.add(s.hi[0] - Affine(1) - Affine(s.depth));
    access(s.a, s.a_indices, false);
    access(s.b, s.b_indices, false);
    if (!failed()) check_filled(s.buffer, false);
    facts_.truncate(facts);
    for (VarId var : {s.row, s.column, s.depth}) var_states_[var.index].state = State::gone;
    scope_vars_.resize(vars);
  }

  // ---- K4, K11: independence ----
  bool is_shared(const Access& a) const {
    const Space space = kernel_.buffers[a.buffer.index].space;
    return space == Space::out || space == Space::inout;
  }
  void check_tasks() {
    if (kernel_.num_tasks() <= 1) return;
    std::vector<VarId> task_vars;
    for (const auto& [var, extent] : kernel_.tasks) task_vars.push_back(var);
    check_pairs(accesses_, 0, task_vars, "K4", "tasks");
  }
  void check_iterations(VarId var, std::size_t shared_vars, std::size_t first_access) {
    const std::span<const Access> inside = std::span(accesses_).subspan(first_access);
    check_pairs(inside, shared_vars, {{var}}, "K11", "iterations");
  }
  void check_pairs(std::span<const Access> accesses, std::size_t shared_vars, const std::vector<VarId>& differing,
                   std::string_view invariant, std::string_view what) {
    for (const Access& store : accesses) {
      if (!store.is_store) continue;
      statement_ = store.statement;
      const std::string& buffer = kernel_.buffers[store.buffer.index].name;
      if (!disjoint(kernel_, store, store, shared_vars, differing))
        return fail(invariant, fmt::format("two {} may store the same element of {}", what, buffer));
      for (const Access& other : accesses)
        if (&other != &store && other.buffer == store.buffer &&
            !disjoint(kernel_, store, other, shared_vars, differing))
          return fail(invariant, fmt::format("two {} may meet in an element of {} with `{}`", what, buffer,
                                             print_statement(kernel_, other.statement - 1)));
    }
  }

  const Kernel& kernel_;
  std::string message_;
  std::vector<Var> var_states_;
  std::vector<Scalar> scalars_;
  std::vector<Acc> accs_;
  std::vector<bool> filled_;  // by buffer: stored to earlier in the text
  std::vector<VarId> scope_vars_;
  std::vector<ScalarId> scope_scalars_;
  std::vector<AccId> scope_accs_;
  Facts facts_;
  std::vector<Access> accesses_;
  std::size_t statements_ = 0, statement_ = 0;  // counted in text order from 1; 0: none
  std::size_t depth_ = 0;
  std::size_t vector_depth_ = 0;  // depth of the vector loop around; 0: none
  std::int64_t vector_width_ = 1;
  std::int64_t copies_ = 1;  // of the current statement, by the unrolled loops around it
};

}  // namespace

std::string verify(const Kernel& kernel) { return KernelVerifier(kernel).run(); }

}  // namespace burin::ir
