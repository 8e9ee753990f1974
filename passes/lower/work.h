// How much a fusion asks for, whatever its loops: what times are measured against.
#pragma once
#include <cstdint>

#include "ir/function.h"

namespace burin::passes::lower {

struct Work {
  /// Two for each multiply-add of a dot, one for each element of arithmetic and functions on floats and of reductions of them.
  std::int64_t flops = 0;
  /// Every argument read once and every result written once; of a table that a gather reads, only what it takes.
  std::int64_t bytes = 0;
};

Work work_of(const ir::Function& body);

}  // namespace burin::passes::lower
