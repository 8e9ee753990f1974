#include <burin/random.h>

#include <burin/ops.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "base/message_ids.h"
#include "frontend/promote.h"
#include "ir/eval/scalar_integer.h"

namespace burin {

using detail::as_dtype;
using detail::constant;
using detail::emit;
using detail::OpScope;
using ir::Ints;
using ir::Op;

namespace {

Ints extents(const Shape& shape) { return Ints(shape.begin(), shape.end()); }

const Tensor& checked(const Key& key, const std::source_location& where) {
  const detail::Node& node = detail::used_node(key.data(), where);
  if (node.type != ir::Type{DType::u32, Shape{2}})
    fail_at(detail::where_text(where), Msg::not_a_key, to_string(node.type));
  return key.data();
}

// Threefry of the counters 0, 1, ... (or `counter`) under the key: one u64 (high, low) per element of `shape`.
Tensor threefry(const Tensor& key, const Shape& shape, const Tensor& counter = {}) {
  const auto word = [&](std::int64_t i) {
    const Tensor one = emit<Op::slice>({key}, {.start = {i}, .limit = {i + 1}, .stride = {1}});
    return emit<Op::convert>({emit<Op::reshape>({one}, {.shape = {}})}, {.dtype = DType::u64});
  };
  const Tensor shift = constant(ir::Literal::scalar_int(DType::u64, 32));
  const Tensor both = emit(Op::bit_or, {emit(Op::shift_left, {word(0), shift}), word(1)});
  const Tensor keys = emit<Op::broadcast>({both}, {.shape = extents(shape), .dims = {}});
  Tensor counters = counter;
  if (!counters.defined()) {
    counters = emit<Op::iota>({}, {.dtype = DType::u64, .shape = {shape.size()}, .axis = 0});
    counters = emit<Op::reshape>({counters}, {.shape = extents(shape)});
  }
  return emit(Op::threefry2x32, {keys, counters});
}

Tensor high_word(const Tensor& pair) {
  const Tensor shift = constant(ir::Type{DType::u64, pair.shape()}, 32);
  return as_dtype(emit(Op::shift_right_logical, {pair, shift}), DType::u32);
}

// The two words of each pair side by side in a last axis.
Tensor words(const Tensor& pairs) {
  Shape shape = pairs.shape();
  shape.push_back(1);
  const auto column = [&](const Tensor& t) { return emit<Op::reshape>({t}, {.shape = extents(shape)}); };
  const auto axis = static_cast<std::int64_t>(shape.rank()) - 1;
  return emit<Op::concatenate>({column(high_word(pairs)), column(as_dtype(pairs, DType::u32))}, {.axis = axis});
}

Tensor raw_bits(const Tensor& key, const Shape& shape, DType dtype) {
  const Tensor pairs = threefry(key, shape);
  if (dtype == DType::u64) return pairs;
  return as_dtype(emit(Op::bit_xor, {high_word(pairs), as_dtype(pairs, DType::u32)}), dtype);
}

DType unsigned_of(DType d) {
  const std::size_t bytes = size_of(d);
  return bytes == 1 ? DType::u8 : bytes == 2 ? DType::u16 : bytes == 4 ? DType::u32 : DType::u64;
}
int mantissa_bits(DType d) { return d == DType::f64 ? 52 : d == DType::f32 ? 23 : d == DType::f16 ? 10 : 7; }
double smallest_normal(DType d) { return d == DType::f64 ? 0x1p-1022 : d == DType::f16 ? 0x1p-14 : 0x1p-126; }

void check_float(const char* function, DType dtype, const std::source_location& where) {
  if (!is_float(dtype)) fail_at(detail::where_text(where), Msg::random_dtype, function, "a float dtype", name(dtype));
}

Tensor spread(const Tensor& t, DType dtype, const Shape& shape, const std::source_location& where) {
  return broadcast_to({as_dtype(t, dtype), where}, shape);
}

// Smallest and largest value of an integer dtype; of u64 the largest that a number of C++ holds.
std::int64_t lowest(DType d) {
  if (!is_signed_int(d)) return 0;
  return std::numeric_limits<std::int64_t>::min() >> (64 - 8 * size_of(d));
}
std::int64_t highest(DType d) {
  const std::size_t bits = 8 * size_of(d) - (is_signed_int(d) ? 1 : 0);
  return bits >= 63 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << bits) - 1;
}

// An integer bound moved to low..high, as `dtype`, and whether it lay above.
struct Bound {
  Tensor value, above;
};
Bound bound(const Tensor& t, DType dtype, std::int64_t low, std::int64_t high, const Shape& shape,
            const std::source_location& where) {
  if (const auto& node = detail::Access::node(t); node->kind == detail::Node::Kind::number && node->integral) {
    const std::int64_t inside = std::clamp(node->integer, low, high);
    return {spread(inside, dtype, shape, where), constant(ir::Type{DType::bool_, shape}, node->integer > inside)};
  }
  const DType from = t.dtype();
  Tensor inside = t, above = constant(ir::Type{DType::bool_, shape}, 0);
  if (is_int(from) && (highest(from) > high || (from == DType::u64 && dtype != from))) {
    above = spread(t > high, DType::bool_, shape, where);
    inside = minimum(inside, high);
  }
  if (is_int(from) && lowest(from) < low) inside = maximum(inside, low);
  return {spread(inside, dtype, shape, where), above};
}

// Random mantissa bits under the exponent of 1, then shifted and scaled. `exact`: the scaling does not round.
Tensor raw_uniform(const Tensor& key, const Shape& shape, const Tensor& low, const Tensor& high, DType dtype,
                   bool exact = true) {
  const int mantissa = mantissa_bits(dtype);
  const DType bits_dtype = unsigned_of(dtype), drawn = mantissa < 8 ? DType::u8 : bits_dtype;
  const int drawn_bits = static_cast<int>(8 * size_of(drawn));
  const ir::Type type{bits_dtype, shape};
  const Tensor bits = as_dtype(raw_bits(key, shape, drawn), bits_dtype);
  const Tensor kept = emit(Op::shift_right_logical, {bits, constant(type, drawn_bits - mantissa)});
  const ir::Literal one = ir::Literal::scalar(dtype, 1);
  const ir::Literal one_bits(ir::Type{bits_dtype, {}}, one.raw());
  const Tensor filled = emit(Op::bit_or, {kept, constant(ir::Literal::splat(shape, one_bits))});
  const Tensor floats = emit<Op::bitcast>({filled}, {.dtype = dtype}) - 1.0;
  const Tensor width = high - low;
  // JAX's numbers come from a fused multiply-add here; f64 gives the same without one.
  if (dtype == DType::f32 && !exact)
    return maximum(low, as_dtype(as_dtype(floats, DType::f64) * as_dtype(width, DType::f64) + as_dtype(low, DType::f64), dtype));
  return maximum(low, floats * width + low);
}

// Whether u * (high - low) is exact for every u: the width is a power of two.
bool exact_width(const Tensor& low, const Tensor& high) {
  const auto &a = detail::Access::node(low), &b = detail::Access::node(high);
  if (a->kind != detail::Node::Kind::number || b->kind != detail::Node::Kind::number) return false;
  const auto value = [](const detail::Node& n) { return n.integral ? static_cast<double>(n.integer) : n.floating; };
  int exponent = 0;
  return std::frexp(static_cast<double>(static_cast<float>(value(*b)) - static_cast<float>(value(*a))), &exponent) == 0.5;
}

Tensor raw_normal(const Tensor& key, const Shape& shape, DType dtype) {
  const ir::Literal low = [&] {
    // The float after -1 towards 0.
    const double step = std::ldexp(1.0, -mantissa_bits(dtype) - 1);
    return ir::Literal::scalar(dtype, -1 + step);
  }();
  const Tensor u = raw_uniform(key, shape, constant(ir::Literal::splat(shape, low)), constant(ir::Type{dtype, shape}, 1), dtype);
  return emit(Op::mul, {constant(ir::Type{dtype, shape}, std::sqrt(2.0)), emit(Op::erf_inv, {u})});
}

// The neighbouring float in the direction of `up`.
Tensor next_float(const Tensor& x, bool up) {
  const DType d = x.dtype();
  const DType bits_dtype = size_of(d) == 8 ? DType::i64 : size_of(d) == 4 ? DType::i32 : DType::i16;
  const Tensor bits = emit<Op::bitcast>({x}, {.dtype = bits_dtype});
  const Tensor outwards = bits + 1, inwards = bits - 1;
  const Tensor positive = x > 0;
  const Tensor moved = up ? where(positive, outwards, inwards) : where(positive, inwards, outwards);
  const Tensor smallest = emit<Op::bitcast>({full_like(bits, 1)}, {.dtype = d});
  const Tensor next = where(x == 0, up ? smallest : -smallest, emit<Op::bitcast>({moved}, {.dtype = d}));
  return where(x == (up ? inf : -inf), x, where(isnan(x), x, next));
}

Tensor raw_gumbel(const Tensor& key, const Shape& shape, DType dtype) {
  const ir::Type type{dtype, shape};
  return -log(-log(raw_uniform(key, shape, constant(type, smallest_normal(dtype)), constant(type, 1), dtype)));
}

// The words of keys that are there, un-jitted; empty for others. Such keys are split and indexed on the spot: a program
// for each number of keys would make a deeper model compile more.
std::span<const std::uint32_t> words_at_hand(const Tensor& keys, bool unjitted, const std::source_location& where) {
  const auto& node = detail::Access::node(keys);
  if (!unjitted || !node || node->kind != detail::Node::Kind::concrete || node->type.dtype != DType::u32) return {};
  return keys.data<std::uint32_t>(where);
}

Key element(const Keys& keys, std::int64_t i, const std::source_location& where) {
  const Tensor& data = keys.data();
  const std::span<const std::uint32_t> words = words_at_hand(data, detail::current_trace() == nullptr, where);
  const auto n = static_cast<std::int64_t>(words.size() / 2);
  const std::int64_t at = i < 0 ? i + n : i;
  if (at < 0 || at >= n || data.shape() != Shape{n, 2}) return Key(data[Index(i, where)]);
  const auto pair = words.subspan(static_cast<std::size_t>(2 * at), 2);
  return Key(tensor(std::vector<std::uint32_t>(pair.begin(), pair.end())));
}

}  // namespace

Key Keys::operator[](const Number& i) const { return element(*this, i.value, i.where); }

namespace random {

Key key(std::int64_t seed) {
  const auto bits = static_cast<std::uint64_t>(seed);
  // A negative seed of 32 bits is taken as its unsigned value.
  const bool small_negative = seed < 0 && seed >= std::numeric_limits<std::int32_t>::min();
  const std::vector<std::uint32_t> words{small_negative ? 0 : static_cast<std::uint32_t>(bits >> 32),
                                         static_cast<std::uint32_t>(bits)};
  return Key(tensor(words));
}

std::pair<Key, Key> split(const Key& key, Where where) {
  const Keys keys = split(key, 2, where);
  return {element(keys, 0, where), element(keys, 1, where)};
}

Keys split(const Key& key, std::int64_t n, Where where) {
  OpScope scope("split", where);
  if (n < 0) fail_at(detail::where_text(where), Msg::random_split, n);
  const Tensor& data = checked(key, where);
  const std::span<const std::uint32_t> own = words_at_hand(data, scope.unjitted(), where);
  if (own.empty()) return Keys(scope.done(words(threefry(data, Shape{n}))));
  std::vector<std::uint32_t> split_words;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t pair = ir::eval::integers::rule(ir::Tag<Op::threefry2x32>{}, std::uint64_t{own[0]} << 32 | own[1],
                                                        static_cast<std::uint64_t>(i));
    split_words.push_back(static_cast<std::uint32_t>(pair >> 32));
    split_words.push_back(static_cast<std::uint32_t>(pair));
  }
  return Keys(tensor(split_words, Shape{n, 2}));
}

Key fold_in(const Key& key, const Operand& data) {
  OpScope scope("fold_in", data.where);
  if (!is_int(data.tensor.dtype()) || data.tensor.shape().rank() != 0)
    fail_at(detail::where_text(data.where), Msg::random_fold_in, detail::type_text(data.tensor));
  Tensor number = data.tensor;
  if (const auto& node = detail::Access::node(number); node->kind == detail::Node::Kind::number && scope.unjitted())
    number = detail::current_trace()->capture_number(as_dtype(number, DType::i64));  // data, not part of the program
  const Tensor counter = as_dtype(as_dtype(number, DType::u32), DType::u64);
  return Key(scope.done(words(threefry(checked(key, data.where), {}, counter))));
}

Tensor bits(const Key& key, const IntList& dims, DType dtype, Where where) {
  OpScope scope("bits", where);
  if (!is_unsigned_int(dtype))
    fail_at(detail::where_text(where), Msg::random_dtype, "bits", "u8, u16, u32 or u64", name(dtype));
  const Shape shape = detail::checked_shape("random::bits", dims, dtype, where);
  return scope.done(raw_bits(checked(key, where), shape, dtype));
}

Tensor uniform(const Key& key, const IntList& dims, const Operand& low, const Operand& high, DType dtype, Where where) {
  OpScope scope("uniform", where);
  check_float("uniform", dtype, where);
  const Shape shape = detail::checked_shape("random::uniform", dims, dtype, where);
  return scope.done(raw_uniform(checked(key, where), shape, spread(low.tensor, dtype, shape, where),
                                spread(high.tensor, dtype, shape, where), dtype,
                                exact_width(low.tensor, high.tensor)));
}

Tensor normal(const Key& key, const IntList& dims, DType dtype, Where where) {
  OpScope scope("normal", where);
  check_float("normal", dtype, where);
  const Shape shape = detail::checked_shape("random::normal", dims, dtype, where);
  return scope.done(raw_normal(checked(key, where), shape, dtype));
}

Tensor truncated_normal(const Key& key, const Operand& low, const Operand& high, const IntList& dims, DType dtype,
                        Where where) {
  OpScope scope("truncated_normal", where);
  check_float("truncated_normal", dtype, where);
  const Shape shape = detail::checked_shape("random::truncated_normal", dims, dtype, where);
  const Tensor from = spread(low.tensor, dtype, shape, where), to = spread(high.tensor, dtype, shape, where);
  const Tensor root = constant(ir::Type{dtype, shape}, std::sqrt(2.0));
  const Tensor u = raw_uniform(checked(key, where), shape, erf(from / root), erf(to / root), dtype, false);
  // Rounding must not push a value out of the open interval.
  return scope.done(clip(root * erf_inv(u), next_float(stop_gradient(from), true), next_float(stop_gradient(to), false)));
}

Tensor bernoulli(const Key& key, const Operand& p, const IntList& dims, Where where) {
  OpScope scope("bernoulli", where);
  const Tensor share = detail::as_float(p.tensor);
  const Shape shape = detail::checked_shape("random::bernoulli", dims, share.dtype(), where);
  const Shape result = shape.rank() == 0 ? share.shape() : shape;
  const ir::Type type{share.dtype(), result};
  const Tensor u = raw_uniform(checked(key, where), result, constant(type, 0), constant(type, 1), type.dtype);
  return scope.done(u < spread(share, type.dtype, result, where));
}

Tensor randint(const Key& key, const IntList& dims, const Operand& low, const Operand& high, DType dtype, Where where) {
  OpScope scope("randint", where);
  if (!is_int(dtype))
    fail_at(detail::where_text(where), Msg::random_dtype, "randint", "an integer dtype", name(dtype));
  const Shape shape = detail::checked_shape("random::randint", dims, dtype, where);
  const Tensor& data = checked(key, where);
  const auto half = [&](std::int64_t i) {
    const Tensor pairs = words(threefry(data, Shape{2}));
    const Tensor one = emit<Op::slice>({pairs}, {.start = {i, 0}, .limit = {i + 1, 2}, .stride = {1, 1}});
    return emit<Op::reshape>({one}, {.shape = {2}});
  };
  // Narrow dtypes are drawn as i32, which makes the bias small; one past their largest value is a bound as any other.
  const bool narrow = size_of(dtype) < 4;
  const DType drawn = narrow ? DType::i32 : dtype, u = unsigned_of(drawn);
  const Tensor higher = raw_bits(half(0), shape, u), lower = raw_bits(half(1), shape, u);
  const std::int64_t least = lowest(dtype), most = highest(dtype);
  const Tensor from = bound(low.tensor, drawn, least, most, shape, where).value;
  const auto [to, above] = bound(high.tensor, drawn, least, narrow ? most + 1 : most, shape, where);
  const ir::Type type{u, shape};
  const Tensor nothing = emit(Op::le, {to, from}), width = as_dtype(emit(Op::sub, {to, from}), u);
  // A bound above a wide dtype stands one past its largest value. The width of all values wraps to 0, and x rem 0 is x.
  Tensor span = narrow ? width : emit(Op::select, {above, emit(Op::add, {width, constant(type, 1)}), width});
  span = emit(Op::select, {nothing, constant(type, 1), span});
  // Twice as many random bits as the dtype has keep the bias small: (higher * 2^bits + lower) mod span.
  Tensor multiplier = emit(Op::rem, {constant(type, std::ldexp(1.0, static_cast<int>(4 * size_of(u)))), span});
  multiplier = emit(Op::rem, {emit(Op::mul, {multiplier, multiplier}), span});
  const Tensor offset = emit(Op::add, {emit(Op::mul, {emit(Op::rem, {higher, span}), multiplier}), emit(Op::rem, {lower, span})});
  return scope.done(as_dtype(emit(Op::add, {from, as_dtype(emit(Op::rem, {offset, span}), drawn)}), dtype));
}

Tensor gumbel(const Key& key, const IntList& dims, DType dtype, Where where) {
  OpScope scope("gumbel", where);
  check_float("gumbel", dtype, where);
  const Shape shape = detail::checked_shape("random::gumbel", dims, dtype, where);
  return scope.done(raw_gumbel(checked(key, where), shape, dtype));
}

Tensor exponential(const Key& key, const IntList& dims, DType dtype, Where where) {
  OpScope scope("exponential", where);
  check_float("exponential", dtype, where);
  const Shape shape = detail::checked_shape("random::exponential", dims, dtype, where);
  const ir::Type type{dtype, shape};
  return scope.done(-log1p(-raw_uniform(checked(key, where), shape, constant(type, 0), constant(type, 1), dtype)));
}

Tensor categorical(const Key& key, const Operand& logits, std::int64_t axis, const std::optional<IntList>& dims,
                   Where where) {
  OpScope scope("categorical", where);
  const Tensor l = detail::as_float(logits.tensor);
  const Shape own = l.shape();
  const std::size_t at = detail::normal_axis("categorical", axis, own.rank(), l);
  Shape batch;
  for (std::size_t i = 0; i < own.rank(); ++i)
    if (i != at) batch.push_back(own[i]);
  const Shape result = dims ? detail::checked_shape("random::categorical", *dims, l.dtype(), where) : batch;
  bool fits = result.rank() >= batch.rank();
  const std::size_t extra = fits ? result.rank() - batch.rank() : 0;
  for (std::size_t i = 0; fits && i < batch.rank(); ++i) fits = result[extra + i] == batch[i];
  if (!fits) fail_at(detail::where_text(where), Msg::random_categorical, to_string(result), detail::type_text(l));
  ir::Ints noise(result.begin(), result.begin() + extra);
  noise.insert(noise.end(), own.begin(), own.end());
  const Shape drawn = detail::checked_shape("random::categorical", noise, l.dtype(), where);
  const Tensor noisy = raw_gumbel(checked(key, where), drawn, l.dtype()) + l;
  return scope.done(argmax(noisy, static_cast<std::int64_t>(at + extra)));
}

Tensor permutation(const Key& key, std::int64_t n, Where where) {
  if (n < 0) fail_at(detail::where_text(where), Msg::random_permutation_size, n);
  return permutation(key, arange(n, i32, where), where);
}

Tensor permutation(const Key& key, const Tensor& x, Where where) {
  if (x.rank(where) == 0) fail_at(detail::where_text(where), Msg::random_permutation);
  const std::int64_t n = x.shape()[0];
  // Sorting by 32 random bits, again while two elements may have drawn the same.
  const int rounds = static_cast<int>(std::ceil(3 * std::log(static_cast<double>(std::max<std::int64_t>(1, n))) /
                                                std::log(static_cast<double>(0xffffffffu))));
  Tensor result = x;
  Key rest = key;
  for (int round = 0; round < rounds; ++round) {
    const auto [next, use] = split(rest, where);
    rest = next;
    const Tensor order = bits(use, Shape{n}, u32, where);
    if (!order.traced()) {
      const std::vector<std::uint32_t> drawn = order.to_vector<std::uint32_t>();
      std::vector<std::int32_t> places(static_cast<std::size_t>(n));
      std::iota(places.begin(), places.end(), 0);
      std::sort(places.begin(), places.end(), [&](std::int32_t a, std::int32_t b) {
        const std::uint32_t x = drawn[static_cast<std::size_t>(a)], y = drawn[static_cast<std::size_t>(b)];
        return x != y ? x < y : a < b;
      });
      result = take({result, where}, tensor(places), 0);
      continue;
    }
    // The place of an element is the number of those that stand before it.
    OpScope scope("permutation", where);
    const Tensor mine = expand_dims(order, {1}), others = expand_dims(order, {0});
    const Tensor earlier = iota({n, n}, 1) < iota({n, n}, 0);
    const Tensor place = sum(astype((others < mine) | ((others == mine) & earlier), i32), 1);
    result = scope.done(zeros_like(result).at(place).set(result));
  }
  return result;
}

}  // namespace random
}  // namespace burin
