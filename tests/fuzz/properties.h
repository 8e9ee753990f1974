// What must hold of every program, one function per property.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/function.h"
#include "ir/kernel/program.h"
#include "ir/target.h"
#include "passes/pipeline.h"
#include "tests/fuzz/enclosure.h"

namespace burin::runtime {
class Executable;
}

namespace burin::fuzz {

/// What one execution gives: results, or the message of an index out of range.
struct Outcome {
  std::vector<ir::Literal> results;
  std::string error;
};

/// One program with its data and everything that several properties want to know of it, made on demand. Options
/// (target, excess precision, donation) follow from the seed.
class Case {
 public:
  /// `sampled`: in a long run, where the seed chooses what of a costly property is checked; else it is checked whole.
  Case(ir::Function f, std::uint64_t seed, bool sampled = false);
  ~Case();

  const ir::Function& f() const { return f_; }
  std::uint64_t seed() const { return seed_; }
  bool is_sampled() const { return sampled_; }
  const std::vector<ir::Literal>& inputs() const { return inputs_; }
  const ir::Target& target() const { return target_; }
  /// With the seed's choices; no verifying, no observer.
  const passes::Options& options() const { return options_; }

  struct Stage {
    std::string pass;
    ir::Function function;
    bool changed = true;  // from the stage before; of the first, from f
    bool keeps_bits = true;
  };
  /// The function after each pass that makes a function.
  const std::vector<Stage>& stages();
  const ir::Function& fused() { return stages().back().function; }
  const ir::Program& program();
  const runtime::Executable& machine();
  const Outcome& by_evaluator();    // of f, as it was drawn
  const Outcome& by_interpreter();  // of program()
  const Outcome& by_machine();      // of machine(), on one thread

  /// What every execution of the program must give: the evaluator's results on the function that rounding is settled in
  /// (after widen_half), with their intervals. `error` is set where an index is out of range; `unsure` where rounding
  /// may decide whether one is.
  struct Expected {
    std::vector<Enclosure> results;
    std::string error, unsure;
    bool may_skip_index = false;  // something drops elements: kernels check the indices that they read, no others
  };
  const Expected& expected();
  /// Why nothing is known of what a program gives whose function was enclosed by this model, or "".
  std::string unsure(const Model& model);
  /// No result rests on an approximated function or the order of a sum: executions agree bit for bit.
  bool is_exact();
  /// The interpreter and machine code run the same kernels: the same bits unless they approximate.
  bool is_approximated();

 private:
  ir::Function f_;
  std::uint64_t seed_;
  bool sampled_;
  std::vector<ir::Literal> inputs_;
  ir::Target target_;
  passes::Options options_;
  std::vector<Stage> stages_;
  std::optional<ir::Program> program_;
  std::shared_ptr<const runtime::Executable> machine_;
  std::optional<Outcome> by_evaluator_, by_interpreter_, by_machine_;
  std::optional<Expected> expected_;
};

struct Property {
  std::string name, meaning;
  std::string (*check)(Case&);  // "" or the first failure
  double share;                 // of the programs of a run that it is checked on
  std::string sample;           // those of one name are checked on the same programs, as they share kernels
  bool compiles = false;        // makes machine code: left out of builds without LLVM
};
const std::vector<Property>& properties();
/// Whether the program is of a property's share, which follows from the seed. Compiling takes as long as there are kernels: of
/// programs with n > 2 of them, what compiles has 2 / n of its share, for the sake of all the smaller ones.
bool has_share(const Property& property, Case& c);

/// Targets that this machine can run, the floor first.
const std::vector<ir::Target>& targets();

/// Machine code of a planned program. That of the last thousands stays alive, for the kernels that other programs and
/// properties have in common with them: codegen compiles those once.
std::shared_ptr<const runtime::Executable> compiled(const ir::Program& program, const ir::Target& target);

// How the files of properties execute things.
Outcome evaluated(const ir::Function& f, const std::vector<ir::Literal>& inputs);
Outcome interpreted(const ir::Program& program, const std::vector<ir::Literal>& inputs);
/// Every step shared out among the threads, however small.
Outcome executed(const ir::Program& program, const runtime::Executable& machine, const std::vector<ir::Literal>& inputs,
                 int num_threads = 1);
/// "", or how `found` breaks what is expected.
std::string wrong(const Outcome& found, const Case::Expected& expected);
/// "", or how two outcomes differ in their bits.
std::string wrong(const Outcome& found, const Outcome& expected);

// properties_text.cpp, properties_passes.cpp, properties_execution.cpp, properties_transforms.cpp,
// properties_tangent.cpp
std::string check_verifier(Case& c);
std::string check_text(Case& c);
std::string check_program_text(Case& c);
std::string check_idempotence(Case& c);
std::string check_passes(Case& c);
std::string check_interpreter(Case& c);
std::string check_machine(Case& c);
std::string check_threads(Case& c);
std::string check_other_targets(Case& c);
std::string check_donation(Case& c);
std::string check_cache(Case& c);
std::string check_without_fusion(Case& c);
std::string check_machine_without_fusion(Case& c);
std::string check_without_passes(Case& c);
std::string check_unoptimised(Case& c);
std::string check_machine_unoptimised(Case& c);
std::string check_hosts(Case& c);
std::string check_transpose(Case& c);
std::string check_tangent(Case& c);
std::string check_batch(Case& c);

}  // namespace burin::fuzz
