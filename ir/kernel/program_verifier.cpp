#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/counted.h"
#include "ir/kernel/constraints.h"
#include "ir/kernel/printer.h"
#include "ir/kernel/program.h"

namespace burin::ir {
namespace {

bool is_written(const Buffer& b) { return b.space == Space::out || b.space == Space::inout; }

// A parameter of a step and the bytes it stands for.
struct Use {
  const Buffer* buffer;
  BufferRef place;   // an input that an output takes over counts as that output
  std::int64_t end;  // offset one past the last byte
};

class ProgramVerifier {
 public:
  explicit ProgramVerifier(const Program& program) : program_(program) {}

  std::string run() {
    for (const Kernel& kernel : program_.kernels)
      if (std::string message = verify(kernel); !message.empty()) return "P1: " + message;
    check_aliases();
    check_kept();
    check_plan();
    if (!program_.planned && program_.arena_bytes != 0) fail("P8", "an arena before memory is planned");
    if (program_.arena_bytes < 0 || program_.arena_bytes > Program::max_arena_bytes)
      fail("P8", fmt::format("an arena of {} bytes, at most 2^60 are possible", program_.arena_bytes));
    for (step_ = 0; step_ < program_.steps.size() && message_.empty(); ++step_) check_step(program_.steps[step_]);
    for (step_ = 0; step_ < program_.steps.size() && message_.empty(); ++step_) check_races();
    check_outputs();
    return message_;
  }

 private:
  void fail(std::string_view invariant, const std::string& what) {
    if (!message_.empty()) return;
    message_ = fmt::format("{}: ", invariant);
    if (step_ < program_.steps.size() && !uses_.empty()) {
      const std::uint32_t kernel = program_.steps[step_].kernel;
      message_ += fmt::format("step {}", step_);
      if (kernel < program_.kernels.size()) message_ += " @" + identifier(program_.kernels[kernel].name, "kernel");
      message_ += ": ";
    }
    message_ += what;
  }

  void check_aliases() {
    if (program_.aliases.size() > program_.outputs.size()) fail("P2", "more aliases than outputs");
    std::vector<bool> taken(program_.inputs.size());
    for (std::size_t i = 0; i < program_.aliases.size() && message_.empty(); ++i) {
      if (program_.aliases[i] < 0) continue;
      const auto from = static_cast<std::size_t>(program_.aliases[i]);
      if (from >= program_.inputs.size())
        return fail("P2", fmt::format("out{} takes over in{}, which does not exist", i, from));
      if (taken[from]) return fail("P2", fmt::format("in{} is taken over twice", from));
      if (program_.inputs[from].bytes() != program_.outputs[i].bytes())
        return fail("P2", fmt::format("out{} is {}, in{} is {}: not the same bytes", i, to_string(program_.outputs[i]),
                                      from, to_string(program_.inputs[from])));
      taken[from] = true;
    }
  }

  void check_kept() {
    for (std::size_t i = 0; i < program_.kept.size() && message_.empty(); ++i) {
      const std::size_t output = program_.kept[i].output;
      if (output >= program_.aliases.size() || program_.aliases[output] < 0)
        fail("P10", fmt::format("keep{} belongs to out{}, which takes over no input", i, output));
    }
  }

  void check_plan() {
    for (std::size_t i = 0; i < program_.plan.size() && message_.empty(); ++i) {
      const PlannedValue& value = program_.plan[i];
      const bool itself = program_.planned || value.place.storage != Storage::arena || value.place.index == i;
      if (size_of_storage(value.place) < 0 || !itself) fail("P9", fmt::format("row {} of the plan, {}, has no such place", i, value.name));
    }
  }

  /// Bytes behind a place; -1 when there is no such place.
  std::int64_t size_of_storage(const BufferRef& ref) const {
    const auto of = [&](const std::vector<Type>& types) {
      return ref.index < types.size() ? types[ref.index].bytes() : -1;
    };
    switch (ref.storage) {
      case Storage::input:
        return of(program_.inputs);
      case Storage::output:
        return of(program_.outputs);
      case Storage::constant:
        return ref.index < program_.constants.size() ? program_.constants[ref.index].type().bytes() : -1;
      case Storage::kept:
        return ref.index < program_.kept.size() ? program_.kept[ref.index].type.bytes() : -1;
      case Storage::arena:
        break;
    }
    if (program_.planned) return program_.arena_bytes;
    const bool is_row = ref.index < program_.plan.size() && program_.plan[ref.index].place.storage == Storage::arena && ref.offset == 0;
    return is_row ? program_.plan[ref.index].type.bytes() : -1;
  }

  void check_step(const Step& step) {
    uses_.emplace_back();
    if (step.kernel >= program_.kernels.size()) return fail("P3", "there is no such kernel");
    const Kernel& kernel = program_.kernels[step.kernel];
    if (step.args.size() != kernel.num_params())
      return fail("P3", fmt::format("{} for {}", counted(step.args.size(), "place"), counted(kernel.num_params(), "parameter")));
    if (step.tasks != kernel.num_tasks())
      return fail("P3", fmt::format("{}, the kernel has {}", counted(step.tasks, "task"), kernel.num_tasks()));
    if (!step.sites.empty() && step.sites.size() != kernel.sites.size())
      return fail("P3", fmt::format("{}, the kernel has {}", counted(step.sites.size(), "site"), kernel.sites.size()));
    if (step.after > step_) return fail("P3", fmt::format("waits for {}, it is number {}", counted(step.after, "step"), step_));
    if (step_ > 0 && step.after < program_.steps[step_ - 1].after)
      return fail("P3", fmt::format("waits for {}, the step before for {}", counted(step.after, "step"), program_.steps[step_ - 1].after));
    for (std::size_t i = 0; i < step.args.size() && message_.empty(); ++i) check_arg(kernel.buffers[i], step.args[i]);
    if (!message_.empty()) return;
    const std::vector<Use>& uses = uses_.back();
    for (const std::uint32_t kept : step.unless)
      if (kept >= program_.kept.size()) return fail("P10", fmt::format("there is no keep{}", kept));
    for (const Use& use : uses)
      if (!step.unless.empty() && is_written(*use.buffer) && use.place.storage == Storage::output)
        return fail("P10", fmt::format("{} is stored to by a step that may be left out", use.buffer->name));
    for (std::size_t i = 0; i < uses.size(); ++i)
      for (std::size_t j = 0; j < uses.size(); ++j)
        if (i != j && is_written(*uses[i].buffer) && overlap(uses[i], uses[j]))
          return fail("P5", fmt::format("{} is stored to and shares bytes with {}", uses[i].buffer->name,
                                        uses[j].buffer->name));
  }

  void check_arg(const Buffer& b, const BufferRef& ref) {
    const std::int64_t size = size_of_storage(ref), element = static_cast<std::int64_t>(size_of(b.dtype));
    if (size < 0) return fail("P4", fmt::format("the place of {} does not exist", b.name));
    const std::int64_t bytes = b.span() * element;
    if (ref.offset < 0 || ref.offset > size || bytes > size - ref.offset)
      return fail("P4", fmt::format("{} takes {} from byte {} of a place of {}", b.name, counted(bytes, "byte"), ref.offset, size));
    const std::int64_t end = ref.offset + bytes;
    if (ref.offset % element != 0) return fail("P4", fmt::format("{} is not aligned to its dtype", b.name));
    BufferRef place = ref;
    if (ref.storage == Storage::input)
      for (std::size_t i = 0; i < program_.aliases.size(); ++i)
        if (program_.aliases[i] == static_cast<std::int64_t>(ref.index))
          place = {Storage::output, static_cast<std::uint32_t>(i), ref.offset};
    if (is_written(b) && (place.storage == Storage::input || place.storage == Storage::constant))
      return fail("P4", fmt::format("{} is stored to, but its place is only read", b.name));
    uses_.back().push_back({&b, place, end});
  }

  void check_outputs() {
    if (!message_.empty()) return;
    std::vector<bool> written(program_.outputs.size());
    for (const std::vector<Use>& step : uses_)
      for (const Use& use : step)
        if (use.place.storage == Storage::output && is_written(*use.buffer) && use.buffer->span() > 0)
          written[use.place.index] = true;
    for (std::size_t i = 0; i < written.size(); ++i) {
      const bool taken_over = i < program_.aliases.size() && program_.aliases[i] >= 0;
      if (written[i] || taken_over || program_.outputs[i].size() == 0) continue;
      uses_.clear();  // no step is to blame
      return fail("P7", fmt::format("no step stores to out{}: {}", i, to_string(program_.outputs[i])));
    }
  }

  // Steps for which this one does not wait may run at the same time.
  void check_races() {
    for (std::size_t other = program_.steps[step_].after; other < step_; ++other)
      for (const Use& a : uses_[step_])
        for (const Use& b : uses_[other])
          if ((is_written(*a.buffer) || is_written(*b.buffer)) && overlap(a, b))
            return fail("P6", fmt::format("{} shares bytes with {} of step {}, for which it does not wait", a.buffer->name, b.buffer->name, other));
  }

  bool overlap(const Use& a, const Use& b) const {
    if (a.place.storage != b.place.storage) return false;
    const bool numbered = a.place.storage != Storage::arena || !program_.planned;
    if (numbered && a.place.index != b.place.index) return false;
    if (a.place.offset >= b.end || b.place.offset >= a.end) return false;
    // Ranges meet; strided views of one buffer may still interleave: no byte has two addresses.
    std::vector<Affine> facts;
    std::size_t vars = 0;
    const auto variable = [&](std::int64_t extent) {
      const Affine var(VarId{vars++});
      facts.push_back(var);
      facts.push_back(Affine(extent - 1) - var);
      return var;
    };
    const auto address = [&](const Use& use) {
      const auto element = static_cast<std::int64_t>(size_of(use.buffer->dtype));
      Affine sum = Affine(use.place.offset) + variable(element);
      for (std::size_t axis = 0; axis < use.buffer->shape.rank(); ++axis)
        sum = sum + variable(use.buffer->shape[axis]) * (use.buffer->strides[axis] * element);
      return sum;
    };
    const Affine gap = address(a) - address(b);
    return !infeasible(std::move(facts), {gap});
  }

  const Program& program_;
  std::string message_;
  std::size_t step_ = 0;
  std::vector<std::vector<Use>> uses_;  // by step
};

}  // namespace

std::string verify(const Program& program) { return ProgramVerifier(program).run(); }

void check_valid(const Program& program, const char* after) {
  const std::string broken = verify(program);
  BURIN_CHECK(broken.empty(), std::string("after ") + after + ": " + broken + "\n" + print(program));
}

}  // namespace burin::ir
