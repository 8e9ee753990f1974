// The runtime's times of steps as a profile of kernels. Inside the frontend only.
#pragma once
#include <burin/profile.h>

#include "ir/kernel/program.h"
#include "runtime/peaks.h"
#include "runtime/profile.h"

namespace burin::detail {

/// `times`: of the program's steps; `peaks`: of as many threads as the runs had.
Profile by_kernel(const ir::Program& program, const runtime::Profile& times, const runtime::Peaks& peaks);

}  // namespace burin::detail
