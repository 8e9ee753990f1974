// What users read when they are wrong, word for word.
#include <burin/io.h>
#include <burin/npy.h>
#include <burin/optim.h>
#include <burin/testing.h>

#include <cstdlib>

#include "frontend/node.h"
#include "runtime/buffer.h"
#include "tests/frontend/expect.h"

namespace burin {
namespace {

using test::error_text;

template <class F>
std::string text_and_place(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}
// With the line of the macro behind the text.
#define EXPECT_MESSAGE_HERE(expression, text)                    \
  EXPECT_EQ(text_and_place([&] { (void)(expression); }),         \
            std::string(text) + " (messages_test.cpp:" + std::to_string(__LINE__) + ")")
#define EXPECT_MESSAGE(expression, text) EXPECT_EQ(error_text([&] { (void)(expression); }), text)

const Tensor x = ones({2, 3, 4}), m = ones({3, 4}), v = ones({3});

TEST(Messages, NameTheCallersLineAndScope) {
  std::string text;
  {
    named_scope outer("block0");
    named_scope inner("attn");
    try {
      (void)matmul(ones({8, 64}), ones({32, 16}));
    } catch (const Error& error) {
      text = error.what();
    }
  }
  EXPECT_EQ(text,
            "matmul: contracting sizes differ: lhs f32[8,64] axis 1 is 64, rhs f32[32,16] axis 0 is 32 "
            "(messages_test.cpp:41, in block0/attn)");
}

TEST(Messages, OfLibraryFunctionsNameTheUsersLineFirst) {
  std::string text;
  try {
    (void)nn::rms_norm(x, ones({5}));
  } catch (const Error& error) {
    text = error.what();
  }
  EXPECT_EQ(text, "rms_norm: scale: expected the shape [4], found f32[5] (messages_test.cpp:54, in rms_norm)");
}

TEST(Messages, OfTensors) {
  const Tensor none;
  EXPECT_MESSAGE_HERE(none.rank(), "a Tensor that was never given a value is used");
  EXPECT_MESSAGE_HERE(none.size(), "a Tensor that was never given a value is used");
  EXPECT_MESSAGE_HERE(none.dtype(), "a Tensor that was never given a value is used");
  EXPECT_MESSAGE_HERE(none.to_vector<float>(), "a Tensor that was never given a value is used");
  EXPECT_MESSAGE_HERE(zeros_like(none), "a Tensor that was never given a value is used");
  EXPECT_MESSAGE_HERE(tree::zeros_like(none), "a Tensor that was never given a value is used");
  EXPECT_MESSAGE_HERE(tree::count(none), "a Tensor that was never given a value is used");
  EXPECT_MESSAGE_HERE(none.shape(), "a Tensor that was never given a value is used");
  EXPECT_MESSAGE(none + 1, "a Tensor that was never given a value is used");
  EXPECT_MESSAGE(m.shape<3>(), "shape: expected 3 axes, found f32[3,4], which has 2");
  EXPECT_MESSAGE(float(m), "item: expected one element, found f32[3,4]");
  EXPECT_MESSAGE(m.data<double>(), "data: expected elements of f64, found f32[3,4]");
  EXPECT_MESSAGE(tensor({{1, 2}, {3}}), "tensor: the inner lists have different lengths");
  EXPECT_MESSAGE(tensor(std::vector<float>{1, 2}, Shape{3}), "tensor: 2 elements cannot fill the shape [3], which has 3");
  EXPECT_MESSAGE(arange(3) + 5'000'000'000, "the number 5000000000 does not fit i32");
  EXPECT_MESSAGE(tensor({1, 2}).astype(u8) * 300, "the number 300 does not fit u8");
  EXPECT_MESSAGE(abstract_tensor({2}).to_vector<float>(),
                 "an abstract_tensor, f32[2], has no elements: it serves lower and eval_shape only");
}

TEST(Messages, OfTracedValues) {
  const auto branches = [](Tensor a) { return float(a.sum()) > 0 ? a : -a; };
  const auto between = [](Tensor a) { return a > 0 && a < 3 ? a : -a; };
  const std::string below = std::to_string(__LINE__ - 1), above = std::to_string(__LINE__ - 2);
  EXPECT_MESSAGE(jit(branches)(v),
                 "a traced value (f32[], made at messages_test.cpp:" + above + ") has no elements while tracing: use `where` instead of "
                 "`if`, return it from the traced function, or pass it as a C++ number to make it static");
  EXPECT_MESSAGE(jit([](Tensor a) { return a * float(a); })(zeros({})),
                 "a traced value (arg0, f32[]) has no elements while tracing: use `where` instead of "
                 "`if`, return it from the traced function, or pass it as a C++ number to make it static");
  EXPECT_MESSAGE(jit(between)(zeros({})),
                 "a traced value (bool[], made at messages_test.cpp:" + below + ") has no elements while tracing: use "
                 "`where` instead of `if` and `&`, `|` instead of `&&`, `||`, return it from the traced function, or pass it as a C++ number to make it static");
  Tensor leaked;
  (void)jit([&](Tensor a) { return leaked = a * 2, a; })(v);
  const std::string leaked_at = std::to_string(__LINE__ - 1);
  EXPECT_MESSAGE(leaked + 1,
                 "a traced value (f32[3], made at messages_test.cpp:" + leaked_at + ") is used after its trace ended: return it from the "
                 "traced function instead of keeping it");
}

TEST(Messages, OfShapes) {
  EXPECT_MESSAGE(x + ones({5}), "add: f32[2,3,4] and f32[5] do not broadcast: axis -1 is 4 and 5");
  EXPECT_MESSAGE(sum(x, 3), "sum: axis 3 is out of range for f32[2,3,4], which has 3 axes");
  EXPECT_MESSAGE(sum(x, {1, -2}), "sum: axis 1 of f32[2,3,4] is named twice");
  EXPECT_MESSAGE(max(zeros({2, 0}), 1), "max: axis 1 of f32[2,0] is empty: there is no such element");
  EXPECT_MESSAGE(argmax(zeros({0})), "argmax: axis 0 of f32[0] is empty: there is no such element");
  EXPECT_MESSAGE(matmul(ones({2, 3, 4}), ones({5, 4, 2})),
                 "matmul: batch axes of f32[2,3,4] and f32[5,4,2] do not broadcast: 2 and 5");
  EXPECT_MESSAGE(matmul(Tensor(1.0), v), "matmul: expected at least one axis on both sides, found f32[] and f32[3]");
  EXPECT_MESSAGE(einsum("ij,jk", m, m), "einsum: `ij,jk`: there is no ->");
  EXPECT_MESSAGE(einsum("ij,jk,kl->il", m, m), "einsum: `ij,jk,kl->il`: it names 3 operands, at most two are possible: call einsum twice");
  EXPECT_MESSAGE(einsum("ij,jk->ik", m), "einsum: `ij,jk->ik`: it names 2 operands, found 1");
  EXPECT_MESSAGE(einsum("ij,jk->ik", m, v), "einsum: `ij,jk->ik`: `jk` has 2 labels, its operand f32[3] has 1 axis");
  EXPECT_MESSAGE(einsum("i->i", x), "einsum: `i->i`: `i` has 1 label, its operand f32[2,3,4] has 3 axes");
  EXPECT_MESSAGE(einsum("ij,jk->ik", m, m),
                 "einsum: `ij,jk->ik`: label j: its axis of f32[3,4] is 4, that of f32[3,4] is 3");
  EXPECT_MESSAGE(m.reshape({-1, -1}), "reshape: [-1,-1] has more than one extent that is left open, or a negative one");
  EXPECT_MESSAGE(m.reshape({5, -1}), "reshape: f32[3,4] has 12 elements, which cannot be [5,-1]");
  EXPECT_MESSAGE(m.transpose({0}), "transpose: [0] is no permutation of the axes of f32[3,4], which has 2 axes");
  EXPECT_MESSAGE(m.transpose({0, -2}), "transpose: [0,-2] is no permutation of the axes of f32[3,4], which has 2 axes");
  EXPECT_MESSAGE(eye(-1), "eye: expected a number of rows >= 0, found -1");
  EXPECT_MESSAGE(one_hot(arange(3), -1), "one_hot: expected a number of classes >= 0, found -1");
  EXPECT_MESSAGE(linspace(0, 1, -2), "linspace: expected a number of elements >= 0, found -2");
  EXPECT_MESSAGE(tril(v), "tril: expected at least two axes, found f32[3]");
  EXPECT_MESSAGE(m.squeeze(0), "squeeze: axis 0 of f32[3,4] has extent 3, not 1");
  EXPECT_MESSAGE(broadcast_to(m, {3, 5}), "broadcast_to: f32[3,4] does not broadcast to [3,5]");
  EXPECT_MESSAGE(concatenate({}), "concatenate: expected at least one tensor");
  EXPECT_MESSAGE(stack({m, v}), "stack: shapes differ: part 0 is f32[3,4], part 1 is f32[3]");
  EXPECT_MESSAGE(split(v, 2), "split: axis 0 of f32[3] does not divide into 2 equal parts");
  EXPECT_MESSAGE(pad(m, {1, 1, 1}, 0), "pad: 3 numbers for f32[3,4], which has 2 axes");
  EXPECT_MESSAGE(arange(0, 3, 0), "arange: the step is 0");
  EXPECT_MESSAGE(arange(3'000'000'000, 3'000'000'003), "the number 3000000000 does not fit i32");
  EXPECT_MESSAGE(arange(250, 258, 1, u8), "the number 257 does not fit u8");
  EXPECT_MESSAGE(arange(-1, 2, 1, u64), "the number -1 does not fit u64");
  EXPECT_MESSAGE(expand_dims(m, {9}), "expand_dims: axis 9 is out of range for the result of f32[3,4], which has 3 axes");
  EXPECT_MESSAGE(stack({v, v}, -3), "stack: axis -3 is out of range for the result of f32[3], which has 2 axes");
  EXPECT_MESSAGE(expand_dims(m, {0, -4}), "expand_dims: axis 0 of the result of f32[3,4] is named twice");
  EXPECT_MESSAGE(repeat(m, -2, 0), "repeat: expected a number of times >= 0, found -2");
  EXPECT_MESSAGE(repeat(m, std::int64_t{1} << 62, 0), "repeat: 4611686018427387904 times axis 0 of f32[3,4] is an extent beyond 64 bits");
}

// Extents that cannot be: the op and the caller's line are named, whoever finds out.
TEST(Messages, OfExtents) {
  const Key key = random::key(0);
  const Tensor eight = ones({1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_MESSAGE_HERE(ones({-3}), "ones: axis 0 has the negative extent -3");
  EXPECT_MESSAGE_HERE(zeros({2, -3}), "zeros: axis 1 has the negative extent -3");
  EXPECT_MESSAGE_HERE(full({-1}, 2.0), "full: axis 0 has the negative extent -1");
  EXPECT_MESSAGE_HERE(full({-1}, v.sum()), "full: axis 0 has the negative extent -1");
  EXPECT_MESSAGE_HERE(iota({-1}, 0), "iota: axis 0 has the negative extent -1");
  EXPECT_MESSAGE_HERE(broadcast_to(v, {-3}), "broadcast_to: axis 0 has the negative extent -3");
  EXPECT_MESSAGE_HERE(tensor(std::vector<float>{1}, {-1}), "tensor: axis 0 has the negative extent -1");
  EXPECT_MESSAGE_HERE(abstract_tensor({-2}), "abstract_tensor: axis 0 has the negative extent -2");
  EXPECT_MESSAGE_HERE((Shape{2, -1}), "shape: axis 1 has the negative extent -1");
  EXPECT_MESSAGE_HERE(ones(Shape{2, -1}), "shape: axis 1 has the negative extent -1");
  EXPECT_MESSAGE(random::bits(key, {-3}), "random::bits: axis 0 has the negative extent -3");
  EXPECT_MESSAGE(random::normal(key, {-3}), "random::normal: axis 0 has the negative extent -3");
  EXPECT_MESSAGE(random::uniform(key, {2, -3}), "random::uniform: axis 1 has the negative extent -3");
  EXPECT_MESSAGE(random::randint(key, {-3}, 0, 2), "random::randint: axis 0 has the negative extent -3");
  EXPECT_MESSAGE(random::gumbel(key, {-3}), "random::gumbel: axis 0 has the negative extent -3");
  EXPECT_MESSAGE(random::exponential(key, {-3}), "random::exponential: axis 0 has the negative extent -3");
  EXPECT_MESSAGE(random::bernoulli(key, 0.5, {-3}), "random::bernoulli: axis 0 has the negative extent -3");
  EXPECT_MESSAGE(random::truncated_normal(key, -1, 1, {-3}), "random::truncated_normal: axis 0 has the negative extent -3");
  EXPECT_MESSAGE(random::categorical(key, v, -1, Shape{1, 1, 1, 1, 1, 1, 1, 1}), "random::categorical: the result has 9 axes, at most 8 are possible");
  EXPECT_MESSAGE_HERE(jit([](Tensor a) { return a + ones({-3}); })(v), "ones: axis 0 has the negative extent -3");
  EXPECT_MESSAGE_HERE(ones({1, 1, 1, 1, 1, 1, 1, 1, 1}), "ones: the result has 9 axes, at most 8 are possible");
  EXPECT_MESSAGE_HERE((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), "shape: more than 8 axes");
  EXPECT_MESSAGE_HERE(m.reshape({3, 4, 1, 1, 1, 1, 1, 1, 1}), "reshape: the result has 9 axes, at most 8 are possible");
  EXPECT_MESSAGE_HERE(expand_dims(x, {0, 1, 2, 3, 4, 5}), "expand_dims: the result has 9 axes, at most 8 are possible");
  EXPECT_MESSAGE_HERE(stack({eight, eight}), "stack: the result has 9 axes, at most 8 are possible");
  EXPECT_MESSAGE(one_hot(eight.astype(i32), 3), "one_hot: the result has 9 axes, at most 8 are possible");
  EXPECT_MESSAGE_HERE((eight[{newaxis, ellipsis}]), "index: the result has 9 axes, at most 8 are possible");
  EXPECT_MESSAGE_HERE(zeros({1ll << 40, 1ll << 40}), "zeros: the result f32[1099511627776,1099511627776] has more bytes than 64 bits can count");
  EXPECT_MESSAGE_HERE(arange(0, (std::int64_t{1} << 62) + 1), "arange: the result i32[4611686018427387905] has more bytes than 64 bits can count");
}

TEST(Messages, OfIndices) {
  EXPECT_MESSAGE(ones({16, 64})[first(17)], "slice: stop 17 is past axis 0 of f32[16,64]");
  EXPECT_MESSAGE(v[slice(5, std::nullopt)], "slice: start 5 is past axis 0 of f32[3]");
  EXPECT_MESSAGE(v[slice(0, 2, 0)], "slice: the step for axis 0 of f32[3] is 0");
  EXPECT_MESSAGE(v[3], "index: 3 is out of range for axis 0 of f32[3]: expected -3 to 2");
  EXPECT_MESSAGE(zeros({0, 2})[0], "index: 0 is out of range for axis 0 of f32[0,2]: expected none, as there is no place");
  EXPECT_MESSAGE(dynamic_slice(v, {v[0]}, {1}), "dynamic_slice: expected integer indices, found f32[]");
  EXPECT_MESSAGE(dynamic_update_slice(v, v, {v[0]}), "dynamic_update_slice: expected integer indices, found f32[]");
  EXPECT_MESSAGE_HERE(random::split(random::key(0), 3)[5], "index: 5 is out of range for axis 0 of u32[3,2]: expected -3 to 2");
  EXPECT_MESSAGE((v[{0, 0}]), "index: 2 indices for f32[3], which has 1 axis");
  EXPECT_MESSAGE(zeros({})[0], "index: 1 index for f32[], which has 0 axes");
  EXPECT_MESSAGE((x[{ellipsis, ellipsis}]), "index: more than one ellipsis");
  EXPECT_MESSAGE(v[v > 0],
                 "index: a mask, bool[3], is no index, as the shape would depend on its elements: use `where`");
  EXPECT_MESSAGE(v[v], "index: expected integer indices, found f32[3]");
  EXPECT_MESSAGE((v.at({newaxis, arange(2)}).set(0)), "at: newaxis together with index tensors or steps names nothing to write to");
  EXPECT_MESSAGE(take_along_axis(m, arange(3), 1),
                 "take_along_axis: ids i32[3] and x f32[3,4] have different ranks");
  EXPECT_MESSAGE(take_along_axis(m, zeros({2, 4}, i32), 1),
                 "take_along_axis: axis 0 of ids i32[2,4] is 2, of x f32[3,4] it is 3");
  EXPECT_MESSAGE(segment_sum(m, arange(3), -1), "segment_sum: expected a number of segments >= 0, found -1");
  EXPECT_MESSAGE(segment_sum(m, arange(2), 2),
                 "segment_sum: expected one segment id per row, found ids i32[2] for x f32[3,4]");
  EXPECT_NE(error_text([] { (void)v[tensor({0, -4})]; }).find("index -4 is out of range for axis 0 of f32[3]"), std::string::npos);
  EXPECT_NE(error_text([] { (void)take(v, -4); }).find("index -4 is out of range for axis 0 of f32[3]"), std::string::npos);
  EXPECT_NE(error_text([] { (void)v.at(tensor({-9})).add(1); }).find("index -9 is out of range for axis 0 of f32[3]"), std::string::npos);
  const std::string text = error_text([] { (void)v[tensor({1, 7})]; });
  EXPECT_NE(text.find("index 7 is out of range for axis 0 of f32[3]"), std::string::npos) << text;
}

TEST(Messages, OfLayersAndOptimisers) {
  EXPECT_MESSAGE(nn::attention(v, v, v), "attention: expected q [..., Tq, H, D] and k, v [..., Tk, H, D], found q [3], k [3], v [3]");
  EXPECT_MESSAGE(nn::attention(x, m, m), "attention: expected q [..., Tq, H, D] and k, v [..., Tk, H, D], found q [2,3,4], k [3,4], v [3,4]");
  EXPECT_MESSAGE(nn::attention(x, x, ones({5, 3, 4})), "attention: expected q [..., Tq, H, D] and k, v [..., Tk, H, D], found q [2,3,4], k [2,3,4], v [5,3,4]");
  EXPECT_MESSAGE(nn::attention(x, ones({2, 3, 5}), x), "attention: expected q [..., Tq, H, D] and k, v [..., Tk, H, D], found q [2,3,4], k [2,3,5], v [2,3,4]");
  EXPECT_MESSAGE(nn::cross_entropy(m, tensor({1, 2})), "cross_entropy: expected targets of shape [3], one class for each row of the logits [3,4], found [2]");
  EXPECT_MESSAGE(nn::cross_entropy(v, tensor({{1}, {2}})), "cross_entropy: expected targets of shape [], one class for each row of the logits [3], found [2,1]");
  EXPECT_MESSAGE(nn::cross_entropy(m, v), "cross_entropy: expected integers as targets, found f32[3]");
  EXPECT_MESSAGE(nn::attention(x, x, x, {}, ones({2, 2})), "attention: mask: expected bool, found f32[2,2]");
  EXPECT_MESSAGE(nn::attention(x, x, x, {.kv_length = tensor({1, 2})}), "attention: kv_length: expected the shape [], found i32[2]");
  EXPECT_MESSAGE(nn::attention(x, x, x, {.kv_length = ones({})}), "attention: kv_length: expected integer indices, found f32[]");
  EXPECT_MESSAGE(nn::cross_entropy(m, zeros({3}, i32), ones({3})), "cross_entropy: valid: expected bool, found f32[3]");
  EXPECT_MESSAGE(nn::rms_norm(m, ones({3, 1})), "rms_norm: scale: expected the shape [4], found f32[3,1]");
  EXPECT_MESSAGE(nn::layer_norm(m, ones({1, 3, 4})), "layer_norm: scale: expected the shape [4], found f32[1,3,4]");
  EXPECT_MESSAGE(nn::layer_norm(m, ones({4}), ones({1})), "layer_norm: bias: expected the shape [4], found f32[1]");
  EXPECT_MESSAGE(nn::linear(v, ones({3, 2}), ones({3, 1})), "linear: b: expected the shape [2], found f32[3,1]");
  EXPECT_MESSAGE(nn::dropout(random::key(0), v, 1.0), "dropout: expected a share in [0, 1), found 1");
  EXPECT_MESSAGE(nn::dropout(random::key(0), v, nan), "dropout: expected a share in [0, 1), found nan");
  EXPECT_MESSAGE(optim::warmup_cosine(3, 1e-3, 10, 10), "warmup_cosine: expected 0 <= warmup < total, found 10 and 10");
  const std::vector<Tensor> p{v, m}, g{v, v}, one{v};
  EXPECT_MESSAGE(optim::sgd(p, g, 0.1), "sgd: leaf `1` of the gradients must have the shape [3,4], found [3]");
  EXPECT_MESSAGE(optim::sgd(v, m, 0.1), "sgd: leaf `tensor` of the gradients must have the shape [3], found [3,4]");
  EXPECT_MESSAGE(optim::sgd(p, one, 0.1), "sgd: the trees differ: 2 elements at the top in the parameters, 1 element at the top in the gradients");
  EXPECT_MESSAGE(optim::sgd(v, v, v), "sgd: rate: expected a scalar, found f32[3]");
  EXPECT_MESSAGE(optim::sgd(v, v, optim::sgd_state(v), v, 0.9), "sgd: rate: expected a scalar, found f32[3]");
  EXPECT_MESSAGE(optim::adamw(v, v, optim::adam_state(v), ones({1})), "adamw: rate: expected a scalar, found f32[1]");
  EXPECT_MESSAGE(optim::clip_by_global_norm(v, v), "clip_by_global_norm: max_norm: expected a scalar, found f32[3]");
  EXPECT_MESSAGE(optim::sgd(p, p, optim::sgd_state(g), 0.1, 0.9), "sgd: leaf `1` of the state must have the shape [3,4], found [3]");
  EXPECT_MESSAGE(optim::adamw(p, g, optim::adam_state(p), 0.1), "adamw: leaf `1` of the gradients must have the shape [3,4], found [3]");
  EXPECT_MESSAGE(optim::adamw(p, p, optim::adam_state(one), 0.1), "adamw: the trees differ: 2 elements at the top in the parameters, 1 element at the top in the first moments");
  EXPECT_MESSAGE(optim::warmup_cosine(3, 1e-3, -1, 10), "warmup_cosine: expected 0 <= warmup < total, found -1 and 10");
}

struct Params {
  Tensor position_embedding, count;
  BURIN_TREE(position_embedding, count)
};

TEST(Messages, OfTreesNameTheLeaf) {
  const Params p{ones({16, 4}), zeros({}, i32)};
  EXPECT_MESSAGE(jit([](Params q) { return q.position_embedding[first(17)]; })(p),
                 "slice: stop 17 is past axis 0 of f32[16,4], position_embedding");
  EXPECT_MESSAGE(jit([](Params q) { return q.count; })(Params{}), "jit: argument leaf `position_embedding` was never given a value");
  EXPECT_MESSAGE(jit([](Tensor) { return Params{}; })(v), "jit: result leaf `position_embedding` was never given a value");
  EXPECT_MESSAGE(grad([](Params q) { return q.position_embedding.sum(); })(Params{}), "grad: argument leaf `position_embedding` was never given a value");
  EXPECT_MESSAGE(vjp([](Tensor) { return Params{}; }, v), "vjp: result leaf `position_embedding` was never given a value");
  EXPECT_MESSAGE_HERE(tree::unflatten(p, {v}), "tree::unflatten: expected 2 leaves, found 1");
}

struct Layers {
  std::vector<Tensor> w;
  int heads = 4;
  BURIN_TREE(w, heads)
};

TEST(Messages, OfTreesThatDiffer) {
  const std::vector<Tensor> one{v}, two{v, v};
  const Layers layers{one, 4}, longer{two, 4}, other{one, 8};
  const auto first = [](const Tensor& a, const auto&...) { return a; };
  const auto last = [](std::string_view, const Tensor& a, const auto&...) { return a; };
  EXPECT_MESSAGE_HERE(tree::map(first, one, two), "tree::map: the trees differ: 1 element at the top in tree 1, 2 elements at the top in tree 2");
  EXPECT_MESSAGE_HERE(tree::map(first, layers, layers, longer), "tree::map: the trees differ: 1 element at `w` in tree 1, 2 elements at `w` in tree 3");
  EXPECT_MESSAGE_HERE(tree::map(first, layers, layers, layers, other), "tree::map: the trees differ: 4 at `heads` in tree 1, 8 at `heads` in tree 4");
  EXPECT_MESSAGE(tree::map(first, layers, layers, layers, layers, other), "tree::map: the trees differ: 4 at `heads` in tree 1, 8 at `heads` in tree 5");
  EXPECT_MESSAGE_HERE(tree::map_with_path(last, layers, other), "tree::map: the trees differ: 4 at `heads` in tree 1, 8 at `heads` in tree 2");
  EXPECT_MESSAGE_HERE(tree::map_with_path(last, layers, layers, other), "tree::map: the trees differ: 4 at `heads` in tree 1, 8 at `heads` in tree 3");
  EXPECT_MESSAGE_HERE(tree::map_with_path(last, layers, layers, layers, other), "tree::map: the trees differ: 4 at `heads` in tree 1, 8 at `heads` in tree 4");
  EXPECT_MESSAGE_HERE(tree::map(first, std::pair{v, 3}, std::pair{v, v}), "tree::map: the trees differ: 3 at `1` in tree 1, a tensor at `1` in tree 2");
  EXPECT_MESSAGE_HERE(tree::map(first, std::map<std::string, Tensor>{{"a", v}}, std::map<std::string, Tensor>{{"b", v}}), "tree::map: the trees differ: \"a\" at the top in tree 1, \"b\" at the top in tree 2");
  EXPECT_MESSAGE_HERE(tree::map(first, std::pair{v, v}, v), "tree::map: the trees differ: a tensor at `1` in tree 1, nothing more in tree 2");
  EXPECT_MESSAGE_HERE(tree::map(first, std::optional<Tensor>(v), std::optional<Tensor>()), "tree::map: the trees differ: 1 element at the top in tree 1, 0 elements at the top in tree 2");
}

TEST(Messages, OfGradients) {
  EXPECT_MESSAGE_HERE(grad([](Tensor a) { return a * 2; })(v), "grad: expected a float of rank 0 as the loss, found f32[3]");
  EXPECT_MESSAGE_HERE(grad([](Tensor a) { return a.sum().astype(i32); })(v), "grad: expected a float of rank 0 as the loss, found i32[]");
  EXPECT_MESSAGE_HERE(value_and_grad([](Tensor) { return Tensor(); })(v), "value_and_grad: result leaf `result` was never given a value");
  EXPECT_MESSAGE_HERE(value_and_grad([](Tensor a) { return std::pair{a, a}; })(v), "value_and_grad: expected a float of rank 0 as the loss, found f32[3]");
  EXPECT_MESSAGE_HERE(grad([](Tensor a) { return a.sum().astype(f32); })(arange(3)), "grad: no float to differentiate: `arg0` is i32[3]");
  EXPECT_MESSAGE_HERE(grad<1>([](Tensor a, std::vector<Tensor>) { return a.sum(); })(v, {}), "grad: no float to differentiate: argument 1 holds no tensor");
  const Params g = grad([](Params q) { return q.position_embedding.sum(); })(Params{m, zeros({}, i32)});
  EXPECT_MESSAGE(g.count + 1, "`count` is i32[] and has no gradient: only floats have one");
  const auto same = [](Tensor a) { return a; };
  EXPECT_MESSAGE_HERE(jvp(same, v, m), "jvp: the tangent of `arg0` must be like f32[3], found f32[3,4]");
  EXPECT_MESSAGE_HERE(jvp(same, v, v.astype(bf16)), "jvp: the tangent of `arg0` must be like f32[3], found bf16[3]");
  EXPECT_MESSAGE_HERE(jvp(same, v, Tensor()), "jvp: the tangent of `arg0` must be like f32[3], found no value");
  const auto sum_of = [](std::vector<Tensor> a) { return a[0].sum(); };
  EXPECT_MESSAGE_HERE(jvp(sum_of, std::tuple{std::vector{v}}, std::tuple{std::vector{v, v}}), "jvp: the trees differ: 1 element at `0` in the primals, 2 elements at `0` in the tangents");
  EXPECT_MESSAGE_HERE(vjp(same, v).second(m), "vjp: the cotangent of `result` must be like f32[3], found f32[3,4]");
  EXPECT_MESSAGE_HERE(vjp(same, v).second(v.astype(f64)), "vjp: the cotangent of `result` must be like f32[3], found f64[3]");
  EXPECT_MESSAGE_HERE(vjp(same, v).second(arange(3)), "vjp: the cotangent of `result` must be like f32[3], found i32[3]");
  EXPECT_MESSAGE_HERE(vjp(same, v).second(Tensor()), "vjp: the cotangent of `result` must be like f32[3], found no value");
  const auto layers = [](Tensor a) { return Layers{{a, a * 2}, 4}; };
  EXPECT_MESSAGE_HERE(vjp(layers, v).second({{v}, 4}), "vjp: the trees differ: 2 elements at `w` in the result, 1 element at `w` in the cotangent");
  EXPECT_MESSAGE_HERE(vjp(layers, v).second({{v, v}, 5}), "vjp: the trees differ: 4 at `heads` in the result, 5 at `heads` in the cotangent");
  EXPECT_MESSAGE_HERE(vjp(layers, v).second({{v, m}, 4}), "vjp: the cotangent of `w.1` must be like f32[3], found f32[3,4]");
  const auto [gradient] = vjp([](Tensor a) { return a.sum(); }, v).second(1);  // a number adapts
  test::expect_values(gradient, {1, 1, 1});
  EXPECT_MESSAGE_HERE(vjp(same, Tensor()), "vjp: argument leaf `arg0` was never given a value");
  EXPECT_MESSAGE_HERE(vjp([](Tensor a, Tensor) { return a; }, v, Tensor()), "vjp: argument leaf `arg1` was never given a value");
  EXPECT_MESSAGE_HERE(vjp([](Tensor a, Tensor, Tensor) { return a; }, v, v, Tensor()), "vjp: argument leaf `arg2` was never given a value");
  EXPECT_MESSAGE(vjp([](Tensor a, Tensor, Tensor, Tensor) { return a; }, v, v, v, Tensor()), "vjp: argument leaf `arg3` was never given a value");
  EXPECT_MESSAGE_HERE(vmap(same, {.in_axes = {0, 0}})(v), "vmap: in_axes names 2 arguments, the function takes 1");
  EXPECT_MESSAGE_HERE(vmap(same, {.out_axis = 2})(m), "vmap: out_axis 2 is out of range for result `result`, which is f32[3,4] with the mapped axis in front");
  EXPECT_MESSAGE(vmap([](Tensor a) { return a; })(Tensor(1.0)), "vmap: `arg0`, f32[], has no axis 0 to map over");
  EXPECT_MESSAGE(vmap([](Tensor a, Tensor b) { return a + b; })(v, ones({2})), "vmap: mapped axes differ: `arg0` has 3, `arg1` has 2");
  EXPECT_MESSAGE(vmap([](Tensor a) { return a; }, {.in_axes = {unmapped}})(v), "vmap: no argument is mapped, so the number of elements is unknown");
}

TEST(Messages, OfCustomDerivatives) {
  const auto twice = [](Tensor a) { return a * 2; };
  const auto forward = [](Tensor a) { return std::pair{a * 2, a}; };
  const auto captures = [&](Tensor a) {
    return custom_vjp([&](Tensor b) { return b * a; }, [](Tensor b) { return std::pair{b, b}; }, [](Tensor, Tensor ct) { return ct; })(a).sum();
  };
  EXPECT_MESSAGE(grad(captures)(v),
                 "custom_vjp: the function captures a traced value (arg0, f32[3]): pass it as an "
                 "argument, else its derivative would be lost");
  const auto narrow = custom_vjp(twice, forward, [](Tensor, Tensor ct) { return ct[0]; });
  EXPECT_MESSAGE(narrow(v), "custom_vjp: backward: `arg0` must be like f32[3], found f32[]");
  const auto nothing = custom_vjp(twice, forward, [](Tensor, Tensor) { return Tensor(); });
  EXPECT_MESSAGE(nothing(v), "custom_vjp: backward: the cotangent of `arg0`, f32[3], has no value");
  const auto many = custom_vjp([](std::vector<Tensor> a) { return a[0]; }, [](std::vector<Tensor> a) { return std::pair{a[0], a[0]}; }, [](Tensor, Tensor ct) { return std::vector{ct, ct}; });
  const auto differs = custom_vjp([](std::vector<Tensor> a) { return a; }, [](std::vector<Tensor> a) { return std::pair{std::vector{a[0], a[0]}, a}; }, [](auto, auto ct) { return ct; });
  EXPECT_MESSAGE(differs({v}), "custom_vjp: forward: the trees differ: 1 element at the top in the function's result, 2 elements at the top in that of forward");
  EXPECT_MESSAGE(many({v}), "custom_vjp: backward: expected 1 cotangent, one for each leaf, found 2");
}

TEST(Messages, OfJit) {
  const auto add = [](Tensor a, Tensor b) { return a + b; };
  EXPECT_MESSAGE_HERE(jit(add, {.donate = {2}}), "jit: donate names argument 2, the function takes 2");
  EXPECT_MESSAGE_HERE(jit(add, {.donate = {-1}}), "jit: donate names argument -1, the function takes 2");
  EXPECT_MESSAGE_HERE(jit(add, {.donate = {0, 1, 0}}), "jit: donate names argument 0 twice");
  EXPECT_MESSAGE_HERE(jit([](Tensor a, int) { return a; }, {.donate = {0, 1}}), "jit: donate names argument 1, which is static and holds no tensor");
  EXPECT_MESSAGE_HERE(jit([](const auto& a) { return a; }, {.donate = {1}})(v), "jit: donate names argument 1, the function takes 1");
  const auto sum = jit(add);
  EXPECT_MESSAGE_HERE(sum(v, Tensor()), "jit: argument leaf `arg1` was never given a value");
  EXPECT_MESSAGE_HERE(sum.lower(v, Tensor()), "jit: argument leaf `arg1` was never given a value");
  EXPECT_MESSAGE_HERE(sum(v, abstract_tensor({3})), "an abstract_tensor, f32[3], has no elements: it serves lower and eval_shape only");
  const Jit<Tensor(Tensor)> none;
  EXPECT_MESSAGE_HERE(none(v), "jit: a Jit that was never given a function is called");
  EXPECT_MESSAGE_HERE(none.lower(v), "jit: a Jit that was never given a function is called");
  EXPECT_MESSAGE_HERE(jit(add, {.max_isa = "sse9"}), "jit: max_isa: unknown instruction set `sse9`, expected one of avx2, avx512, avx512_bf16, amx");
  EXPECT_MESSAGE_HERE(jit([](auto a) { return a; }, {.max_isa = "sse9"}), "jit: max_isa: unknown instruction set `sse9`, expected one of avx2, avx512, avx512_bf16, amx");
  EXPECT_MESSAGE_HERE(jit(add, {.num_threads = -3}), "jit: num_threads: expected a number of threads from 0 to 512, found '-3'");
  EXPECT_MESSAGE_HERE(jit(add, {.memory_budget = -7}), "jit: memory_budget: expected a number of bytes, or -1 for no limit, found -7");
}

TEST(Messages, OfDonatedArguments) {
  if (!BURIN_WITH_LLVM) GTEST_SKIP() << "the evaluator gives results memory of their own";
  const std::string before = std::getenv("BURIN_BACKEND");
  setenv("BURIN_BACKEND", "machine", 1);
  const auto step = jit([](Params p) { return Params{p.position_embedding + 1, p.count}; }, {.donate = {0}});  // jitted here
  const std::string jitted_at = "messages_test.cpp:" + std::to_string(__LINE__ - 1);
  const Params p{ones({16, 4}), zeros({}, i32)};
  (void)step(p);
  const std::string gone = "jit: argument leaf `position_embedding`, f32[16,4], was donated to the function jitted at " + jitted_at + "; keep a copy, or do not donate it";
  EXPECT_MESSAGE_HERE(step(p), gone);
  EXPECT_MESSAGE_HERE(jit([](Params q) { return q; })(p), gone);
  EXPECT_EQ(to_string(p.position_embedding), "donated to the function jitted at " + jitted_at + ": f32[16,4]");
  EXPECT_MESSAGE_HERE(p.position_embedding + 1, "a tensor, f32[16,4], is used that was donated to the function jitted at " + jitted_at + "; keep a copy, or do not donate it");
  EXPECT_MESSAGE_HERE(p.position_embedding.shape(), "a tensor, f32[16,4], is used that was donated to the function jitted at " + jitted_at + "; keep a copy, or do not donate it");
  EXPECT_EQ(text_and_place([&] { io::save("/dev/null/x.safetensors", p); }), "a tensor, f32[16,4], is used that was donated to the function jitted at " + jitted_at + "; keep a copy, or do not donate it (messages_test.cpp:" + std::to_string(__LINE__) + ", in save)");
  setenv("BURIN_BACKEND", before.c_str(), 1);
}

TEST(Messages, OfRandomNumbers) {
  const Key key = random::key(0);
  EXPECT_MESSAGE(random::normal(Key(v), {2}), "random: expected a key, u32[2], found f32[3]");
  EXPECT_MESSAGE(random::bits(key, {2}, f32), "random::bits: expected u8, u16, u32 or u64, found f32");
  EXPECT_MESSAGE(random::split(key, -1), "random::split: expected a number of keys >= 0, found -1");
  EXPECT_MESSAGE(random::fold_in(key, v), "random::fold_in: expected an integer of rank 0, found f32[3]");
  EXPECT_MESSAGE(random::categorical(key, m, -1, Shape{5}), "random::categorical: the shape [5] does not end in the batch axes of the logits f32[3,4]");
  EXPECT_MESSAGE_HERE(random::permutation(key, -3), "random::permutation: expected a number of elements >= 0, found -3");
  EXPECT_MESSAGE(random::permutation(key, Tensor(1.0)), "random::permutation: expected at least one axis, found rank 0");
}

TEST(Messages, OfTestingFunctions) {
  const std::string wrong = error_text([&] { check_grads([&](Tensor a) { return stop_gradient(a) * a; }, {.order = 1})(v); });
  EXPECT_TRUE(wrong.starts_with("check_grads: order 1, forward mode: expected ")) << wrong;
  EXPECT_TRUE(wrong.ends_with(" (with respect to `arg0`)")) << wrong;
  const auto square_of = [](Tensor a) { return a * a; };
  EXPECT_MESSAGE(check_grads(square_of)(arange(3)), "check_grads: no float to differentiate: the arguments hold none");
  EXPECT_MESSAGE(check_grads([](Tensor a) { return a > 0; })(v), "check_grads: no float to differentiate: the result holds none");
  EXPECT_MESSAGE(check_grads(square_of, {.order = 0})(v), "check_grads: order: expected at least 1, found 0");
  EXPECT_MESSAGE(check_grads(square_of, {.step = 0})(v), "check_grads: step: expected a number above 0, found 0");
  EXPECT_MESSAGE(check_grads(square_of, {.tolerance = -1})(v), "check_grads: tolerance: expected a number above 0, found -1");
  EXPECT_MESSAGE(check_grads(square_of, {.tolerance = nan})(v), "check_grads: tolerance: expected a number above 0, found nan");
  EXPECT_MESSAGE(compare([](Tensor a) { return a; }, [](Tensor a) { return a[0]; })(v), "compare: result: shapes or dtypes differ: f32[3] and f32[]");
  EXPECT_MESSAGE(compare([](Tensor a) { return a; }, [](Tensor a) { return std::pair{a, a}; })(v), "compare: the functions have 1 and 2 results");
}

TEST(Messages, OfTheRuntime) {
  EXPECT_MESSAGE(zeros({std::int64_t{1} << 50}), "zeros: out of memory: f32[1125899906842624] takes 4503599627370496 bytes (4294967296.0 MiB)");
  const auto negated = jit([](Tensor x) { return -x; });
  EXPECT_MESSAGE(negated.lower(zeros({2})).compile().profile(0), "profile: expected at least 1 run, found 0");
  EXPECT_MESSAGE(set_runtime({.num_threads = -3}), "num_threads: expected a number of threads from 0 to 512, found '-3'");
}

TEST(Messages, OfTheEnvironment) {
  const std::string before = std::getenv("BURIN_BACKEND");
  setenv("BURIN_BACKEND", "gpu", 1);
  const std::string text = error_text([] { (void)(v * 3); });
  setenv("BURIN_BACKEND", "evaluator", 1);
  EXPECT_EQ(text.find("unknown backend `gpu`, expected one of "), 0u) << text;
  const Compiled compiled = jit([](Tensor a) { return a + 1; }).lower(v).compile();
  EXPECT_MESSAGE(compiled.profile(), "profile: only machine code is timed (BURIN_BACKEND)");
  EXPECT_MESSAGE(compiled.kernels(), "the evaluator runs functions as traced: there is no program to look at");
  setenv("BURIN_DUMP", "/dev/null/folder", 1);
  EXPECT_EQ(error_text([] { (void)(v * 3 + v * v * v).sum(); }).find("BURIN_DUMP: /dev/null/folder/"), 0u);
  unsetenv("BURIN_DUMP");
  setenv("BURIN_TRACE", "/dev/null/trace.json", 1);
  for (int i = 0; i < 2; ++i)  // until it can be written
    EXPECT_EQ(error_text([] { (void)(v * 3 - v * v * v).sum(); }),
              "BURIN_TRACE: cannot write /dev/null/trace.json: Not a directory");
  unsetenv("BURIN_TRACE");
  EXPECT_EQ((v * 3 - v * v * v).sum().dtype(), v.dtype());
  setenv("BURIN_BACKEND", before.c_str(), 1);
}

TEST(Messages, OfTensorsThatDoNotFitIntoMemory) {
  const std::string type = "f32[1000000,1000000,1000] takes 4000000000000000 bytes (3814697265.6 MiB)";
  EXPECT_MESSAGE_HERE(ones({1000000, 1000000, 1000}) + 1, "ones: out of memory: " + type);
  EXPECT_MESSAGE_HERE(full({1000000, 1000000, 1000}, 2.0), "full: out of memory: " + type);
  EXPECT_MESSAGE_HERE(arange(std::int64_t{1} << 50, u8), "the number 1125899906842623 does not fit u8");
  EXPECT_MESSAGE_HERE(arange(std::int64_t{1} << 50, i64), "arange: out of memory: i64[1125899906842624] takes 9007199254740992 bytes (8589934592.0 MiB)");
  EXPECT_MESSAGE_HERE(linspace(0, 1, std::int64_t{1} << 50), "linspace: out of memory: f32[1125899906842624] takes 4503599627370496 bytes (4294967296.0 MiB)");
  // Elements that nobody may touch: there is room for what is to be copied, but none for the copy.
  const std::int64_t many = std::int64_t{1} << 46;
  EXPECT_MESSAGE_HERE(tensor(std::span(static_cast<const float*>(nullptr), static_cast<std::size_t>(many)), {many}),
                      "tensor: out of memory: f32[70368744177664] takes 281474976710656 bytes (268435456.0 MiB)");
  std::byte nothing{};
  const Tensor large = detail::make_concrete(ir::Type{bf16, {many}}, runtime::Buffer::borrow(&nothing, 2 * many, nullptr));
  EXPECT_MESSAGE_HERE(large.to_vector<float>(), "to_vector: out of memory: bf16[70368744177664] takes 281474976710656 bytes (268435456.0 MiB)");
  EXPECT_MESSAGE_HERE(broadcast_to(v, {66666666666666, 3}), "out of memory: no block of 799999999999992 bytes (762939453.1 MiB) is available");
}

}  // namespace
}  // namespace burin
