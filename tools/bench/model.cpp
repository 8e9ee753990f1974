#include "tools/bench/model.h"

#include <cmath>

namespace bench {

using namespace burin;

Config config(const std::string& name) {
  if (name == "seed") return {32, 16, 64, 4, 2, 2};
  if (name == "small") return {4096, 256, 256, 8, 4, 4};
  if (name == "gpt2") return {50257, 256, 768, 12, 12, 1};
  throw Error("unknown configuration `" + name + "`: expected seed, small or gpt2");
}

Params init(const Config& c) {
  const auto keys = random::split(random::key(0), 3 + 6 * c.layers);
  std::int64_t next = 0;
  const auto draw = [&](std::int64_t rows, std::int64_t columns) { return 0.02 * random::normal(keys[next++], {rows, columns}); };
  const std::int64_t d = c.width;
  Params p;
  p.token_embedding = draw(c.vocabulary, d);
  p.position_embedding = draw(c.positions, d);
  p.head = draw(d, c.vocabulary);
  p.norm = ones({d});
  for (std::int64_t i = 0; i < c.layers; ++i) {
    Block b;
    b.norm1 = ones({d});
    b.wq = draw(d, d);
    b.wk = draw(d, d);
    b.wv = draw(d, d);
    b.wo = draw(d, d);
    b.norm2 = ones({d});
    b.w1 = draw(d, 4 * d);
    b.w2 = draw(4 * d, d);
    p.blocks.push_back(b);
  }
  return p;
}

Tensor rms_norm(const Tensor& scale, const Tensor& x) {
  const Tensor x32 = x.astype(f32);
  return (x32 / sqrt(mean(x32 * x32, -1, keepdims) + 1e-6)).astype(x.dtype()) * scale.astype(x.dtype());
}

Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  const auto t = q.shape()[2], d = q.shape()[3];
  const Tensor scores = dot_general(q, k, {3}, {3}, {0, 1}, {0, 1}, f32) / std::sqrt(static_cast<double>(d));
  const Tensor mask = tril(ones({t, t}, bool_));
  return matmul(softmax(where(mask, scores, -inf), -1).astype(v.dtype()), v);
}

Tensor loss(const Params& p, const Tensor& ids, const Tensor& targets, std::int64_t heads, DType dtype) {
  const auto cast = [&](const Tensor& w) { return w.astype(dtype); };
  const auto b = ids.shape()[0], t = ids.shape()[1];
  Tensor x = cast(p.token_embedding)[ids] + cast(p.position_embedding)[first(t)];
  const auto d = x.shape()[2];
  const auto split = [&](const Tensor& y) { return y.reshape({b, t, heads, d / heads}).transpose({0, 2, 1, 3}); };
  for (const Block& l : p.blocks) {
    const Tensor h = rms_norm(l.norm1, x);
    const Tensor o = causal_attention(split(matmul(h, cast(l.wq))), split(matmul(h, cast(l.wk))), split(matmul(h, cast(l.wv))));
    x = x + matmul(o.transpose({0, 2, 1, 3}).reshape({b, t, d}), cast(l.wo));
    x = x + matmul(nn::gelu(matmul(rms_norm(l.norm2, x), cast(l.w1))), cast(l.w2));
  }
  const Tensor logits = matmul(rms_norm(p.norm, x), cast(p.head)).astype(f32);
  const Tensor log_probs = log_softmax(logits, -1);
  return -take_along_axis(log_probs, targets[{ellipsis, newaxis}], -1).mean();
}

}  // namespace bench
