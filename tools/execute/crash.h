// What is said when a signal ends a tool.
#pragma once

namespace tools {

/// From now on a signal that ends this process (a bad address, an abort, ...) prints the crash contexts of its thread first: the
/// pass, the op, and the command that repeats it. Under a sanitizer, which has reports of its own, nothing changes.
void report_crashes();

}  // namespace tools
