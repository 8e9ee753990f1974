#include <burin/testing.h>

#include <sstream>

#include "tests/frontend/expect.h"

namespace burin {
namespace {

using test::error_text;
using test::expect_near;
using test::expect_values;

struct Params {
  Tensor w, b, count;
  BURIN_TREE(w, b, count)
};

Tensor loss(const Params& p, const Tensor& x) { return (p.w * x + p.b).sum(); }

TEST(Grad, GivesATreeLikeTheArgument) {
  const Params p{tensor({1.0, 2.0}), tensor({0.5, 0.5}), zeros({}, i32)};
  const auto [value, g] = value_and_grad(loss)(p, tensor({3.0, 4.0}));
  EXPECT_EQ(float(value), 12.0f);
  expect_values(g.w, {3, 4});
  expect_values(g.b, {1, 1});
  const auto [value2, both] = value_and_grad<1, 0>(loss)(p, tensor({3.0, 4.0}));
  expect_values(std::get<0>(both), {1, 2});
  expect_values(std::get<1>(both).w, {3, 4});
  // The same inside jit, where the integer leaf without a gradient passes through.
  const auto jitted = jit([](Params q, Tensor x) { return grad(loss)(q, x); });
  expect_values(jitted(p, tensor({3.0, 4.0})).w, {3, 4});
}

TEST(Grad, CarriesAux) {
  const auto f = [](Tensor x) { return std::pair{(x * x).sum(), std::vector{x + 1, x.astype(i32)}}; };
  const auto [value, aux, g] = value_and_grad(f)(tensor({1.0, 2.0}));
  EXPECT_EQ(float(value), 5.0f);
  expect_values(aux[0], {2, 3});
  expect_values(aux[1], {1, 2});
  expect_values(g, {2, 4});
  const auto [g2, aux2] = grad(f)(tensor({1.0, 2.0}));
  expect_values(g2, {2, 4});
}

TEST(Grad, NestsAndComposes) {
  const auto cube = [](Tensor t) { return (t * t * t).sum(); };
  expect_values(grad([&](Tensor t) { return grad(cube)(t).sum(); })(tensor({1.0, 2.0})), {6, 12});
  const auto scalar = [](Tensor t) { return t * t * t; };
  EXPECT_EQ(float(grad(grad(grad(scalar)))(2.0)), 6.0f);
  expect_values(vmap(grad(scalar))(tensor({1.0, 2.0})), {3, 12});
  expect_values(jit(vmap(grad(scalar)))(tensor({1.0, 2.0})), {3, 12});
  // An outer value used inside an inner gradient keeps its own derivative.
  const auto outer = [](Tensor a) { return grad([&](Tensor b) { return a * a * b * b; })(2.0); };
  EXPECT_EQ(float(grad(outer)(3.0)), 24.0f);
}

TEST(Vjp, PullsCotangentsBack) {
  const auto [y, pull] = vjp([](Tensor a, Tensor b) { return std::pair{a * b, a + b}; }, tensor({2.0}), tensor({5.0}));
  expect_values(y.first, {10});
  const auto [da, db] = pull({tensor({1.0}), tensor({10.0})});
  expect_values(da, {15});
  expect_values(db, {12});
  const auto again = pull({tensor({0.0}), tensor({1.0})});
  expect_values(std::get<0>(again), {1});
}

TEST(Jvp, PushesTangentsForward) {
  const auto f = [](Tensor a, Tensor b) { return std::pair{a * b, a.astype(i32)}; };
  const auto [y, dy] = jvp(f, std::tuple{tensor({2.0}), tensor({5.0})}, std::tuple{tensor({1.0}), tensor({0.5})});
  expect_values(y.first, {10});
  expect_values(dy.first, {6});
  expect_values(dy.second, {0});
  const auto [z, dz] = jvp([](Tensor a) { return sin(a); }, 0.0, 2.0);
  EXPECT_EQ(float(dz), 2.0f);
}

TEST(Vmap, MapsAxes) {
  const Tensor x = arange(6).reshape({2, 3}).astype(f32);
  expect_values(vmap([](Tensor r) { return r.sum(); })(x), {3, 12});
  expect_values(vmap([](Tensor c) { return c.sum(); }, {.in_axes = {1}})(x), {3, 5, 7});
  expect_values(vmap([](Tensor r, Tensor s) { return r * s; }, {.in_axes = {0, unmapped}})(x, tensor({1.0, 0.0, 2.0})), {0, 0, 4, 3, 0, 10});
  EXPECT_EQ(vmap([](Tensor r) { return r; }, {.in_axes = {}, .out_axis = 1})(x).shape(), (Shape{3, 2}));
  EXPECT_EQ(vmap([](Tensor) { return ones({4}); })(x).shape(), (Shape{2, 4}));
  const Tensor w = ones({3, 4});
  EXPECT_TRUE(array_equal(vmap([&](Tensor r) { return matmul(r, w); })(x), matmul(x, w)));
}

TEST(Checkpoint, ChangesNothingButMemory) {
  const auto f = [](Tensor x) { return sin(sin(x)).sum(); };
  const Tensor x = tensor({0.1, 0.2});
  EXPECT_TRUE(array_equal(grad(checkpoint(f))(x), grad(f)(x)));
  EXPECT_TRUE(array_equal(checkpoint(f)(x), f(x)));
}

TEST(CustomVjp, IsHonouredInReverseAndRefusedForward) {
  const Tensor scale = tensor({10.0});
  const auto f = custom_vjp([](Tensor x, int n) { return x * n; }, [](Tensor x, int n) { return std::pair{x * n, x}; },
                            [&](Tensor x, Tensor ct) { return std::tuple{ct * x * scale, 0}; });
  expect_values(f(tensor({3.0}), 2), {6});
  expect_values(grad([&](Tensor x) { return f(x, 2).sum(); })(tensor({3.0})), {30});
  EXPECT_NE(error_text([&] { (void)jvp([&](Tensor x) { return f(x, 2); }, tensor({3.0}), tensor({1.0})); }).find("custom_vjp rule"), std::string::npos);
}

TEST(CustomJvp, ServesBothModes) {
  const auto f = custom_jvp([](Tensor x) { return x * x; }, [](std::tuple<Tensor> p, std::tuple<Tensor> t) {
    return std::pair{std::get<0>(p) * std::get<0>(p), 100 * std::get<0>(t)};
  });
  expect_values(f(tensor({3.0})), {9});
  expect_values(grad([&](Tensor x) { return f(x).sum(); })(tensor({3.0})), {100});
  expect_values(jvp(f, tensor({3.0}), tensor({1.0})).second, {100});
}

TEST(StopGradient, Stops) {
  expect_values(grad([](Tensor x) { return (x * stop_gradient(x)).sum(); })(tensor({3.0})), {3});
}

TEST(CheckGrads, AcceptsRightDerivativesAndSeesWrongOnes) {
  const auto f = [](Tensor x, Tensor w) { return softmax(matmul(tanh(x), w)); };
  EXPECT_TRUE(check_grads(f)(random::normal(random::key(0), {2, 3}), random::normal(random::key(1), {3, 5})));
  EXPECT_TRUE(check_grads([](Tensor x) { return nn::layer_norm(x, ones({4})); })(random::normal(random::key(2), {3, 4})));
  EXPECT_NE(error_text([] { check_grads([](Tensor x) { return x * stop_gradient(x); })(tensor({2.0})); }), "no error");
  // Forward mode cannot use a custom_vjp rule; reverse mode is checked all the same.
  const auto scaled = [](double factor) {
    return custom_vjp([](Tensor x) { return x * x; }, [](Tensor x) { return std::pair{x * x, x}; },
                      [factor](Tensor x, Tensor ct) { return factor * x * ct; });
  };
  EXPECT_TRUE(check_grads(scaled(2))(tensor({2.0, -3.0})));
  EXPECT_TRUE(check_grads([&](Tensor x) { return sin(scaled(2)(x)); })(tensor({2.0, -3.0})));
  EXPECT_NE(error_text([&] { check_grads(scaled(3))(tensor({2.0})); }).find("order 1, reverse mode"), std::string::npos);
}

TEST(Compare, MeasuresInUnitsInTheLastPlace) {
  const auto same = compare([](Tensor x) { return x * 2; }, [](Tensor x) { return x + x; })(tensor({1.5}));
  EXPECT_EQ(same.max_ulp(), 0);
  const auto off = compare([](Tensor x) { return x; }, [](Tensor x) { return x * 1.0000001192092896; })(tensor({1.0}));
  EXPECT_EQ(off.leaves[0].max_ulp, 1);
  EXPECT_EQ(off.leaves[1].path, "gradient arg0");
}

TEST(Trace, PrintsLocationsScopesAndNames) {
  std::ostringstream out;
  out << trace(loss)(Params{ones({2}), ones({2}), zeros({}, i32)}, ones({2}));
  EXPECT_NE(out.str().find("%w: f32[2]"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("reduce_sum"), std::string::npos) << out.str();
}

}  // namespace
}  // namespace burin
