// What a pass leaves behind when a check fails in it: its name, the function that it was given, and the command that
// repeats it.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "ir/function.h"

namespace burin::passes {

/// Holds for the life of the object, which must not outlast what it is given.
class CrashNote {
 public:
  /// `repeat`: the options with which burin-opt does the same to `input`, "--passes=lower,schedule".
  CrashNote(std::string_view pass, const ir::Function& input, std::string repeat)
      : pass_(pass), repeat_(std::move(repeat)), input_(input), context_(&describe, this) {}
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;

 private:
  static std::string describe(const void* note);
  std::string_view pass_;
  std::string repeat_;
  const ir::Function& input_;
  CrashContext context_;
};

}  // namespace burin::passes
