#include "tests/frontend/expect.h"

namespace burin {
namespace {

using test::error_text;
using test::expect_values;

struct Pair {
  Tensor a, b;
  BURIN_TREE(a, b)
};
enum class Kind { one, two };
struct Mixed {
  Tensor w;
  std::optional<Tensor> bias;
  std::array<Pair, 2> pairs;
  std::map<std::string, Tensor> named;
  std::vector<Tensor> list;
  std::tuple<int, Tensor> tuple;
  Kind kind = Kind::one;
  std::string name;
  double rate = 0.5;
  BURIN_TREE(w, bias, pairs, named, list, tuple, kind, name, rate)
};
template <class T>
struct Holder {
  T inner;
  BURIN_TREE(inner)
};
class Hidden {
 public:
  Hidden() = default;
  explicit Hidden(Tensor t) : t_(std::move(t)) {}
  const Tensor& get() const { return t_; }

 private:
  Tensor t_;
  int n_ = 3;
  BURIN_TREE(t_, n_)
};

Mixed sample() {
  return {.w = ones({2}), .bias = {}, .pairs = {Pair{ones({1}), ones({3})}, Pair{ones({1}), ones({2, 2})}}, .named = {{"z", ones({})}, {"a", ones({})}},
          .list = {ones({5})}, .tuple = {7, ones({6})}, .kind = Kind::two, .name = "m", .rate = 0.25};
}

TEST(Tree, LeavesHavePathsInOrder) {
  std::string all;
  for (const auto& [path, leaf] : tree::leaves(sample())) all += path + to_string(leaf.shape()) + ' ';
  EXPECT_EQ(all, "w[2] pairs.0.a[1] pairs.0.b[3] pairs.1.a[1] pairs.1.b[2,2] named.a[] named.z[] list.0[5] tuple.1[6] ");
  EXPECT_EQ(tree::count(sample()), 2 + 1 + 3 + 1 + 4 + 1 + 1 + 5 + 6);
}

TEST(Tree, MapCopiesStaticValuesAndChangesLeaves) {
  const Mixed twice = tree::map([](Tensor t) { return 2 * t; }, sample());
  EXPECT_EQ(twice.kind, Kind::two);
  EXPECT_EQ(twice.name, "m");
  EXPECT_EQ(twice.rate, 0.25);
  EXPECT_EQ(std::get<0>(twice.tuple), 7);
  expect_values(twice.list[0], {2, 2, 2, 2, 2});
  const Mixed sum = tree::map([](Tensor a, Tensor b, Tensor c) { return a + b + c; }, twice, sample(), sample());
  expect_values(sum.pairs[1].b, {4, 4, 4, 4});
  const Mixed named = tree::map_with_path([](std::string_view p, Tensor t) { return p == "w" ? zeros_like(t) : t; }, sample());
  expect_values(named.w, {0, 0});
  expect_values(named.list[0], {1, 1, 1, 1, 1});
}

TEST(Tree, DifferencesNameTheFirstPath) {
  const auto difference = [](const Mixed& other) {
    const std::string text = error_text([&] { (void)tree::map([](Tensor a, Tensor) { return a; }, sample(), other); });
    return text.substr(0, text.find(" (tree_test.cpp:"));
  };
  Mixed m = sample();
  m.bias = ones({1});
  EXPECT_EQ(difference(m), "tree::map: the trees differ: 0 elements at `bias` in tree 1, 1 element at `bias` in tree 2");
  m = sample();
  m.kind = Kind::one;
  EXPECT_EQ(difference(m), "tree::map: the trees differ: enumerator 1 at `kind` in tree 1, enumerator 0 at `kind` in tree 2");
  m = sample();
  m.named = {{"z", ones({})}, {"b", ones({})}};
  EXPECT_EQ(difference(m), "tree::map: the trees differ: \"a\" at `named` in tree 1, \"b\" at `named` in tree 2");
  m = sample();
  m.rate = 0.5;
  EXPECT_EQ(difference(m), "tree::map: the trees differ: 0.25 at `rate` in tree 1, 0.5 at `rate` in tree 2");
}

TEST(Tree, FlattensAndUnflattens) {
  const std::vector<Tensor> leaves = tree::flatten(sample());
  EXPECT_EQ(leaves.size(), 9u);
  EXPECT_EQ(tree::unflatten(sample(), leaves).list[0].shape(), Shape{5});
  const auto zero = tree::zeros_like(sample());
  expect_values(zero.w, {0, 0});
  EXPECT_TRUE(bool(tree::all_finite(sample())));
  Mixed bad = sample();
  bad.list[0] = tensor({1.0, inf});
  EXPECT_FALSE(bool(tree::all_finite(bad)));
  EXPECT_TRUE(bool(tree::all_finite(std::tuple{arange(3), sample()})));
}

TEST(Tree, TemplatesPrivateMembersAndLocalStructs) {
  struct Local {
    Tensor a;
    Hidden h;
    BURIN_TREE(a, h)
  };
  const Holder<Local> t{{ones({2}), Hidden(ones({3}))}};
  EXPECT_EQ(tree::leaves(t)[1].first, "inner.h.t_");
  expect_values(tree::map([](Tensor x) { return x + 1; }, t).inner.h.get(), {2, 2, 2});
  const auto [a, h] = t.inner;  // still an aggregate
  EXPECT_EQ(a.shape(), Shape{2});
}

TEST(Tree, KeysAreOneLeaf) {
  const std::pair<Key, Keys> keys{random::key(1), random::split(random::key(2), 3)};
  const auto leaves = tree::leaves(keys);
  ASSERT_EQ(leaves.size(), 2u);
  EXPECT_EQ(leaves[0].first, "0");
  EXPECT_EQ(leaves[1].second.shape(), (Shape{3, 2}));
}

TEST(Tree, CountsMembersOfAggregates) {
  struct One { Tensor a; };
  struct Three { std::optional<Tensor> a; std::vector<int> b; std::string c; };
  struct Arrays { std::array<Tensor, 3> a; Tensor b; };
  EXPECT_TRUE((detail::has_at_most_members<One, 1>()));
  EXPECT_FALSE((detail::has_at_most_members<One, 0>()));
  EXPECT_TRUE((detail::has_at_most_members<Three, 3>()));
  EXPECT_FALSE((detail::has_at_most_members<Three, 2>()));
  EXPECT_TRUE((detail::has_at_most_members<Arrays, 2>()));
  EXPECT_FALSE((detail::has_at_most_members<Arrays, 1>()));
}

}  // namespace
}  // namespace burin
