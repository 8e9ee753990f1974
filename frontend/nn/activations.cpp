#include <burin/nn.h>

#include <cmath>

#include <burin/trace.h>

namespace burin::nn {

Tensor gelu(const Operand& x, Gelu form) {
  library_function in("gelu", x.where);
  const Tensor& t = x.tensor;
  if (form == Gelu::erf) return 0.5 * t * erfc(-t * std::sqrt(0.5));
  // From 10 on tanh is 1 in every dtype, and the square of a larger number may overflow: its derivative would be 0 * inf.
  const Tensor c = clip(t, -10, 10);
  const Tensor inner = std::sqrt(2 / 3.14159265358979323846) * (c + 0.044715 * (c * c * c));
  return t * (0.5 * (1.0 + tanh(inner)));
}

Tensor relu(const Operand& x) {
  library_function in("relu", x.where);
  // The derivative at 0 is 0, as in JAX; NaN stays NaN.
  return where(x.tensor <= 0, zeros_like(x), x);
}

Tensor leaky_relu(const Operand& x, double slope) {
  library_function in("leaky_relu", x.where);
  return where(x.tensor >= 0, x, slope * x.tensor);
}

Tensor elu(const Operand& x, double alpha) {
  library_function in("elu", x.where);
  // The unused side of a where must not overflow: its derivative would be 0 times infinity.
  const Tensor positive = x.tensor > 0;
  return where(positive, x, alpha * expm1(where(positive, zeros_like(x), x)));
}

Tensor silu(const Operand& x) {
  library_function in("silu", x.where);
  return x.tensor * burin::sigmoid(x);
}

Tensor softplus(const Operand& x) {
  library_function in("softplus", x.where);
  return logaddexp(x, 0.0);
}

Tensor log_sigmoid(const Operand& x) {
  library_function in("log_sigmoid", x.where);
  return -logaddexp(-x.tensor, 0.0);
}

Tensor sigmoid(const Operand& x) { return burin::sigmoid(x); }
Tensor softmax(const Operand& x, std::int64_t axis) { return burin::softmax(x, axis); }
Tensor log_softmax(const Operand& x, std::int64_t axis) { return burin::log_softmax(x, axis); }

}  // namespace burin::nn
