// jit: a function compiled once per structure of its arguments.
#pragma once
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <burin/profile.h>
#include <burin/trace.h>
#include <burin/tree.h>

namespace burin {

struct JitOptions {
  /// Arguments, by number, whose memory the results may take over. They must not be used after the call: doing so is an
  /// error that names the leaf and the jit. A buffer that another Tensor also holds, or that is passed twice, is copied
  /// instead, and a call that throws leaves them as they were. A number that is no argument's, is named twice, or is a
  /// static argument's is an error.
  std::vector<int> donate = {};
  /// 0: BURIN_NUM_THREADS, else one per core.
  int num_threads = 0;
  /// The most bytes that a call may hold besides its arguments (Compiled::peak_bytes); where a function needs more, kernels
  /// run again late instead of keeping what they gave, and every bit stays. If that is still too much, an error names the largest
  /// value. -1: no limit.
  std::int64_t memory_budget = -1;
  /// Chains of ops on 16-bit floats stay in f32 between ops.
  bool excess_precision = true;
  /// "avx2", "avx512", "avx512_bf16", "amx", or "" for what the machine has. Another word is an error, as are numbers of
  /// threads and of bytes that cannot be: of the call of jit, before anything is traced.
  std::string max_isa = {};
};

/// A compiled function and what can be seen of it.
class Compiled {
 public:
  /// The program: kernels and the table of steps.
  std::string text() const;
  /// One line per step: kernel, tasks, what it computes, source lines.
  std::string kernels() const;
  std::string llvm() const;
  std::string assembly() const;
  /// What a call holds, then a line for each value of the arena and each result: bytes, steps, place, type, source
  /// line.
  std::string memory() const;
  /// For each op the kernel it is in, or why it is alone.
  std::string explain_fusion() const;
  /// Times of the kernels over that many runs on inputs of zeros, beside what the machine can do at best (measured at
  /// the first profile of a process, in a quarter of a second); machine code only.
  Profile profile(int runs = 10) const;
  std::int64_t num_kernels() const;
  std::int64_t num_steps() const;
  /// Bytes that a call asks of the allocator: arena, scratch of its threads, results. Exact for machine code when
  /// donated arguments are held by nobody else; an argument that somebody holds is copied, and its copy comes on top.
  std::int64_t peak_bytes() const;

  struct State;
  explicit Compiled(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

/// A traced function.
class Lowered {
 public:
  /// The IR before any pass.
  std::string text() const;
  std::int64_t num_ops() const;
  Compiled compile() const;

  struct State;
  explicit Lowered(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

/// How often any jit in this process traced and compiled; un-jitted ops count as compiles of their own.
struct JitStatistics {
  std::int64_t traces = 0, compiles = 0, calls = 0;
};
JitStatistics jit_statistics();

namespace detail {

class JitCore;  // options and the cache of one jitted function
std::shared_ptr<JitCore> make_jit_core(JitOptions options, std::source_location where);
/// Throws when `donate` names an argument twice, one that is static, or one that there is not.
void check_donation(const JitOptions& options, std::span<const bool> is_static_argument, std::source_location where);
template <class... A>
inline constexpr std::array<bool, sizeof...(A)> static_arguments{is_static<A>...};
[[noreturn]] void fail_empty_jit(std::source_location where);
bool is_tracing();

/// One call of a jitted function: reads the arguments, looks for the compiled program, traces when there is none, runs.
class JitCall {
 public:
  enum class Purpose : std::uint8_t { run, lower };
  /// `where` is the call; unknown, it is the place of the jit.
  JitCall(JitCore& core, const void* type_tag, Purpose purpose, std::source_location where);
  ~JitCall();
  JitCall(const JitCall&) = delete;
  JitCall& operator=(const JitCall&) = delete;

  /// Visits argument after argument.
  TreeVisitor& read(std::size_t argument);
  /// Whether it is compiled already; asked after all arguments were read.
  bool find();
  void begin_trace(std::span<const bool> is_static_argument);
  TreeVisitor& bind(std::size_t argument);  // leaves become traced values
  TreeVisitor& result();
  void end_trace(std::shared_ptr<const void> result_like);
  void run();
  /// A result with the right structure, whose leaves are to be assigned.
  const void* result_like() const;
  TreeVisitor& assign();
  Lowered lowered() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

template <class... T>
inline constexpr char type_tag = 0;

template <class R, class F, class... A, std::size_t... i>
void trace_jit(JitCall& call, F& f, std::index_sequence<i...>, const A&... args) {
  std::tuple<A...> copies(args...);
  call.begin_trace(static_arguments<A...>);
  (visit_tree(std::get<i>(copies), call.bind(i)), ...);
  auto like = std::make_shared<R>(f(std::as_const(std::get<i>(copies))...));
  visit_tree(*like, call.result());
  call.end_trace(std::move(like));
}

template <class R, class F, class... A>
R call_jit(JitCore& core, F& f, std::source_location where, const A&... args) {
  if (is_tracing()) return f(args...);  // a jit inside a trace becomes part of it
  JitCall call(core, &type_tag<A...>, JitCall::Purpose::run, where);
  std::size_t n = 0;
  (read_tree(args, call.read(n++)), ...);
  if (!call.find()) trace_jit<R>(call, f, std::index_sequence_for<A...>{}, args...);
  call.run();
  R result = *static_cast<const R*>(call.result_like());
  visit_tree(result, call.assign());
  return result;
}

template <class R, class F, class... A>
Lowered lower_jit(JitCore& core, F& f, std::source_location where, const A&... args) {
  JitCall call(core, &type_tag<A...>, JitCall::Purpose::lower, where);
  std::size_t n = 0;
  (read_tree(args, call.read(n++)), ...);
  trace_jit<R>(call, f, std::index_sequence_for<A...>{}, args...);
  return call.lowered();
}

}  // namespace detail

template <class Signature>
class Jit;

/// A jitted function with a known signature. A default-constructed one has no function, and calling it is an error.
/// Errors name the line of the call. Parameters declared as Tensor (or trees of them) are traced, also when a number is
/// passed; numbers, enums and strings are static: each new value compiles again.
template <class R, class... A>
class Jit<R(A...)> {
  static_assert(!std::is_void_v<R>,
                "burin: the function returns nothing: return what it computes, a Tensor or a tree of them");
  static_assert((detail::is_tree<A> && ...),
                "burin: jit: a parameter is no tree: trees are Tensors, numbers, enums, std::string, DType and Shape, then vector, "
                "array, map<std::string, T>, pair, tuple and optional of trees, and structs with BURIN_TREE(all, data, members)");
  static_assert(detail::is_tree<R> || std::is_void_v<R>,
                "burin: jit: the result is no tree: trees are Tensors, numbers, enums, std::string, DType and Shape, then vector, "
                "array, map<std::string, T>, pair, tuple and optional of trees, and structs with BURIN_TREE(all, data, members)");

 public:
  using Signature = R(A...);
  Jit() = default;
  template <class F>
  Jit(F f, JitOptions options, std::source_location where)
      : f_(std::make_shared<Holder<F>>(std::move(f))) {
    detail::check_donation(options, detail::static_arguments<A...>, where);
    core_ = detail::make_jit_core(std::move(options), where);
  }

  R operator()(const A&... args, std::source_location where = std::source_location::current()) const {
    if (!core_) detail::fail_empty_jit(where);
    return detail::call_jit<R>(*core_, *f_, where, args...);
  }
  template <class... B>
    requires(sizeof...(B) != sizeof...(A))
  R operator()(const B&... args) const {
    if constexpr (detail::takes_arguments<sizeof...(A), sizeof...(B)>()) return (*this)(args...);
  }
  /// The traced function for arguments like these, which may be abstract_tensors.
  Lowered lower(const A&... args, std::source_location where = std::source_location::current()) const {
    if (!core_) detail::fail_empty_jit(where);
    return detail::lower_jit<R>(*core_, *f_, where, args...);
  }
  template <class... B>
    requires(sizeof...(B) != sizeof...(A))
  Lowered lower(const B&... args) const {
    if constexpr (detail::takes_arguments<sizeof...(A), sizeof...(B)>()) return lower(args...);
  }

 private:
  struct Function {
    virtual ~Function() = default;
    virtual R operator()(const A&... args) const = 0;
  };
  template <class F>
  struct Holder final : Function {  // captures of f may be move-only
    explicit Holder(F g) : f(std::move(g)) {}
    R operator()(const A&... args) const override { return f(args...); }
    mutable F f;
  };
  std::shared_ptr<Function> f_;
  std::shared_ptr<detail::JitCore> core_;
};

/// A jitted generic lambda: takes exact types, no braces, and numbers are static. Errors name the line of the jit.
template <class F>
class GenericJit {
 public:
  GenericJit(F f, JitOptions options, std::source_location where)
      : f_(std::make_shared<F>(std::move(f))), core_(detail::make_jit_core(std::move(options), where)) {}
  template <class... A>
  auto operator()(const A&... args) const {
    return detail::call_jit<detail::result_of<F, A...>>(*core_, *f_, std::source_location{}, args...);
  }
  template <class... A>
  Lowered lower(const A&... args) const {
    return detail::lower_jit<detail::result_of<F, A...>>(*core_, *f_, std::source_location{}, args...);
  }

 private:
  std::shared_ptr<F> f_;
  std::shared_ptr<detail::JitCore> core_;
};

/// f compiled: at the first call for each structure of arguments, leaf types and static values. Results are those of f,
/// up to the rounding of half types (excess_precision). Inside another trace f becomes part of it. Overloaded or
/// template functions cannot be passed by name: wrap them, jit([](Tensor x) { return sqrt(x); }).
template <class F = detail::OverloadedName>
auto jit(F&& f, JitOptions options = {}, std::source_location where = std::source_location::current()) {
  if constexpr (!detail::is_traceable<std::decay_t<F>>()) {
    return;  // the assertion says why
  } else {
    using S = detail::signature_of<std::decay_t<F>>;
    if constexpr (S::known)
      return Jit<typename S::Function>(std::forward<F>(f), std::move(options), where);
    else
      return GenericJit<std::decay_t<F>>(std::forward<F>(f), std::move(options), where);
  }
}

}  // namespace burin
