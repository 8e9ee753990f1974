// The tutorial's model, for tests of whole programs.
#pragma once
#include <burin/burin.h>

#include <cmath>
#include <string>
#include <vector>

namespace burin::test {

// ---- 2. components ----------------------------------------------------------------------------------------------------
inline Tensor linear(const Tensor& w, const Tensor& x) { return matmul(x, w); }

inline Tensor rms_norm(const Tensor& scale, const Tensor& x, double eps = 1e-6) {
  Tensor x32 = x.astype(f32);
  Tensor rms = sqrt(mean(square(x32), -1, keepdims) + eps);
  return (x32 / rms).astype(x.dtype()) * scale;
}

// ---- 3. causal self-attention -----------------------------------------------------------------------------------------
struct Attention { Tensor wq, wk, wv, wo;  BURIN_TREE(wq, wk, wv, wo) };

inline Tensor causal_self_attention(const Attention& p, const Tensor& x, int num_heads) {
  auto [B, T, D] = x.shape<3>();
  if (D % num_heads != 0) throw Error("causal_self_attention: " + std::to_string(num_heads) + " heads do not divide a width of " + std::to_string(D));
  auto Dh = D / num_heads;

  auto split_heads = [=](Tensor t) { return t.reshape({B, T, num_heads, Dh}).transpose({0, 2, 1, 3}); };  // [B,H,T,Dh]
  Tensor q = split_heads(linear(p.wq, x)), k = split_heads(linear(p.wk, x)), v = split_heads(linear(p.wv, x));

  Tensor scores = matmul(q, k.swapaxes(-1, -2)) / std::sqrt(Dh);            // [B,H,T,T]
  Tensor mask = tril(ones({T, T}, bool_));                                   // position i sees <= i
  Tensor weights = softmax(where(mask, scores, -inf), -1);

  Tensor context = matmul(weights, v).transpose({0, 2, 1, 3}).reshape({B, T, D});
  return linear(p.wo, context);
}

// ---- 4. MLP and block -------------------------------------------------------------------------------------------------
struct Mlp   { Tensor w1, w2;  BURIN_TREE(w1, w2) };
struct Block { Tensor norm1; Attention attn; Tensor norm2; Mlp mlp;  BURIN_TREE(norm1, attn, norm2, mlp) };

inline Tensor mlp(const Mlp& p, const Tensor& x) { return linear(p.w2, nn::gelu(linear(p.w1, x))); }

inline Tensor block(const Block& p, Tensor x, int num_heads) {
  x += causal_self_attention(p.attn, rms_norm(p.norm1, x), num_heads);
  x += mlp(p.mlp, rms_norm(p.norm2, x));
  return x;
}

// ---- 5. parameters ----------------------------------------------------------------------------------------------------
struct Params {
  Tensor token_embedding, position_embedding;
  std::vector<Block> blocks;
  Tensor final_norm, lm_head;
  BURIN_TREE(token_embedding, position_embedding, blocks, final_norm, lm_head)
};

inline Tensor normal(const Key& key, Shape shape, double scale = 0.02) { return scale * random::normal(key, shape); }

inline Block init_block(const Key& key, std::int64_t dim) {
  auto keys = random::split(key, 6);
  return {.norm1 = ones({dim}),
          .attn = {.wq = normal(keys[0], {dim, dim}), .wk = normal(keys[1], {dim, dim}),
                   .wv = normal(keys[2], {dim, dim}), .wo = normal(keys[3], {dim, dim})},
          .norm2 = ones({dim}),
          .mlp = {.w1 = normal(keys[4], {dim, 4 * dim}), .w2 = normal(keys[5], {4 * dim, dim})}};
}

inline Params init_model(const Key& key, int vocab_size, int max_seq_len, int dim, int num_layers) {
  auto keys = random::split(key, num_layers + 3);
  Params p{.token_embedding = normal(keys[0], {vocab_size, dim}), .position_embedding = normal(keys[1], {max_seq_len, dim}),
           .blocks = {}, .final_norm = ones({dim}), .lm_head = normal(keys[-1], {dim, vocab_size})};
  for (int i = 0; i < num_layers; ++i) p.blocks.push_back(init_block(keys[i + 2], dim));
  return p;
}

// ---- 6. forward -------------------------------------------------------------------------------------------------------
inline Tensor model(const Params& p, const Tensor& token_ids, int num_heads) {
  auto [B, T] = token_ids.shape<2>();
  Tensor x = p.token_embedding[token_ids] + p.position_embedding[first(T)];   // [B,T,D] + [T,D]
  for (std::size_t i = 0; i < p.blocks.size(); ++i) {
    named_scope scope("block" + std::to_string(i));
    x = block(p.blocks[i], x, num_heads);
  }
  return linear(p.lm_head, rms_norm(p.final_norm, x));                         // [B,T,V]
}

// ---- 7. loss and training step ----------------------------------------------------------------------------------------
struct Batch { Tensor inputs, targets;  BURIN_TREE(inputs, targets) };

inline Tensor cross_entropy(const Tensor& logits, const Tensor& targets) {
  Tensor log_probs = log_softmax(logits, -1);
  Tensor chosen = take_along_axis(log_probs, targets[{ellipsis, newaxis}], -1)[{ellipsis, 0}];
  return -chosen.mean();
}

inline Tensor loss_fn(const Params& params, const Batch& batch, int num_heads) {
  return cross_entropy(model(params, batch.inputs, num_heads), batch.targets);
}

inline auto train_step_with(int num_heads) {
  return [num_heads](const Params& params, const Batch& batch, const Tensor& rate) -> std::pair<Params, Tensor> {
    auto [loss, grads] = value_and_grad(loss_fn)(params, batch, num_heads);
    return {tree::map([&](Tensor p, Tensor g) { return p - rate * g; }, params, grads), loss};
  };
}

inline std::pair<Params, Tensor> train_step(const Params& params, const Batch& batch, const Tensor& rate) {
  return train_step_with(4)(params, batch, rate);
}
}  // namespace burin::test
