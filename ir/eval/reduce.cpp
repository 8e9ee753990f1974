#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "ir/eval/coordinates.h"
#include "ir/eval/rules.h"
#include "ir/eval/scalar.h"
#include "ir/eval/scalar_float.h"
#include "ir/eval/scalar_integer.h"

namespace burin::ir::eval {
namespace {

// Adds every element of `x` to the accumulator of its result element, starting from `initial`; accumulators are rounded
// to the dtype once, at the end.
template <class T, class A, class Combine>
Literals fold(const Operands& in, const Ints& axes, A initial, Combine&& combine) {
  const Literal x = in.expanded(0);
  const Type& type = in.result_types[0];
  const Coordinates kept_strides = strides_of(type.shape);
  Coordinates strides{};  // of the result, along the axes of x; 0 along a reduced one
  for (std::size_t axis = 0, kept = 0; axis < x.shape().rank(); ++axis)
    if (!contains(axes, axis)) strides[axis] = kept_strides[kept++];

  // A struct, since std::vector<bool> has no bools.
  struct Accumulator {
    A value;
  };
  std::vector<Accumulator> accumulators(static_cast<std::size_t>(type.size()), Accumulator{initial});
  const std::span<const T> elements = x.data<T>();
  std::size_t next = 0;
  for_each_coordinate(x.shape(), [&](const Coordinates& at) {
    A& accumulator = accumulators[static_cast<std::size_t>(offset(at, strides))].value;
    accumulator = combine(accumulator, static_cast<A>(elements[next++]));
  });

  Literal result(type);
  const std::span<T> out = result.mutable_data<T>();
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(accumulators[i].value);
  return {result};
}

// Folds with op itself, in `Wide` for floats: a sum or product of f32 and half types is the f64 one rounded once, that
// of f64 the long double one. The order of a float sum is not part of its meaning.
template <Op op>
Literals fold_with(const Operands& in, const Ints& axes, double initial) {
  return with_element(in[0].dtype(), [&]<class T>(T) -> Literals {
    if constexpr (FloatElement<T>)
      return fold<T, Wide<T>>(in, axes, static_cast<Wide<T>>(initial),
                              [](Wide<T> a, Wide<T> b) { return floats::exact(Tag<op>{}, a, b); });
    else
      return fold<T, T>(in, axes, static_cast<T>(initial), [](T a, T b) { return integers::rule(Tag<op>{}, a, b); });
  });
}

// The extreme of nothing is the other end of the dtype.
template <Op op>
Literals extreme(const Operands& in, const Ints& axes) {
  return with_element(in[0].dtype(), [&]<class T>(T) -> Literals {
    if constexpr (FloatElement<T>) {
      const auto infinity = std::numeric_limits<Native<T>>::infinity();
      return fold<T, Native<T>>(in, axes, op == Op::max ? -infinity : infinity,
                                [](Native<T> a, Native<T> b) { return floats::exact(Tag<op>{}, a, b); });
    } else {
      const T initial = op == Op::max ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
      return fold<T, T>(in, axes, initial, [](T a, T b) { return integers::rule(Tag<op>{}, a, b); });
    }
  });
}

template <Op op>
Literals fold_bits(const Operands& in, const Ints& axes) {
  return with_element(in[0].dtype(), [&]<class T>(T) -> Literals {
    if constexpr (std::is_integral_v<T>) {
      const T none = static_cast<T>(0), all = static_cast<T>(-1);
      return fold<T, T>(in, axes, op == Op::bit_and ? all : none,
                        [](T a, T b) { return integers::rule(Tag<op>{}, a, b); });
    } else {
      BURIN_CHECK(false, "bitwise reduction of floats");
    }
  });
}

// The first index along `axis` that no other beats; NaN beats every number.
template <class Beats>
Literals arg_extreme(const Operands& in, Int axis_attr, Beats&& beats) {
  const Literal x = in.expanded(0);
  const auto axis = static_cast<std::size_t>(axis_attr);
  BURIN_CHECK(x.shape()[axis] > 0);
  Coordinates strides = strides_of(x.shape());
  const std::int64_t step = strides[axis];
  for (std::size_t k = axis; k < Shape::max_rank; ++k) strides[k] = k + 1 < Shape::max_rank ? strides[k + 1] : 0;

  Literal result(in.result_types[0]);
  std::int64_t next = 0;
  with_element(x.dtype(), [&]<class T>(T) {
    const std::span<const T> elements = x.data<T>();
    for_each_coordinate(result.shape(), [&](const Coordinates& at) {
      const auto value = [&](std::int64_t i) {
        return static_cast<Native<T>>(elements[static_cast<std::size_t>(offset(at, strides) + i * step)]);
      };
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < x.shape()[axis]; ++i) {
        const bool best_is_nan = value(best) != value(best), is_nan = value(i) != value(i);
        if (!best_is_nan && (is_nan || beats(value(i), value(best)))) best = i;
      }
      result.set_int(next++, best);
    });
  });
  return {result};
}

}  // namespace

Literals evaluate(Tag<Op::reduce_sum>, const Operands& in, const attrs::reduce_sum& a) {
  return fold_with<Op::add>(in, a.axes, 0);
}
Literals evaluate(Tag<Op::reduce_prod>, const Operands& in, const attrs::reduce_prod& a) {
  return fold_with<Op::mul>(in, a.axes, 1);
}
Literals evaluate(Tag<Op::reduce_max>, const Operands& in, const attrs::reduce_max& a) {
  return extreme<Op::max>(in, a.axes);
}
Literals evaluate(Tag<Op::reduce_min>, const Operands& in, const attrs::reduce_min& a) {
  return extreme<Op::min>(in, a.axes);
}
Literals evaluate(Tag<Op::reduce_and>, const Operands& in, const attrs::reduce_and& a) {
  return fold_bits<Op::bit_and>(in, a.axes);
}
Literals evaluate(Tag<Op::reduce_or>, const Operands& in, const attrs::reduce_or& a) {
  return fold_bits<Op::bit_or>(in, a.axes);
}
Literals evaluate(Tag<Op::argmax>, const Operands& in, const attrs::argmax& a) {
  return arg_extreme(in, a.axis, [](auto x, auto y) { return x > y; });
}
Literals evaluate(Tag<Op::argmin>, const Operands& in, const attrs::argmin& a) {
  return arg_extreme(in, a.axis, [](auto x, auto y) { return x < y; });
}

}  // namespace burin::ir::eval
