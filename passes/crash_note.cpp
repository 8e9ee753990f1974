#include "passes/crash_note.h"

#include <fmt/format.h>

#include "ir/printer.h"

namespace burin::passes {

std::string CrashNote::describe(const void* note) {
  const auto& self = *static_cast<const CrashNote*>(note);
  ir::PrintOptions in_full;
  in_full.max_elements = -1;
  const std::string path = save_crash_input(ir::print(self.input_, in_full));
  return fmt::format("  in pass `{}` on @{}\n  whose input is in {}; repeat with: burin-opt {} {}", self.pass_,
                     self.input_.name(), path, path, self.repeat_);
}

}  // namespace burin::passes
