// grad, value_and_grad, vjp, jvp, vmap, checkpoint, custom_vjp, custom_jvp: functions of functions. They nest in any
// order.
#pragma once
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include <burin/trace.h>
#include <burin/tree.h>

namespace burin {
namespace detail {

template <class T>
inline constexpr bool is_pair = false;
template <class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;

template <bool with_value, class F, std::size_t... selected>
class Grad final : public Callable<Grad<with_value, F, selected...>, signature_of<F>> {
 public:
  Grad(F f, std::source_location where) : f_(std::move(f)), where_(where) {}

  template <class... A>
  auto invoke(const A&... args) const {
    static_assert(((selected < sizeof...(A)) && ...), "burin: grad: there is no such argument");
    static_assert((!is_static<std::tuple_element_t<selected, std::tuple<A...>>> && ...),
                  "burin: grad: a number, enum or string is static and has no gradient: declare the parameter as a Tensor");
    using R = result_of<F, A...>;
    static_assert(std::is_same_v<R, Tensor> || is_pair<R>,
                  "burin: grad needs a function that returns the loss as a Tensor, or std::pair{loss, aux}");
    InnerTrace trace(with_value ? "value_and_grad" : "grad", where_);
    std::tuple<A...> copies(args...);
    (visit_tree(std::get<selected>(copies), trace.argument(selected, true)), ...);
    R result = std::apply([&](const A&... a) { return R(f_(a...)); }, std::as_const(copies));
    if constexpr (is_pair<R>) {
      static_assert(std::is_same_v<typename R::first_type, Tensor>,
                    "burin: grad needs a function that returns the loss as a Tensor, or std::pair{loss, aux}");
      trace.loss(result.first);
    } else {
      trace.loss(result);
    }
    visit_tree(result, trace.result());
    trace.finish_grad();
    visit_tree(result, trace.assign_results());
    (visit_tree(std::get<selected>(copies), trace.assign_gradients(selected)), ...);
    auto gradients = [&] {
      if constexpr (sizeof...(selected) == 1) return std::get<(selected, ...)>(std::move(copies));
      else return std::tuple(std::get<selected>(copies)...);
    }();
    if constexpr (is_pair<R>) {
      if constexpr (with_value)
        return std::tuple(std::move(result.first), std::move(result.second), std::move(gradients));
      else
        return std::pair(std::move(gradients), std::move(result.second));
    } else {
      if constexpr (with_value)
        return std::pair(std::move(result), std::move(gradients));
      else
        return gradients;
    }
  }

 private:
  F f_;
  std::source_location where_;
};

}  // namespace detail

/// value_and_grad(f)(args...) is {loss, gradient with respect to argument 0}; value_and_grad<0, 2>(f) gives a tuple of
/// gradients. A gradient is a tree like its argument. When f returns std::pair{loss, aux}: {loss, aux, gradients}.
/// Leaves that are no floats get no gradient; using one is an error that names the leaf. The loss is a float of rank 0,
/// of any float dtype; another shape or dtype is an error, as is an argument without float leaves. An op without
/// derivative on the way from argument to loss is an error that names it and its line.
template <std::size_t first_selected = 0, std::size_t... selected, class F = detail::OverloadedName>
auto value_and_grad(F&& f, std::source_location where = std::source_location::current()) {
  if constexpr (detail::is_traceable<std::decay_t<F>>())
    return detail::Grad<true, std::decay_t<F>, first_selected, selected...>(std::forward<F>(f), where);
}
/// The gradient alone; with aux {gradient, aux}.
template <std::size_t first_selected = 0, std::size_t... selected, class F = detail::OverloadedName>
auto grad(F&& f, std::source_location where = std::source_location::current()) {
  if constexpr (detail::is_traceable<std::decay_t<F>>())
    return detail::Grad<false, std::decay_t<F>, first_selected, selected...>(std::forward<F>(f), where);
}

/// What vjp gives besides the value: cotangents of the result to a tuple of cotangents of the arguments.
template <class R, class... A>
class Pullback {
 public:
  Pullback(detail::InnerTrace& trace, std::tuple<A...> like) : state_(trace), like_(std::move(like)) {}
  std::tuple<A...> operator()(const R& cotangents, std::source_location where = std::source_location::current()) const {
    detail::PullbackState state = state_;
    detail::read_tree(cotangents, state.cotangent());
    state.run(where);
    std::tuple<A...> result = like_;
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (detail::visit_tree(std::get<i>(result), state.assign_gradients(i)), ...);
    }(std::index_sequence_for<A...>{});
    return result;
  }

 private:
  detail::PullbackState state_;
  std::tuple<A...> like_;
};

namespace detail {
template <class F, class... A>
auto run_vjp(const F& f, std::source_location where, const A&... args) {
  using R = result_of<F, A...>;
  InnerTrace trace("vjp", where);
  std::tuple<A...> copies(args...);
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    (visit_tree(std::get<i>(copies), trace.argument(i, true)), ...);
    R result = f(std::as_const(std::get<i>(copies))...);
    visit_tree(result, trace.result());
    trace.finish_vjp();
    visit_tree(result, trace.assign_results());
    return std::pair<R, Pullback<R, A...>>(std::move(result), Pullback<R, A...>(trace, std::tuple<A...>(args...)));
  }(std::index_sequence_for<A...>{});
}
template <class R, class... A, class F>
auto run_vjp_as(R (*)(A...), const F& f, std::source_location where, const std::type_identity_t<A>&... args) {
  return run_vjp(f, where, args...);
}
template <class R, class... A>
constexpr std::size_t num_parameters(R (*)(A...)) {
  return sizeof...(A);
}
/// True; a wrong number of arguments for a function of known signature does not compile.
template <class F, std::size_t found>
constexpr bool is_called_with() {
  using S = signature_of<F>;
  if constexpr (S::known) return takes_arguments<num_parameters(static_cast<typename S::Function*>(nullptr)), found>();
  return true;
}
template <class F, class... A>
auto start_vjp(const F& f, std::source_location where, const A&... args) {
  using S = signature_of<std::decay_t<F>>;
  if constexpr (!is_called_with<std::decay_t<F>, sizeof...(A)>())
    return;  // the assertion says why
  else if constexpr (S::known)
    return run_vjp_as(static_cast<typename S::Function*>(nullptr), f, where, args...);
  else
    return run_vjp(f, where, args...);
}

template <class F, class... A>
auto run_jvp(const F& f, std::source_location where, const std::tuple<A...>& primals, const std::tuple<A...>& tangents) {
  static_assert(is_called_with<F, sizeof...(A)>());
  using R = result_of<F, A...>;
  InnerTrace trace("jvp", where);
  std::tuple<A...> copies = primals;
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    (visit_tree(std::get<i>(copies), trace.argument(i, true)), ...);
    R result = f(std::as_const(std::get<i>(copies))...);
    visit_tree(result, trace.result());
    Flattening flat, like;
    read_tree(primals, flat);
    trace.finish_jvp(matching_leaves("jvp", primals, "the primals", tangents, "the tangents", flat, where));
    R tangent = result;
    visit_tree(result, trace.assign_results());
    visit_tree(tangent, trace.assign_result_tangents());
    return std::pair<R, R>(std::move(result), std::move(tangent));
  }(std::index_sequence_for<A...>{});
}
}  // namespace detail

/// auto [y, pull] = vjp(f, args...): y is f(args...), any tree. pull(cotangent of y) is a tuple with one gradient per
/// argument, a tree like it. The cotangent has the structure, shapes and dtypes of y (numbers adapt); leaves of y that
/// are no floats take no part, whatever is given for them. Errors name the leaf and the caller's line; behind more than
/// three arguments vjp itself knows no line.
template <class F, class A>
auto vjp(F&& f, const A& a, std::source_location where = std::source_location::current()) {
  return detail::start_vjp(f, where, a);
}
template <class F>
auto vjp(F&&) {
  static_assert(sizeof(F) == 0, "burin: vjp takes the function and its arguments: vjp(f, x)");
}
template <class F, class A, class B>
auto vjp(F&& f, const A& a, const B& b, std::source_location where = std::source_location::current()) {
  return detail::start_vjp(f, where, a, b);
}
template <class F, class A, class B, class C>
auto vjp(F&& f, const A& a, const B& b, const C& c, std::source_location where = std::source_location::current()) {
  return detail::start_vjp(f, where, a, b, c);
}
template <class F, class A, class B, class C, class D, class... More>
auto vjp(F&& f, const A& a, const B& b, const C& c, const D& d, const More&... more) {
  return detail::start_vjp(f, std::source_location{}, a, b, c, d, more...);
}

/// auto [y, dy] = jvp(f, std::tuple{args...}, std::tuple{tangents...}): the value and its directional derivative, a
/// tree like it (zeros for results that are no floats). Tangents have the structure, shapes and dtypes of the arguments
/// (numbers adapt), else an error names the leaf; those of leaves that are no floats take no part.
template <class F, class... A>
auto jvp(F&& f, const std::tuple<A...>& primals, const std::tuple<A...>& tangents,
         std::source_location where = std::source_location::current()) {
  return detail::run_jvp<std::decay_t<F>>(f, where, primals, tangents);
}
template <class F>
auto jvp(F&& f, const Tensor& primal, const Tensor& tangent,
         std::source_location where = std::source_location::current()) {
  return detail::run_jvp<std::decay_t<F>>(f, where, std::tuple{primal}, std::tuple{tangent});
}

template <class F, class... A, class... B>
  requires(sizeof...(A) != sizeof...(B))
auto jvp(F&&, const std::tuple<A...>&, const std::tuple<B...>&, std::source_location = std::source_location::current()) {
  static_assert(sizeof...(A) == sizeof...(B), "burin: jvp takes a tangent for each primal");
}
template <class F, class... A>
  requires(sizeof...(A) < 2)
auto jvp(F&&, const A&...) {
  static_assert(sizeof...(A) == 2, "burin: jvp takes the function, the primals and as many tangents: "
                                   "jvp(f, std::tuple{x}, std::tuple{dx})");
}

/// For vmap's in_axes: the argument is the same for all elements.
inline constexpr int unmapped = std::numeric_limits<int>::min();
struct VmapOptions {
  std::vector<int> in_axes = {};  // the mapped axis of all leaves, by argument; missing ones are 0
  int out_axis = 0;               // where the results get theirs
};

namespace detail {
template <class F>
class Vmap final : public Callable<Vmap<F>, signature_of<F>> {
 public:
  Vmap(F f, VmapOptions options, std::source_location where)
      : f_(std::move(f)), options_(std::move(options)), where_(where) {}
  template <class... A>
  auto invoke(const A&... args) const {
    using R = result_of<F, A...>;
    InnerTrace trace("vmap", where_);
    trace.check_in_axes(options_.in_axes.size(), sizeof...(A));
    std::tuple<A...> copies(args...);
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      (bind(trace, i, std::get<i>(copies)), ...);
      R result = f_(std::as_const(std::get<i>(copies))...);
      visit_tree(result, trace.result());
      trace.finish_vmap(options_.out_axis);
      visit_tree(result, trace.assign_results());
      return result;
    }(std::index_sequence_for<A...>{});
  }

 private:
  template <class T>
  void bind(InnerTrace& trace, std::size_t i, T& argument) const {
    const int axis = i < options_.in_axes.size() ? options_.in_axes[i] : 0;
    trace.set_mapped_axis(axis != unmapped, axis);
    visit_tree(argument, trace.argument(i, false));
  }
  F f_;
  VmapOptions options_;
  std::source_location where_;
};

template <class F>
class Checkpoint final : public Callable<Checkpoint<F>, signature_of<F>> {
 public:
  Checkpoint(F f, std::source_location where) : f_(std::move(f)), where_(where) {}
  template <class... A>
  auto invoke(const A&... args) const {
    using R = result_of<F, A...>;
    InnerTrace trace("checkpoint", where_);
    std::tuple<A...> copies(args...);
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      (visit_tree(std::get<i>(copies), trace.argument(i, false)), ...);
      R result = f_(std::as_const(std::get<i>(copies))...);
      visit_tree(result, trace.result());
      trace.finish_checkpoint();
      visit_tree(result, trace.assign_results());
      return result;
    }(std::index_sequence_for<A...>{});
  }

 private:
  F f_;
  std::source_location where_;
};

/// Emits a custom_vjp or custom_jvp op from finished bodies: its results become those of `body`.
void emit_custom_vjp(InnerTrace& body, InnerTrace& forward, InnerTrace& backward, std::size_t num_results);
void emit_custom_jvp(InnerTrace& body, InnerTrace& rule);
/// Gives every leaf of a tree fresh inner arguments of the same types.
void check_same_results(const char* function, const PathFlattening& expected, const PathFlattening& found,
                        std::source_location where);

template <class F, class Forward, class Backward>
class CustomVjp final : public Callable<CustomVjp<F, Forward, Backward>, signature_of<F>> {
 public:
  CustomVjp(F f, Forward forward, Backward backward, std::source_location where)
      : f_(std::move(f)), forward_(std::move(forward)), backward_(std::move(backward)), where_(where) {}
  template <class... A>
  auto invoke(const A&... args) const {
    using R = result_of<F, A...>;
    using Both = result_of<Forward, A...>;
    static_assert(is_pair<Both>, "burin: custom_vjp: forward must return std::pair{result, residuals}");
    // Ahead of the lambda: inside, a compiler may report the call before it gets to what is asserted of it.
    static_assert(Calls<Backward, typename Both::second_type, R>,
                  "burin: custom_vjp: backward takes the residuals and the cotangent of the result");
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      InnerTrace body("custom_vjp", where_);
      std::tuple<A...> copies(args...);
      (visit_tree(std::get<i>(copies), body.argument(i, false)), ...);
      R result = f_(std::as_const(std::get<i>(copies))...);
      visit_tree(result, body.result());
      body.finish_body();

      InnerTrace forward("custom_vjp forward", where_);
      copies = std::tuple<A...>(args...);
      (visit_tree(std::get<i>(copies), forward.argument(i, false)), ...);
      Both both = forward_(std::as_const(std::get<i>(copies))...);
      PathFlattening expected, found;
      read_tree(result, expected);
      read_tree(both.first, found);
      check_same_results("custom_vjp: forward", expected, found, where_);
      visit_tree(both.first, forward.result());
      visit_tree(both.second, forward.result());
      forward.finish_body();

      InnerTrace backward("custom_vjp backward", where_);
      visit_tree(both.second, backward.argument(0, false));
      R cotangent = both.first;
      visit_tree(cotangent, backward.argument(1, true));
      auto gradients = backward_(std::as_const(both.second), std::as_const(cotangent));
      if constexpr (is_product<decltype(gradients)>) {
        static_assert(std::tuple_size_v<decltype(gradients)> == sizeof...(A),
                      "burin: custom_vjp: backward must return one cotangent per argument, as a std::tuple");
        (visit_tree(std::get<i>(gradients), backward.cotangent_result()), ...);
      } else {
        static_assert(sizeof...(A) == 1,
                      "burin: custom_vjp: backward must return one cotangent per argument, as a std::tuple");
        visit_tree(gradients, backward.cotangent_result());
      }
      backward.finish_body();

      emit_custom_vjp(body, forward, backward, expected.leaves.size());
      visit_tree(result, body.assign_results());
      return result;
    }(std::index_sequence_for<A...>{});
  }

 private:
  F f_;
  Forward forward_;
  Backward backward_;
  std::source_location where_;
};

template <class F, class Rule>
class CustomJvp final : public Callable<CustomJvp<F, Rule>, signature_of<F>> {
 public:
  CustomJvp(F f, Rule rule, std::source_location where) : f_(std::move(f)), rule_(std::move(rule)), where_(where) {}
  template <class... A>
  auto invoke(const A&... args) const {
    using R = result_of<F, A...>;
    static_assert(Calls<Rule, std::tuple<A...>, std::tuple<A...>>,
                  "burin: custom_jvp: the rule takes a std::tuple of the arguments and one of their tangents");
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      InnerTrace body("custom_jvp", where_);
      std::tuple<A...> copies(args...);
      (visit_tree(std::get<i>(copies), body.argument(i, false)), ...);
      R result = f_(std::as_const(std::get<i>(copies))...);
      visit_tree(result, body.result());
      body.finish_body();

      InnerTrace rule("custom_jvp rule", where_);
      std::tuple<A...> primals(args...), tangents(args...);
      (visit_tree(std::get<i>(primals), rule.argument(i, false)), ...);
      (visit_tree(std::get<i>(tangents), rule.argument(i, true)), ...);
      std::pair<R, R> both = rule_(std::as_const(primals), std::as_const(tangents));
      visit_tree(both.first, rule.result());
      visit_tree(both.second, rule.result());
      rule.finish_body();

      emit_custom_jvp(body, rule);
      visit_tree(result, body.assign_results());
      return result;
    }(std::index_sequence_for<A...>{});
  }

 private:
  F f_;
  Rule rule_;
  std::source_location where_;
};
}  // namespace detail

/// vmap(f)(args...): f for each element of the leading axes of all tensors in args (see VmapOptions), as one program.
/// Mapped axes have one extent; it is an error when they differ, when a leaf has no such axis, or when nothing is
/// mapped.
template <class F = detail::OverloadedName>
auto vmap(F&& f, VmapOptions options = {}, std::source_location where = std::source_location::current()) {
  if constexpr (detail::is_traceable<std::decay_t<F>>())
    return detail::Vmap<std::decay_t<F>>(std::forward<F>(f), std::move(options), where);
}
/// f, of which reverse mode keeps only the arguments and computes the rest again (Chen et al., "Training deep nets with
/// sublinear memory cost", 2016). Values and derivatives are those of f.
template <class F = detail::OverloadedName>
auto checkpoint(F&& f, std::source_location where = std::source_location::current()) {
  if constexpr (detail::is_traceable<std::decay_t<F>>())
    return detail::Checkpoint<std::decay_t<F>>(std::forward<F>(f), where);
}
/// f with a reverse rule of your own: forward(args...) is std::pair{result, residuals}, backward(residuals, cotangent
/// of the result) a std::tuple with one cotangent per argument (or the one). Forward mode through it is an error, as in
/// JAX; so are cotangents of other shapes than the arguments, and a capture of a traced value, whose derivative would
/// be lost.
template <class F, class Forward, class Backward>
auto custom_vjp(F&& f, Forward&& forward, Backward&& backward,
                std::source_location where = std::source_location::current()) {
  return detail::CustomVjp<std::decay_t<F>, std::decay_t<Forward>, std::decay_t<Backward>>(
      std::forward<F>(f), std::forward<Forward>(forward), std::forward<Backward>(backward), where);
}
/// f with a derivative of your own: rule(std::tuple{args...}, std::tuple{tangents...}) is std::pair{result, tangent}.
/// The tangent has the shapes of the result and must be linear in the tangents (else an error); reverse mode transposes
/// it.
template <class F, class Rule>
auto custom_jvp(F&& f, Rule&& rule, std::source_location where = std::source_location::current()) {
  return detail::CustomJvp<std::decay_t<F>, std::decay_t<Rule>>(std::forward<F>(f), std::forward<Rule>(rule), where);
}

}  // namespace burin
