// What a module promises beyond its kernels' results: names, features, no fused user ops, the same bytes every time.
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <regex>

#include "codegen/module.h"
#include "tests/codegen/machine.h"
#include "tests/support/errors.h"
#include "tests/support/sanitized.h"

namespace burin::test {
namespace {

using ir::Kernel;

Kernel multiply_add(const std::string& name) {
  return ir::parse_kernel("kernel @" + name + R"((in x: f32[100], in h: bf16[100], in d: f64[100], out y: f32[100]) {
  for j in 0..100 vector 32 {
    %0 = load x[j]
    %1 = load h[j]
    %2 = load d[j]
    %3 = convert %1 : f32
    %4 = mul %0, %3 : f32
    %5 = add %4, %0 : f32
    %6 = mul %2, %2 : f64
    %7 = add %6, %2 : f64
    %8 = convert %7 : f32
    %9 = max %5, %8 : f32
    store y[j], %9
  }
})");
}

std::vector<const Kernel*> pointers(const std::vector<Kernel>& kernels) {
  std::vector<const Kernel*> result;
  for (const Kernel& kernel : kernels) result.push_back(&kernel);
  return result;
}

#if BURIN_ASSERTS
TEST(CodegenModuleDeathTest, what_llvm_refuses_names_the_kernel_and_how_to_repeat_it) {
  // A product of f32 and f64, which no verified kernel has.
  std::vector<Kernel> kernels = {multiply_add("right"), multiply_add("mixed")};
  kernels[1].body[0].body[4].args[1] = kernels[1].body[0].body[2].result;
  EXPECT_DEATH(codegen::emit_llvm(pointers(kernels), avx2_target()),
               "operands .*\n(.*\n)*  in code generation of kernel @mixed\n  which is in .*; repeat with: burin-opt .*.ir --emit=llvm");
}
#endif

TEST(CodegenModule, narrow_targets_get_no_wider_instruction) {
  const std::vector<Kernel> kernels = {multiply_add("k")};
  const std::string narrow = codegen::emit_assembly(pointers(kernels), avx2_target());
  EXPECT_NE(narrow.find("%ymm"), std::string::npos);
  for (const char* wide : {"%zmm", "%k[0-7]", "%[xy]mm(1[6-9]|2[0-9]|3[01])"})
    EXPECT_FALSE(std::regex_search(narrow, std::regex(wide))) << wide << narrow;
  EXPECT_NE(codegen::emit_assembly(pointers(kernels), avx512_target()).find("%zmm"), std::string::npos);
}

TEST(CodegenModule, products_and_sums_of_the_user_are_never_fused) {
  const std::vector<Kernel> kernels = {multiply_add("k")};
  for (const ir::Target& target : {avx2_target(), avx512_target()}) {
    const std::string text = codegen::emit_assembly(pointers(kernels), target);
    EXPECT_EQ(text.find("vfm"), std::string::npos) << text;
    EXPECT_NE(text.find("vmulps"), std::string::npos);
  }
}

TEST(CodegenModule, names_are_unique_and_plain) {
  std::vector<Kernel> kernels = {multiply_add("k"), multiply_add("k"), multiply_add("k"), multiply_add("k"), multiply_add("k")};
  kernels[1].name = "memcpy";
  kernels[2].name = "block0/attn softmax";
  kernels[3].name = "";
  const std::string text = codegen::emit_llvm(pointers(kernels), avx2_target());
  for (const char* name : {"@k(", "@kernel_memcpy(", "@block0_attn_softmax(", "@kernel_(", "@k_1("})
    EXPECT_NE(text.find(std::string("define void ") + name), std::string::npos) << name;
  EXPECT_EQ(codegen::compile(pointers(kernels), avx2_target())->entries().size(), 5u);
}

TEST(CodegenModule, the_same_kernels_give_the_same_bytes) {
  const std::vector<Kernel> kernels = {multiply_add("a"), multiply_add("b")};
  EXPECT_EQ(codegen::emit_object(pointers(kernels), avx2_target()), codegen::emit_object(pointers(kernels), avx2_target()));
}

TEST(CodegenModule, only_index_reports_are_left_undefined) {
  const std::vector<Kernel> kernels = {ir::parse_kernel(R"(kernel @take(in x: f32[4], in ids: i64[9], out y: f32[9]) {
  site "take"
  for i in 0..9 vector 8 {
    %0 = load ids[i]
    bind at = %0 in 0..4 error site 0
    %1 = load x[at]
    store y[i], %1
  }
})")};
  for (const ir::Target& target : {avx2_target(), avx512_target()})
    EXPECT_EQ(undefined_symbols(codegen::emit_object(pointers(kernels), target)),
              std::vector<std::string>{"burin_report_index"});
}

TEST(CodegenModule, many_kernels_on_several_threads_keep_their_order) {
  std::vector<Kernel> kernels;
  for (int i = 0; i < 23; ++i) {
    ir::Kernel kernel;
    kernel.name = "fill";
    const ir::BufferId y = add_param(kernel, "y", {i32, Shape::of(1 + i % 5)}, ir::Space::out);
    ir::BlockBuilder b(kernel);
    b.loop("j", 0, {1 + i % 5}, i % 3 == 0 ? ir::LoopKind::unroll : ir::LoopKind::serial, 1,
           [&](ir::VarId j) { b.store(y, {ir::Affine(j)}, b.constant(i32, i)); });
    kernels.push_back(std::move(kernel));
  }
  const auto module = codegen::compile(pointers(kernels), avx2_target(), 4);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    std::vector<ir::Literal> params = {ir::Literal({i32, Shape::of(1 + static_cast<int>(i) % 5)})};
    run(module->entries()[i], kernels[i], params);
    EXPECT_EQ(params[0].int_at(params[0].type().size() - 1), static_cast<std::int64_t>(i));
  }
  EXPECT_TRUE(codegen::compile({}, avx2_target())->entries().empty());
}

// The system gives a process so many mappings of memory, whoever takes them.
TEST(CodegenModule, says_when_no_mapping_is_left_for_it) {
  if (sanitized) GTEST_SKIP() << "a sanitizer needs mappings of its own";
  const std::vector<Kernel> first = {multiply_add("first")};
  std::vector<Kernel> kernels = {multiply_add("second")};
  kernels[0].body[0].width = 16;
  const auto module = codegen::compile(pointers(first), avx2_target());
  constexpr std::size_t page = 4096;
  std::vector<void*> taken;
  taken.reserve(std::size_t{1} << 22);
  for (bool readable = false; taken.size() < taken.capacity(); readable = !readable) {  // neighbours that differ stay two
    void* map = mmap(nullptr, page, readable ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) break;
    taken.push_back(map);
  }
  const std::string found = error_of([&] { codegen::compile(pointers(kernels), avx2_target()); });
  for (void* map : taken) munmap(map, page);
  if (taken.size() == taken.capacity()) GTEST_SKIP() << "this system gives a process more mappings than the test takes";
  EXPECT_EQ(found, "no memory for machine code: Cannot allocate memory; a compiled program takes two of the mappings that a process may have, or more "
                   "(vm.max_map_count)");
  EXPECT_EQ(codegen::compile(pointers(kernels), avx2_target())->entries().size(), 1u);
}

// What is unrolled counts as often as it is emitted, so that the threads that compile end together.
TEST(CodegenModule, kernels_are_shared_out_by_what_they_emit) {
  std::vector<Kernel> kernels;
  for (const char* loop : {"0..9", "0..400 unroll", "0..9", "0..100 unroll", "0..9", "90..100 unroll", "0..100"})
    kernels.push_back(ir::parse_kernel(std::string("kernel @k(in x: f32[400], out y: f32[400]) {\n for i in ") + loop +
                                       " {\n %0 = load x[i]\n %1 = neg %0 : f32\n store y[i], %1\n }\n}"));
  kernels.push_back(ir::parse_kernel(R"(kernel @nest(in x: f32[400], out y: f32[400]) {
    for j in 0..2 {
      for i in 0..150 unroll {
        %0 = load x[i + 150*j]
        %1 = neg %0 : f32
        store y[i + 150*j], %1
      }
    }
  })"));
  std::vector<const Kernel*> all;
  for (const Kernel& kernel : kernels) all.push_back(&kernel);
  using Parts = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(codegen::split(all, 1), (Parts{{0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_EQ(codegen::split(all, 2), (Parts{{1}, {0, 2, 3, 4, 5, 6, 7}}));
  EXPECT_EQ(codegen::split(all, 3), (Parts{{1}, {7}, {0, 2, 3, 4, 5, 6}}));
  EXPECT_EQ(codegen::split(all, 9), (Parts{{1}, {7}, {3}, {5}, {0}, {2}, {4}, {6}}));
  EXPECT_EQ(codegen::split({}, 4), Parts(1));
}

TEST(CodegenModule, as_many_modules_are_compiled_as_there_are_threads_and_kernels) {
  const auto three = [](int first) {  // that no other test has
    std::vector<Kernel> kernels;
    for (int i = first; i < first + 3; ++i)
      kernels.push_back(ir::parse_kernel("kernel @k(in x: f32[900], out y: f32[900]) {\n for i in 0.." + std::to_string(i) +
                                         " {\n %0 = load x[i]\n store y[i], %0\n }\n}"));
    return kernels;
  };
  const auto of_one = three(700), of_two = three(710), of_many = three(720);
  const auto one = codegen::compile(pointers(of_one), avx2_target(), 1);
  EXPECT_EQ(one->num_compiled(), 1u);
  EXPECT_EQ(codegen::compile(pointers(of_one), avx2_target(), 1)->num_compiled(), 0u);
  EXPECT_EQ(codegen::compile(pointers(of_two), avx2_target(), 2)->num_compiled(), 2u);
  EXPECT_EQ(codegen::compile(pointers(of_many), avx2_target(), 8)->num_compiled(), 3u);
}

TEST(CodegenModule, live_code_of_an_equal_kernel_is_shared_and_outlives_its_module) {
  std::vector<Kernel> kernels = {multiply_add("a")}, renamed = {multiply_add("b")};
  auto first = codegen::compile(pointers(kernels), avx2_target());
  const BurinKernel entry = first->entries()[0];
  const auto second = codegen::compile(pointers(renamed), avx2_target());
  EXPECT_EQ(second->entries()[0], entry);
  EXPECT_NE(codegen::compile(pointers(kernels), avx512_target())->entries()[0], entry);
  first.reset();
  std::vector<ir::Literal> params;
  for (const ir::Buffer& buffer : kernels[0].buffers) params.emplace_back(ir::Type{buffer.dtype, buffer.shape});
  for (ir::Literal& param : params)
    for (std::int64_t i = 0; i < param.type().size(); ++i) param.set(i, 2);
  run(second->entries()[0], renamed[0], params);
  EXPECT_EQ(params.back().at(0), 6);
}

}  // namespace
}  // namespace burin::test
