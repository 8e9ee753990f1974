// A decoder-only Transformer in plain C++: sections 2 to 7 are the model and its training step, section 8 checks it.
#include <burin/burin.h>

#include <chrono>
#include <cmath>
#include <iostream>
#include <string>
#include <tuple>
#include <vector>
using namespace burin;

// ---- 2. components ----------------------------------------------------------------------------------------------------
Tensor linear(const Tensor& w, const Tensor& x) { return matmul(x, w); }

Tensor rms_norm(const Tensor& scale, const Tensor& x, double eps = 1e-6) {
  Tensor x32 = x.astype(f32);
  Tensor rms = sqrt(mean(square(x32), -1, keepdims) + eps);
  return (x32 / rms).astype(x.dtype()) * scale;
}

// ---- 3. causal self-attention -----------------------------------------------------------------------------------------
struct Attention { Tensor wq, wk, wv, wo;  BURIN_TREE(wq, wk, wv, wo) };

Tensor causal_self_attention(const Attention& p, const Tensor& x, int num_heads) {
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

Tensor mlp(const Mlp& p, const Tensor& x) { return linear(p.w2, nn::gelu(linear(p.w1, x))); }

Tensor block(const Block& p, Tensor x, int num_heads) {
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

Tensor normal(const Key& key, Shape shape, double scale = 0.02) { return scale * random::normal(key, shape); }

Block init_block(const Key& key, std::int64_t dim) {
  auto keys = random::split(key, 6);
  return {.norm1 = ones({dim}),
          .attn = {.wq = normal(keys[0], {dim, dim}), .wk = normal(keys[1], {dim, dim}),
                   .wv = normal(keys[2], {dim, dim}), .wo = normal(keys[3], {dim, dim})},
          .norm2 = ones({dim}),
          .mlp = {.w1 = normal(keys[4], {dim, 4 * dim}), .w2 = normal(keys[5], {4 * dim, dim})}};
}

Params init_model(const Key& key, int vocab_size, int max_seq_len, int dim, int num_layers) {
  auto keys = random::split(key, num_layers + 3);
  Params p{.token_embedding = normal(keys[0], {vocab_size, dim}), .position_embedding = normal(keys[1], {max_seq_len, dim}),
           .blocks = {}, .final_norm = ones({dim}), .lm_head = normal(keys[-1], {dim, vocab_size})};
  for (int i = 0; i < num_layers; ++i) p.blocks.push_back(init_block(keys[i + 2], dim));
  return p;
}

// ---- 6. forward -------------------------------------------------------------------------------------------------------
Tensor model(const Params& p, const Tensor& token_ids, int num_heads) {
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

Tensor cross_entropy(const Tensor& logits, const Tensor& targets) {
  Tensor log_probs = log_softmax(logits, -1);
  Tensor chosen = take_along_axis(log_probs, targets[{ellipsis, newaxis}], -1)[{ellipsis, 0}];
  return -chosen.mean();
}

Tensor loss_fn(const Params& params, const Batch& batch, int num_heads) {
  return cross_entropy(model(params, batch.inputs, num_heads), batch.targets);
}

std::pair<Params, Tensor> train_step(const Params& params, const Batch& batch, const Tensor& rate) {
  auto [loss, grads] = value_and_grad(loss_fn)(params, batch, 4);
  return {tree::map([&](Tensor p, Tensor g) { return p - rate * g; }, params, grads), loss};
}
// ---- 8. checks ---------------------------------------------------------------------------------------------------------
bool all_ok = true;
void check(bool ok, const std::string& what) {
  std::cout << (ok ? "  ok    " : "  WRONG ") << what << std::endl;
  all_ok = all_ok && ok;
}

using Clock = std::chrono::steady_clock;
std::string milliseconds_since(Clock::time_point start) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count()) + " ms";
}

bool bitwise_equal(const Tensor& a, const Tensor& b) { return array_equal(bitcast(a, u32), bitcast(b, u32)); }

// Changing ids from position k of row 0 on must change nothing before k, nothing in row 1, and something from k on.
template <class Forward>
bool is_causal(const Forward& forward, const Tensor& ids, int vocab) {
  const auto [B, T] = ids.shape<2>();
  const Tensor before = forward(ids);
  for (int k = 1; k < T; ++k) {
    const Tensor changed = (arange(T) >= k) & (arange(B).reshape({B, 1}) == 0);
    const Tensor after = forward(where(changed, (ids + 7) % vocab, ids));
    if (!bitwise_equal(before[{all, first(k)}], after[{all, first(k)}])) return false;
    if (!bitwise_equal(before[1], after[1])) return false;
    if (bitwise_equal(before[{0, slice(k, T)}], after[{0, slice(k, T)}])) return false;
  }
  return true;
}

void show_compilation(const Params& params, const Batch& batch) {
  const auto start = Clock::now();
  const auto forward = jit([](Params p, Batch b) { return loss_fn(p, b, 4); }).lower(params, batch);
  const auto step = jit(train_step).lower(params, batch, 0.1);
  const Compiled compiled = step.compile();
  std::cout << "mini_transformer: traced " << forward.num_ops() << " ops, differentiated to " << step.num_ops() << ", fused into "
            << compiled.num_kernels() << " kernels (" << compiled.num_steps() << " calls), compiled in " << milliseconds_since(start)
            << ", peak memory " << compiled.peak_bytes() / 1024 << " KiB" << std::endl;
}

int run() {
  const int V = 32, T = 16, D = 64, H = 4, L = 2;
  const Params start = init_model(random::key(0), V, T, D, L);
  const Tensor inputs = arange(2 * T).reshape({2, T}) % V;
  const Batch batch{inputs, (inputs + 1) % V};
  show_compilation(start, batch);

  const Tensor logits = model(start, inputs, H);
  check(logits.shape() == Shape{2, T, V}, "shape: logits are " + to_string(logits.shape()));

  const auto step = jit(train_step);
  const auto [loss, grads] = value_and_grad(loss_fn)(start, batch, H);
  auto [params, first_loss] = step(start, batch, 1e-3);
  std::string unchanged;
  const auto before = tree::leaves(start), after = tree::leaves(params);
  for (std::size_t i = 0; i < before.size(); ++i)
    if (array_equal(before[i].second, after[i].second)) unchanged += ' ' + before[i].first;
  check(std::abs(float(loss) - float(first_loss)) < 1e-6 && bool(tree::all_finite(std::tuple{start, grads, params})) && unchanged.empty(),
        "step: returns the loss before its update, " + std::to_string(float(loss)) + "; all " + std::to_string(before.size()) +
            " leaves and their gradients are finite, a step changes each" + (unchanged.empty() ? "" : " but" + unchanged));

  const auto train = jit(train_step, {.donate = {0}});
  params = init_model(random::key(0), V, T, D, L);
  const auto begin = Clock::now();
  Tensor last;
  for (int i = 0; i < 500; ++i) std::tie(params, last) = train(params, batch, 0.1);
  const std::string took = milliseconds_since(begin);
  check(float(last) < 0.02f && array_equal(argmax(model(params, inputs, H), -1), batch.targets),
        "overfits: 500 steps bring the loss to " + std::to_string(float(last)) + " in " + took + ", all 32 predictions are right");

  const auto op_by_op = [&](const Tensor& ids) { return model(params, ids, H); };
  const auto compiled = jit([=](Params p, Tensor ids) { return model(p, ids, H); });
  check(is_causal(op_by_op, inputs, V) && is_causal([&](const Tensor& ids) { return compiled(params, ids); }, inputs, V),
        "causal: no logit before k = 1..15 changes by a bit when ids from k on do, op by op and compiled");

  bool counts = tree::count(start) == 103'744;
  for (const auto& [v, t, d, l] : {std::tuple{32, 16, 64, 2}, {7, 3, 8, 1}, {1, 1, 4, 0}, {100, 10, 12, 3}, {13, 5, 20, 4}})
    counts = counts && tree::count(init_model(random::key(1), v, t, d, l)) == 2 * v * d + t * d + l * (12 * d * d + 2 * d) + d;
  check(counts, "size: 103,744 parameters, and 2VD + TD + L(12D^2 + 2D) + D in five configurations");
  return all_ok ? 0 : 1;
}

int main(int argc, char**) {
  if (argc > 1) {
    std::cerr << "mini_transformer: takes no arguments\n";
    return 2;
  }
  try {
    return run();
  } catch (const std::exception& error) {
    std::cerr << "mini_transformer: " << error.what() << '\n';
    return 1;
  }
}
