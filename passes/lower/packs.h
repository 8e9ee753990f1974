// While a program is lowered: which steps pack arguments, and which of their copies are kept.
#pragma once
#include <cstdint>
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
  /// Copies that the fusion whose steps end before `step` packs or reads again are not read behind it, unless that is said again.
  void end_fusion(std::uint32_t step);
  /// A later fusion reads the copy too.
  void read_again(const BufferRef& copy);
  /// Adds one entry per layout that `input` is packed in, all of the result that takes it over.
  void add_copies(std::uint32_t input, std::uint32_t result, std::vector<KeptPack>& kept) const;
  /// The copies in that layout of the input that `output` takes over become one kept value, whose number is returned: steps so far use
  /// it, and those that pack are not needed when it is given.
  std::uint32_t keep(Program& program, std::uint32_t output, const PackedMatrix& matrix);

 private:
  struct Packing {
    std::uint32_t input, step, end = 0;  // read by steps before `end`
    PackedMatrix matrix;
    BufferRef copy;
  };
  bool wanted_;
  std::vector<Packing> packings_;
  std::vector<std::size_t> read_now_;  // by the fusion that is being lowered
};

}  // namespace burin::passes::lower
