// What perf reads of code that is in no file: a file of names, and a dump of the code with its lines. Private to
// codegen/.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace burin::codegen {

struct PerfLine {
  std::uint64_t address = 0;
  std::uint32_t number = 0;  // from 1
  std::string file;
};

/// One per process, as perf expects it; not to be used by two threads at once.
class PerfFiles {
 public:
  /// /tmp/perf-PID.map, and jit-PID.dump in `folder`, which must be there. Throws Error when they cannot be made.
  explicit PerfFiles(const std::string& folder);
  PerfFiles(const PerfFiles&) = delete;
  PerfFiles& operator=(const PerfFiles&) = delete;

  /// Code that is in place. Throws Error when it cannot be written.
  void add(const std::string& name, std::span<const std::uint8_t> code, std::span<const PerfLine> lines);

 private:
  struct File {
    explicit File(std::string name);
    ~File();
    void write(const std::string& bytes);
    const std::string path;
    int descriptor;
  };
  File names_, dump_;
  std::uint64_t next_index_ = 0;
};

}  // namespace burin::codegen
