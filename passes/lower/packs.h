// While a program is lowered: which steps pack arguments, and which of their copies are kept.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/function.h"
#include "ir/kernel/program.h"
#include "passes/lower/kept_pack.h"

namespace burin::passes::lower {

class Packs {
 public:
  explicit Packs(bool wanted) : wanted_(wanted) {}
  bool wanted() const { return wanted_; }
  bool packs(std::uint32_t input) const;

  /// Step `step` packs argument `input` into `copy`, a value of the arena.
  void add(std::uint32_t input, const PackedMatrix& matrix, std::uint32_t step, const BufferRef& copy);
  /// Copies noted since are read by steps before `step` alone.
  void end_fusion(std::uint32_t step);
  /// `cast` is `input` in bf16, made by the step.
  void add_cast(ValueId cast, std::uint32_t input, std::uint32_t step);
  /// The step packs a cast.
  void add_of_cast(ValueId cast, const PackedMatrix& matrix, std::uint32_t step, const BufferRef& copy);
  /// Adds one entry per layout that `input` is packed in, all of the result that takes it over.
  void add_copies(std::uint32_t input, std::uint32_t result, std::vector<KeptPack>& kept) const;
  /// The copies in that layout of the input that `output` takes over become one kept value, whose number is returned: steps so far use
  /// it, and those that pack are not needed when it is given.
  std::uint32_t keep(Program& program, std::uint32_t output, const PackedMatrix& matrix);
  /// Once all steps are there: what casts make is not needed either when only packing steps read it.
  void spare_casts(Program& program) const;

 private:
  struct Packing {
    std::uint32_t input, step, end = 0;  // read by steps before `end`
    PackedMatrix matrix;
    BufferRef copy;
  };
  struct Cast {
    std::uint32_t input, step;
  };
  bool wanted_;
  std::vector<Packing> packings_;
  std::size_t ended_ = 0;  // so many of them have their end
  std::unordered_map<ValueId, Cast> casts_;
};

}  // namespace burin::passes::lower
