#include "tests/fuzz/properties.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/error.h"
#include "base/hash.h"
#include "frontend/compile.h"
#include "ir/approximated.h"
#include "ir/eval/eval.h"
#include "ir/printer.h"
#include "runtime/executable.h"
#include "tests/fuzz/inputs.h"
#include "tests/fuzz/random.h"
#include "tests/support/emulated_tiles.h"

namespace burin::fuzz {

using namespace ir;

const std::vector<Target>& targets() {
  static const auto* const all = [] {
    auto* list = new std::vector<Target>;
    const Target host = host_target();
    for (const char* name : {"avx2", "avx512", "avx512_bf16", "amx"}) {
      Isa isa;
      if (isa_from_name(name, &isa) && isa <= host.isa) list->push_back(host_target(name));
    }
    if (host.isa != Isa::amx && test::tiles_missing().empty()) list->push_back(test::tile_target());
    return list;
  }();
  return *all;
}

namespace {

// What a tile hides as a whole is not multiplied by zero: an infinity there makes no NaN. What is divided by the sum of
// weights is summed first, and may leave the range.
bool is_extreme(const Literal& literal) {
  for (std::int64_t i = 0; is_float(literal.dtype()) && i < literal.type().size(); ++i)
    if (!(std::abs(literal.at(i)) < 0x1p100)) return true;
  return false;
}

}  // namespace

Case::Case(Function f, std::uint64_t seed, bool sampled)
    : f_(std::move(f)), seed_(seed), sampled_(sampled), inputs_(draw_inputs(f_, seed)) {
  Random random(seed ^ 0x0b71'0000'0000ull);
  target_ = random.pick(targets());
  if (random.chance(0.3)) {  // so small that even these programs are blocked, cut into panels and packed for all tasks
    target_.l1_bytes = 2 << 10;
    target_.l2_bytes = 8 << 10;
    target_.l3_bytes = 1 << 20;
  }
  options_.excess_precision = random.chance(0.5);
  if (random.chance(0.3)) options_.split_elements = 32;
  // Weights of 16 bits are rounded before they are divided by their sum, which no enclosure of the text knows of.
  options_.small_attention = random.chance(0.5) && print(f_).find("f16") == std::string::npos &&
                             std::ranges::none_of(inputs_, is_extreme);
}

Case::~Case() = default;

const std::vector<Case::Stage>& Case::stages() {
  if (!stages_.empty()) return stages_;
  Function now = f_;
  for (const passes::PassInfo& pass : passes::pass_table()) {
    if (pass.stage == "lower") break;
    Function next = passes::run_pass(pass.name, now, options_);
    const bool changed = !same_program(next, now);
    now = std::move(next);
    stages_.push_back({std::string(pass.name), now, changed, pass.keeps_bits});
  }
  return stages_;
}

const Program& Case::program() {
  if (!program_) program_ = passes::run_lowering(fused(), target_, options_);
  return *program_;
}

const runtime::Executable& Case::machine() {
  if (!machine_) machine_ = compiled(program(), target_);
  return *machine_;
}

const Outcome& Case::by_evaluator() {
  if (!by_evaluator_) by_evaluator_ = evaluated(f_, inputs_);
  return *by_evaluator_;
}

const Outcome& Case::by_interpreter() {
  if (!by_interpreter_) by_interpreter_ = interpreted(program(), inputs_);
  return *by_interpreter_;
}

const Outcome& Case::by_machine() {
  if (!by_machine_) by_machine_ = executed(program(), machine(), inputs_);
  return *by_machine_;
}

namespace {

template <class Holds>
bool any_op(const Function& f, const Holds& holds) {
  bool found = false;
  f.for_each_op([&](OpId op) {
    found = found || holds(f, op);
    for (const AttrValue& attribute : f.attributes(op))
      if (const Body* body = std::get_if<Body>(&attribute)) found = found || any_op(**body, holds);
  });
  return found;
}

bool approximates(const Function& f, OpId op) {
  return ir::is_approximated(f.kind(op)) && is_float(f.type(f.result(op)).dtype);
}

bool depends_on_order(const Function& f, OpId op) {
  const Op kind = f.kind(op);
  if (kind == Op::scatter) {
    const Combine combine = f.attrs<Op::scatter>(op).combine;
    return is_float(f.type(f.result(op)).dtype) && (combine == Combine::add || combine == Combine::mul);
  }
  return (kind == Op::dot_general || kind == Op::reduce_sum || kind == Op::reduce_prod) &&
         is_float(f.type(f.operand(op, 0)).dtype);
}

bool drops_elements(const Function& f, OpId op) {
  switch (f.kind(op)) {
    case Op::slice:
    case Op::pad:
    case Op::dynamic_slice:
    case Op::dynamic_update_slice:
    case Op::gather:
    case Op::scatter:
      return !f.is_arg(f.operand(op, 0)) || f.kind(op) == Op::dynamic_update_slice || f.kind(op) == Op::scatter;
    default:
      return f.num_results(op) == 1 && f.type(f.result(op)).size() == 0;
  }
}

}  // namespace

const Case::Expected& Case::expected() {
  if (expected_) return *expected_;
  expected_.emplace();
  const auto settled =
      std::find_if(stages().begin(), stages().end(), [](const Stage& s) { return s.pass == "widen_half"; });
  Model model;
  model.flushes_half_dots = target_.multiplies_bf16_pairs();
  std::vector<Enclosure> args;
  for (const Literal& input : inputs_) args.push_back(exactly(input));
  try {
    // What runs is the function without its dead ops: an index that nothing depends on is not looked at.
    expected_->results = enclose(passes::run_pass("remove_dead", settled->function, options_), args, model);
  } catch (const Error& error) {
    expected_->error = error.what();
  }
  expected_->unsure = unsure(model);
  expected_->may_skip_index = any_op(fused(), drops_elements);
  return *expected_;
}

std::string Case::unsure(const Model& model) {
  if (model.unsure.empty() && options_.small_attention && std::ranges::any_of(by_evaluator().results, is_extreme))
    return "numbers at the ends of the range, which attention may not read, or sum before it divides";
  return model.unsure;
}

bool Case::is_exact() {
  return !any_op(fused(), [](const Function& f, OpId op) { return approximates(f, op) || depends_on_order(f, op); });
}

bool Case::is_approximated() {
  return any_op(fused(), [](const Function& f, OpId op) {
    const bool shows_nan = f.kind(op) == Op::bitcast && is_float(f.type(f.operand(op, 0)).dtype);
    return approximates(f, op) || shows_nan;
  });
}

std::shared_ptr<const runtime::Executable> compiled(const Program& program, const Target& target) {
  static auto* const recent = new std::deque<std::shared_ptr<const runtime::Executable>>;
  // Each keeps all modules that it has a kernel of, some of them old, of two mappings of memory each; the system gives a process 65530.
  constexpr std::size_t most = 500;
  recent->emplace_back(detail::make_executable(program, target, 1));
  if (recent->size() > most) recent->pop_front();
  return recent->back();
}

Outcome evaluated(const Function& f, const std::vector<Literal>& inputs) {
  try {
    return {evaluate(f, inputs), ""};
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

Outcome interpreted(const Program& program, const std::vector<Literal>& inputs) {
  try {
    return {interpret(program, inputs), ""};
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

Outcome executed(const Program& program, const runtime::Executable& machine, const std::vector<Literal>& inputs,
                 int num_threads) {
  runtime::RunOptions options;
  options.num_threads = num_threads;
  options.threading_threshold_ns = 0;
  try {
    return {detail::run_literals(program, machine, inputs, options), ""};
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

std::string wrong(const Outcome& found, const Case::Expected& expected) {
  if (!expected.unsure.empty()) return "";
  if (found.error.empty() && !expected.error.empty() && expected.may_skip_index) return "";
  if (found.error.empty() != expected.error.empty())
    return found.error.empty() ? "no error instead of: " + expected.error
                               : "an error instead of results: " + found.error;
  return found.error.empty() ? outside(found.results, expected.results) : "";
}

std::string wrong(const Outcome& found, const Outcome& expected) {
  if (found.error != expected.error) return "error `" + found.error + "` instead of `" + expected.error + "`";
  return found.error.empty() ? different(found.results, expected.results) : "";
}

const std::vector<Property>& properties() {
  static const auto* const all = [] {
    auto* list = new std::vector<Property>{
        {"verifier", "every pass leaves a valid function, lowering a valid program", check_verifier, 1, ""},
        {"text", "what prints parses back to the same function, after every pass, and computes the same", check_text, 1, ""},
        {"program_text", "a program prints and parses back", check_program_text, 0.5, ""},
        {"idempotence",
         "simplify, eliminate_common, remove_dead, fold_constants, widen_half: a second run changes nothing",
         check_idempotence, 1, ""},
        {"passes", "every pass keeps every bit; widen_half keeps values as excess precision may, split_reductions as the order of sums may", check_passes, 1, ""},
        {"interpreter", "the kernels compute what the evaluator does", check_interpreter, 1, ""},
        {"fusion", "one kernel per op, interpreted, computes what the evaluator does", check_without_fusion, 0.25, ""},
        {"disabled", "a pass left out changes nothing but speed", check_without_passes, 0.25, ""},
        {"unoptimised", "no pass but what nothing runs without, interpreted", check_unoptimised, 0.25, ""},
        {"transpose", "<cotangent, jvp(tangent)> = <vjp(cotangent), tangent>", check_transpose, 0.25, ""},
        {"tangent", "jvp is what differences give, all floats made f64", check_tangent, 0.25, ""},
        {"batch", "vmap is a loop over the examples", check_batch, 0.25, ""},
        {"machine",
         "machine code computes what the evaluator does, and the bits of the interpreter unless it approximates",
         check_machine, 0.6, "machine code", true},
        {"threads", "1, 2 and 8 threads give the same bits", check_threads, 0.6, "machine code", true},
        {"donation", "donated arguments change no bit", check_donation, 0.3, "machine code", true},
        {"targets", "every other instruction set of the host computes what the evaluator does; in a run one of them, by seed",
         check_other_targets, 0.15, "machine code", true},
        {"cache", "parsed text hits the cache of what was built; a cached program computes what a fresh one does",
         check_cache, 0.15, "machine code", true},
        {"hosts", "several host threads compile once and compute the same bits at the same time", check_hosts, 0.05,
         "machine code", true},
        {"machine_fusion", "the same of the machine code of one kernel per op", check_machine_without_fusion, 0.08,
         "kernel per op", true},
        {"machine_unoptimised", "the same of the machine code without passes", check_machine_unoptimised, 0.08,
         "kernel per op", true},
    };
    if (!BURIN_WITH_LLVM) std::erase_if(*list, [](const Property& property) { return property.compiles; });
    return list;
  }();
  return *all;
}

bool has_share(const Property& property, Case& c) {
  if (property.share >= 1) return true;
  Hasher hasher;
  hasher.add(c.seed());
  hasher.add(property.sample.empty() ? property.name : property.sample);
  const double dice = static_cast<double>(hasher.finish().low >> 11) * 0x1p-53;
  if (dice >= property.share) return false;
  constexpr double cheap = 2;
  return !property.compiles ||
         dice < property.share * std::min(1.0, cheap / static_cast<double>(std::max<std::size_t>(c.program().steps.size(), 1)));
}

}  // namespace burin::fuzz
