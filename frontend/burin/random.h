// Random numbers: JAX's threefry2x32 in its partitionable form (Salmon et al., "Parallel random numbers: as easy as 1,
// 2, 3", 2011). The same key gives the same bits as JAX, everywhere; the formulas are jax.random's. `shape` is that of
// the result; float draws take f64, f32, bf16 and f16, and another dtype is an error, as is a key that is no u32[2].
#pragma once
#include <array>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <burin/tensor.h>
#include <burin/tree.h>

namespace burin {

/// Where random numbers come from. A key gives the same numbers each time: split it, and use each part once. A tree of
/// one u32[2], so it passes through jit and files; no Tensor, so no arithmetic by accident.
class Key {
 public:
  Key() = default;
  /// From a u32[2].
  explicit Key(Tensor data) : data_(std::move(data)) {}
  const Tensor& data() const { return data_; }

 private:
  friend struct detail::TreeAccess;
  Tensor& burin_leaf() { return data_; }
  Tensor data_;
};

#define BURIN_KEYS_TAKE_NO(op)                                                                                      \
  template <class T>                                                                                                \
  void operator op(const Key&, const T&) {                                                                          \
    static_assert(sizeof(T) == 0, "burin: keys take no arithmetic: use random::split(key) or random::fold_in(key, n)"); \
  }
BURIN_KEYS_TAKE_NO(+)
BURIN_KEYS_TAKE_NO(-)
BURIN_KEYS_TAKE_NO(*)
BURIN_KEYS_TAKE_NO(/)
#undef BURIN_KEYS_TAKE_NO

/// Several keys: keys[i], keys[-1]; an index out of range is an error.
class Keys {
 public:
  Keys() = default;
  /// From a u32[n,2].
  explicit Keys(Tensor data) : data_(std::move(data)) {}
  /// A number that remembers the line it stands in, for messages.
  struct Number {
    template <class T>
      requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
    Number(T i, std::source_location at = std::source_location::current()) : value(static_cast<std::int64_t>(i)), where(at) {}
    std::int64_t value;
    std::source_location where;
  };
  Key operator[](const Number& i) const;
  std::int64_t size(std::source_location where = std::source_location::current()) const { return data_.shape(where)[0]; }
  const Tensor& data() const { return data_; }

 private:
  friend struct detail::TreeAccess;
  Tensor& burin_leaf() { return data_; }
  Tensor data_;
};

namespace random {

using Where = std::source_location;

/// [seed >> 32, seed & 0xffffffff] for seeds from 0 on, [0, seed & 0xffffffff] for negative ones of 32 bits.
Key key(std::int64_t seed);
/// Two keys, n keys: auto [next, use] = split(key), split<3>(key), split(key, n) with n >= 0. None equals `key`.
std::pair<Key, Key> split(const Key& key, Where where = Where::current());
Keys split(const Key& key, std::int64_t n, Where where = Where::current());
template <std::size_t n>
std::array<Key, n> split(const Key& key, Where where = Where::current()) {
  const Keys keys = split(key, static_cast<std::int64_t>(n), where);
  std::array<Key, n> result;
  for (std::size_t i = 0; i < n; ++i) result[i] = keys[static_cast<std::int64_t>(i)];
  return result;
}
/// A new key from a key and a number, for example the step: an integer of rank 0, which may be traced.
Key fold_in(const Key& key, const Operand& data);

/// Uniform bits as u8, u16, u32 or u64.
Tensor bits(const Key& key, const IntList& shape, DType dtype = u32, Where where = Where::current());
/// low + (high - low) * u with u in [0, 1) from the highest bits; bounds broadcast to the shape.
Tensor uniform(const Key& key, const IntList& shape = {}, const Operand& low = 0.0, const Operand& high = 1.0,
               DType dtype = f32, Where where = Where::current());
/// Mean 0, deviation 1: sqrt(2) * erf_inv(u), u uniform in (-1, 1).
Tensor normal(const Key& key, const IntList& shape = {}, DType dtype = f32, Where where = Where::current());
/// Normal, kept within [low, high]: sqrt(2) * erf_inv(u), u uniform between erf(low / sqrt(2)) and erf(high / sqrt(2)).
/// Bounds broadcast to the shape.
Tensor truncated_normal(const Key& key, const Operand& low, const Operand& high, const IntList& shape = {},
                        DType dtype = f32, Where where = Where::current());
/// bool: true with probability p, uniform < p. p broadcasts to the shape; without a shape the result has p's.
Tensor bernoulli(const Key& key, const Operand& p = 0.5, const IntList& shape = {}, Where where = Where::current());
/// Whole numbers in [low, high), of an integer dtype; low where high <= low. Bounds outside the dtype are moved to its
/// edge: randint(key, shape, 0, 256, u8).
Tensor randint(const Key& key, const IntList& shape, const Operand& low, const Operand& high, DType dtype = i32,
               Where where = Where::current());
/// -log(-log(u)).
Tensor gumbel(const Key& key, const IntList& shape = {}, DType dtype = f32, Where where = Where::current());
/// -log1p(-u): mean 1.
Tensor exponential(const Key& key, const IntList& shape = {}, DType dtype = f32, Where where = Where::current());
/// An index (i32) along `axis`, with probabilities softmax(logits): argmax(logits + gumbel). `shape`: of the result,
/// whose last axes are those of logits without `axis`.
Tensor categorical(const Key& key, const Operand& logits, std::int64_t axis = -1, const std::optional<IntList>& shape = {},
                   Where where = Where::current());
/// 0, ..., n - 1 (i32) in random order.
Tensor permutation(const Key& key, std::int64_t n, Where where = Where::current());
/// x with its elements along axis 0 in random order; rank 0 is an error.
Tensor permutation(const Key& key, const Tensor& x, Where where = Where::current());

}  // namespace random
}  // namespace burin
