// Random numbers: JAX's threefry2x32 in its partitionable form. The same key gives the same bits as JAX, everywhere.
#pragma once
#include <array>
#include <optional>
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

/// Several keys: keys[i], keys[-1].
class Keys {
 public:
  Keys() = default;
  /// From a u32[n,2].
  explicit Keys(Tensor data) : data_(std::move(data)) {}
  Key operator[](std::int64_t i) const;
  std::int64_t size() const { return data_.shape()[0]; }
  const Tensor& data() const { return data_; }

 private:
  friend struct detail::TreeAccess;
  Tensor& burin_leaf() { return data_; }
  Tensor data_;
};

namespace random {

using Where = std::source_location;

Key key(std::int64_t seed);
std::pair<Key, Key> split(const Key& key, Where where = Where::current());
Keys split(const Key& key, std::int64_t n, Where where = Where::current());
template <std::size_t n>
std::array<Key, n> split(const Key& key, Where where = Where::current()) {
  const Keys keys = split(key, static_cast<std::int64_t>(n), where);
  std::array<Key, n> result;
  for (std::size_t i = 0; i < n; ++i) result[i] = keys[static_cast<std::int64_t>(i)];
  return result;
}
/// A new key from a key and a number, for example the step.
Key fold_in(const Key& key, const Operand& data);

/// Uniform bits as u8, u16, u32 or u64.
Tensor bits(const Key& key, const Shape& shape, DType dtype = u32, Where where = Where::current());
/// In [low, high).
Tensor uniform(const Key& key, const Shape& shape = {}, const Operand& low = 0.0, const Operand& high = 1.0,
               DType dtype = f32, Where where = Where::current());
Tensor normal(const Key& key, const Shape& shape = {}, DType dtype = f32, Where where = Where::current());
/// Normal, kept within [low, high].
Tensor truncated_normal(const Key& key, const Operand& low, const Operand& high, const Shape& shape = {},
                        DType dtype = f32, Where where = Where::current());
Tensor bernoulli(const Key& key, const Operand& p = 0.5, const Shape& shape = {}, Where where = Where::current());
/// Whole numbers in [low, high). Bounds outside the dtype are moved to its edge: randint(key, shape, 0, 256, u8).
Tensor randint(const Key& key, const Shape& shape, const Operand& low, const Operand& high, DType dtype = i32,
               Where where = Where::current());
Tensor gumbel(const Key& key, const Shape& shape = {}, DType dtype = f32, Where where = Where::current());
Tensor exponential(const Key& key, const Shape& shape = {}, DType dtype = f32, Where where = Where::current());
/// An index (i32) along `axis`, with probabilities softmax(logits). `shape`: of the result, whose last axes are those of
/// logits without `axis`.
Tensor categorical(const Key& key, const Operand& logits, std::int64_t axis = -1, const std::optional<Shape>& shape = {},
                   Where where = Where::current());
/// 0, ..., n - 1 (i32) in random order.
Tensor permutation(const Key& key, std::int64_t n, Where where = Where::current());
/// x with its elements along axis 0 in random order.
Tensor permutation(const Key& key, const Tensor& x, Where where = Where::current());

}  // namespace random
}  // namespace burin
