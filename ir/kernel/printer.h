// Spelling shared by the printers of Kernel and Program. print() itself is declared in kernel.h and program.h.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/kernel.h"

namespace burin::ir {

/// `name` with every character that no identifier holds replaced by `_`; `otherwise` when it is empty.
std::string identifier(std::string_view name, std::string_view otherwise);
/// print(kernel) under another name.
std::string print_kernel(const Kernel& kernel, std::string_view kernel_name);
/// One statement as it stands in print(kernel), counted from 0 in the order of the text; of a loop or `if` the head.
std::string print_statement(const Kernel& kernel, std::size_t statement);
/// The line of print(kernel), counted from 1, on which each statement stands, in the order of the text.
std::vector<unsigned> statement_lines(const Kernel& kernel);

}  // namespace burin::ir
