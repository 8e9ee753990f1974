#include "codegen/stored_objects.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file_cache.h"
#include "tests/codegen/machine.h"
#include "tests/support/temporary_folder.h"

namespace burin::test {
namespace {

using codegen::CompiledObject;
using ir::Kernel;

const std::vector<CompiledObject> two_objects = {{{2, 0}, {"c", "a"}, "first\0object"}, {{1}, {""}, ""}};

TEST(StoredObjects, unpack_to_what_was_packed) {
  for (const auto& objects : {two_objects, std::vector<CompiledObject>{}}) {
    const std::size_t num_kernels = objects.empty() ? 0 : 3;
    const auto found = codegen::unpack(codegen::pack(objects), num_kernels);
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), objects.size());
    for (std::size_t i = 0; i < objects.size(); ++i) {
      EXPECT_EQ((*found)[i].kernels, objects[i].kernels);
      EXPECT_EQ((*found)[i].symbols, objects[i].symbols);
      EXPECT_EQ((*found)[i].bytes, objects[i].bytes);
    }
  }
}

TEST(StoredObjects, of_other_kernels_cut_off_or_longer_are_nothing) {
  const std::string packed = codegen::pack(two_objects);
  for (std::size_t size = 0; size < packed.size(); ++size)
    EXPECT_FALSE(codegen::unpack(packed.substr(0, size), 3)) << size;
  EXPECT_FALSE(codegen::unpack(packed + "x", 3));
  for (std::size_t num_kernels : {0, 2, 4}) EXPECT_FALSE(codegen::unpack(packed, num_kernels)) << num_kernels;
  EXPECT_FALSE(codegen::unpack(codegen::pack(std::vector<CompiledObject>{{{0, 0}, {"a", "b"}, ""}}), 2));
  std::string endless = packed;  // of 2^64 - 1 objects
  for (int i = 0; i < 8; ++i) endless[static_cast<std::size_t>(i)] = '\xff';
  EXPECT_FALSE(codegen::unpack(endless, 3));
}

Kernel power(const std::string& factors, std::int64_t n) {
  return ir::parse_kernel("kernel @k(in x: f32[" + std::to_string(n) + "], out y: f32[" + std::to_string(n) +
                          "]) {\n  for j in 0.." + std::to_string(n) +
                          " vector 16 {\n    %0 = load x[j]\n    %1 = mul %0, " + factors +
                          " : f32\n    store y[j], %1\n  }\n}");
}

float result(const codegen::Module& module, std::size_t i, const Kernel& kernel) {
  std::vector<ir::Literal> params;
  for (const ir::Buffer& buffer : kernel.buffers) params.emplace_back(ir::Type{buffer.dtype, buffer.shape});
  for (std::int64_t j = 0; j < params[0].type().size(); ++j) params[0].set(j, 3);
  run(module.entries()[i], kernel, params);
  return static_cast<float>(params[1].at(params[1].type().size() - 1));
}

std::size_t files_in(const TemporaryFolder& folder) {
  const std::filesystem::directory_iterator all(folder.path());
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(StoredObjects, take_llvms_place) {
  const TemporaryFolder folder;
  std::string why;
  const auto files = FileCache::open(folder.path(), &why);
  ASSERT_NE(files, nullptr) << why;
  const std::vector<Kernel> kernels = {power("%0", 37), power("%0", 5), power("%0", 1000)};
  const std::vector<const Kernel*> all = {&kernels[0], &kernels[1], &kernels[2]},
                                   others = {&kernels[1], &kernels[0], &kernels[2]};
  {
    const auto compiled = codegen::compile(all, avx2_target(), 2, files.get());
    EXPECT_EQ(compiled->num_compiled(), 2u);
    EXPECT_EQ(files_in(folder), 1u);
    // What lives in the process needs no file.
    EXPECT_EQ(codegen::compile(all, avx2_target(), 1, files.get())->num_compiled(), 0u);
    EXPECT_EQ(codegen::compile(others, avx2_target(), 1, files.get())->num_compiled(), 0u);
    EXPECT_EQ(files_in(folder), 1u);
  }
  // Now nobody keeps the code alive. Neither names nor the number of threads are part of the key; order and target are.
  {
    const auto recalled = codegen::compile(all, avx2_target(), 1, files.get());
    EXPECT_EQ(recalled->num_compiled(), 0u);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(result(*recalled, i, kernels[i]), 9) << i;
    EXPECT_EQ(files_in(folder), 1u);
    EXPECT_EQ(codegen::compile(all, avx512_target(), 1, files.get())->num_compiled(), 1u);
    EXPECT_EQ(files_in(folder), 2u);
  }
  EXPECT_EQ(codegen::compile(others, avx2_target(), 1, files.get())->num_compiled(), 1u);
  EXPECT_EQ(codegen::compile(all, avx2_target(), 1)->num_compiled(), 1u);
  EXPECT_EQ(files_in(folder), 3u);
  // A whole file of whole bytes that are not objects: as if it were not there.
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = file.path().filename().string();
    files->write({std::stoull(name.substr(16), nullptr, 16), std::stoull(name.substr(0, 16), nullptr, 16)}, "nonsense");
  }
  const auto again = codegen::compile(all, avx2_target(), 1, files.get());
  EXPECT_EQ(again->num_compiled(), 1u);
  EXPECT_EQ(result(*again, 2, kernels[2]), 9);
}

TEST(StoredObjects, keys_tell_kernels_and_their_order_apart) {
  const Hash128 a{1, 2}, b{3, 4};
  const std::vector<Hash128> keys = {codegen::objects_key({}), codegen::objects_key(std::vector{a}),
                                     codegen::objects_key(std::vector{b}), codegen::objects_key(std::vector{a, b}),
                                     codegen::objects_key(std::vector{b, a})};
  for (std::size_t i = 0; i < keys.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]) << i << ", " << j;
}

}  // namespace
}  // namespace burin::test
