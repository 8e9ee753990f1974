// Layers and losses, written with public ops only: copy one and change it when it does not fit.
// Their ops carry the caller's line: "model.cpp:42, in rms_norm".
#pragma once
#include <optional>

#include <burin/ops.h>
#include <burin/random.h>

namespace burin::nn {

using Where = std::source_location;

/// x @ w (+ b); w is [in, out].
Tensor linear(const Operand& x, const Tensor& w, const std::optional<Tensor>& b = {});
/// Rows of table at ids; negative ids and ids past the end are errors.
Tensor embedding(const Operand& table, const Tensor& ids);
/// x / sqrt(mean(x^2) + eps) * scale over the last axis, with statistics in f32.
Tensor rms_norm(const Operand& x, const Tensor& scale, double eps = 1e-6);
/// (x - mean) / sqrt(var + eps) * scale + bias over the last axis, with statistics in f32.
Tensor layer_norm(const Operand& x, const Tensor& scale, const std::optional<Tensor>& bias = {}, double eps = 1e-5);

enum class Gelu : std::uint8_t { tanh, erf };
/// The tanh form unless asked for erf, as in JAX.
Tensor gelu(const Operand& x, Gelu form = Gelu::tanh);
Tensor relu(const Operand& x);
Tensor leaky_relu(const Operand& x, double slope = 0.01);
Tensor elu(const Operand& x, double alpha = 1.0);
Tensor silu(const Operand& x);
Tensor softplus(const Operand& x);
Tensor log_sigmoid(const Operand& x);
Tensor sigmoid(const Operand& x);
Tensor softmax(const Operand& x, std::int64_t axis = -1);
Tensor log_softmax(const Operand& x, std::int64_t axis = -1);

struct AttentionOptions {
  bool causal = false;
  /// 0: 1 / sqrt(head size).
  double scale = 0;
  /// With `causal`, query i sees keys up to i + offset. Unset: the last query sees every key.
  std::optional<std::int64_t> offset = {};
};
/// softmax(q k^T * scale) v. q is [..., Tq, H, D] and k, v are [..., Tk, H, D] as in jax.nn.dot_product_attention.
/// k and v may have fewer heads, a divisor of q's: query head h then reads head h / (query heads / key heads).
/// `mask` (bool, broadcast to [..., H, Tq, Tk]) keeps what is true. A query that sees no key gives zeros.
Tensor attention(const Operand& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {},
                 const std::optional<Tensor>& mask = {});

/// The mean of -log softmax(logits)[target] over all positions, or over those where `valid` holds; of none: 0.
/// Targets out of range are errors at valid positions.
Tensor cross_entropy(const Operand& logits, const Tensor& targets, const std::optional<Tensor>& valid = {});
/// The same per position.
Tensor cross_entropy_per_position(const Operand& logits, const Tensor& targets);
/// x with a share p of its elements zeroed and the others scaled by 1 / (1 - p).
Tensor dropout(const Key& key, const Operand& x, double p);

}  // namespace burin::nn
