#include "passes/lower/packs.h"

#include <algorithm>

namespace burin::passes::lower {

void Packs::add(std::uint32_t input, const PackedMatrix& matrix, std::uint32_t step, const BufferRef& copy) {
  if (!wanted_) return;
  read_now_.push_back(packings_.size());
  packings_.push_back({input, step, 0, matrix, copy});
}

bool Packs::packs(std::uint32_t input) const {
  return std::any_of(packings_.begin(), packings_.end(), [&](const Packing& packing) { return packing.input == input; });
}

void Packs::end_fusion(std::uint32_t step) {
  for (const std::size_t i : read_now_) packings_[i].end = step;
  read_now_.clear();
}

void Packs::read_again(const BufferRef& copy) {
  const auto found = std::ranges::find(packings_, copy, &Packing::copy);
  if (found != packings_.end()) read_now_.push_back(static_cast<std::size_t>(found - packings_.begin()));
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

}  // namespace burin::passes::lower
