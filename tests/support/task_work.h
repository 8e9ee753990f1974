// How much each task of a kernel has to do, counted on its loops: without a clock, the same everywhere.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/kernel/program.h"

namespace burin::test {

/// By task: statements carried out, a vector of lanes as one, a product of tiles as its multiply-adds by vectors of 16. Conditions that
/// hang on data count as met, but for what is said of it: `bound`, if any, is what each bind of the text gives, within its range.
std::vector<double> task_work(const ir::Kernel& kernel, std::optional<std::int64_t> bound = {});

/// The time of all steps on `workers` that each take the next task when they are free, over the time if the work were shared evenly. Neighbours that do
/// not wait for one another are one list of tasks, behind which all workers wait: what may begin earlier makes up for nothing here. Lists whose
/// kernels cost less than `least_ns` together stay with one worker and are left out.
double unevenness(const ir::Program& program, int workers, double least_ns);

}  // namespace burin::test
