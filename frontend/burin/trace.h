// Tracing: scopes that name parts of a trace, and looking at what a function becomes.
#pragma once
#include <burin/standard.h>

#include <iosfwd>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <burin/tensor.h>
#include <burin/tree.h>

namespace burin {

/// Names the ops traced during its life: "block0/attn" in errors, dumps and kernel tables. Scopes nest.
class named_scope {
 public:
  explicit named_scope(std::string_view name);
  ~named_scope();
  named_scope(const named_scope&) = delete;
  named_scope& operator=(const named_scope&) = delete;

 private:
  std::size_t outer_length_;
};

/// For authors of libraries: during its life all ops carry the caller's line and this name, "model.cpp:42, in
/// rms_norm", instead of lines of the library. Of nested ones the outermost counts. `name` must outlive the trace.
class library_function {
 public:
  library_function(const char* name, const std::source_location& where);
  ~library_function();
  library_function(const library_function&) = delete;
  library_function& operator=(const library_function&) = delete;

 private:
  bool outermost_;
};

namespace detail {

/// "model.cpp:42, in rms_norm, in block0/attn": the outermost library function's caller, else `where`; "" when unknown.
std::string where_text(const std::source_location& where);

// ---- what is known of a callable's parameters ----------------------------------------------------------------------------
template <class R, class... A>
struct KnownSignature {
  static constexpr bool known = true;
  using Function = R(std::decay_t<A>...);
  static constexpr bool takes_operands = (std::is_same_v<std::decay_t<A>, Operand> || ...);
  static constexpr bool takes_values =
      ((!std::is_reference_v<A> || (std::is_lvalue_reference_v<A> && std::is_const_v<std::remove_reference_t<A>>)) && ...);
  static constexpr bool returns_nothing = std::is_void_v<R>;
};
struct UnknownSignature {
  static constexpr bool known = false;
};
template <class T>
struct SignatureOf : UnknownSignature {};
template <class R, class... A>
struct SignatureOf<R (*)(A...)> : KnownSignature<R, A...> {};
template <class R, class... A>
struct SignatureOf<R (*)(A...) noexcept> : KnownSignature<R, A...> {};
#define BURIN_MEMBER_SIGNATURE(qualifiers)       \
  template <class C, class R, class... A>        \
  struct SignatureOf<R (C::*)(A...) qualifiers> : KnownSignature<R, A...> {};
BURIN_MEMBER_SIGNATURE()
BURIN_MEMBER_SIGNATURE(const)
BURIN_MEMBER_SIGNATURE(noexcept)
BURIN_MEMBER_SIGNATURE(const noexcept)
#undef BURIN_MEMBER_SIGNATURE
template <class F>
concept HasOneCallOperator = requires { &F::operator(); };
template <class R, class... A>
struct SignatureOf<R(A...)> : KnownSignature<R, A...> {};
template <class F>
auto signature() {
  if constexpr (requires { typename F::Signature; })
    return SignatureOf<typename F::Signature>{};
  else if constexpr (requires { &F::burin_call; })
    return SignatureOf<decltype(&F::burin_call)>{};
  else if constexpr (HasOneCallOperator<F>)
    return SignatureOf<decltype(&F::operator())>{};
  else
    return SignatureOf<F>{};
}
/// The signature of a stored (decayed) callable.
template <class F>
using signature_of = decltype(signature<F>());

/// What F is when a name of several functions is passed, sqrt beside <cmath>: it says so, where a compiler would say that
/// there is no matching function. g++ finds it when ops of Burin are among them.
struct OverloadedName {
  OverloadedName(Tensor (*)(const Operand&));
  OverloadedName(Tensor (*)(const Operand&, const Operand&));
  OverloadedName(...);
};
/// True; what cannot be traced does not compile, and then no more is said of it.
template <class F>
constexpr bool is_traceable() {
  using S = signature_of<F>;
  if constexpr (std::is_same_v<F, OverloadedName>) {
    static_assert(sizeof(F) == 0, "burin: an overloaded name is several functions: wrap it in a lambda, "
                                  "[](Tensor x) { return sqrt(x); }");
    return false;
  } else if constexpr (S::known) {
    static_assert(!S::takes_operands, "burin: an op is no function of Tensors: wrap it in a lambda, "
                                      "[](Tensor x) { return sqrt(x); }");
    static_assert(S::takes_values, "burin: a parameter is a reference that can be written to: take it by value or by "
                                   "const&, and return what changes");
    static_assert(!S::returns_nothing, "burin: the function returns nothing: return what it computes, a Tensor or a "
                                       "tree of them");
    return !S::takes_operands && S::takes_values && !S::returns_nothing;
  } else {
    return true;
  }
}

/// A visitor that gives leaves new values: what arguments become in a trace, what results become after it. A nested
/// function while it is being traced. Opens a trace around itself when there is none, so that un-jitted transformations
/// are compiled and run at the end; leaves the stack of traces as it was when destroyed, whatever throws.
class InnerTrace {
 public:
  InnerTrace(const char* name, const std::source_location& where);
  ~InnerTrace();
  InnerTrace(const InnerTrace&) = delete;
  InnerTrace& operator=(const InnerTrace&) = delete;

  /// Visits an argument: its leaves become arguments of the inner function. With `only_floats`, other leaves stay what
  /// they are, and have no derivative.
  TreeVisitor& argument(std::size_t index, bool only_floats);
  /// vmap's in_axes may name the arguments that there are.
  void check_in_axes(std::size_t named, std::size_t arguments) const;
  /// Leaves of vmap's arguments lose this axis.
  void set_mapped_axis(bool mapped, std::int64_t axis);
  /// Visits results of the inner function, in order.
  TreeVisitor& result();
  /// The same for cotangents of arguments, of which integers have none.
  TreeVisitor& cotangent_result();
  /// The one result that is differentiated: must be a float scalar.
  void loss(const Tensor& value);

  // ---- how the trace ends; exactly one of these ---------------------------------------------------------------------
  void finish_grad();                // result() leaves and gradients are ready
  void finish_vjp();                 // result() leaves and pullback() are ready
  void finish_jvp(const std::vector<Tensor*>& tangents);  // tangents of the float leaves of all arguments, in order
  void finish_vmap(std::int64_t out_axis);
  void finish_checkpoint();
  /// Ends as a function kept for later: for custom derivatives.
  void finish_body();

  /// Visits a tree like the results: its leaves become what the surroundings see of them.
  TreeVisitor& assign_results();
  /// After finish_jvp: the tangents of the results.
  TreeVisitor& assign_result_tangents();
  /// After finish_grad: visits a tree like argument `index`, whose leaves become gradients.
  TreeVisitor& assign_gradients(std::size_t index);

  struct State;
  State& state() { return *state_; }
  std::shared_ptr<State> share() { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// What vjp returns besides the value.
class PullbackState {
 public:
  explicit PullbackState(InnerTrace& trace);
  /// Visits cotangents shaped like the results, then gradients shaped like the arguments.
  TreeVisitor& cotangent();
  void run(const std::source_location& where);
  TreeVisitor& assign_gradients(std::size_t index);

  struct State;

 private:
  std::shared_ptr<State> state_;
};

std::string trace_text(InnerTrace& trace);

}  // namespace detail

/// IR as text; prints with <<.
class TraceText {
 public:
  explicit TraceText(std::string text) : text_(std::move(text)) {}
  const std::string& text() const { return text_; }
  friend std::ostream& operator<<(std::ostream& out, const TraceText& t);

 private:
  std::string text_;
};

namespace detail {
/// True; a wrong number of arguments does not compile, and says so where a compiler would list candidates.
template <std::size_t expected, std::size_t found>
constexpr bool takes_arguments() {
  static_assert(expected == found, "burin: wrong number of arguments: a transformed function takes one for each parameter of the "
                                   "function (default arguments are lost, wrap it in a lambda)");
  return expected == found;
}

/// Base of transformed functions: with a known signature arguments convert to the parameter types (numbers to Tensors,
/// braces to structs); otherwise they are taken as they are.
template <class Derived, class Signature>
class Callable {
 public:
  template <class... A>
  auto operator()(const A&... args) const {
    return static_cast<const Derived&>(*this).invoke(args...);
  }
};
template <class Derived, class Signature>
  requires(Signature::known)
class Callable<Derived, Signature> : public Callable<Derived, typename Signature::Function*> {};
template <class Derived, class R, class... A>
class Callable<Derived, R (*)(A...)> {
 public:
  /// The call that counts: `signature` reads it, as operator() is overloaded.
  auto burin_call(const A&... args) const { return static_cast<const Derived&>(*this).invoke(args...); }
  auto operator()(const A&... args) const { return burin_call(args...); }
  template <class... B>
    requires(sizeof...(B) != sizeof...(A))
  R operator()(const B&... args) const {
    if constexpr (takes_arguments<sizeof...(A), sizeof...(B)>()) return (*this)(args...);
  }
};

/// Whether f can be called like this; a body that does not compile with these types speaks for itself.
template <class F, class... A>
concept Calls = requires(const F& f, const A&... args) { f(args...); };
template <class F, class... A>
struct ResultOf {
  static_assert(Calls<F, A...>, "burin: the function cannot be called with these arguments: their number or types are not those of "
                                "its parameters");
  using Type = std::decay_t<std::invoke_result_t<const F&, const A&...>>;
  static_assert(!std::is_void_v<Type>,
                "burin: the function returns nothing: return what it computes, a Tensor or a tree of them");
};
template <class F, class... A>
using result_of = typename ResultOf<F, A...>::Type;

template <class F>
class TraceFunction final : public Callable<TraceFunction<F>, signature_of<F>> {
 public:
  TraceFunction(F f, std::source_location where) : f_(std::move(f)), where_(where) {}
  template <class... A>
  TraceText invoke(const A&... args) const {
    InnerTrace trace("trace", where_);
    std::tuple<A...> copies(args...);
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      (visit_tree(std::get<i>(copies), trace.argument(i, false)), ...);
      auto result = f_(std::as_const(std::get<i>(copies))...);
      visit_tree(result, trace.result());
      return TraceText(trace_text(trace));
    }(std::index_sequence_for<A...>{});
  }

 private:
  F f_;
  std::source_location where_;
};

template <class F>
class EvalShape final : public Callable<EvalShape<F>, signature_of<F>> {
 public:
  EvalShape(F f, std::source_location where) : f_(std::move(f)), where_(where) {}
  template <class... A>
  auto invoke(const A&... args) const {
    InnerTrace trace("eval_shape", where_);
    std::tuple<A...> copies(args...);
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      (visit_tree(std::get<i>(copies), trace.argument(i, false)), ...);
      auto result = f_(std::as_const(std::get<i>(copies))...);
      for_each_leaf(result, [&](Tensor& leaf) { leaf = abstract_tensor(leaf.shape(where_), leaf.dtype(), where_); });
      return result;
    }(std::index_sequence_for<A...>{});
  }

 private:
  F f_;
  std::source_location where_;
};
}  // namespace detail

/// trace(f)(args...): the IR that f becomes, before any pass. Nothing runs; arguments may be abstract_tensors.
template <class F = detail::OverloadedName>
auto trace(F&& f, std::source_location where = std::source_location::current()) {
  if constexpr (detail::is_traceable<std::decay_t<F>>())
    return detail::TraceFunction<std::decay_t<F>>(std::forward<F>(f), where);
}
/// eval_shape(f)(args...): the result of f with abstract_tensors for leaves: shapes and dtypes without computing
/// anything.
template <class F = detail::OverloadedName>
auto eval_shape(F&& f, std::source_location where = std::source_location::current()) {
  if constexpr (detail::is_traceable<std::decay_t<F>>())
    return detail::EvalShape<std::decay_t<F>>(std::forward<F>(f), where);
}

}  // namespace burin
