// Properties of what runs: kernels interpreted, machine code, threads, donation, the cache.
#include <barrier>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "frontend/compile.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "runtime/executable.h"
#include "tests/fuzz/properties.h"
#include "tests/fuzz/random.h"

namespace burin::fuzz {

using namespace ir;

namespace {

std::string named(const std::string& what, const std::string& difference) {
  return difference.empty() ? "" : what + ": " + difference;
}

Outcome machine_of(const Program& program, const Target& target, const std::vector<Literal>& inputs,
                   int num_threads = 1) {
  return executed(program, *compiled(program, target), inputs, num_threads);
}

}  // namespace

std::string check_interpreter(Case& c) { return wrong(c.by_interpreter(), c.expected()); }

std::string check_machine(Case& c) {
  const Outcome& found = c.by_machine();
  if (std::string d = wrong(found, c.expected()); !d.empty()) return named(to_string(c.target()), d);
  if (c.is_approximated()) return "";
  const Outcome& other = c.by_interpreter();
  // Of several indices out of range, lanes name another one first than elements one after another do.
  if (!found.error.empty() && !other.error.empty()) return "";
  return named(to_string(c.target()) + " against the interpreter", wrong(found, other));
}

std::string check_threads(Case& c) {
  const Outcome& one = c.by_machine();
  for (int threads : {2, 8})
    if (std::string d = wrong(executed(c.program(), c.machine(), c.inputs(), threads), one); !d.empty())
      return named(std::to_string(threads) + " threads", d);
  return "";
}

std::string check_other_targets(Case& c) {
  std::vector<Target> others;
  for (const Target& target : targets())
    if (target != c.target()) others.push_back(target);
  if (c.is_sampled() && !others.empty()) others = {others[c.seed() / 7 % others.size()]};
  for (const Target& target : others) {
    const Program program = passes::build_program(c.f(), target, c.options());
    Case::Expected expected = c.expected();
    if (target.multiplies_bf16_pairs() && !c.target().multiplies_bf16_pairs() && !c.is_exact())
      continue;  // dots flush denormals here
    if (std::string d = wrong(machine_of(program, target, c.inputs()), expected); !d.empty())
      return named(to_string(target), d);
  }
  return "";
}

std::string check_donation(Case& c) {
  passes::Options options = c.options();
  for (std::size_t i = 0; i < c.f().args().size(); ++i) options.donated.push_back((c.seed() >> i & 3) != 0);
  options.keep_packed = true;
  const Program program = passes::build_program(c.f(), c.target(), options);
  bool any = false;
  for (std::int32_t alias : program.aliases) any = any || alias >= 0;
  if (!any) return "";
  const Outcome& kept = c.by_machine();
  if (!kept.error.empty()) return "";
  if (std::string d = wrong(interpreted(program, c.inputs()), c.by_interpreter()); !d.empty())
    return named("interpreter", d);
  return wrong(machine_of(program, c.target(), c.inputs(), 2), kept);
}

namespace {

Program without_fusion(const Case& c) {
  passes::Options options = c.options();
  options.disabled = {"fuse"};
  return passes::build_program(c.f(), c.target(), options);
}

}  // namespace

std::string check_without_fusion(Case& c) { return wrong(interpreted(without_fusion(c), c.inputs()), c.expected()); }

std::string check_machine_without_fusion(Case& c) {
  return wrong(machine_of(without_fusion(c), c.target(), c.inputs()), c.expected());
}

namespace {

/// The program without these passes and without excess precision, which is an option with a meaning; the passes must not have one.
std::string check_without(Case& c, const std::vector<std::string>& disabled, bool on_machine) {
  passes::Options options = c.options();
  options.disabled = disabled;
  options.excess_precision = false;
  const Program program = passes::build_program(c.f(), c.target(), options);
  std::vector<Enclosure> args;
  for (const Literal& input : c.inputs()) args.push_back(exactly(input));
  Model model;
  model.flushes_half_dots = c.target().multiplies_bf16_pairs();
  Case::Expected expected;
  try {
    expected.results = enclose(c.f(), args, model);
  } catch (const Error&) {
    return "";  // which indices are looked at depends on the passes
  }
  expected.unsure = c.unsure(model);
  return wrong(on_machine ? machine_of(program, c.target(), c.inputs()) : interpreted(program, c.inputs()), expected);
}

// But fuse, which is a property of its own, and widen_half, which an option with a meaning leaves out.
std::vector<std::string> optional_passes() {
  std::vector<std::string> names;
  for (const passes::PassInfo& pass : passes::pass_table())
    if (pass.optional && pass.name != "fuse" && pass.name != "widen_half") names.emplace_back(pass.name);
  return names;
}

detail::CompileOptions compile_options(const Case& c) {
  detail::CompileOptions options;
  options.num_threads = 2;
  options.excess_precision = c.options().excess_precision;
  options.max_isa = name(c.target().isa);
  return options;
}

}  // namespace

std::string check_without_passes(Case& c) {
  std::vector<std::string> disabled;
  const std::vector<std::string> optional = optional_passes();
  for (std::size_t i = 0; i < optional.size(); ++i)
    if ((c.seed() >> (8 + i) & 1) != 0) disabled.push_back(optional[i]);
  return check_without(c, disabled, false);
}

namespace {

std::string check_without_any(Case& c, bool on_machine) {
  std::vector<std::string> disabled = optional_passes();
  disabled.push_back("fuse");
  return check_without(c, disabled, on_machine);
}

}  // namespace

std::string check_unoptimised(Case& c) { return check_without_any(c, false); }

std::string check_machine_unoptimised(Case& c) { return check_without_any(c, true); }

std::string check_hosts(Case& c) {
  constexpr std::size_t num_hosts = 4;
  const Outcome& one = c.by_machine();
  const detail::CompileOptions options = compile_options(c);
  std::vector<std::shared_ptr<const detail::CompiledFunction>> compiled(num_hosts);
  std::vector<std::string> differences(num_hosts);
  std::barrier together(num_hosts);
  std::vector<std::thread> hosts;
  for (std::size_t host = 0; host < num_hosts; ++host)
    hosts.emplace_back([&, host] {
      together.arrive_and_wait();
      try {
        compiled[host] = detail::compile(c.f(), options);
        for (int call = 0; call < 2 && differences[host].empty(); ++call)
          differences[host] = wrong(executed(c.program(), c.machine(), c.inputs(), 2), one);
      } catch (const std::exception& error) {
        differences[host] = std::string("exception: ") + error.what();
      }
    });
  for (std::thread& host : hosts) host.join();
  for (std::size_t host = 0; host < num_hosts; ++host) {
    if (!differences[host].empty()) return named("host thread " + std::to_string(host), differences[host]);
    if (compiled[host] != compiled[0]) return "host threads compiled the same function twice";
  }
  return "";
}

std::string check_cache(Case& c) {
  const detail::CompileOptions options = compile_options(c);
  PrintOptions in_full;
  in_full.max_elements = -1;
  const Function parsed = parse(print(c.f(), in_full));
  const auto fresh = detail::compile(c.f(), options), again = detail::compile(c.f(), options),
             from_text = detail::compile(parsed, options);
  if (fresh != again) return "the same function was compiled twice";
  // What reports an index is compiled for each line that it may name.
  if (fresh != from_text && print(c.f(), in_full).find("gather") == std::string::npos &&
      print(c.f(), in_full).find("scatter") == std::string::npos)
    return "parsed text was compiled apart from the function it says";
  const auto run = [&](const detail::CompiledFunction& compiled) -> Outcome {
    Outcome outcome;
    std::vector<Literal> in = c.inputs();
    std::vector<const void*> from;
    std::vector<void*> to;
    for (Literal& literal : in) {
      literal.expand();
      from.push_back(literal.raw().data());
    }
    for (const Type& type : c.f().result_types()) outcome.results.emplace_back(type);
    for (Literal& literal : outcome.results) to.push_back(literal.mutable_raw().data());
    try {
      compiled.run(from, to);
    } catch (const Error& error) {
      return {{}, error.what()};
    }
    return outcome;
  };
  const Outcome first = run(*fresh);
  if (std::string d = wrong(run(*again), first); !d.empty()) return named("second run", d);
  if (host_target(options.max_isa).isa != c.target().isa) return "";  // emulated tiles sum in another order
  // Sums in another order.
  if (c.options().small_attention || c.options().split_elements != passes::Options{}.split_elements)
    return wrong(first, c.expected());
  return wrong(first, c.by_machine());
}

}  // namespace burin::fuzz
