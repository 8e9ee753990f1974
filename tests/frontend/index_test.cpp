#include "tests/frontend/expect.h"

namespace burin {
namespace {

using test::error_text;
using test::expect_values;

const Tensor x = arange(24).reshape({2, 3, 4});

TEST(Index, BasicIndices) {
  expect_values(x[0][1], {4, 5, 6, 7});
  expect_values(x[-1][-1], {20, 21, 22, 23});
  expect_values((x[{1, 2, 3}]), {23});
  expect_values((x[{ellipsis, 0}]), {0, 4, 8, 12, 16, 20});
  expect_values((x[{all, 1, slice(1, 3)}]), {5, 6, 17, 18});
  expect_values((x[{0, 0, slice(std::nullopt, std::nullopt, -1)}]), {3, 2, 1, 0});
  expect_values((x[{0, 0, slice(3, 0, -2)}]), {3, 1});
  expect_values((x[{0, 0, slice(-3, -1)}]), {1, 2});
  EXPECT_EQ((x[{newaxis, all, newaxis}].shape()), (Shape{1, 2, 1, 3, 4}));
  EXPECT_EQ((x[{all, slice(1, 1)}].shape()), (Shape{2, 0, 4}));
  EXPECT_EQ((x[{slice(0, 2, 2)}].shape()), (Shape{1, 3, 4}));
}

TEST(Index, TensorsGather) {
  const Tensor ids = tensor({{1, 0}, {-1, 1}});
  EXPECT_EQ(x[ids].shape(), (Shape{2, 2, 3, 4}));
  EXPECT_TRUE(array_equal(x[ids][0][0], x[1]));
  EXPECT_TRUE(array_equal(x[ids][1][0], x[1]));  // from the end
  EXPECT_EQ((x[{all, ids}].shape()), (Shape{2, 2, 2, 4}));
  EXPECT_TRUE(array_equal(x[{all, tensor({2, 0})}][{all, 1}], x[{all, 0}]));
  expect_values((x[{tensor({0, 1}), tensor({2, 0})}][{all, 0}]), {8, 12});
  expect_values((x[{tensor({0, 1}), all, tensor({3, 0})}]), {3, 7, 11, 12, 16, 20});  // apart: index axes first
  expect_values((x[{0, all, tensor({3, 0})}]), {3, 7, 11, 0, 4, 8});                  // an integer beside a tensor is one
  EXPECT_EQ((x[{ellipsis, ids}].shape()), (Shape{2, 3, 2, 2}));
  EXPECT_EQ((x[{tensor({0}).astype(u8)}].shape()), (Shape{1, 3, 4}));
}

TEST(Index, Modes) {
  const Tensor v = tensor({1.0, 2.0, 3.0}), ids = tensor({0, 5, -4});
  EXPECT_NE(error_text([&] { (void)take(v, ids); }).find("index 5 is out of range"), std::string::npos);
  expect_values(take(v, ids, 0, Mode::clip), {1, 3, 1});
  expect_values(isnan(take(v, ids, 0, Mode::fill)), {0, 1, 1});
  expect_values(take(v, tensor({-1})), {3});
  EXPECT_NE(error_text([&] { (void)take(v, tensor({-1}), 0, Mode::strict); }).find("index -1 is out of range"), std::string::npos);
  EXPECT_NE(error_text([&] { (void)nn::embedding(v, tensor({-1})); }).find("index -1 is out of range"), std::string::npos);
  expect_values(v.at(ids).get(Mode::clip), {1, 3, 1});
}

TEST(Index, TakeAlongAxisPicksOnePerRow) {
  const Tensor m = arange(12).reshape({3, 4}), ids = tensor({{0}, {3}, {-1}});
  expect_values(take_along_axis(m, ids, -1), {0, 7, 11});
  expect_values(take_along_axis(m, tensor({{1, 0, 2, 0}}), 0), {4, 1, 10, 3});
  expect_values(take_along_axis(m, ids + 1, 1, Mode::fill), {1, -2147483648.0, 8});
}

TEST(Index, AtReplacesAndAdds) {
  const Tensor z = zeros({3, 4});
  expect_values(z.at(1).set(5)[1], {5, 5, 5, 5});
  expect_values((z.at({all, 1}).set(tensor({1.0, 2.0, 3.0}))[{all, 1}]), {1, 2, 3});
  expect_values(z.at(tensor({0, 0, 2})).add(1)[{all, 0}], {2, 0, 1});
  expect_values((z.at({tensor({0, 2}), tensor({1, 3})}).set(tensor({7.0, 8.0}))), {0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8});
  expect_values((zeros({6}).at(slice(1, 6, 2)).set(tensor({1.0, 2.0, 3.0}))), {0, 1, 0, 2, 0, 3});
  expect_values((zeros({3}).at(slice(std::nullopt, std::nullopt, -1)).add(tensor({1.0, 2.0, 3.0}))), {3, 2, 1});
  expect_values((z.at({slice(0, 2), tensor({1, 2})}).add(1)), {0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0});
  expect_values((z.at({tensor({1}), slice(1, 3)}).set(9)), {0, 0, 0, 0, 0, 9, 9, 0, 0, 0, 0, 0});
  expect_values(ones({2}).at(0).multiply(3), {3, 1});
  expect_values(ones({2}).at(0).max(3), {3, 1});
  expect_values(ones({2}).at(tensor({1})).min(-3), {1, -3});
  expect_values(zeros({2}).at(5 - 4).set(1), {0, 1});
  expect_values(zeros({2}).at(tensor({0, 9})).add(1, Mode::clip), {1, 0});  // writes out of range are dropped
}

TEST(Index, DynamicSlices) {
  const auto part = jit([](Tensor t, Tensor i) { return dynamic_slice(t, {i, 1}, {1, 2}); });
  expect_values(part(arange(12).reshape({3, 4}), 1), {5, 6});
  expect_values(part(arange(12).reshape({3, 4}), 9), {9, 10});  // clamped
  expect_values(dynamic_update_slice(zeros({4}), ones({2}), {3}), {0, 0, 1, 1});
  // Negative starts count from the end, then are clamped; as jax.lax has it.
  const Tensor cube = arange(60).reshape({3, 4, 5});
  expect_values(dynamic_slice(cube, {3, -1, 9}, {1, 2, 2}), {53, 54, 58, 59});
  expect_values(dynamic_slice(cube, {-1, full({}, -9), -2}, {1, 2, 2}), {43, 44, 48, 49});
  expect_values(part(arange(12).reshape({3, 4}), -1), {9, 10});
  expect_values(dynamic_slice(arange(200), {full({}, -2).astype(i8)}, {2}), {198, 199});
  expect_values(dynamic_slice(arange(200), {full({}, 254).astype(u8)}, {2}), {198, 199});
  expect_values(dynamic_update_slice(zeros({4}), ones({1}), {-1}), {0, 0, 0, 1});
  expect_values(dynamic_update_slice(zeros({4}), ones({1}), {full({}, -2)}), {0, 0, 1, 0});
  EXPECT_EQ(dynamic_slice(zeros({0}), {-1}, {0}).shape(), Shape{0});
  expect_values(segment_sum(ones({4, 1}), tensor({0, 2, 0, 7}), 3), {2, 0, 1});
}

TEST(Index, UnjittedIntegersAreData) {
  const Tensor t = arange(50).reshape({50, 1});
  (void)t[0];
  const auto before = jit_statistics().compiles;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(int(t[i]), i);
  EXPECT_EQ(jit_statistics().compiles, before);
  const Keys keys = random::split(random::key(0), 20);
  (void)keys[0];
  const auto with_keys = jit_statistics().compiles;
  for (int i = 0; i < 20; ++i) (void)keys[i];
  EXPECT_EQ(jit_statistics().compiles, with_keys);
}

}  // namespace
}  // namespace burin
