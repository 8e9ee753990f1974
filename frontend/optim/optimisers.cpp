#include <burin/optim.h>

#include <cmath>

#include "base/message_ids.h"

namespace burin {
namespace detail {

void check_like(const char* function, const PathFlattening& params, const PathFlattening& tree, const char* what,
                std::source_location where) {
  if (params.structure != tree.structure) fail_tree_mismatch(function, params, "the parameters", tree, what, where);
  for (std::size_t i = 0; i < params.leaves.size(); ++i) {
    const Tensor &p = *params.leaves[i], &t = *tree.leaves[i];
    if (!t.defined() || p.shape() == t.shape()) continue;  // an op says what is wrong with a leaf without value
    const std::string& path = params.paths[i];
    fail_at(where_text(where), Msg::optimiser_leaf, function, path.empty() ? "tensor" : path, what, to_string(p.shape()),
            to_string(t.shape()));
  }
}

void check_scalar(const char* function, const char* what, const Operand& number) {
  const Shape shape = number.tensor.shape(number.where);
  if (shape.rank() != 0)
    fail_at(where_text(number.where), Msg::expected_number, function, what,
            to_string(ir::Type{number.tensor.dtype(), shape}));
}

Tensor global_norm(const std::vector<Tensor*>& leaves) {
  Tensor total = zeros({});
  for (const Tensor* leaf : leaves) {
    const Tensor wide = is_half(leaf->dtype()) ? leaf->astype(f32) : *leaf;
    total = total + sum(square(wide));
  }
  // The square root has no derivative at zero; there the norm counts as constant.
  const Tensor nothing = total == 0;
  return where(nothing, 0.0, sqrt(where(nothing, 1.0, total)));
}

Tensor clip_leaf(const Tensor& leaf, const Tensor& norm, const Tensor& max_norm) {
  const Tensor small = norm < max_norm;
  const Tensor divisor = where(small, 1.0, norm).astype(leaf.dtype());
  return where(small, leaf, ((leaf / divisor) * max_norm).astype(leaf.dtype()));
}

Tensor adam_update(const Tensor& p, const Tensor& m, const Tensor& v, const Tensor& count, const Tensor& rate,
                   const AdamOptions& options, bool decay) {
  const Tensor m_hat = m / (1 - pow(options.b1, count)).astype(m.dtype());
  const Tensor v_hat = v / (1 - pow(options.b2, count)).astype(v.dtype());
  Tensor update = m_hat / (sqrt(v_hat) + options.eps);
  if (decay && options.weight_decay != 0) update = update + options.weight_decay * p;
  return p - (rate * update).astype(p.dtype());
}

}  // namespace detail

namespace optim {

Tensor warmup_cosine(const Operand& step, double peak, std::int64_t warmup, std::int64_t total, double initial,
                     double final) {
  library_function in("warmup_cosine", step.where);
  if (warmup < 0 || total <= warmup)
    fail_at(detail::where_text(step.where), Msg::warmup_cosine_steps, warmup, total);
  const Tensor count = astype(step, f32);
  const Tensor rising = warmup == 0 ? Tensor(peak)
                                    : (initial - peak) * (1 - clip(count, 0.0, static_cast<double>(warmup)) /
                                                                  static_cast<double>(warmup)) + peak;
  const double length = static_cast<double>(total - warmup), alpha = peak == 0 ? 0 : final / peak;
  const Tensor past = clip(count - static_cast<double>(warmup), 0.0, length);
  const Tensor cosine = 0.5 * (1 + cos(3.14159265358979323846 * past / length));
  const Tensor falling = peak * ((1 - alpha) * cosine + alpha);
  return where(count < static_cast<double>(warmup), rising, falling);
}

}  // namespace optim
}  // namespace burin
