#include "frontend/profile.h"
#include "base/counted.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace burin {
namespace detail {

Profile by_kernel(const ir::Program& program, const runtime::Profile& times, const runtime::Peaks& peaks) {
  Profile profile;
  const double runs = static_cast<double>(std::max<std::int64_t>(times.runs, 1));
  profile.runs = times.runs;
  profile.seconds = static_cast<double>(times.total_ns) * 1e-9 / runs;
  profile.threads = peaks.threads;
  profile.peak_flops = peaks.flops;
  profile.cache_bytes = peaks.bytes_per_second(0);
  profile.memory_bytes = peaks.copies.back().bytes_per_second;
  profile.kernels.resize(program.kernels.size());
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const ir::Kernel& kernel = program.kernels[program.steps[i].kernel];
    Profile::Kernel& row = profile.kernels[program.steps[i].kernel];
    if (!program.steps[i].unless.empty()) continue;  // what it makes is given to the runs that are timed
    if (row.calls++ == 0) row.name = program.steps[i].label;
    row.threads = std::max(row.threads, times.steps[i].threads);
    row.seconds += static_cast<double>(times.steps[i].ns) * 1e-9 / runs;
    row.flops += static_cast<double>(kernel.flops);
    row.bytes += static_cast<double>(kernel.bytes);
    // Seconds at the machine's limit; shares below.
    if (peaks.flops > 0) row.flop_share += static_cast<double>(kernel.flops) / peaks.flops;
    row.byte_share += static_cast<double>(kernel.bytes) / peaks.bytes_per_second(kernel.bytes);
  }
  std::erase_if(profile.kernels, [](const Profile::Kernel& row) { return row.calls == 0; });
  for (Profile::Kernel& row : profile.kernels) {
    const double seconds = std::max(row.seconds, 1e-9);
    row.flop_share /= seconds;
    row.byte_share /= seconds;
  }
  std::ranges::sort(profile.kernels, std::ranges::greater(), &Profile::Kernel::seconds);
  return profile;
}

}  // namespace detail

std::string Profile::text() const {
  std::string text = fmt::format(
      "{} of {:.1f} us on {}; limits here: {:.0f} GFLOP/s in f32, copies of {:.0f} GB/s in cache, {:.0f} in memory\n",
      counted(runs, "run"), seconds * 1e6, counted(threads, "thread"), peak_flops * 1e-9, cache_bytes * 1e-9, memory_bytes * 1e-9);
  text += fmt::format("{:>10} {:>6} {:>6} {:>8} {:>9} {:>8} {:>12}  kernel\n", "us", "share", "calls", "threads", "GFLOP/s", "GB/s", "of limit");
  for (const Kernel& kernel : kernels) {
    const double time = std::max(kernel.seconds, 1e-9);
    text += fmt::format("{:>10.1f} {:>5.1f}% {:>6} {:>8} {:>9.1f} {:>8.1f} {:>6.0f}% {:<5}  {}\n", kernel.seconds * 1e6,
                        100 * kernel.seconds / std::max(seconds, 1e-9), kernel.calls, kernel.threads, kernel.flops * 1e-9 / time,
                        kernel.bytes * 1e-9 / time, 100 * kernel.of_limit(),
                        kernel.flop_share > kernel.byte_share ? "flops" : "bytes", kernel.name);
  }
  return text;
}

}  // namespace burin
