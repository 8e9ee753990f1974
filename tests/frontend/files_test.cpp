#include <burin/io.h>
#include <burin/npy.h>
#include <burin/xtensor.h>

#include <filesystem>

#include "frontend/io/npy.h"
#include "frontend/node.h"
#include "runtime/buffer.h"
#include "tests/frontend/expect.h"
#include "tests/support/temporary_folder.h"

namespace burin {
namespace {

using test::expect_values;

// Without the place at its end.
template <class F>
std::string error_text(F&& f) {
  const std::string text = test::error_text(std::forward<F>(f));
  return text.substr(0, text.rfind(" (files_test.cpp:"));
}

struct Params {
  Tensor w;
  std::vector<Tensor> layers;
  Key key;
  BURIN_TREE(w, layers, key)
};

class Files : public testing::Test {
 public:
  std::string path(const char* name) const { return (folder_ / name).string(); }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(Files, TensorsWithoutRoomForACopyAreErrors) {
  const std::int64_t many = std::int64_t{1} << 46;
  std::byte nothing{};
  const Tensor large = detail::make_concrete(ir::Type{bf16, {many}}, runtime::Buffer::borrow(&nothing, 2 * many, nullptr));
  const std::string text = ": out of memory: bf16[70368744177664] takes 140737488355328 bytes (134217728.0 MiB)";
  EXPECT_EQ(error_text([&] { io::save(path("p.safetensors"), large); }), "cannot write " + path("p.safetensors") + text);
  EXPECT_EQ(error_text([&] { io::save_npy(path("p.npy"), large); }), "cannot write " + path("p.npy") + text);
  EXPECT_FALSE(std::filesystem::exists(path("p.npy")));
  io::HostTensor host{"bf16", {many}, {}};
  EXPECT_EQ(error_text([&] { io::make_room("cannot read p.npy", host, 2 * many); }), "cannot read p.npy" + text);
}

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

TEST_F(Files, ErrorsNameTheCallersLine) {
  const auto ends = [](const std::string& text, int line, const std::string& function) {
    return text.ends_with(" (files_test.cpp:" + std::to_string(line) + ", in " + function + ")");
  };
  const std::string none = path("none");
  const std::string loading = test::error_text([&] { (void)io::load(none, ones({2})); });
  EXPECT_TRUE(ends(loading, __LINE__ - 1, "load")) << loading;
  const std::string all = test::error_text([&] { (void)io::load_safetensors(none); });
  EXPECT_TRUE(ends(all, __LINE__ - 1, "load_safetensors")) << all;
  const std::string npy = test::error_text([&] { (void)io::load_npy(none); });
  EXPECT_TRUE(ends(npy, __LINE__ - 1, "load_npy")) << npy;
  const std::string saving = test::error_text([&] { io::save(none + "/x", ones({2})); });
  EXPECT_TRUE(ends(saving, __LINE__ - 1, "save")) << saving;
}

TEST_F(Files, NamesThatNameNoFile) {
  const std::string nul = path("a") + std::string("\0b", 2);
  EXPECT_EQ(error_text([&] { (void)io::load_npy(""); }), "cannot read a file: the name of the file is empty");
  EXPECT_EQ(error_text([&] { io::save("", ones({2})); }), "cannot write a file: the name of the file is empty");
  EXPECT_EQ(error_text([&] { io::save(nul, ones({2})); }), "cannot write " + path("a") + ": the name of the file holds a NUL byte");
  EXPECT_EQ(error_text([&] { (void)io::load_npy(nul); }), "cannot read " + path("a") + ": the name of the file holds a NUL byte");
  EXPECT_FALSE(std::filesystem::exists(path("a")));
}

TEST_F(Files, PermissionsAndLinksStay) {
  namespace fs = std::filesystem;
  const std::string file = path("secret.npy"), link = path("link.npy"), nowhere = path("nowhere.npy");
  io::save_npy(file, zeros({2}));
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("secret.npy", link);
  io::save_npy(link, ones({2}));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  expect_values(io::load_npy(file), {1, 1});
  fs::create_symlink("new.npy", nowhere);
  io::save_npy(nowhere, ones({3}));
  EXPECT_TRUE(fs::is_symlink(nowhere));
  expect_values(io::load_npy(path("new.npy")), {1, 1, 1});
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
