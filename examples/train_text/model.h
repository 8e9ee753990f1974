// The tutorial's Transformer over bytes.
#pragma once
#include <burin/burin.h>

#include <cmath>
#include <string>
#include <vector>

namespace text_model {

using namespace burin;

struct Config {
  int vocabulary = 256, positions = 64, width = 128, heads = 4, layers = 3;
};

struct Block {
  Tensor norm1, wq, wk, wv, wo, norm2, w1, w2;
  BURIN_TREE(norm1, wq, wk, wv, wo, norm2, w1, w2)
};
struct Params {
  Tensor token_embedding, position_embedding;
  std::vector<Block> blocks;
  Tensor final_norm, lm_head;
  BURIN_TREE(token_embedding, position_embedding, blocks, final_norm, lm_head)
};
struct Batch {
  Tensor inputs, targets;
  BURIN_TREE(inputs, targets)
};

inline Params init(const Key& key, const Config& c) {
  const auto keys = random::split(key, 3 + 6 * c.layers);
  std::int64_t next = 0;
  const auto draw = [&](std::int64_t rows, std::int64_t columns, double scale) {
    return scale * random::normal(keys[next++], {rows, columns});
  };
  const double residual = 0.02 / std::sqrt(2.0 * c.layers);  // as many branches add to the residual stream
  const int d = c.width;
  Params p{.token_embedding = draw(c.vocabulary, d, 0.02), .position_embedding = draw(c.positions, d, 0.02), .blocks = {},
           .final_norm = ones({d}), .lm_head = draw(d, c.vocabulary, 0.02)};
  for (int i = 0; i < c.layers; ++i)
    p.blocks.push_back({.norm1 = ones({d}), .wq = draw(d, d, 0.02), .wk = draw(d, d, 0.02), .wv = draw(d, d, 0.02),
                        .wo = draw(d, d, residual), .norm2 = ones({d}), .w1 = draw(d, 4 * d, 0.02), .w2 = draw(4 * d, d, residual)});
  return p;
}

inline Tensor attention(const Block& p, const Tensor& x, int heads) {
  const auto [b, t, d] = x.shape<3>();
  const auto split = [&, b = b, t = t, d = d](const Tensor& y) { return y.reshape({b, t, heads, d / heads}).transpose({0, 2, 1, 3}); };
  const Tensor q = split(matmul(x, p.wq)), k = split(matmul(x, p.wk)), v = split(matmul(x, p.wv));
  const Tensor scores = matmul(q, k.swapaxes(-1, -2)) / std::sqrt(static_cast<double>(d / heads));
  const Tensor weights = softmax(where(tril(ones({t, t}, bool_)), scores, -inf), -1);
  return matmul(matmul(weights, v).transpose({0, 2, 1, 3}).reshape({b, t, d}), p.wo);
}

/// Logits [B,T,256] of ids [B,T]; `rms`, when given, receives the root mean square of the residual stream after each block.
inline Tensor forward(const Params& p, const Tensor& ids, int heads, std::vector<Tensor>* rms = nullptr) {
  Tensor x = p.token_embedding[ids] + p.position_embedding[first(ids.shape<2>()[1])];
  for (std::size_t i = 0; i < p.blocks.size(); ++i) {
    named_scope scope("block" + std::to_string(i));
    x += attention(p.blocks[i], nn::rms_norm(x, p.blocks[i].norm1), heads);
    x += matmul(nn::gelu(matmul(nn::rms_norm(x, p.blocks[i].norm2), p.blocks[i].w1)), p.blocks[i].w2);
    if (rms != nullptr) rms->push_back(sqrt(mean(square(x))));
  }
  return matmul(nn::rms_norm(x, p.final_norm), p.lm_head);
}

/// Mean of -log p(next byte), in nats.
inline Tensor loss(const Params& p, const Batch& batch, int heads) {
  return nn::cross_entropy(forward(p, batch.inputs, heads), batch.targets);
}

}  // namespace text_model
