// burin-opt --bisect with a fault planted in one of the stages behind fusion.
#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>

#include "base/check.h"
#include "ir/parser.h"
#include "passes/lower/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/values.h"
#include "tools/execute/crash.h"
#include "tools/opt/bisect.h"

namespace opt {
namespace {

using namespace burin;
using namespace burin::ir;

// Four products. The first value waits for the last step, while the third is made of others: the two must not share bytes.
const char* const program =
    "func @main(%x: f32[3,3], %y: f32[3,3]) -> (f32[3,3]) {\n"
    "  %a = dot_general %x, %y {lhs_contract = [1], rhs_contract = [0], dtype = f32}\n"
    "  %b = dot_general %y, %x {lhs_contract = [1], rhs_contract = [0], dtype = f32}\n"
    "  %c = dot_general %b, %y {lhs_contract = [1], rhs_contract = [0], dtype = f32}\n"
    "  %d = dot_general %a, %c {lhs_contract = [1], rhs_contract = [0], dtype = f32}\n"
    "  %e = sub %d, %x\n"
    "  return %e\n}\n";
enum Steps : std::size_t { a, b, c, d };  // of the program that it becomes

std::vector<Literal> inputs() {
  return {test::values(f32, {3, 3}, "1 0 0 0 2 0 0 0 1"), test::values(f32, {3, 3}, "1 1 0 0 1 0 0 0 1")};
}

std::optional<Culprit> find(const Pipeline& pipeline) { return bisect(parse(program), inputs(), Target{}, pipeline); }

std::string found(const Pipeline& pipeline) {
  const auto culprit = find(pipeline);
  return culprit ? to_string(*culprit) : "";
}

/// Changes every statement of a block, inner ones too.
template <class F>
void for_each_statement(Block& block, F&& f) {
  for (Stmt& s : block) {
    f(s);
    for_each_statement(s.body, f);
  }
}
template <class F>
void for_each_statement(Program& p, F&& f) {
  for (Kernel& kernel : p.kernels) for_each_statement(kernel.body, f);
}

void swap_operands(Program& p) {
  for_each_statement(p, [](Stmt& s) {
    if (s.kind == StmtKind::let && s.op == Op::sub) std::swap(s.args[0], s.args[1]);
  });
}

/// The pipeline as it is, but for the program that lowering gives.
Pipeline with_lowered(const std::function<void(Program&)>& spoil) {
  Pipeline all = pipeline(true);
  all.lower = [=, lower = all.lower](const Function& f, const Target& target) {
    Program p = lower(f, target);
    spoil(p);
    return p;
  };
  return all;
}

Pipeline with_scheduled(const std::function<void(Program&)>& spoil) {
  Pipeline all = pipeline(true);
  all.schedule = [=](Program& p) {
    passes::schedule(p);
    spoil(p);
  };
  return all;
}

Pipeline with_planned(const std::function<void(Program&)>& spoil) {
  Pipeline all = pipeline(true);
  all.plan_memory = [=](Program& p) {
    passes::plan_memory(p);
    spoil(p);
  };
  return all;
}

/// Code is generated from what `spoil` leaves.
Pipeline with_compiled(const std::function<void(Program&)>& spoil) {
  Pipeline all = pipeline(true);
  all.codegen = [=, codegen = all.codegen](Program p, const Target& target, int num_threads) {
    spoil(p);
    return codegen(p, target, num_threads);
  };
  return all;
}

/// The place of one step's result becomes another's.
void share(Program& p, std::size_t step, std::size_t other) {
  const BufferRef from = p.steps[step].args.back(), to = p.steps[other].args.back();
  for (auto& each : p.steps)
    for (BufferRef& ref : each.args)
      if (ref == from) ref = to;
}

#define SKIP_WITHOUT_MACHINE_CODE() \
  if (!tools::can_run(Target{})) GTEST_SKIP() << "skipped: this build has no code generation (BURIN_WITH_LLVM=OFF)"

TEST(bisect_stages, finds_nothing_in_the_pipeline_as_it_is) { EXPECT_EQ(found(pipeline(true)), ""); }

// ---- lower ----

TEST(bisect_stages, names_the_fusion_that_lowering_computes_wrongly) {
  EXPECT_EQ(found(with_lowered(swap_operands)), "wrong after lower, @matmul_3 (<text>:5): result 0[0,1]: -5 instead of 5 (tolerance 7.6e-06 of 5)");
}

TEST(bisect_stages, names_lowering_when_only_the_steps_do_not_fit_together) {
  const auto spoil = [](Program& p) {
    if (p.steps.size() > 1) std::swap(p.steps[d].args[0], p.steps[d].args[1]);
  };
  EXPECT_EQ(found(with_lowered(spoil)), "wrong after lower: result 0[0,1]: 2 instead of 5 (tolerance 7.6e-06 of 5)");
}

TEST(bisect_stages, names_what_the_verifier_finds_in_a_lowered_kernel) {
  const auto spoil = [](Program& p) {
    for_each_statement(p, [](Stmt& s) {
      if (s.kind == StmtKind::store) s.indices.back() = s.indices.back() + Affine(1);
    });
  };
  const std::string what = found(with_lowered(spoil));
  EXPECT_EQ(what.rfind("wrong after lower, @matmul_0 (<text>:2): P1: K3: ", 0), 0u) << what;
}

TEST(bisect_stages, names_lowering_when_it_throws) {
  const auto spoil = [](Program& p) { (void)p.steps.at(99); };
  const std::string what = found(with_lowered(spoil));
  EXPECT_EQ(what.rfind("wrong after lower, @matmul_0 (<text>:2): it throws: ", 0), 0u) << what;
}

TEST(bisect_stages_death, a_failed_check_in_lowering_names_the_op) {
  Pipeline wrong = pipeline(true);
  wrong.lower = [lower = wrong.lower](const Function& f, const Target& target) {
    f.for_each_op([&](OpId op) { BURIN_CHECK(to_string(f.location(op)) != "<text>:4", "planted"); });
    return lower(f, target);
  };
  EXPECT_DEATH(find(wrong), "planted\n  at op 2 of @main: fusion .<text>:4.\n  in pass `lower` on @main\n"
                            "  whose input is in .*; repeat with: burin-opt .*burin-crash-[0-9]+.ir --passes=lower");
}

// ---- schedule ----

TEST(bisect_stages, names_schedule_when_the_verifier_complains) {
  const auto spoil = [](Program& p) {
    for (auto& step : p.steps) step.after = 0;
  };
  const std::string what = found(with_scheduled(spoil));
  EXPECT_EQ(what.rfind("wrong after schedule: P6: ", 0), 0u) << what;
}

TEST(bisect_stages, names_schedule_when_steps_run_too_early) {
  const auto spoil = [](Program& p) {
    std::swap(p.steps[b], p.steps[c]);
    for (std::size_t i = 0; i < p.steps.size(); ++i) p.steps[i].after = static_cast<std::uint32_t>(i);
  };
  const std::string what = found(with_scheduled(spoil));
  EXPECT_EQ(what.rfind("wrong after schedule: result 0[0,0]: ", 0), 0u) << what;
}

TEST(bisect_stages_death, a_failed_check_in_schedule_names_it) {
  const auto spoil = [](Program& p) { BURIN_CHECK(p.steps.empty(), "planted"); };
  EXPECT_DEATH(find(with_scheduled(spoil)), "planted\n  in pass `schedule` on @main\n  whose input is in .*; "
                                            "repeat with: burin-opt .*burin-crash-[0-9]+.ir --passes=lower,schedule");
}

// ---- plan_memory ----

TEST(bisect_stages, names_plan_memory_when_the_verifier_complains) {
  const std::string what = found(with_planned([](Program& p) { share(p, c, b); }));
  EXPECT_EQ(what.rfind("wrong after plan_memory: P5: step 2 ", 0), 0u) << what;
}

TEST(bisect_stages, names_plan_memory_when_a_value_is_overwritten_before_its_last_use) {
  const std::string what = found(with_planned([](Program& p) { share(p, c, a); }));
  EXPECT_EQ(what.rfind("wrong after plan_memory: result 0[0,1]: ", 0), 0u) << what;
}

TEST(bisect_stages_death, a_failed_check_in_plan_memory_names_it) {
  const auto again = [](Program& p) { passes::plan_memory(p); };
  EXPECT_DEATH(find(with_planned(again)), "memory is planned twice\n  in pass `plan_memory` on @main\n  whose input is in .*; "
                                          "repeat with: burin-opt .*.ir --passes=lower,schedule,plan_memory");
}

// ---- codegen, and what runs its code ----

TEST(bisect_stages, names_the_fusion_whose_machine_code_is_wrong) {
  SKIP_WITHOUT_MACHINE_CODE();
  EXPECT_EQ(found(with_compiled(swap_operands)), "wrong after codegen, @matmul_3 (<text>:5): result 0[0,1]: -5 instead of 5 (tolerance 7.6e-06 of 5)");
}

TEST(bisect_stages, names_codegen_when_each_fusion_alone_is_right) {
  SKIP_WITHOUT_MACHINE_CODE();
  const auto spoil = [](Program& p) {
    if (p.steps.size() > 1) std::swap(p.steps[d].args[0], p.steps[d].args[1]);
  };
  EXPECT_EQ(found(with_compiled(spoil)), "wrong after codegen: result 0[0,1]: 2 instead of 5 (tolerance 7.6e-06 of 5)");
}

TEST(bisect_stages, tells_the_runtime_from_the_code) {
  SKIP_WITHOUT_MACHINE_CODE();
  Pipeline wrong = pipeline(true);
  wrong.codegen = [codegen = wrong.codegen](Program p, const Target& target, int num_threads) {
    if (num_threads > 1) swap_operands(p);
    return codegen(p, target, num_threads);
  };
  const std::string what = found(wrong);
  EXPECT_EQ(what.rfind("wrong after runtime, with two threads: result 0[0,1]: ", 0), 0u) << what;
}

TEST(bisect_stages_death, a_failed_check_in_codegen_names_statement_and_kernel) {
  SKIP_WITHOUT_MACHINE_CODE();
  const auto spoil = [](Program& p) {
    for_each_statement(p, [](Stmt& s) {
      if (s.kind == StmtKind::let && s.op == Op::sub) s.op = Op::gather;
    });
  };
  EXPECT_DEATH(find(with_compiled(spoil)),
               "  at statement [0-9]+: .*gather.*\n  in code generation of kernel @matmul_3\n  which is in .*; repeat with: burin-opt "
               ".* --emit=llvm.*\n  in pass `codegen` on @main\n  whose input is in .*; repeat with: burin-opt .* --emit=asm.*\n"
               "  at op 3 of @main: fusion .<text>:5.");
}

TEST(bisect_stages_death, code_that_crashes_is_that_of_a_fusion) {
  SKIP_WITHOUT_MACHINE_CODE();
  if (test::sanitized) GTEST_SKIP() << "skipped: sanitizers have reports of their own";
  Pipeline wrong = pipeline(true);
  wrong.codegen = [codegen = wrong.codegen](const Program& p, const Target& target, int num_threads) {
    bool subtracts = false;
    Program copy = p;
    for_each_statement(copy, [&](Stmt& s) { subtracts = subtracts || (s.kind == StmtKind::let && s.op == Op::sub); });
    if (!subtracts) return codegen(p, target, num_threads);
    return tools::Run([](std::span<const Literal>) -> tools::Results {
      std::raise(SIGSEGV);
      return {};
    });
  };
  EXPECT_EXIT(
      {
        tools::report_crashes();
        find(wrong);
      },
      testing::KilledBySignal(SIGSEGV),
      "ended by signal 11\n  in pass `machine code` on @main\n  whose input is in .*; repeat with: burin-opt .*.ir "
      "--passes=lower,schedule,plan_memory --check.*\n  at op [0-9]+ of @main: fusion .<text>:5.");
}

}  // namespace
}  // namespace opt
