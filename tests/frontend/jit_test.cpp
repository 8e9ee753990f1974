#include <burin/optim.h>

#include "frontend/compile.h"
#include "ir/parser.h"
#include "passes/pipeline.h"
#include "runtime/executable.h"
#include "runtime/thread_pool.h"
#include "tests/frontend/each_backend.h"
#include "tests/frontend/expect.h"
#include "tests/support/machine.h"
#include "tests/support/temporary_folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

namespace burin {
namespace {

using test::error_text;
using test::expect_values;

struct Params {
  Tensor w, b;
  BURIN_TREE(w, b)
};

// Lines that Burin logs during its life.
class Log {
 public:
  Log() {
    Runtime r;
    r.log = [this](std::string_view line) { lines.emplace_back(line); };
    set_runtime(r);
  }
  ~Log() { set_runtime({}); }
  std::vector<std::string> lines;
};

std::int64_t traces() { return jit_statistics().traces; }

TEST(Jit, TracesOncePerStructure) {
  const auto f = jit([](Params p, Tensor x, int n) { return p.w * x + p.b * n; });
  const Params p{ones({2}), ones({2})};
  const auto start = traces();
  expect_values(f(p, 3, 2), {5, 5});  // a number for a Tensor parameter is traced
  expect_values(f(p, 4, 2), {6, 6});
  EXPECT_EQ(traces(), start + 1);
  expect_values(f(p, 4, 3), {7, 7});  // another static number
  EXPECT_EQ(traces(), start + 2);
  (void)f({ones({3}), ones({3})}, 4, 3);  // another shape
  EXPECT_EQ(traces(), start + 3);
  (void)f({ones({2}), ones({2}, f64)}, 4, 3);  // another dtype
  EXPECT_EQ(traces(), start + 4);
  expect_values(f(p, 5, 2), {7, 7});
  EXPECT_EQ(traces(), start + 4);
}

TEST(Jit, SharesCompiledProgramsBetweenFunctions) {
  (void)jit([](Tensor x) { return x * 3 + 1; })(ones({7, 3}));
  const auto compiles = jit_statistics().compiles;
  (void)jit([](Tensor y) { return y * 3 + 1; })(ones({7, 3}));
  EXPECT_EQ(jit_statistics().compiles, compiles);
}

TEST(Jit, UnjittedOpsCompileOnce) {
  const auto run = [] { return nn::rms_norm(ones({4, 6}) * 2.5, ones({6})) / 3; };
  (void)run();
  const auto compiles = jit_statistics().compiles;
  (void)run();
  (void)(ones({4, 6}) * 7.25);  // the number is data
  EXPECT_EQ(jit_statistics().compiles, compiles);
}

TEST(Jit, TakesFunctionsPointersAndMoveOnlyLambdas) {
  const auto owned = jit([p = std::make_unique<double>(2.0)](Tensor x) { return x * *p; });
  expect_values(owned(ones({2})), {2, 2});
  Tensor (*pointer)(const Tensor&) = [](const Tensor& x) { return x + 1; };
  expect_values(jit(pointer)(ones({1})), {2});
  expect_values(jit([](auto x, auto n) { return x * n; })(ones({1}), 4), {4});
  const Jit<Tensor(Tensor)> member = jit([](Tensor x) { return -x; });
  expect_values(member(1), {-1});
  expect_values(jit([](Tensor x) { return jit([](Tensor y) { return y * 2; })(x) + 1; })(ones({1})), {3});
}

TEST(Jit, CapturesAreHiddenInputsAsOfTheTrace) {
  Tensor scale = tensor({2.0});
  const auto f = jit([&](Tensor x) { return x * scale; });
  expect_values(f(ones({1})), {2});
  scale = tensor({5.0});
  expect_values(f(ones({1})), {2});
  Log log;
  setenv("BURIN_CHECK_CAPTURES", "1", 1);
  expect_values(f(ones({1})), {2});
  unsetenv("BURIN_CHECK_CAPTURES");
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_NE(log.lines[0].find("captured value 0, f32[1], has changed since the trace"), std::string::npos) << log.lines[0];
}

TEST(Jit, ChangedLinesAreFoundToo) {
  int n = 2;
  const int line = __LINE__ + 1;
  const auto f = jit([&](Tensor x) { return n == 2 ? x + 1 : x * 2; });
  (void)f(ones({1}));
  n = 3;
  Log log;
  setenv("BURIN_CHECK_CAPTURES", "1", 1);
  (void)f(ones({1}));
  unsetenv("BURIN_CHECK_CAPTURES");
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_NE(log.lines[0].find("traces differently now, from jit_test.cpp:" + std::to_string(line) + " on"), std::string::npos) << log.lines[0];
}

TEST(Jit, ExplainsRecompilesAndLogsThem) {
  const int line = __LINE__ + 1;
  const auto f = jit([](Params p) { return p.w + p.b; });
  (void)f({ones({2}), ones({2})});
  Log log;
  setenv("BURIN_EXPLAIN_RECOMPILES", "1", 1);
  setenv("BURIN_LOG_COMPILES", "1", 1);
  (void)f({ones({2}), ones({1})});
  unsetenv("BURIN_EXPLAIN_RECOMPILES");
  unsetenv("BURIN_LOG_COMPILES");
  ASSERT_EQ(log.lines.size(), 2u);
  EXPECT_NE(log.lines[0].find("compiles again: arg0.b: f32[1], before f32[2]"), std::string::npos) << log.lines[0];
  EXPECT_NE(log.lines[1].find("burin: compiled jit (jit_test.cpp:" + std::to_string(line) + "): "), std::string::npos) << log.lines[1];
}

TEST(Jit, NamesAStaticNumberThatCompilesOftenOnce) {
  const auto f = jit([](Tensor x, int step) { return x * step; });
  Log log;
  for (int i = 0; i < 12; ++i) (void)f(ones({1}), i);
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_NE(log.lines[0].find("argument 1 (integer) is static and has compiled 8 times; pass a Tensor"), std::string::npos) << log.lines[0];
}

TEST(Jit, WeakTypesSurviveCalls) {
  const auto count = jit([](Tensor n) { return n + 1; });
  Tensor n = 0;
  const auto start = traces();
  for (int i = 0; i < 3; ++i) n = count(n);
  EXPECT_EQ(int(n), 3);
  EXPECT_TRUE(n.weak());
  EXPECT_EQ(traces(), start + 1);
}

TEST(Jit, ShowsItsStages) {
  const auto f = jit([](Params p) { return p.w * 2 + p.b; });
  const std::string text = f.lower({abstract_tensor({3}), abstract_tensor({3})}).text();
  EXPECT_NE(text.find("func @main("), std::string::npos) << text;
  EXPECT_NE(text.find("%w: f32[3]"), std::string::npos) << text;
  EXPECT_NE(text.find("= mul "), std::string::npos) << text;
  const auto shapes = eval_shape([](Tensor x) { return std::pair{x.sum(0), matmul(x, x)}; })(abstract_tensor({4, 4}, bf16));
  EXPECT_EQ(shapes.first.shape(), Shape{4});
  EXPECT_EQ(shapes.second.dtype(), bf16);
}

TEST(Jit, StaticResultsAreKept) {
  const auto f = jit([](Tensor x) { return std::tuple{x, 7, std::string("s"), std::vector{x, x}}; });
  for (int i = 0; i < 2; ++i) {
    const auto [x, n, s, list] = f(ones({1}));
    EXPECT_EQ(n, 7);
    EXPECT_EQ(s, "s");
    EXPECT_EQ(list.size(), 2u);
  }
}

class Backends : public test::EachBackend {};

TEST_P(Backends, DonationNeverChangesWhatOthersHold) {
  const auto step = jit([](Params p, Tensor x) { return Params{p.w - x, p.b * 2}; }, {.donate = {0}});
  Params p{tensor({1.0, 2.0}), tensor({3.0, 4.0})};
  const Tensor kept = p.w;  // a second holder of the same bytes
  p = step(p, tensor({1.0, 1.0}));
  expect_values(p.w, {0, 1});
  expect_values(p.b, {6, 8});
  expect_values(kept, {1, 2});
  for (int i = 0; i < 3; ++i) p = step(p, tensor({1.0, 1.0}));
  expect_values(p.w, {-3, -2});
  expect_values(p.b, {48, 64});
}

TEST_P(Backends, ADonatedArgumentIsGone) {
  const auto step = jit([](Tensor p) { return p + 1; }, {.donate = {0}});
  const Tensor p = tensor({1.0, 2.0, 3.0, 4.0}), next = step(p);
  expect_values(next, {2, 3, 4, 5});
  const std::string text = error_text([&] { (void)(p + 1); });
  if (is("machine"))  // the others give results memory of their own
    EXPECT_EQ(text.find("a tensor, f32[4], is used that was donated to the function jitted at jit_test.cpp:"), 0u) << text;
  else
    EXPECT_EQ(text, "no error");
}

TEST_P(Backends, ACallThatThrowsLeavesDonatedArgumentsAsTheyWere) {
  // The index is known, and wrong, only after x could have been overwritten.
  const auto f = jit([](Tensor x, Tensor table, Tensor y) { return std::pair{x + 1, table[argmax(y, 1)]}; }, {.donate = {0}});
  const Tensor table = arange(3), y = tensor({{1.0, 2.0, 3.0, 4.0}, {9.0, 2.0, 3.0, 4.0}});
  Tensor x = random::normal(random::key(0), {300, 7}) + 0;
  const std::vector<float> before = x.to_vector<float>();
  EXPECT_NE(error_text([&] { (void)f(x, table, y); }).find("index 3 is out of range"), std::string::npos);
  EXPECT_EQ(x.to_vector<float>(), before);
  const auto [z, taken] = f(x, table, -y);
  EXPECT_EQ(z.to_vector<float>()[5], before[5] + 1);
  expect_values(taken, {0, 1});
}

TEST_P(Backends, ADonatedTensorThatIsAlsoAnotherArgumentIsCopied) {
  const auto step = jit([](Tensor a, Tensor b) { return a + flip(b, 0); }, {.donate = {0}});
  const Tensor x = tensor({1.0, 2.0, 3.0, 4.0, 5.0});
  expect_values(step(x, x), {6, 6, 6, 6, 6});
  expect_values(x, {1, 2, 3, 4, 5});
  const auto both = jit([](Tensor a, Tensor b) { return std::pair{a + 1, b + 2}; }, {.donate = {0, 1}});
  const auto [one, two] = both(x, x);
  expect_values(one, {2, 3, 4, 5, 6});
  expect_values(two, {3, 4, 5, 6, 7});
}

TEST_P(Backends, DonatedOptimiserStatesAreReadBeforeTheyAreOverwritten) {
  const auto step = [](Tensor p, AdamState<Tensor> s, Tensor g) { return optim::adamw(p, g, s, 0.1, {.weight_decay = 0.01}); };
  const auto plain = jit(step), donating = jit(step, {.donate = {0, 1}});
  Tensor p = random::normal(random::key(0), {3, 5}), q = p + 0;
  auto s = optim::adam_state(p), t = optim::adam_state(q);
  for (int i = 0; i < 3; ++i) {
    const Tensor g = random::normal(random::key(i), {3, 5});
    std::tie(p, s) = plain(p, s, g);
    std::tie(q, t) = donating(q, t, g);
    EXPECT_TRUE(array_equal(p, q)) << p << q;
    EXPECT_TRUE(array_equal(s.mu, t.mu));
    EXPECT_TRUE(array_equal(s.nu, t.nu));
    EXPECT_EQ(int(t.count), i + 1);
  }
}

TEST_P(Backends, AProfileSaysWhatEachKernelDidAndHowNearToTheLimitItCame) {
  const auto f = jit([](Tensor x, Tensor y, Tensor w) { return std::pair{matmul(x, w), matmul(y, w)}; }, {.num_threads = 1});
  const Compiled compiled = f.lower(ones({64, 32}), ones({64, 32}), ones({32, 16})).compile();
  if (std::string(GetParam()) != "machine") return;  // messages_test has what the others say
  const Profile profile = compiled.profile(3);
  EXPECT_EQ(profile.runs, 3);
  EXPECT_EQ(profile.threads, 1);
  ASSERT_EQ(profile.kernels.size(), static_cast<std::size_t>(compiled.num_kernels()));
  double seconds = 0, flops = 0;
  for (const Profile::Kernel& kernel : profile.kernels) {
    seconds += kernel.seconds;
    flops += kernel.flops;
    EXPECT_NE(kernel.name.find("(jit_test.cpp:"), std::string::npos) << kernel.name;
    EXPECT_GT(kernel.of_limit(), 0);
    EXPECT_EQ(kernel.threads, 1);
  }
  EXPECT_LE(seconds, profile.seconds);
  EXPECT_EQ(flops, 2 * (2 * 64 * 32 * 16));
  EXPECT_EQ(profile.kernels[0].calls, 2) << profile.text();
  EXPECT_NE(profile.text().find("3 runs of "), std::string::npos) << profile.text();
  EXPECT_NE(profile.text().find("of limit  kernel\n"), std::string::npos) << profile.text();
}

TEST_P(Backends, UnjittedHalfTypesRoundAfterEveryOp) {
  const Tensor x = random::normal(random::key(0), {64}, bf16);
  const auto f = [](Tensor t) { return (t * t + t) * 3.0 - t; };
  EXPECT_TRUE(array_equal(f(x), jit(f, {.excess_precision = false})(x)));
  EXPECT_TRUE(array_equal(vmap(f)(x), f(x)));  // one compiled function, still un-jitted
}

TEST_P(Backends, DumpsItsStages) {
  const test::TemporaryFolder folder;
  setenv("BURIN_DUMP", (folder / "dump").c_str(), 1);
  (void)jit([](Tensor p) { return softmax(p * 1.5).sum(0); })(ones({3, 5}));
  unsetenv("BURIN_DUMP");
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (!entry.is_regular_file()) continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    files[entry.path().filename()] = text.str();
  }

  std::vector<std::string> names = {"00_trace.ir", "01_inline_calls.ir", "02_simplify.ir", "03_widen_half.ir", "04_fold_constants.ir",
                                    "05_eliminate_common.ir", "06_decompose.ir", "07_remove_dead.ir", "08_split_reductions.ir",
                                    "09_fuse.ir", "10_drop_repeated_checks.ir", "11_lower.txt", "12_schedule.txt", "13_plan_memory.txt",
                                    "fused.dot", "kernels.ll", "kernels.s", "memory.txt", "program.txt", "timings.txt"};
  if (is("interpreter")) std::erase_if(names, [](const std::string& name) { return name.starts_with("kernels."); });
  if (is("evaluator")) names = {"00_trace.ir", "timings.txt"};
  std::vector<std::string> found;
  for (const auto& [name, text] : files) found.push_back(name);
  EXPECT_EQ(found, names);
  EXPECT_EQ(files["timings.txt"].find(" ms  codegen\n") != std::string::npos, is("machine")) << files["timings.txt"];
  const auto holds = [&](const std::string& name, const std::string& text) { return files[name].find(text) != std::string::npos; };
  EXPECT_TRUE(holds("00_trace.ir", "jit_test.cpp:271"));
  if (is("evaluator")) return;
  EXPECT_EQ(files["03_widen_half.ir"], "(unchanged)\n");  // there are no half types
  EXPECT_TRUE(holds("09_fuse.ir", "= fusion "));
  EXPECT_TRUE(holds("11_lower.txt", "kernel @rows_0("));
  EXPECT_TRUE(holds("program.txt", "kernel @rows_0("));
  EXPECT_TRUE(holds("memory.txt", "arena "));
  EXPECT_TRUE(holds("fused.dot", "digraph "));
  if (is("interpreter")) return;
  EXPECT_TRUE(holds("kernels.ll", "define "));
  EXPECT_TRUE(holds("kernels.s", ".text"));
}

TEST_P(Backends, ACallThatThrowsLeavesDonatedArguments) {
  const auto step = jit([](Tensor p, Tensor ids) { return p + p[ids].sum(); }, {.donate = {0}});
  Tensor p = tensor({1.0, 2.0, 3.0});
  EXPECT_NE(error_text([&] { (void)step(p, tensor({0, 3})); }).find("index 3 is out of range"), std::string::npos);
  expect_values(p, {1, 2, 3});
  p = step(p, tensor({0, 2}));
  expect_values(p, {5, 6, 7});
}

TEST_P(Backends, ErrorsOfEqualProgramsNameTheirOwnLines) {
  const Tensor v = ones({3}), bad = tensor({5});
  EXPECT_NE(error_text([&] { (void)v[bad]; }).find("jit_test.cpp:" + std::to_string(__LINE__)), std::string::npos);
  EXPECT_NE(error_text([&] { (void)v[bad]; }).find("jit_test.cpp:" + std::to_string(__LINE__)), std::string::npos);
}

TEST(SetRuntime, CompilesOnAsManyThreadsAsItRuns) {
  if (!test::has_machine) GTEST_SKIP() << test::no_machine;
  const ir::Target target = ir::host_target();
  std::size_t compiled = 0;
  const auto modules = [&](int extent, int num_threads) {  // of two kernels that no other test has
    const std::string x = "f32[" + std::to_string(extent) + ",3]";
    const ir::Function f = ir::parse("func @main(%x: " + x + ", %y: f32[3,5]) -> (f32[" + std::to_string(extent) + ",5], " + x +
                                     ") {\n  %a = dot_general %x, %y {lhs_contract = [1], rhs_contract = [0], dtype = f32}\n  %b = neg %x\n" +
                                     "  return %a, %b\n}\n");
    (void)detail::make_executable(passes::build_program(f, target, {}), target, num_threads, nullptr, &compiled);
    return compiled;
  };
  set_runtime({.num_threads = 2});
  EXPECT_EQ(modules(901, 0), 2u);
  EXPECT_EQ(modules(902, 1), 1u);
  set_runtime({.num_threads = 1});
  EXPECT_EQ(modules(903, 0), 1u);
  set_runtime({});
}

struct TwoShapes {
  Shape a, b;
  BURIN_TREE(a, b)
};

TEST(SetRuntime, GivesTheNumberOfThreadsBack) {
  const int before = runtime::default_num_threads();
  set_runtime({.num_threads = before + 1});
  EXPECT_EQ(runtime::default_num_threads(), before + 1);
  set_runtime({});
  EXPECT_EQ(runtime::default_num_threads(), before);
}

TEST(Jit, ExplainsRecompilesByArgument) {
  const auto f = jit([](Tensor x, int n, std::vector<Tensor> all) { return x * n + all[0].sum(); });
  (void)f(ones({3, 3}), 1, {ones({1})});
  Log log;
  setenv("BURIN_EXPLAIN_RECOMPILES", "1", 1);
  (void)f(ones({4, 4}), 1, {ones({1})});
  (void)f(ones({4, 4}), 2, {ones({1})});
  (void)f(ones({4, 4}), 2, {ones({1}), ones({1})});
  unsetenv("BURIN_EXPLAIN_RECOMPILES");
  ASSERT_EQ(log.lines.size(), 3u);
  EXPECT_TRUE(log.lines[0].ends_with("compiles again: arg0: f32[4,4], before f32[3,3]")) << log.lines[0];
  EXPECT_TRUE(log.lines[1].ends_with("compiles again: arg1: 2, before 1")) << log.lines[1];
  EXPECT_TRUE(log.lines[2].ends_with("compiles again: arg2: 2 elements, before 1 element")) << log.lines[2];
}

TEST(Jit, StaticShapesInARowAreTold) {
  const auto f = jit([](TwoShapes c, Tensor x) { return x + static_cast<double>(c.a.rank() * 10 + c.b.rank()); });
  EXPECT_EQ(double(f({Shape{5, 7, 0, 0, 6}, Shape{}}, 0.0)), 50);
  EXPECT_EQ(double(f({Shape{5}, Shape{6, 7, 0, 0}}, 0.0)), 14);
  const std::pair split{Shape{5, 7, 0, 0, 6}, Shape{}}, other{Shape{5}, Shape{6, 7, 0, 0}};
  EXPECT_THROW(tree::map([](Tensor x, Tensor) { return x; }, std::pair{split, Tensor(1)}, std::pair{other, Tensor(1)}), Error);
}

INSTANTIATE_TEST_SUITE_P(Jit, Backends, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace burin
