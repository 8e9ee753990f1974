// Optimisers: functions from (parameters, gradients, state) to new ones, over any tree. Formulas follow optax. Leaves
// keep the shapes and dtypes of the parameters. Gradients and states of another structure or shape are errors that name
// the leaf and the caller's line; so is a leaf that is no float and so has no gradient, and a rate
// or norm that is no scalar.
#pragma once
#include <string_view>
#include <utility>

#include <burin/ops.h>
#include <burin/trace.h>
#include <burin/tree.h>

namespace burin {

/// Momentum of sgd.
template <class P>
struct SgdState {
  P trace;
  BURIN_TREE(trace)
};
/// Moments of adamw, and how many steps were made.
template <class P>
struct AdamState {
  P mu, nu;
  Tensor count;
  BURIN_TREE(mu, nu, count)
};
/// Decay rates of the moments, what is added to the root of the second one, and the decoupled weight decay.
struct AdamOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8, weight_decay = 1e-4;
};

namespace detail {
/// Throws unless `tree` has the structure and the shapes of params. `what` names it in messages: "the gradients".
void check_like(const char* function, const PathFlattening& params, const PathFlattening& tree, const char* what,
                std::source_location where);
template <class P>
void check_like(const char* function, const P& params, const P& tree, const char* what, std::source_location where) {
  PathFlattening expected, found;
  read_tree(params, expected);
  read_tree(tree, found);
  check_like(function, expected, found, what, where);
}
/// Throws unless it has rank 0. `what` names it in messages: "rate".
void check_scalar(const char* function, const char* what, const Operand& number);
Tensor global_norm(const std::vector<Tensor*>& leaves);
Tensor clip_leaf(const Tensor& leaf, const Tensor& norm, const Tensor& max_norm);
Tensor adam_update(const Tensor& p, const Tensor& m, const Tensor& v, const Tensor& count, const Tensor& rate,
                   const AdamOptions& options, bool decay);
}  // namespace detail

namespace optim {

using Where = std::source_location;

/// p - rate * g. The rate is a scalar, which may be traced.
template <class P>
P sgd(const P& params, const P& grads, const Operand& rate) {
  library_function in("sgd", rate.where);
  detail::check_scalar("sgd", "rate", rate);
  detail::check_like("sgd", params, grads, "the gradients", rate.where);
  return tree::map([&](const Tensor& p, const Tensor& g) { return p - astype(rate * g, p.dtype()); }, params, grads);
}
/// With momentum: trace = g + momentum * trace, p - rate * trace (nesterov: p - rate * (g + momentum * trace)).
template <class P>
std::pair<P, SgdState<P>> sgd(const P& params, const P& grads, const SgdState<P>& state, const Operand& rate,
                              double momentum, bool nesterov = false) {
  library_function in("sgd", rate.where);
  detail::check_scalar("sgd", "rate", rate);
  detail::check_like("sgd", params, grads, "the gradients", rate.where);
  detail::check_like("sgd", params, state.trace, "the state", rate.where);
  const P trace = tree::map([&](const Tensor& g, const Tensor& t) { return g + momentum * t; }, grads, state.trace);
  const P update = nesterov ? tree::map([&](const Tensor& g, const Tensor& t) { return g + momentum * t; }, grads, trace)
                            : trace;
  return {tree::map([&](const Tensor& p, const Tensor& u) { return p - astype(rate * u, p.dtype()); }, params, update),
          {trace}};
}
/// Zeros like the parameters.
template <class P>
SgdState<P> sgd_state(const P& params) {
  return {tree::zeros_like(params)};
}

/// Moments of zeros like the parameters, and a count of 0 (i32).
template <class P>
AdamState<P> adam_state(const P& params) {
  return {tree::zeros_like(params), tree::zeros_like(params), zeros({}, i32)};
}
/// AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019), as optax.adamw: at step t from 1 on,
///   m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,
///   p = p - rate (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + weight_decay p).
/// `decays(path, leaf)` says which leaves decay.
template <class P, class Decays>
std::pair<P, AdamState<P>> adamw(const P& params, const P& grads, const AdamState<P>& state, const Operand& rate,
                                 const AdamOptions& options, Decays&& decays) {
  library_function in("adamw", rate.where);
  detail::check_scalar("adamw", "rate", rate);
  detail::check_like("adamw", params, grads, "the gradients", rate.where);
  detail::check_like("adamw", params, state.mu, "the first moments", rate.where);
  detail::check_like("adamw", params, state.nu, "the second moments", rate.where);
  const Tensor count = state.count + 1;
  P mu = tree::map([&](const Tensor& g, const Tensor& m) { return (1 - options.b1) * g + options.b1 * m; }, grads, state.mu);
  P nu = tree::map([&](const Tensor& g, const Tensor& v) { return (1 - options.b2) * square(g) + options.b2 * v; }, grads,
                   state.nu);
  P next = tree::map_with_path(
      [&](std::string_view path, const Tensor& p, const Tensor& m, const Tensor& v) {
        return detail::adam_update(p, m, v, count, rate.tensor, options, decays(path, p));
      },
      params, mu, nu);
  return {std::move(next), {std::move(mu), std::move(nu), count}};
}
template <class P>
std::pair<P, AdamState<P>> adamw(const P& params, const P& grads, const AdamState<P>& state, const Operand& rate,
                                 const AdamOptions& options = {}) {
  return adamw(params, grads, state, rate, options, [](std::string_view, const Tensor&) { return true; });
}

/// The square root of the sum of squares of all elements of all leaves: a scalar, f32 for half types; of no leaves 0.
/// At zero its derivative is zero.
template <class P>
Tensor global_norm(const P& tree, Where where = Where::current()) {
  library_function in("global_norm", where);
  detail::Flattening flat;
  detail::read_tree(tree, flat);
  return detail::global_norm(flat.leaves);
}
/// The tree scaled down so that its global norm is at most max_norm. The identity, also for derivatives, at zero.
template <class P>
P clip_by_global_norm(const P& tree, const Operand& max_norm) {
  library_function in("clip_by_global_norm", max_norm.where);
  detail::check_scalar("clip_by_global_norm", "max_norm", max_norm);
  const Tensor norm = global_norm(tree, max_norm.where);
  return tree::map([&](const Tensor& leaf) { return detail::clip_leaf(leaf, norm, max_norm.tensor); }, tree);
}

/// A rate, an f32 of the shape of `step`, that rises linearly from `initial` to `peak` over `warmup` steps, then falls
/// along a cosine to `final` at step `total`, where it stays. As optax.warmup_cosine_decay_schedule. Needs 0 <= warmup
/// < total, else an error.
Tensor warmup_cosine(const Operand& step, double peak, std::int64_t warmup, std::int64_t total, double initial = 0,
                     double final = 0);

}  // namespace optim
}  // namespace burin
