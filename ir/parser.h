// Text to Function. Errors carry line and column: "x.ir:3:14: unknown op `ad` ...".
#pragma once
#include <string_view>

#include "ir/function.h"

namespace burin::ir {

/// Parses the first function of the text; the others are its bodies (any order, no cycles). Result types may be left
/// out; those written are checked against the inferred ones. `file` is named in errors. Throws Error.
Function parse(std::string_view text, std::string_view file = "<text>");

}  // namespace burin::ir
