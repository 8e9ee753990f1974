// For tests of code over tensors: derivatives against finite differences, two functions against one another.
#pragma once
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <burin/ops.h>
#include <burin/transforms.h>
#include <burin/tree.h>

namespace burin {

struct CheckGradsOptions {
  int order = 2;          // derivatives of derivatives up to this order
  double tolerance = 1e-6;  // relative to the size of the derivative, plus the same absolutely
  double step = 1e-6;
  std::int64_t seed = 0;  // of the random directions
};

/// What compare found, per leaf; prints as a table.
struct Comparison {
  struct Leaf {
    std::string path;      // "result", "gradient arg0.blocks.0.w"
    double max_ulp = 0;    // in units in the last place of the larger value; inf for NaN against a number
    double relative = 0;   // |a - b| / |b| by their 2-norms
  };
  std::vector<Leaf> leaves;
  double max_ulp() const;
  double max_relative() const;
  friend std::ostream& operator<<(std::ostream& out, const Comparison& c);
};

namespace detail {
using Leaves = std::vector<Tensor>;
using LeafFunction = std::function<Leaves(const Leaves&)>;
/// f maps f64 leaves to leaves. Throws Error naming order, mode and numbers.
void check_gradients(const LeafFunction& f, const Leaves& at, const std::vector<std::string>& names,
                     const CheckGradsOptions& options, std::source_location where);
/// f and g map float leaves to all result leaves.
Comparison compare_functions(const LeafFunction& f, const LeafFunction& g, const Leaves& at,
                             const std::vector<std::string>& names, std::source_location where);

// The float leaves of arguments, and the function of them alone.
template <class F, class... A>
struct LeafView {
  const F& f;
  std::tuple<A...> arguments;

  std::vector<Tensor*> float_leaves(std::tuple<A...>& of, std::vector<std::string>* names = nullptr) const {
    PathFlattening flat;
    visit_tree(of, flat);
    std::vector<Tensor*> result;
    for (std::size_t i = 0; i < flat.leaves.size(); ++i) {
      if (!is_float(flat.leaves[i]->dtype())) continue;
      result.push_back(flat.leaves[i]);
      if (names) names->push_back("arg" + flat.paths[i]);  // the tuple's "0.w" is "arg0.w"
    }
    return result;
  }
  Leaves operator()(const Leaves& leaves) const {
    std::tuple<A...> copy = arguments;
    const std::vector<Tensor*> places = float_leaves(copy);
    for (std::size_t i = 0; i < places.size(); ++i) *places[i] = leaves[i];
    const auto result = std::apply(f, std::as_const(copy));
    return tree::flatten(result);
  }
};

template <class F>
class CheckGrads final : public Callable<CheckGrads<F>, signature_of<F>> {
 public:
  CheckGrads(F f, CheckGradsOptions options, std::source_location where)
      : f_(std::move(f)), options_(options), where_(where) {}
  template <class... A>
  bool invoke(const A&... args) const {
    LeafView<F, A...> view{f_, std::tuple<A...>(args...)};
    std::vector<std::string> names;
    Leaves at;
    for (Tensor* leaf : view.float_leaves(view.arguments, &names)) at.push_back(leaf->astype(f64));
    check_gradients(view, at, names, options_, where_);
    return true;
  }

 private:
  F f_;
  CheckGradsOptions options_;
  std::source_location where_;
};

template <class F, class G>
class Compare final : public Callable<Compare<F, G>, signature_of<F>> {
 public:
  Compare(F f, G g, std::source_location where) : f_(std::move(f)), g_(std::move(g)), where_(where) {}
  template <class... A>
  Comparison invoke(const A&... args) const {
    LeafView<F, A...> first{f_, std::tuple<A...>(args...)};
    const LeafView<G, A...> second{g_, std::tuple<A...>(args...)};
    std::vector<std::string> names;
    Leaves at;
    for (Tensor* leaf : first.float_leaves(first.arguments, &names)) at.push_back(*leaf);
    return compare_functions(first, second, at, names, where_);
  }

 private:
  F f_;
  G g_;
  std::source_location where_;
};
}  // namespace detail

/// check_grads(f)(args...): forward and reverse derivatives of f with respect to all float leaves, in f64, against
/// finite differences and one another; true, or an Error that says what differs. Where a custom_vjp rule takes part,
/// which forward mode cannot use, the reverse derivatives alone are checked against finite differences. Errors too: no
/// float among arguments or results, an order below 1, a step or tolerance that is not above 0.
template <class F>
auto check_grads(F&& f, CheckGradsOptions options = {},
                 std::source_location where = std::source_location::current()) {
  return detail::CheckGrads<std::decay_t<F>>(std::forward<F>(f), options, where);
}
/// compare(f, g)(args...): how far results and gradients (of the sum of all float results) of f are from those of g.
template <class F, class G>
auto compare(F&& f, G&& g, std::source_location where = std::source_location::current()) {
  return detail::Compare<std::decay_t<F>, std::decay_t<G>>(std::forward<F>(f), std::forward<G>(g), where);
}

}  // namespace burin
