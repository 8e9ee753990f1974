// What compiling costs: passes by the number of ops, code generation by the depth of a model, and a second run that
// finds its machine code on disk. Nothing of one repetition's code is alive in the next.
#include <benchmark/benchmark.h>
#include <burin/burin.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file_cache.h"
#include "ir/builder.h"
#include "ir/parser.h"
#include "passes/pipeline.h"
#if BURIN_WITH_LLVM
#include "codegen/codegen.h"
#endif

namespace burin {
namespace {

// A training step: embedding, blocks of attention and MLP, cross entropy, SGD. 64 wide, 16 positions, batch 2.
struct Block {
  Tensor norm1, wqkv, wo, norm2, w1, w2;
  BURIN_TREE(norm1, wqkv, wo, norm2, w1, w2)
};
struct Params {
  Tensor embedding;
  std::vector<Block> blocks;
  Tensor norm, head;
  BURIN_TREE(embedding, blocks, norm, head)
};

Tensor attention(const Block& b, const Tensor& x) {
  const std::vector<Tensor> qkv = split(matmul(x, b.wqkv).reshape({2, 16, 12, 16}), 3, 2);
  return matmul(nn::attention(qkv[0], qkv[1], qkv[2], {.causal = true}).reshape({2, 16, 64}), b.wo);
}

Tensor loss(Params p, Tensor ids) {
  Tensor x = nn::embedding(p.embedding, ids);
  for (const Block& b : p.blocks) {
    x = x + attention(b, nn::rms_norm(x, b.norm1));
    x = x + matmul(nn::gelu(matmul(nn::rms_norm(x, b.norm2), b.w1)), b.w2);
  }
  return nn::cross_entropy(matmul(nn::rms_norm(x, p.norm), p.head), ids);
}

ir::Function train_step(std::int64_t layers) {
  const Block block = {.norm1 = zeros({64}),
                       .wqkv = zeros({64, 192}),
                       .wo = zeros({64, 64}),
                       .norm2 = zeros({64}),
                       .w1 = zeros({64, 256}),
                       .w2 = zeros({256, 64})};
  const Params params = {.embedding = zeros({256, 64}),
                         .blocks = std::vector(static_cast<std::size_t>(layers), block),
                         .norm = zeros({64}),
                         .head = zeros({64, 256})};
  const auto step = jit([](Params p, Tensor ids) {
    auto [value, gradients] = value_and_grad(loss)(p, ids);
    return std::pair{tree::map([](Tensor w, Tensor g) { return w - 0.1 * g; }, p, gradients), value};
  });
  return ir::parse(step.lower(params, zeros({2, 16}, i32)).text());
}

// Blocks of a norm, a product and a residual sum, 10 ops each.
ir::Function tower(std::int64_t ops) {
  ir::Builder b("main");
  const ir::Type type{f32, {8, 64}};
  ir::ValueId x = b.add_arg(type, "x");
  const ir::ValueId w = b.add_arg({f32, {64, 64}}, "w");
  for (std::int64_t i = 0; i < ops / 10; ++i) {
    const ir::ValueId sum = b.reduce(ir::Op::reduce_sum, b.mul(x, x), {1});
    const ir::ValueId norm = b.mul(x, b.broadcast(b.rsqrt(sum), {8, 64}, {0}));
    const ir::ValueId product =
        b.emit<ir::Op::dot_general>({norm, w}, {.lhs_contract = {1}, .rhs_contract = {0}, .dtype = f32});
    x = b.add(b.mul(b.tanh(product), x), b.add(x, product));
  }
  return b.finish({x});
}

/// All passes, from the traced function to the planned program.
void passes_by_ops(benchmark::State& state) {
  const ir::Function f = tower(state.range(0));
  std::size_t steps = 0;
  for (auto _ : state) steps = passes::build_program(f, ir::host_target(), {}).steps.size();
  state.counters["ops"] = static_cast<double>(f.num_ops());
  state.counters["steps"] = static_cast<double>(steps);
}
BENCHMARK(passes_by_ops)->RangeMultiplier(10)->Range(1'000, 100'000)->Unit(benchmark::kMillisecond);

/// The same for a training step by its layers.
void passes_by_layers(benchmark::State& state) {
  const ir::Function f = train_step(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(passes::build_program(f, ir::host_target(), {}));
  state.counters["ops"] = static_cast<double>(f.num_ops());
}
BENCHMARK(passes_by_layers)->Arg(2)->Arg(12)->Unit(benchmark::kMillisecond);

#if BURIN_WITH_LLVM
std::vector<const ir::Kernel*> kernels_of(const ir::Program& program) {
  std::vector<const ir::Kernel*> kernels;
  for (const ir::Kernel& kernel : program.kernels) kernels.push_back(&kernel);
  return kernels;
}

/// LLVM's part, on two threads: equal layers have equal kernels.
void code_by_layers(benchmark::State& state) {
  const ir::Program program = passes::build_program(train_step(state.range(0)), ir::host_target(), {});
  for (auto _ : state) benchmark::DoNotOptimize(codegen::compile(kernels_of(program), ir::host_target(), 2));
  state.counters["kernels"] = static_cast<double>(program.kernels.size());
  state.counters["steps"] = static_cast<double>(program.steps.size());
}
BENCHMARK(code_by_layers)->Arg(2)->Arg(12)->Unit(benchmark::kMillisecond)->UseRealTime();

/// Passes and machine code of the step with 2 layers as a second process sees them: objects come from files.
void from_disk(benchmark::State& state) {
  std::string folder = (std::filesystem::temp_directory_path() / "burin_bench_XXXXXX").string(), why;
  const auto files = ::mkdtemp(folder.data()) == nullptr ? nullptr : FileCache::open(folder, &why);
  if (files == nullptr) return state.SkipWithError(("no folder for the cache: " + why).c_str());
  const ir::Function f = train_step(2);
  bool all_recalled = true;
  for (int warm = 0; auto _ : state) {
    const ir::Program program = passes::build_program(f, ir::host_target(), {});
    const auto module = codegen::compile(kernels_of(program), ir::host_target(), 2, files.get());
    all_recalled = all_recalled && (module->num_compiled() == 0 || warm++ == 0);
  }
  if (!all_recalled) state.SkipWithError("LLVM had to compile");
  std::filesystem::remove_all(folder);
}
BENCHMARK(from_disk)->Unit(benchmark::kMillisecond)->UseRealTime();
#endif

}  // namespace
}  // namespace burin
