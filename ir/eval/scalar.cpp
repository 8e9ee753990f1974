#include "ir/eval/scalar.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "ir/eval/eval.h"
#include "ir/eval/scalar_convert.h"
#include "ir/eval/scalar_float.h"
#include "ir/eval/scalar_integer.h"

namespace burin::ir {
namespace eval {
namespace {

constexpr std::size_t arity_of(Op op) {
  constexpr int arities[] = {
#define OP(name, family, arity, results, effect, attributes, meaning) arity,
#include "ir/ops.def"
#undef OP
  };
  return static_cast<std::size_t>(arities[static_cast<int>(op)]);
}

// T, once for each operand.
template <class T, std::size_t>
using Each = T;

template <Op op, class T, class Operands>
struct Rules;
template <Op op, class T, std::size_t... i>
struct Rules<op, T, std::index_sequence<i...>> {
  static constexpr bool exact = FloatElement<T> && requires { floats::exact(Tag<op>{}, Each<Native<T>, i>{}...); };
  static constexpr bool wide = FloatElement<T> && requires { floats::wide(Tag<op>{}, Each<Wide<T>, i>{}...); };
  static constexpr bool integer = std::is_integral_v<T> && requires { integers::rule(Tag<op>{}, Each<T, i>{}...); };
  static constexpr bool any = exact || wide || integer;

  static void run(const std::byte* const* operands, std::byte* result) {
    if constexpr (exact)
      put(result, floats::exact(Tag<op>{}, static_cast<Native<T>>(read<T>(operands[i]))...));
    else if constexpr (wide)
      put(result, floats::wide(Tag<op>{}, static_cast<Wide<T>>(read<T>(operands[i]))...));
    else
      put(result, integers::rule(Tag<op>{}, read<T>(operands[i])...));
  }

 private:
  template <class R>
  static void put(std::byte* result, R value) {
    if constexpr (std::is_same_v<R, bool>)
      write<bool>(result, value);
    else
      write<T>(result, static_cast<T>(value));
  }
};
template <Op op, class T>
using RulesOf = Rules<op, T, std::make_index_sequence<arity_of(op)>>;

// Ops that move bits, whatever the dtype.
constexpr bool moves_bits(Op op) { return op == Op::stop_gradient || op == Op::bitcast || op == Op::select; }

template <Op op, class T>
void move_bits(const std::byte* const* operands, std::byte* result) {
  if constexpr (op == Op::select)
    std::memcpy(result, read<bool>(operands[0]) ? operands[1] : operands[2], sizeof(T));
  else
    std::memcpy(result, operands[0], sizeof(T));
}

template <Op op, class T>
ElementFunction function_of() {
  if constexpr (moves_bits(op))
    return &move_bits<op, T>;
  else if constexpr (RulesOf<op, T>::any)
    return &RulesOf<op, T>::run;
  else
    return nullptr;
}

}  // namespace

ElementFunction convert_function(DType from, DType to) {
  return with_element(from, [&]<class From>(From) -> ElementFunction {
    return with_element(to, [&]<class To>(To) -> ElementFunction {
      return [](const std::byte* const* operands, std::byte* result) {
        write<To>(result, convert_element<To>(read<From>(operands[0])));
      };
    });
  });
}

ElementFunction element_function(Op op, std::span<const DType> operands, DType result) {
  if (op == Op::convert) return convert_function(operands[0], result);
  const ElementFunction found = with_tag(op, [&]<Op o>(Tag<o>) -> ElementFunction {
    if constexpr (family_of(o) == Family::elementwise || family_of(o) == Family::compare) {
      static_assert(o == Op::convert || moves_bits(o) || RulesOf<o, float>::any || RulesOf<o, std::int32_t>::any ||
                        RulesOf<o, std::uint64_t>::any,
                    "an elementwise op without a rule in scalar_float.h or scalar_integer.h");
      return with_element(operands.back(), []<class T>(T) -> ElementFunction { return function_of<o, T>(); });
    }
    return nullptr;
  });
  BURIN_CHECK(found, std::string(name(op)) + " is not defined for " + std::string(name(operands.back())));
  return found;
}

}  // namespace eval

namespace {

constexpr std::size_t widest = 8;

void put(std::byte* address, const Scalar& value) {
  with_element(value.dtype, [&]<class T>(T) {
    if constexpr (eval::FloatElement<T>)
      eval::write<T>(address, static_cast<T>(value.f));
    else if constexpr (std::is_same_v<T, bool>)
      eval::write<T>(address, value.i != 0);
    else
      eval::write<T>(address, static_cast<T>(value.i));
  });
}

Scalar get(DType dtype, const std::byte* address) {
  Scalar value{.dtype = dtype};
  with_element(dtype, [&]<class T>(T) {
    if constexpr (eval::FloatElement<T>)
      value.f = static_cast<double>(eval::read<T>(address));
    else
      value.i = static_cast<std::uint64_t>(eval::read<T>(address));
  });
  return value;
}

}  // namespace

Scalar load_scalar(const Literal& literal, std::int64_t index) {
  const std::size_t at = literal.is_splat() ? 0 : static_cast<std::size_t>(index);
  return get(literal.dtype(), literal.raw().data() + at * size_of(literal.dtype()));
}

void store_scalar(Literal& literal, std::int64_t index, const Scalar& value) {
  BURIN_CHECK(literal.dtype() == value.dtype);
  put(literal.mutable_raw().data() + static_cast<std::size_t>(index) * size_of(value.dtype), value);
}

Scalar evaluate_scalar(Op op, std::span<const Scalar> operands, DType result_dtype) {
  std::array<std::array<std::byte, widest>, 3> bytes;
  std::array<const std::byte*, 3> addresses{};
  std::array<DType, 3> dtypes{};
  BURIN_CHECK(operands.size() <= bytes.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    put(bytes[i].data(), operands[i]);
    addresses[i] = bytes[i].data();
    dtypes[i] = operands[i].dtype;
  }
  std::array<std::byte, widest> result;
  eval::element_function(op, std::span(dtypes.data(), operands.size()), result_dtype)(addresses.data(), result.data());
  return get(result_dtype, result.data());
}

}  // namespace burin::ir
