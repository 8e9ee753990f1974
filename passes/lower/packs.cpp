#include "passes/lower/packs.h"

#include <algorithm>

namespace burin::passes::lower {
namespace {

bool is_read(const Block& block, BufferId buffer) {
  return std::any_of(block.begin(), block.end(), [&](const Stmt& s) {
    return (s.kind == StmtKind::load && s.buffer == buffer) || (s.kind == StmtKind::mma && (s.a == buffer || s.b == buffer)) || is_read(s.body, buffer);
  });
}

}  // namespace

void Packs::add(std::uint32_t input, const PackedMatrix& matrix, std::uint32_t step, const BufferRef& copy) {
  if (wanted_) packings_.push_back({input, step, 0, matrix, copy});
}

bool Packs::packs(std::uint32_t input) const {
  return std::any_of(packings_.begin(), packings_.end(), [&](const Packing& packing) { return packing.input == input; });
}

void Packs::end_fusion(std::uint32_t step) {
  for (; ended_ < packings_.size(); ++ended_) packings_[ended_].end = step;
}

void Packs::add_cast(ValueId cast, std::uint32_t input, std::uint32_t step) {
  if (wanted_) casts_[cast] = {input, step};
}

void Packs::add_of_cast(ValueId cast, const PackedMatrix& matrix, std::uint32_t step, const BufferRef& copy) {
  if (const auto found = casts_.find(cast); found != casts_.end()) add(found->second.input, matrix, step, copy);
}

void Packs::add_copies(std::uint32_t input, std::uint32_t result, std::vector<KeptPack>& kept) const {
  for (const Packing& packing : packings_)
    if (const KeptPack copy{result, packing.matrix}; packing.input == input && std::find(kept.begin(), kept.end(), copy) == kept.end())
      kept.push_back(copy);
}

std::uint32_t Packs::keep(Program& program, std::uint32_t output, const PackedMatrix& matrix) {
  const auto number = static_cast<std::uint32_t>(program.kept.size());
  const auto input = static_cast<std::uint32_t>(program.aliases[output]);
  for (const Packing& packing : packings_) {
    if (packing.input != input || packing.matrix != matrix) continue;
    PlannedValue& row = program.plan[packing.copy.index];
    if (program.kept.size() == number) program.kept.push_back({row.type, output});
    row.place = {Storage::kept, number, 0};
    for (std::uint32_t s = packing.step; s < packing.end; ++s)
      std::replace(program.steps[s].args.begin(), program.steps[s].args.end(), packing.copy, row.place);
    program.steps[packing.step].unless = {number};
  }
  return number;
}

void Packs::spare_casts(Program& program) const {
  std::vector<Step*> made_by(program.plan.size(), nullptr);  // by row of the plan
  for (const auto& [value, cast] : casts_)
    if (const BufferRef& made = program.steps[cast.step].args.back(); made.storage == Storage::arena)
      made_by[made.index] = &program.steps[cast.step];
  std::vector<std::vector<std::uint32_t>> unless(program.plan.size());
  for (const Step& step : program.steps)
    for (std::size_t i = 0; i < step.args.size(); ++i) {
      if (step.args[i].storage != Storage::arena || &step == made_by[step.args[i].index]) continue;
      Step*& maker = made_by[step.args[i].index];
      if (maker == nullptr || !is_read(program.kernels[step.kernel].body, BufferId{i})) continue;
      if (step.unless.empty()) maker = nullptr;
      std::vector<std::uint32_t>& all = unless[step.args[i].index];
      all.insert(all.end(), step.unless.begin(), step.unless.end());
    }
  for (std::size_t row = 0; row < made_by.size(); ++row)
    if (made_by[row] != nullptr) made_by[row]->unless = std::move(unless[row]);
}

}  // namespace burin::passes::lower
