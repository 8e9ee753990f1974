#include "passes/lower/program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/message_ids.h"
#include "ir/builder.h"
#include "passes/lower/fusion_check.h"
#include "passes/lower/lower.h"
#include "passes/lower/packs.h"
#include "passes/lower/work.h"

namespace burin::passes {
namespace {

using namespace ir;

class ProgramBuilder {
 public:
  ProgramBuilder(const Function& f, const Target& target, const std::vector<bool>& donated, bool keep_packed)
      : f_(f), target_(target), places_(f.num_values()), donated_(donated), packs_(keep_packed) {}

  Program run() {
    donated_.resize(f_.args().size(), false);
    for (std::uint32_t i = 0; i < f_.args().size(); ++i) {
      program_.inputs.push_back(f_.type(f_.args()[i]));
      places_[f_.args()[i].index] = {Storage::input, i, 0};
    }
    for (ValueId result : f_.results()) program_.outputs.push_back(f_.type(result));
    program_.aliases.assign(f_.results().size(), -1);
    program_.planned = false;
    for (std::uint32_t i = 0; i < f_.results().size(); ++i)
      program_.plan.push_back({name_of(f_.results()[i]), program_.outputs[i], {Storage::output, i, 0}, 0, 0});
    place_results();
    find_order();
    find_last_reads();
    OpVisit visit{&f_, OpId{}};
    const CrashContext context(&describe_visit, &visit);
    for (OpId op : order_) add_op(visit.op = op);
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

  // By argument: calls f(argument, op) for each op that reads it, barriers seen through.
  template <class F>
  void for_each_read_of_arguments(F&& read) const {
    std::vector<std::int64_t> arg_of(f_.num_values(), -1);
    for (std::size_t i = 0; i < f_.args().size(); ++i) arg_of[f_.args()[i].index] = static_cast<std::int64_t>(i);
    f_.for_each_op([&](OpId op) {
      for (std::size_t k = 0; k < f_.operands(op).size(); ++k) {
        const std::int64_t arg = arg_of[f_.operand(op, k).index];
        if (arg < 0) continue;
        read(static_cast<std::size_t>(arg), op);
        if (f_.kind(op) == Op::optimization_barrier) arg_of[f_.result(op, k).index] = arg;
      }
    });
    for (ValueId result : f_.results())
      if (const std::int64_t arg = arg_of[result.index]; arg >= 0) read(static_cast<std::size_t>(arg), OpId{});
  }

  // An update that nobody reads goes behind the last reader of what it updates, so that it can be made in place.
  void find_order() {
    std::vector<bool> read(f_.num_values(), false);
    f_.for_each_op([&](OpId op) {
      for (ValueId operand : f_.operands(op)) read[operand.index] = true;
    });
    std::vector<OpId> last(f_.args().size());
    for_each_read_of_arguments([&](std::size_t arg, OpId op) { last[arg] = op; });
    std::vector<std::vector<OpId>> behind(f_.num_ops());
    std::vector<bool> moved(f_.num_ops(), false);
    for_each_read_of_arguments([&](std::size_t arg, OpId op) {
      if (!donated_[arg] || !op.valid() || !last[arg].valid() || last[arg].index <= op.index || moved[op.index]) return;
      bool updates = f_.kind(op) == Op::fusion;
      bool fits = false;
      for (std::size_t r = 0; r < f_.num_results(op); ++r) {
        updates = updates && !read[f_.result(op, r).index];
        fits = fits || f_.type(f_.result(op, r)) == f_.type(f_.args()[arg]);
      }
      if (!updates || !fits) return;
      moved[op.index] = true;
      behind[last[arg].index].push_back(op);
    });
    std::vector<OpId> waiting;
    f_.for_each_op([&](OpId first) {
      if (moved[first.index]) return;
      for (waiting.push_back(first); !waiting.empty();) {
        const OpId op = waiting.back();
        waiting.pop_back();
        order_.push_back(op);
        waiting.insert(waiting.end(), behind[op.index].rbegin(), behind[op.index].rend());
      }
    });
    position_.resize(f_.num_ops());
    for (std::uint32_t i = 0; i < order_.size(); ++i) position_[order_[i].index] = i;
  }

  // The last position at which each argument is read; ~0 when a result is the argument itself.
  void find_last_reads() {
    last_read_.assign(f_.args().size(), 0);
    for_each_read_of_arguments(
        [&](std::size_t arg, OpId op) { last_read_[arg] = std::max(last_read_[arg], op.valid() ? position_[op.index] : ~0u); });
  }

  // A donated argument whose memory result r of the fusion may take: nobody reads it later, and this kernel either does
  // not read it or reads each element before it writes it. One that the result is made of comes first: its bytes are in
  // the cache; of those, one whose packed copies can be kept.
  std::int32_t find_donor(OpId op, std::string_view kind, const Function& body, std::size_t r) {
    const Type& type = f_.type(f_.result(op, r));
    const std::uint32_t now = position_[op.index];
    for (const auto& [reads, packed] : {std::pair(true, true), std::pair(true, false), std::pair(false, false)})
      for (std::size_t i = 0; i < donated_.size(); ++i) {
        if (!donated_[i] || (packed && !(packs_.wanted() && packs_.packs(static_cast<std::uint32_t>(i)))) || !(f_.type(f_.args()[i]) == type) || last_read_[i] > now) continue;
        const auto operands = f_.operands(op);
        std::vector<std::size_t> uses;
        for (std::size_t k = 0; k < operands.size(); ++k)
          if (const BufferRef& place = places_[operands[k].index]; place.storage == Storage::input && place.index == i)
            uses.push_back(k);
        if (uses.empty() == reads || uses.size() > 1) continue;
        if (reads && !lower::can_overwrite(kind, body, body.args()[uses[0]], body.results()[r])) continue;
        if (!reads && last_read_[i] >= now) continue;
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

  static std::string with_place(std::string name, const std::string& where) {
    if (name.empty()) return where;
    return where.empty() ? name : name + " (" + where + ")";
  }
  // What people know the value by: its name if it has one, and the source line.
  std::string name_of(ValueId v) {
    const OpId def = f_.def(v);
    const std::string text = with_place(std::string(f_.value_name(v)), def.valid() ? to_string(f_.location(def)) : "");
    return text.empty() ? "%" + std::to_string(v.index) : text;
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
    std::vector<lower::KeptPack> kept;
    std::vector<std::uint32_t> kept_numbers;
    for (std::uint32_t r = 0; r < f_.num_results(op) && packs_.wanted(); ++r) {
      const BufferRef& place = places_[f_.result(op, r).index];
      if (place.storage != Storage::output || program_.aliases[place.index] < 0) continue;
      const auto donor = static_cast<std::uint32_t>(program_.aliases[place.index]);
      packs_.add_copies(donor, r, kept);
    }
    lower::Lowering lowering = lower::lower_fusion(a.kind, *a.body, target_, in_place, kept);
    if (lowering.keeps)
      for (const lower::KeptPack& k : kept) kept_numbers.push_back(packs_.keep(program_, places_[f_.result(op, k.result).index].index, k.matrix));
    for (std::size_t r = 0; r < f_.num_results(op); ++r) {
      const ValueId v = f_.result(op, r);
      if (places_[v.index].storage != Storage::output) places_[v.index] = new_arena_value(f_.type(v), name_of(v));
    }
    const std::string where = to_string(f_.location(op));
    std::vector<std::optional<BufferRef>> temps(lowering.temps.size());
    const auto temp = [&](std::uint32_t index) {
      if (!temps[index]) temps[index] = new_arena_value(lowering.temps[index], with_place(a.body->name() + ".temp", where));
      return *temps[index];
    };
    for (std::size_t i = 0; i < lowering.kernels.size(); ++i) {
      lower::LoweredKernel& lowered = lowering.kernels[i];
      Step step;
      for (const lower::Param& param : lowered.params) switch (param.kind) {
          case lower::Param::arg:
            step.args.push_back(places_[f_.operand(op, param.index).index]);
            break;
          case lower::Param::result:
            step.args.push_back(places_[f_.result(op, param.index).index]);
            break;
          case lower::Param::temp:
            step.args.push_back(i < lowering.main ? BufferRef{} : temp(param.index));
            break;
          case lower::Param::kept:
            step.args.push_back({Storage::kept, kept_numbers[param.index], 0});
            break;
        }
      step.label = with_place(lowered.kernel.name, where);
      lowered.kernel.cost = std::ceil(lowered.kernel.cost);  // an estimate: digits after the point only disturb the reader
      lower::Work work;
      if (i == lowering.main) work = lower::work_of(*a.body);
      else
        for (const lower::Param& param : lowered.params)
          if (param.kind == lower::Param::temp) work.bytes += lowering.temps[param.index].bytes();
      lowered.kernel.flops = work.flops;
      lowered.kernel.bytes = work.bytes;
      set_kernel(step, std::move(lowered.kernel));
      if (i < lowering.main) {  // it prepares an operand into a temp: once, if several fusions want it prepared alike
        const auto written = std::ranges::find(lowered.params, lower::Param::temp, &lower::Param::kind);
        const auto [found, added] = prepared_.try_emplace(key_of(step));
        if (added) found->second = temp(written->index);
        temps[written->index] = found->second;
        if (!added) {
          packs_.read_again(found->second);
          continue;
        }
        step.args[static_cast<std::size_t>(written - lowered.params.begin())] = found->second;
        if (lowered.packs) note_packing(f_.operand(op, lowered.params[0].index), *lowered.packs, found->second);
      }
      add_step(std::move(step));
    }
    packs_.end_fusion(static_cast<std::uint32_t>(program_.steps.size()));
  }

  // Before the step is added.
  void note_packing(ValueId packed, const lower::PackedMatrix& matrix, const BufferRef& copy) {
    const BufferRef& place = places_[packed.index];
    const auto step = static_cast<std::uint32_t>(program_.steps.size());
    if (place.storage == Storage::input && place.offset == 0)
      packs_.add(place.index, matrix, step, copy);
  }

  // Equal kernels are kept once.
  void set_kernel(Step& step, Kernel kernel) {
    step.tasks = kernel.num_tasks();
    step.sites = kernel.sites;
    Hasher hasher;
    kernel.hash(hasher);
    const auto [found, added] =
        kernels_.try_emplace(hasher.finish(), static_cast<std::uint32_t>(program_.kernels.size()));
#if BURIN_ASSERTS
    if (added) structures_.push_back(print_structure(kernel));
    else BURIN_CHECK(print_structure(kernel) == structures_[found->second], "kernels of one hash differ:\n" + print(kernel) + structures_[found->second]);
#endif
    if (added) program_.kernels.push_back(std::move(kernel));
    step.kernel = found->second;
  }

  void add_step(Step step) {
    step.after = static_cast<std::uint32_t>(program_.steps.size());
    program_.steps.push_back(std::move(step));
  }

  static Hash128 key_of(const Step& step) {
    Hasher hasher;
    hasher.add(step.kernel);
    for (const BufferRef& ref : step.args) {
      hasher.add(ref.storage);
      hasher.add(ref.index);
      hasher.add(ref.offset);
    }
    return hasher.finish();
  }

  // Results that are arguments, constants or other results once more.
  void copy_remaining_results() {
    for (std::uint32_t i : copies_) {
      const ValueId v = f_.results()[i];
      if (f_.type(v).size() == 0) continue;
      Builder b("copy");
      const ValueId x = b.add_arg(f_.type(v));
      const Function body = b.finish({x});
      lower::Lowering lowering = lower::lower_loop(body, target_);
      Step step;
      step.args = {places_[v.index], {Storage::output, i, 0}};
      step.label = "copy " + name_of(v);
      set_kernel(step, std::move(lowering.kernels[0].kernel));
      add_step(std::move(step));
    }
  }

  const Function& f_;
  const Target& target_;
  std::vector<BufferRef> places_;
  std::vector<bool> donated_;
  std::vector<OpId> order_;               // of the steps
  std::vector<std::uint32_t> position_;   // in order_, by op
  std::vector<std::uint32_t> last_read_;  // by argument
  lower::Packs packs_;
  std::vector<std::uint32_t> copies_;
  std::unordered_map<Hash128, std::uint32_t> kernels_;
  std::unordered_map<Hash128, BufferRef> prepared_;  // operands, by the step that prepares them
#if BURIN_ASSERTS
  std::vector<std::string> structures_;  // by kernel
#endif
  Program program_;
};

bool writes(const Buffer& buffer) { return buffer.space == Space::out || buffer.space == Space::inout; }

constexpr std::int64_t max_elements = std::int64_t{1} << 48;

// Loops count elements and address bytes in 63 bits, products and sums included.
void check_sizes(const Function& f) {
  for (std::size_t v = 0; v < f.num_values(); ++v)
    if (const Type& type = f.type(ValueId{v}); type.size() > max_elements) fail(Msg::value_too_large, to_string(type));
  f.for_each_op([&](OpId op) {
    if (f.kind(op) == Op::fusion) check_sizes(*f.attrs<Op::fusion>(op).body);
  });
}

}  // namespace

Program lower_program(const Function& fused, const Target& target, const std::vector<bool>& donated, bool keep_packed) {
  check_sizes(fused);
  lower::check_fusions(fused);
  return ProgramBuilder(fused, target, donated, keep_packed).run();
}

void schedule(Program& program) {
  BURIN_CHECK(!program.planned, "a program is scheduled after its memory is planned");
  // By memory, how many steps hold all that have written and read it so far. An output in a donated argument's memory is that argument.
  using Memory = std::pair<Storage, std::uint32_t>;
  struct Used {
    std::uint32_t written = 0, read = 0;
  };
  std::map<Memory, Used> used;
  const auto memory = [&](const BufferRef& ref) {
    const bool in_place = ref.storage == Storage::output && program.aliases[ref.index] >= 0;
    return in_place ? Memory{Storage::input, program.aliases[ref.index]} : Memory{ref.storage, ref.index};
  };
  std::uint32_t after = 0, checks = 0;
  for (std::uint32_t s = 0; s < program.steps.size(); ++s) {
    Step& step = program.steps[s];
    const Kernel& kernel = program.kernels[step.kernel];
    for (std::size_t i = 0; i < step.args.size(); ++i) {
      const Memory mine = memory(step.args[i]);
      after = std::max(after, used[mine].written);
      if (writes(kernel.buffers[i])) after = std::max({after, used[mine].read, mine.first == Storage::input ? checks : 0});
    }
    step.after = after;
    for (std::size_t i = 0; i < step.args.size(); ++i) {
      Used& now = used[memory(step.args[i])];
      (writes(kernel.buffers[i]) ? now.written : now.read) = s + 1;
    }
    if (!step.sites.empty()) checks = s + 1;
  }
}

std::int64_t planned_bytes(const Type& type) { return (type.bytes() + 63) / 64 * 64; }

namespace {

// Which of the values that have a place take their bytes during some of the steps asked for: those that do at the first one, which the nodes of a
// binary tree over the steps hold, and those that begin after it.
class PlacedLives {
 public:
  explicit PlacedLives(std::size_t steps) : steps_(steps), nodes_(2 * steps) {}

  void add(std::uint32_t value, std::uint32_t first, std::uint32_t last) {
    begins_.emplace(first, value);
    for (std::size_t low = first + steps_, high = last + steps_ + 1; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) nodes_[low++].push_back(value);
      if (high % 2 == 1) nodes_[--high].push_back(value);
    }
  }

  std::vector<std::uint32_t> during(std::uint32_t first, std::uint32_t last) const {
    std::vector<std::uint32_t> values;
    for (std::size_t node = first + steps_; node > 0; node /= 2) values.insert(values.end(), nodes_[node].begin(), nodes_[node].end());
    for (auto at = begins_.upper_bound({first, UINT32_MAX}); at != begins_.end() && at->first <= last; ++at) values.push_back(at->second);
    return values;
  }

 private:
  std::size_t steps_;
  std::vector<std::vector<std::uint32_t>> nodes_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> begins_;  // step and value
};

}  // namespace

void plan_memory(Program& program) {
  BURIN_CHECK(!program.planned, "memory is planned twice");
  struct Life {
    std::uint32_t first = 0, last = 0;  // steps during which the bytes are not free
    bool used = false;
  };
  std::vector<Life> lives(program.plan.size());
  std::vector<std::int64_t> row_of_output(program.outputs.size(), -1), row_of_donor(program.inputs.size(), -1), row_of_kept(program.kept.size(), -1);
  for (std::uint32_t v = 0; v < program.plan.size(); ++v) {
    const BufferRef& place = program.plan[v].place;
    if (place.storage == Storage::kept) row_of_kept[place.index] = v;
    if (place.storage != Storage::output) continue;
    row_of_output[place.index] = v;
    if (program.aliases[place.index] >= 0) row_of_donor[static_cast<std::size_t>(program.aliases[place.index])] = v;
  }
  const auto row_of = [&](const BufferRef& ref, const Buffer& buffer) -> std::int64_t {
    switch (ref.storage) {
      case Storage::arena: return ref.index;
      case Storage::output: return row_of_output[ref.index];
      case Storage::kept: return row_of_kept[ref.index];
      case Storage::input: return writes(buffer) ? row_of_donor[ref.index] : -1;
      case Storage::constant: break;
    }
    return -1;
  };
  for (std::uint32_t s = 0; s < program.steps.size(); ++s)
    for (std::size_t i = 0; i < program.steps[s].args.size(); ++i) {
      const BufferRef& ref = program.steps[s].args[i];
      const std::int64_t row = row_of(ref, program.kernels[program.steps[s].kernel].buffers[i]);
      if (row < 0) continue;
      Life& life = lives[static_cast<std::size_t>(row)];
      PlannedValue& value = program.plan[static_cast<std::size_t>(row)];
      if (!life.used) life.first = value.first_step = s;
      value.last_step = s;
      life.last = program.first_behind(s) - 1;
      life.used = true;
    }
  // Large values first; each goes to the lowest gap between those that live at the same time.
  std::vector<std::int64_t> size(program.plan.size());
  for (std::uint32_t v = 0; v < size.size(); ++v) size[v] = planned_bytes(program.plan[v].type);
  std::vector<std::uint32_t> by_size(program.plan.size());
  for (std::uint32_t v = 0; v < by_size.size(); ++v) by_size[v] = v;
  std::ranges::sort(by_size, {}, [&](std::uint32_t v) { return std::pair(-size[v], v); });
  std::vector<std::int64_t> offset(program.plan.size(), 0);
  PlacedLives placed(std::max<std::size_t>(program.steps.size(), 1));
  for (std::uint32_t v : by_size) {
    if (program.plan[v].place.storage != Storage::arena || !lives[v].used || size[v] == 0) continue;
    std::vector<std::uint32_t> others = placed.during(lives[v].first, lives[v].last);
    std::ranges::sort(others, {}, [&](std::uint32_t other) { return offset[other]; });
    std::int64_t at = 0;
    for (std::uint32_t other : others) {
      if (at + size[v] <= offset[other]) break;
      at = std::max(at, offset[other] + size[other]);
    }
    if (size[v] > Program::max_arena_bytes - at) fail(Msg::arena_too_large);
    offset[v] = at;
    placed.add(v, lives[v].first, lives[v].last);
    program.arena_bytes = std::max(program.arena_bytes, at + size[v]);
  }
  for (std::uint32_t v = 0; v < program.plan.size(); ++v)
    if (program.plan[v].place.storage == Storage::arena) program.plan[v].place = {Storage::arena, 0, offset[v]};
  for (Step& step : program.steps)
    for (BufferRef& ref : step.args)
      if (ref.storage == Storage::arena) ref = {Storage::arena, 0, offset[ref.index]};
  program.planned = true;
}

}  // namespace burin::passes
