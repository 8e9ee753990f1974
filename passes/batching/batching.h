// vmap as Function -> Function: one rule per op, the batch is axis 0 of every batched value.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/function.h"

namespace burin::passes {

struct Batched {
  ir::Function function;
  std::vector<bool> result_batched;  // by result: false when it does not depend on a batched arg (it has no batch axis then)
};

/// f over `size` elements at once: args with batched[i] get a leading axis of that extent.
Batched batch(const ir::Function& f, const std::vector<bool>& batched, std::int64_t size);

}  // namespace burin::passes
