// The benchmark's Transformer: the tutorial's, with the dtype of the computation as a parameter (parameters stay f32).
#pragma once
#include <burin/burin.h>

#include <string>
#include <vector>

namespace bench {

using burin::DType;
using burin::Tensor;

struct Config {
  std::int64_t vocabulary, positions, width;
  std::int64_t heads, layers, batch;
};
/// seed, small, gpt2; throws burin::Error for another name.
Config config(const std::string& name);

struct Block {
  Tensor norm1, wq, wk, wv, wo, norm2, w1, w2;
  BURIN_TREE(norm1, wq, wk, wv, wo, norm2, w1, w2)
};
struct Params {
  Tensor token_embedding, position_embedding, head, norm;
  std::vector<Block> blocks;
  BURIN_TREE(token_embedding, position_embedding, head, norm, blocks)
};

/// 0.02 * normal from key(0) split into 3 + 6 * layers keys, drawn as token embedding, position embedding, head, then per block
/// wq, wk, wv, wo, w1, w2; norms are ones.
Params init(const Config& c);
Tensor rms_norm(const Tensor& scale, const Tensor& x);
/// q, k, v: [B,H,T,D]; scores and softmax in f32.
Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v);
Tensor loss(const Params& p, const Tensor& ids, const Tensor& targets, std::int64_t heads, DType dtype);

}  // namespace bench
