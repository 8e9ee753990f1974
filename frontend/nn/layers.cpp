#include <burin/nn.h>

#include <cmath>

#include <burin/random.h>
#include <burin/trace.h>

#include "base/message_ids.h"

namespace burin::nn {
namespace {

void check_mask(const char* function, const char* what, const Tensor& mask, const std::source_location& where) {
  if (mask.dtype(where) != bool_)
    fail_at(detail::where_text(where), Msg::expected_mask, function, what, to_string(ir::Type{mask.dtype(), mask.shape()}));
}

// Broadcasting would take other shapes too, and give results of another shape than x.
void check_vector(const char* function, const char* what, const Tensor& vector, std::int64_t size,
                  const std::source_location& where) {
  const Shape expected{size};
  if (vector.shape(where) != expected)
    fail_at(detail::where_text(where), Msg::expected_vector, function, what, to_string(expected),
            to_string(ir::Type{vector.dtype(), vector.shape()}));
}

// [..., 1, 1, Tk] for q of shape [..., Tq, H, D].
Tensor before_length(const Tensor& length, const Shape& q, std::int64_t keys, const std::source_location& where) {
  const Shape given = length.shape(where), rows(std::span(q.begin(), q.rank() - 3));
  const std::string found = to_string(ir::Type{length.dtype(where), given});
  if (!is_int(length.dtype())) fail_at(detail::where_text(where), Msg::index_not_integer, "attention: kv_length", found);
  if (given.rank() != 0 && given != rows)
    fail_at(detail::where_text(where), Msg::expected_vector, "attention", "kv_length", to_string(rows), found);
  return arange(keys) < length[{ellipsis, newaxis, newaxis, newaxis}];
}

}  // namespace

Tensor linear(const Operand& x, const Tensor& w, const std::optional<Tensor>& b) {
  library_function in("linear", x.where);
  const Tensor y = matmul(x, w);
  if (!b) return y;
  check_vector("linear", "b", *b, w.shape().rank() == 0 ? 0 : w.shape()[w.shape().rank() - 1], x.where);
  return y + *b;
}

Tensor embedding(const Operand& table, const Tensor& ids) {
  library_function in("embedding", table.where);
  return take(table, ids, 0, Mode::strict);
}

Tensor rms_norm(const Operand& x, const Tensor& scale, double eps) {
  library_function in("rms_norm", x.where);
  const Tensor wide = is_half(x.tensor.dtype()) ? astype(x, f32) : x.tensor;
  const Tensor rms = sqrt(mean(square(wide), -1, keepdims) + eps);
  check_vector("rms_norm", "scale", scale, wide.shape()[wide.shape().rank() - 1], x.where);
  return astype(wide / rms, x.tensor.dtype()) * scale;
}

Tensor layer_norm(const Operand& x, const Tensor& scale, const std::optional<Tensor>& bias, double eps) {
  library_function in("layer_norm", x.where);
  const Tensor wide = is_half(x.tensor.dtype()) ? astype(x, f32) : x.tensor;
  const Tensor centred = wide - mean(wide, -1, keepdims);
  const std::int64_t size = wide.shape()[wide.shape().rank() - 1];
  check_vector("layer_norm", "scale", scale, size, x.where);
  if (bias) check_vector("layer_norm", "bias", *bias, size, x.where);
  const Tensor deviation = sqrt(mean(square(centred), -1, keepdims) + eps);
  const Tensor y = astype(centred / deviation, x.tensor.dtype()) * scale;
  return bias ? y + *bias : y;
}

Tensor attention(const Operand& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                 const std::optional<Tensor>& mask) {
  library_function in("attention", q.where);
  const Shape shape = q.tensor.shape(), keys = k.shape(), values = v.shape();
  const std::size_t rank = shape.rank();
  if (rank < 3 || keys.rank() != rank || values.rank() != rank || values[rank - 3] != keys[rank - 3] ||
      keys[rank - 1] != shape[rank - 1])
    fail_at(detail::where_text(q.where), Msg::attention_shapes, to_string(shape), to_string(keys), to_string(values));
  const std::int64_t queries = shape[rank - 3], seen = keys[rank - 3], heads = shape[rank - 2], shared = keys[rank - 2];
  if (values[rank - 2] != shared || (shared != heads && (shared == 0 || heads % shared != 0)))
    fail_at(detail::where_text(q.where), Msg::attention_heads, heads, shared, values[rank - 2]);
  if (mask) check_mask("attention", "mask", *mask, q.where);
  const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(shape[rank - 1]));
  // [..., H, Tq, Tk]; statistics of half types in f32.
  const auto for_each_query_head = [&](const Tensor& t) { return shared == heads ? t : repeat(t, heads / shared, -3); };
  const Tensor qh = q.tensor.swapaxes(-2, -3), kh = for_each_query_head(k.swapaxes(-2, -3)),
               vh = for_each_query_head(v.swapaxes(-2, -3));
  Tensor scores = matmul(qh, kh.swapaxes(-1, -2));
  if (is_half(scores.dtype())) scores = scores.astype(f32);
  scores = scores * scale;
  if (options.causal) {
    const std::int64_t offset = options.offset.value_or(seen - queries);
    scores = where(tril(ones({queries, seen}, bool_), offset), scores, -inf);
  }
  if (options.kv_length) scores = where(before_length(*options.kv_length, shape, seen, q.where), scores, -inf);
  if (mask) scores = where(*mask, scores, -inf);
  const Tensor weights = burin::softmax(scores, -1).astype(v.dtype());
  return matmul(weights, vh).swapaxes(-2, -3);
}

Tensor cross_entropy_per_position(const Operand& logits, const Tensor& targets) {
  library_function in("cross_entropy", logits.where);
  const Shape all = logits.tensor.shape(), found = targets.shape();
  const Shape rows(std::span<const std::int64_t>(all.begin(), all.rank() == 0 ? 0 : all.rank() - 1));
  if (all.rank() == 0 || found != rows)
    fail_at(detail::where_text(logits.where), Msg::cross_entropy_targets, to_string(rows), to_string(all), to_string(found));
  if (!is_int(targets.dtype()))
    fail_at(detail::where_text(logits.where), Msg::cross_entropy_target_dtype, to_string(ir::Type{targets.dtype(), found}));
  const Tensor log_probs = burin::log_softmax(logits, -1);
  const Tensor chosen = take_along_axis(log_probs, targets[{ellipsis, newaxis}], -1, Mode::strict);
  return -chosen[{ellipsis, 0}];
}

Tensor cross_entropy(const Operand& logits, const Tensor& targets, const std::optional<Tensor>& valid) {
  library_function in("cross_entropy", logits.where);
  if (!valid) return mean(cross_entropy_per_position(logits, targets));
  check_mask("cross_entropy", "valid", *valid, logits.where);
  const Tensor wide = is_half(logits.tensor.dtype()) ? astype(logits, f32) : logits.tensor;
  // A target that is not valid may be anything; it is not looked up.
  const Tensor losses = cross_entropy_per_position({wide, logits.where}, where(*valid, targets, zeros_like(targets)));
  const Tensor total = sum(where(*valid, losses, 0.0)), count = sum(valid->astype(losses.dtype()));
  return total / maximum(count, 1.0);
}

Tensor dropout(const Key& key, const Operand& x, double p) {
  library_function in("dropout", x.where);
  if (!(p >= 0 && p < 1)) fail_at(detail::where_text(x.where), Msg::dropout_share, p);
  if (p == 0) return x.tensor;
  const Tensor keep = random::bernoulli(key, 1 - p, x.tensor.shape());
  return where(keep, x.tensor / (1 - p), 0.0);
}

}  // namespace burin::nn
