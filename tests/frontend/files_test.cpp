#include <burin/io.h>
#include <burin/npy.h>
#include <burin/xtensor.h>

#include <filesystem>

#include "frontend/io/npy.h"
#include "tests/frontend/expect.h"

namespace burin {
namespace {

using test::error_text;
using test::expect_values;

struct Params {
  Tensor w;
  std::vector<Tensor> layers;
  Key key;
  BURIN_TREE(w, layers, key)
};

class Files : public testing::Test {
 public:
  Files() { std::filesystem::create_directories(folder_); }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("burin_files_" + std::to_string(reinterpret_cast<std::uintptr_t>(this)));
};

TEST_F(Files, TreesRoundTrip) {
  const Params p{ones({2, 3}, bf16), {arange(3), tensor({true, false})}, random::key(5)};
  io::save(path("p.safetensors"), p);
  const Params q = io::load(path("p.safetensors"), tree::zeros_like(p));
  EXPECT_TRUE(array_equal(p.w, q.w));
  EXPECT_TRUE(array_equal(p.layers[0], q.layers[0]));
  EXPECT_TRUE(array_equal(p.layers[1], q.layers[1]));
  EXPECT_TRUE(array_equal(p.key.data(), q.key.data()));
  EXPECT_EQ(io::load_safetensors(path("p.safetensors")).at("layers.1").dtype(), bool_);
}

TEST_F(Files, OneMessageListsAllDifferences) {
  const Params p{ones({2, 3}), {arange(3)}, random::key(5)};
  io::save(path("p.safetensors"), p);
  const Params other{ones({3, 2}), {}, random::key(5)};
  EXPECT_EQ(error_text([&] { (void)io::load(path("p.safetensors"), other); }),
            "cannot read " + path("p.safetensors") + ": the file and the tree differ:\n  `w` is f32[2,3], expected f32[3,2]\n  `layers.0` is not part of the tree");
  const Params more{ones({2, 3}), {arange(3), arange(1)}, random::key(5)};
  EXPECT_EQ(error_text([&] { (void)io::load(path("p.safetensors"), more); }),
            "cannot read " + path("p.safetensors") + ": the file and the tree differ:\n  `layers.1` is missing");
}

TEST_F(Files, LeavesThatCannotBeSavedOrLoaded) {
  const std::string file = path("p.safetensors");
  using Nested = std::map<std::string, std::map<std::string, Tensor>>;
  EXPECT_EQ(error_text([&] { io::save(file, Nested{{"a", {{"b.c", ones({2})}}}, {"a.b", {{"c", ones({2})}}}}); }),
            "cannot write " + file + ": two leaves are named `a.b.c`");
  EXPECT_EQ(error_text([&] { io::save(file, Params{ones({2}), {Tensor()}, random::key(5)}); }),
            "cannot write " + file + ": leaf `layers.0` was never given a value");
  EXPECT_FALSE(std::filesystem::exists(file));
  io::save(file, ones({2}));
  EXPECT_EQ(error_text([&] { (void)io::load(file, Tensor()); }),
            "cannot read " + file + ": leaf `tensor` was never given a value");
  io::write_npy(path("deep.npy"), {"i8", std::vector<std::int64_t>(9, 1), std::vector<std::byte>(1)});
  EXPECT_EQ(error_text([&] { (void)io::load_npy(path("deep.npy")); }),
            "cannot read " + path("deep.npy") + ": i8[1,1,1,1,1,1,1,1,1] has more than 8 axes");
}

TEST_F(Files, NpyRoundTrips) {
  for (const Tensor& t : {arange(6).reshape({2, 3}), Tensor(2.5), zeros({0, 4}), tensor({true})}) {
    io::save_npy(path("t.npy"), t);
    EXPECT_TRUE(array_equal(io::load_npy(path("t.npy")), t));
  }
  EXPECT_EQ(error_text([&] { (void)io::load_npy(path("none.npy")); }),
            "cannot read " + path("none.npy") + ": No such file or directory");
}

TEST(Xtensor, RoundTrips) {
  const Tensor t = arange(6).reshape({2, 3});
  const xt::xarray<double> a = to_xarray<double>(t);
  EXPECT_EQ(a(1, 2), 5);
  expect_values(from_xtensor(a + 1.0), {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(from_xtensor(a).dtype(), f64);
}

}  // namespace
}  // namespace burin
