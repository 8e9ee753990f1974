#include <burin/testing.h>

#include "tests/frontend/expect.h"

#include <cmath>

namespace burin {
namespace {

using test::expect_near;
using test::expect_values;

TEST(Promotion, FollowsTheLatticeOfJax) {
  const auto both = [](DType a, DType b) { return (zeros({}, a) + zeros({}, b)).dtype(); };
  const std::tuple<DType, DType, DType> table[] = {
      {bool_, i8, i8},   {i8, u8, i16},     {i16, u8, i16},   {u8, u32, u32},  {u32, i32, i64}, {i32, u16, i32},
      {u64, i64, f32},   {i64, f32, f32},   {i32, bf16, bf16}, {u64, f16, f16}, {bf16, f16, f32}, {f16, f32, f32},
      {f32, f64, f64},   {bool_, f16, f16}, {i8, i64, i64},   {bf16, f64, f64}, {u32, i8, i64},  {bool_, bool_, bool_}};
  for (const auto& [a, b, expected] : table) {
    EXPECT_EQ(both(a, b), expected) << name(a) << ' ' << name(b);
    EXPECT_EQ(both(b, a), expected) << name(b) << ' ' << name(a);
  }
}

TEST(Promotion, NumbersAdapt) {
  EXPECT_EQ((zeros({}, bf16) * 2.0).dtype(), bf16);
  EXPECT_EQ((2.0 * zeros({}, f16)).dtype(), f16);
  EXPECT_EQ((zeros({}, u8) + 1).dtype(), u8);
  EXPECT_EQ((zeros({}, i64) * 2.5).dtype(), f32);
  EXPECT_TRUE((zeros({}, i32) * 2.5).weak());
  EXPECT_EQ((zeros({}, bool_) + 1).dtype(), i32);
  EXPECT_EQ((zeros({}, i32) / 2).dtype(), f32);
  EXPECT_EQ(where(zeros({}, bool_), 1, 0).dtype(), i32);
  EXPECT_EQ((zeros({}, bf16) * (Tensor(0.5) + 1)).dtype(), bf16);  // computed from numbers alone: still adapts
  EXPECT_EQ((zeros({}, f64) * 0.1).item<double>(), 0.0);
  EXPECT_EQ((ones({}, f64) * 0.1).item<double>(), 0.1);  // not rounded to f32 on the way
  EXPECT_EQ((tensor({4000000000u}) + 4294967295u - 4294967295u).item<std::int64_t>(), 4000000000);
}

TEST(Elementwise, DivisionAndRemainderFollowJax) {
  const Tensor a = tensor({7, -7, 7, -7}), b = tensor({2, 2, -2, -2});
  expect_values(a / b, {3.5, -3.5, -3.5, 3.5});
  expect_values(a % b, {1, 1, -1, -1});
  expect_values(floor_divide(a, b), {3, -4, -4, 3});
  expect_values(fmod(a, b), {1, -1, 1, -1});
  const Tensor x = tensor({5.5, -5.5}), y = tensor({2.0, 2.0});
  expect_values(x % y, {1.5, 0.5});
  expect_values(floor_divide(x, y), {2, -3});
  expect_values(floor_divide(x, 0.0), {inf, -inf});  // as NumPy and JAX
  expect_values(isnan(floor_divide(zeros({1}), 0.0)), {1});
  expect_values(tensor({7, 9}).astype(u8) % 4, {3, 1});
}

TEST(Elementwise, PowersAreProductsWhenTheExponentIsASmallWholeNumber) {
  expect_values(pow(tensor({-3.0, 2.0}), 3), {-27, 8});
  expect_values(pow(tensor({-3, 2}), 3), {-27, 8});
  expect_values(pow(tensor({-3.0, 2.0}), 2.0), {9, 4});
  expect_values(pow(tensor({-3.0, 2.0}), 0), {1, 1});
  expect_near(pow(tensor({4.0, 2.0}), -0.5), {0.5, std::sqrt(0.5)}, 1e-7);
  expect_near(pow(0.9, arange(3)), {1, 0.9, 0.81}, 1e-6);
}

TEST(Elementwise, PowersHaveSecondDerivativesWhereTheExponentIsZero) {
  EXPECT_TRUE(check_grads([](Tensor x, Tensor y) { return pow(x, y); })(tensor({2.0, 0.5, 3.0}), tensor({0.0, 0.0, 1.0})));
  expect_values(grad([](Tensor x) { return pow(x, zeros({3})).sum(); })(tensor({0.0, 2.0, -2.0})), {0, 0, 0});
}

TEST(Elementwise, LogOfASumOfExponentialsIsSmooth) {
  const auto f = [](Tensor a, Tensor b) { return logaddexp(a, b); };
  EXPECT_TRUE(check_grads(f)(tensor({1.5, -2.0, 0.0, 3.0}), tensor({1.5, -2.0, 0.0, -1.0})));  // equal operands too
  const auto [da, db] = grad<0, 1>([&](Tensor a, Tensor b) { return f(a, b).sum(); })(tensor({inf, 1.0, -inf, -inf}), tensor({1.0, inf, 2.0, -inf}));
  expect_values(da, {1, 0, 0, 0});
  expect_values(db, {0, 1, 1, 0});
}

TEST(Elementwise, LogicAndComparisons) {
  const Tensor x = tensor({1.0, burin::nan, inf, -inf});
  expect_values(isnan(x), {0, 1, 0, 0});
  expect_values(isinf(x), {0, 0, 1, 1});
  expect_values(isfinite(x), {1, 0, 0, 0});
  expect_values(!(x > 0), {0, 1, 0, 1});
  expect_values((x > 0) & (x < 2), {1, 0, 0, 0});
  expect_values(tensor({5, 6}) & 3, {1, 2});
  expect_values(~tensor({0, -1}), {-1, 0});
  expect_values(tensor({-8, 8}) >> 1, {-4, 4});
  expect_values(tensor({1, 3}) << 4, {16, 48});
  expect_values(clip(tensor({-2, 0, 9}), -1, 5), {-1, 0, 5});
  expect_values(round(tensor({0.5, 1.5, 2.5, -0.5})), {0, 2, 2, 0});
}

TEST(Reduce, AxesAndDtypes) {
  const Tensor x = arange(24).reshape({2, 3, 4});
  EXPECT_EQ(int(sum(x)), 276);
  EXPECT_EQ(sum(x, 1).shape(), (Shape{2, 4}));
  EXPECT_EQ(sum(x, {0, -1}).shape(), Shape{3});
  EXPECT_EQ(x.sum(-1, keepdims).shape(), (Shape{2, 3, 1}));
  expect_values(x.max({1, 2}), {11, 23});
  expect_values(x.min(0)[0], {0, 1, 2, 3});
  EXPECT_EQ(float(mean(x)), 11.5f);
  EXPECT_EQ(mean(x).dtype(), f32);
  EXPECT_EQ(sum(tensor({true, true, false})).dtype(), i32);
  EXPECT_EQ(sum(tensor({200, 100}).astype(u8)).item<int>(), 300);
  EXPECT_EQ(int(prod(tensor({2, 3, 7}))), 42);
  EXPECT_EQ(float(var(tensor({1.0, 2.0, 3.0, 4.0}))), 1.25f);
  EXPECT_EQ(float(var(tensor({1.0, 3.0}), {}, {}, 1)), 2.0f);
  expect_values(argmax(x, 2)[0], {3, 3, 3});
  EXPECT_EQ(int(argmin(-x)), 23);
  EXPECT_EQ(argmax(x, 1, keepdims).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(float(sum(zeros({0, 3}))), 0.0f);
  EXPECT_TRUE(bool(all_of(x >= 0)));
  EXPECT_FALSE(bool(any_of(x < 0)));
  EXPECT_EQ(float(mean(full({3000}, 1.0, bf16))), 1.0f);  // summed in f32
}

TEST(Softmax, GuardsRowsWithoutAFiniteElement) {
  const Tensor x = tensor({{1.0, 2.0, -inf}, {-inf, -inf, -inf}});
  const double e = std::exp(-1.0);
  expect_near(softmax(x), {e / (1 + e), 1 / (1 + e), 0, 0, 0, 0}, 1e-6);
  const Tensor logs = log_softmax(x);
  expect_near(logs[{0, first(2)}], {-1 - std::log1p(e), -std::log1p(e)}, 1e-6);
  expect_values(logs[1], {-inf, -inf, -inf});
  expect_values(logsumexp(x, -1)[1], {-inf});
  expect_values(logaddexp(tensor({-inf, inf}), tensor({-inf, inf})), {-inf, inf});
  const auto of_dead_row = [&](auto f) { return grad([=](Tensor t) { return f(t)[1].sum(); })(x)[1]; };
  expect_values(of_dead_row([](Tensor t) { return softmax(t); }), {0, 0, 0});
  expect_values(of_dead_row([](Tensor t) { return where(isfinite(log_softmax(t)), log_softmax(t), 0); }), {0, 0, 0});
  expect_values(of_dead_row([](Tensor t) { return logsumexp(t, -1, keepdims); }), {0, 0, 0});
  expect_near(softmax(x, 0)[{all, 0}], {1, 0}, 0);
  EXPECT_EQ(softmax(ones({3}, bf16)).dtype(), bf16);
  EXPECT_EQ(softmax(zeros({0, 3})).size(), 0);
}

TEST(Product, ShapesOfMatmul) {
  const auto shape_of = [](const Shape& a, const Shape& b) { return matmul(ones(a), ones(b)).shape(); };
  EXPECT_EQ(shape_of({3}, {3}), Shape{});
  EXPECT_EQ(shape_of({2, 3}, {3}), Shape{2});
  EXPECT_EQ(shape_of({3}, {3, 5}), Shape{5});
  EXPECT_EQ(shape_of({3}, {7, 3, 5}), (Shape{7, 5}));
  EXPECT_EQ(shape_of({7, 2, 3}, {3}), (Shape{7, 2}));
  EXPECT_EQ(shape_of({7, 2, 3}, {3, 5}), (Shape{7, 2, 5}));
  EXPECT_EQ(shape_of({2, 3}, {7, 3, 5}), (Shape{7, 2, 5}));
  EXPECT_EQ(shape_of({4, 1, 2, 3}, {7, 3, 5}), (Shape{4, 7, 2, 5}));
  EXPECT_EQ(shape_of({0, 3}, {3, 5}), (Shape{0, 5}));
  expect_values(matmul(tensor({{1.0, 2.0}}), tensor({{3.0}, {4.0}})), {11});
  EXPECT_EQ(matmul(ones({2, 2}, bf16), ones({2, 2})).dtype(), f32);
  expect_values(dot(tensor({1, 2}), tensor({3, 4})), {11});
  EXPECT_EQ(outer(arange(2), arange(3)).shape(), (Shape{2, 3}));
}

TEST(Product, EinsumIsTheLoopItSays) {
  const Tensor q = arange(2 * 3 * 4).reshape({2, 3, 4}).astype(f32), k = arange(2 * 5 * 4).reshape({2, 5, 4}).astype(f32);
  EXPECT_TRUE(array_equal(einsum("bqd,bkd->bqk", q, k), matmul(q, k.swapaxes(1, 2))));
  EXPECT_TRUE(array_equal(einsum("bqd,bkd->kqb", q, k), matmul(q, k.swapaxes(1, 2)).transpose()));
  EXPECT_TRUE(array_equal(einsum("bqd->dq", q), q.sum(0).transpose()));
  EXPECT_TRUE(array_equal(einsum("i,j->ij", arange(3), arange(4)), outer(arange(3), arange(4))));
}

TEST(Movement, RoundTrips) {
  const Tensor x = arange(24).reshape({2, 3, 4});
  EXPECT_TRUE(array_equal(x.transpose().transpose(), x));
  EXPECT_TRUE(array_equal(x.swapaxes(0, -1).swapaxes(0, 2), x));
  EXPECT_TRUE(array_equal(moveaxis(moveaxis(x, 0, 2), 2, 0), x));
  EXPECT_EQ(x.reshape({-1, 4}).shape(), (Shape{6, 4}));
  EXPECT_EQ(expand_dims(x, {0, -1}).shape(), (Shape{1, 2, 3, 4, 1}));
  EXPECT_EQ(expand_dims(x, {0, -1}).squeeze().shape(), x.shape());
  EXPECT_TRUE(array_equal(concatenate(split(x, 3, 1), 1), x));
  EXPECT_EQ(stack({x, x}, 1).shape(), (Shape{2, 2, 3, 4}));
  EXPECT_TRUE(array_equal(flip(flip(x, 1), 1), x));
  expect_values(roll(arange(5), 2, 0), {3, 4, 0, 1, 2});
  expect_values(repeat(arange(3), 2, 0), {0, 0, 1, 1, 2, 2});
  expect_values(pad(arange(2), 1, 2, 9), {9, 0, 1, 9, 9});
  expect_values(pad(arange(4), -1, -1), {1, 2});
  expect_values(tril(ones({3, 3}, i32), -1), {0, 0, 0, 1, 0, 0, 1, 1, 0});
  expect_values(triu(ones({2, 3}, i32), 1), {0, 1, 1, 0, 0, 1});
  expect_values(arange(5, 0, -2), {5, 3, 1});
  expect_values(jit([](Tensor t) { return t + arange(5, 0, -2); })(zeros({3}, i32)), {5, 3, 1});
  expect_values(linspace(0, 1, 5), {0, 0.25, 0.5, 0.75, 1});
  expect_values(eye(2), {1, 0, 0, 1});
  expect_values(one_hot(tensor({1, 3}), 3), {0, 1, 0, 0, 0, 0});
}

TEST(Printing, LooksLikeNumPy) {
  EXPECT_EQ(to_string(tensor({1.0, 2.5, -3.0})), "[ 1.   2.5 -3. ]");
  EXPECT_EQ(to_string(tensor({{1, 20}, {3, 4}})), "[[ 1 20]\n [ 3  4]]");
  EXPECT_EQ(to_string(tensor({true, false})), "[ True False]");
  EXPECT_EQ(to_string(Tensor(2.5)), "2.5");
  EXPECT_EQ(to_string(tensor({burin::nan, inf})), "[nan inf]");
  EXPECT_EQ(to_string(zeros({0})), "[]");
  EXPECT_EQ(to_string(zeros({3, 0})), "[]");
  EXPECT_EQ(to_string(zeros({9'000'000'000'000'000'000, 0})), "[]");
  EXPECT_EQ(to_string(arange(2000)), "[   0    1    2 ... 1997 1998 1999]");
  EXPECT_EQ(to_string(zeros({2, 1, 2})), "[[[0. 0.]]\n\n [[0. 0.]]]");
}

}  // namespace
}  // namespace burin
