// Layers and losses, written with public ops only: copy one and change it when it does not fit. Their ops carry the
// caller's line: "model.cpp:42, in rms_norm". Shapes that do not fit are errors of the op that meets them, with that
// line; vectors of
// another shape than is said, and masks that are no bools, are errors that name them. Unless said otherwise results have the dtype of x, half types are f32 inside, and x has any leading axes.
#pragma once
#include <optional>

#include <burin/ops.h>
#include <burin/random.h>

namespace burin::nn {

using Where = std::source_location;

/// x @ w (+ b): x [..., in], w [in, out], b [out] give [..., out], of the promoted dtype.
Tensor linear(const Operand& x, const Tensor& w, const std::optional<Tensor>& b = {});
/// Rows of table [n, D] at integer ids [...]: [..., D]. Negative ids and ids past the end are errors of the call that
/// runs.
Tensor embedding(const Operand& table, const Tensor& ids);
/// x / sqrt(mean(x^2) + eps) * scale over the last axis, D long, with statistics in f32; scale is [D]. A row of zeros
/// gives zeros, with finite gradients. (Zhang and Sennrich, "Root mean square layer normalization", 2019.)
Tensor rms_norm(const Operand& x, const Tensor& scale, double eps = 1e-6);
/// (x - mean) / sqrt(var + eps) * scale + bias over the last axis, D long, with statistics in f32 and var the mean of
/// squares of x - mean; scale and bias are [D]. (Ba, Kiros and Hinton, "Layer normalization", 2016.)
Tensor layer_norm(const Operand& x, const Tensor& scale, const std::optional<Tensor>& bias = {}, double eps = 1e-5);

enum class Gelu : std::uint8_t { tanh, erf };
// Activations: element by element, the shape and dtype of x; integers become f32.
/// x * Phi(x) (Hendrycks and Gimpel, 2016): 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as in JAX unless asked
/// for erf: 0.5 x erfc(-x / sqrt(2)). Gradients are finite everywhere.
Tensor gelu(const Operand& x, Gelu form = Gelu::tanh);
/// max(x, 0), whose derivative at 0 is 0.
Tensor relu(const Operand& x);
/// x where x >= 0, else slope * x.
Tensor leaky_relu(const Operand& x, double slope = 0.01);
/// x where x > 0, else alpha * (exp(x) - 1).
Tensor elu(const Operand& x, double alpha = 1.0);
/// x * sigmoid(x).
Tensor silu(const Operand& x);
/// log(1 + exp(x)).
Tensor softplus(const Operand& x);
/// -softplus(-x).
Tensor log_sigmoid(const Operand& x);
/// The functions of ops.h.
Tensor sigmoid(const Operand& x);
Tensor softmax(const Operand& x, std::int64_t axis = -1);
Tensor log_softmax(const Operand& x, std::int64_t axis = -1);

struct AttentionOptions {
  bool causal = false;
  /// 0: 1 / sqrt(head size).
  double scale = 0;
  /// With `causal`, query i sees keys up to i + offset. Unset: the last query sees every key.
  std::optional<std::int64_t> offset = {};
  /// Only keys before it are seen: an integer for all, or one for each position along the axes before Tq. It may change
  /// from call to call; what lies beyond it takes no time.
  std::optional<Tensor> kv_length = {};
};
/// softmax(q k^T * scale) v. q is [..., Tq, H, D] and k, v are [..., Tk, H, D] as in jax.nn.dot_product_attention.
/// k and v may have fewer heads, a divisor of q's: query head h then reads head h / (query heads / key heads).
/// `mask` (bool, broadcast to [..., H, Tq, Tk]) keeps what is true. A query that sees no key gives zeros.
Tensor attention(const Operand& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {},
                 const std::optional<Tensor>& mask = {});

/// The mean of -log softmax(logits)[target] over all positions, or over those where `valid` holds; of none: 0. Logits
/// are [..., V], integer targets and bool `valid` [...]; the result is a scalar, f32 for half types. Targets out of
/// range (negative ones too) are errors of the call that runs, at valid positions.
Tensor cross_entropy(const Operand& logits, const Tensor& targets, const std::optional<Tensor>& valid = {});
/// The same per position, [...], in the dtype of the logits.
Tensor cross_entropy_per_position(const Operand& logits, const Tensor& targets);
/// x with a share p, 0 <= p < 1 (else an error), of its elements zeroed and the others scaled by 1 / (1 - p).
Tensor dropout(const Key& key, const Operand& x, double p);

}  // namespace burin::nn
