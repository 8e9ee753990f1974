#include "passes/lower/program.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "ir/builder.h"
#include "passes/lower/lower.h"

namespace burin::passes {
namespace {

using namespace ir;

class ProgramBuilder {
 public:
  ProgramBuilder(const Function& f, const Target& target, const std::vector<bool>& donated)
      : f_(f), target_(target), places_(f.num_values()), donated_(donated) {}

  Program run() {
    donated_.resize(f_.args().size(), false);
    for (std::uint32_t i = 0; i < f_.args().size(); ++i) {
      program_.inputs.push_back(f_.type(f_.args()[i]));
      places_[f_.args()[i].index] = {Storage::input, i, 0};
    }
    for (ValueId result : f_.results()) program_.outputs.push_back(f_.type(result));
    program_.aliases.assign(f_.results().size(), -1);
    place_results();
    find_last_reads();
    f_.for_each_op([&](OpId op) { add_op(op); });
    copy_remaining_results();
    return std::move(program_);
  }

 private:
  static bool is_alias(Op op) { return op == Op::optimization_barrier; }

  // A result is computed in its output's memory when one fusion makes it and no other output wants the same value.
  void place_results() {
    std::vector<bool> placed(f_.num_values(), false);
    for (std::uint32_t i = 0; i < f_.results().size(); ++i) {
      const ValueId v = f_.results()[i];
      const OpId def = f_.def(v);
      const bool direct = def.valid() && f_.kind(def) == Op::fusion && !placed[v.index];
      if (!direct) {
        copies_.push_back(i);
        continue;
      }
      placed[v.index] = true;
      places_[v.index] = {Storage::output, i, 0};
    }
  }

  // The last op that reads each argument, barriers seen through; ~0 when a result is the argument itself.
  void find_last_reads() {
    last_read_.assign(f_.args().size(), 0);
    std::vector<std::int64_t> arg_of(f_.num_values(), -1);
    for (std::size_t i = 0; i < f_.args().size(); ++i) arg_of[f_.args()[i].index] = static_cast<std::int64_t>(i);
    f_.for_each_op([&](OpId op) {
      for (std::size_t k = 0; k < f_.operands(op).size(); ++k) {
        const std::int64_t arg = arg_of[f_.operand(op, k).index];
        if (arg < 0) continue;
        last_read_[static_cast<std::size_t>(arg)] = op.index;
        if (f_.kind(op) == Op::optimization_barrier) arg_of[f_.result(op, k).index] = arg;
      }
    });
    for (ValueId result : f_.results())
      if (const std::int64_t arg = arg_of[result.index]; arg >= 0) last_read_[static_cast<std::size_t>(arg)] = ~0u;
  }

  // A donated argument whose memory result r of the fusion may take: nobody reads it later, and this kernel either does
  // not read it or reads each element before it writes it. One that the result is made of comes first: its bytes are in
  // the cache.
  std::int32_t find_donor(OpId op, std::string_view kind, const Function& body, std::size_t r) {
    const Type& type = f_.type(f_.result(op, r));
    for (const bool reads : {true, false})
      for (std::size_t i = 0; i < donated_.size(); ++i) {
        if (!donated_[i] || !(f_.type(f_.args()[i]) == type) || last_read_[i] > op.index) continue;
        const auto operands = f_.operands(op);
        std::vector<std::size_t> uses;
        for (std::size_t k = 0; k < operands.size(); ++k)
          if (const BufferRef& place = places_[operands[k].index]; place.storage == Storage::input && place.index == i)
            uses.push_back(k);
        if (uses.empty() == reads || uses.size() > 1) continue;
        if (reads && !lower::can_overwrite(kind, body, body.args()[uses[0]], body.results()[r])) continue;
        if (!reads && last_read_[i] >= op.index) continue;
        donated_[i] = false;
        return static_cast<std::int32_t>(i);
      }
    return -1;
  }

  BufferRef new_arena_value(const Type& type, std::string name) {
    const auto row = static_cast<std::uint32_t>(program_.plan.size());
    program_.plan.push_back({std::move(name), type, {Storage::arena, row, 0}, 0, 0});
    return {Storage::arena, row, 0};
  }

  std::string name_of(ValueId v) {
    if (const auto name = f_.value_name(v); !name.empty()) return std::string(name);
    const OpId def = f_.def(v);
    const std::string where = def.valid() ? to_string(f_.location(def)) : "";
    return where.empty() ? "%" + std::to_string(v.index) : where;
  }

  void add_op(OpId op) {
    switch (f_.kind(op)) {
      case Op::constant: {
        Literal value = f_.attrs<Op::constant>(op).value;
        value.expand();
        places_[f_.result(op).index] = {Storage::constant, static_cast<std::uint32_t>(program_.constants.size()), 0};
        program_.constants.push_back(std::move(value));
        return;
      }
      case Op::optimization_barrier:
        // A moment in time costs nothing: the values stay where they are.
        for (std::size_t r = 0; r < f_.num_results(op); ++r)
          places_[f_.result(op, r).index] = places_[f_.operand(op, r).index];
        return;
      case Op::fusion:
        return add_fusion(op);
      default:
        BURIN_CHECK(false, std::string("not lowered: ") + std::string(name(f_.kind(op))));
    }
  }

  void add_fusion(OpId op) {
    const auto a = f_.attrs<Op::fusion>(op);
    lower::InPlace in_place(f_.num_results(op), -1);
    for (std::size_t r = 0; r < f_.num_results(op); ++r) {
      const BufferRef& place = places_[f_.result(op, r).index];
      if (place.storage != Storage::output) continue;
      const std::int32_t donor = find_donor(op, a.kind, *a.body, r);
      program_.aliases[place.index] = donor;
      for (std::size_t k = 0; donor >= 0 && k < f_.operands(op).size(); ++k)
        if (places_[f_.operand(op, k).index] == BufferRef{Storage::input, static_cast<std::uint32_t>(donor), 0})
          in_place[r] = static_cast<std::int32_t>(k);
    }
    lower::Lowering lowering = lower::lower_fusion(a.kind, *a.body, target_, in_place);
    for (std::size_t r = 0; r < f_.num_results(op); ++r) {
      const ValueId v = f_.result(op, r);
      if (places_[v.index].storage != Storage::output) places_[v.index] = new_arena_value(f_.type(v), name_of(v));
    }
    std::vector<BufferRef> temps;
    for (const Type& type : lowering.temps) temps.push_back(new_arena_value(type, a.body->name() + ".temp"));
    for (lower::LoweredKernel& lowered : lowering.kernels) {
      Step step;
      for (const lower::Param& param : lowered.params) switch (param.kind) {
          case lower::Param::arg:
            step.args.push_back(places_[f_.operand(op, param.index).index]);
            break;
          case lower::Param::result:
            step.args.push_back(places_[f_.result(op, param.index).index]);
            break;
          case lower::Param::temp:
            step.args.push_back(temps[param.index]);
            break;
        }
      const std::string where = to_string(f_.location(op));
      step.label = lowered.kernel.name + (where.empty() ? "" : " (" + where + ")");
      lowered.kernel.cost = std::ceil(lowered.kernel.cost);  // an estimate: digits after the point only disturb the reader
      add_step(std::move(step), std::move(lowered.kernel));
    }
  }

  void add_step(Step step, Kernel kernel) {
    step.tasks = kernel.num_tasks();
    step.sites = kernel.sites;
    step.phase = static_cast<std::uint32_t>(program_.steps.size());
    Hasher hasher;
    kernel.hash(hasher);
    const auto [found, added] =
        kernels_.try_emplace(hasher.finish(), static_cast<std::uint32_t>(program_.kernels.size()));
    if (added) program_.kernels.push_back(std::move(kernel));
    step.kernel = found->second;
    program_.steps.push_back(std::move(step));
  }

  // Results that are arguments, constants or other results once more.
  void copy_remaining_results() {
    for (std::uint32_t i : copies_) {
      const ValueId v = f_.results()[i];
      Builder b("copy");
      const ValueId x = b.add_arg(f_.type(v));
      const Function body = b.finish({x});
      lower::Lowering lowering = lower::lower_loop(body, target_);
      Step step;
      step.args = {places_[v.index], {Storage::output, i, 0}};
      step.label = "copy " + name_of(v);
      add_step(std::move(step), std::move(lowering.kernels[0].kernel));
    }
  }

  const Function& f_;
  const Target& target_;
  std::vector<BufferRef> places_;
  std::vector<bool> donated_;
  std::vector<std::uint32_t> last_read_;
  std::vector<std::uint32_t> copies_;
  std::unordered_map<Hash128, std::uint32_t> kernels_;
  Program program_;
};

bool writes(const Buffer& buffer) { return buffer.space == Space::out || buffer.space == Space::inout; }

}  // namespace

Program lower_program(const Function& fused, const Target& target, const std::vector<bool>& donated) {
  return ProgramBuilder(fused, target, donated).run();
}

void schedule(Program& program) {
  // What the steps of the current phase have written and read so far. An output in a donated argument's memory is that
  // argument.
  using Memory = std::pair<Storage, std::uint32_t>;
  std::set<Memory> written, read;
  const auto memory = [&](const BufferRef& ref) {
    const bool in_place = ref.storage == Storage::output && program.aliases[ref.index] >= 0;
    return in_place ? Memory{Storage::input, program.aliases[ref.index]} : Memory{ref.storage, ref.index};
  };
  std::uint32_t phase = 0;
  for (Step& step : program.steps) {
    const Kernel& kernel = program.kernels[step.kernel];
    bool waits = false;
    for (std::size_t i = 0; i < step.args.size(); ++i) {
      const Memory mine = memory(step.args[i]);
      waits = waits || written.contains(mine) || (writes(kernel.buffers[i]) && read.contains(mine));
    }
    if (waits) {
      ++phase;
      written.clear();
      read.clear();
    }
    step.phase = phase;
    for (std::size_t i = 0; i < step.args.size(); ++i)
      (writes(kernel.buffers[i]) ? written : read).insert(memory(step.args[i]));
  }
}

void plan_memory(Program& program) {
  struct Life {
    std::uint32_t first = 0, last = 0;
    bool used = false;
  };
  std::vector<Life> lives(program.plan.size());
  for (std::uint32_t s = 0; s < program.steps.size(); ++s)
    for (const BufferRef& ref : program.steps[s].args) {
      if (ref.storage != Storage::arena) continue;
      Life& life = lives[ref.index];
      PlannedValue& value = program.plan[ref.index];
      if (!life.used) {
        life = {program.steps[s].phase, program.steps[s].phase, true};
        value.first_step = s;
      }
      life.last = program.steps[s].phase;
      value.last_step = s;
    }
  // Large values first; each goes to the lowest gap between those that live at the same time.
  std::vector<std::int64_t> size(program.plan.size());
  for (std::uint32_t v = 0; v < size.size(); ++v) size[v] = (program.plan[v].type.bytes() + 63) / 64 * 64;
  std::vector<std::uint32_t> by_size(program.plan.size());
  for (std::uint32_t v = 0; v < by_size.size(); ++v) by_size[v] = v;
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::uint32_t a, std::uint32_t b) { return size[a] > size[b]; });
  std::vector<std::int64_t> offset(program.plan.size(), 0);
  std::vector<std::uint32_t> placed;  // by offset
  program.arena_bytes = 0;
  for (std::uint32_t v : by_size) {
    if (!lives[v].used || size[v] == 0) continue;
    std::int64_t at = 0;
    for (std::uint32_t other : placed) {
      if (lives[other].first > lives[v].last || lives[v].first > lives[other].last) continue;
      if (at + size[v] <= offset[other]) break;
      at = std::max(at, offset[other] + size[other]);
    }
    offset[v] = at;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), at,
                                   [&](std::int64_t value, std::uint32_t other) { return value < offset[other]; }),
                  v);
    program.arena_bytes = std::max(program.arena_bytes, at + size[v]);
  }
  for (std::uint32_t v = 0; v < program.plan.size(); ++v) program.plan[v].place = {Storage::arena, 0, offset[v]};
  for (Step& step : program.steps)
    for (BufferRef& ref : step.args)
      if (ref.storage == Storage::arena) ref = {Storage::arena, 0, offset[ref.index]};
}

}  // namespace burin::passes
