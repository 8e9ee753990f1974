// BURIN_DUMP=folder: every stage of each compile as files, for people. Inside the frontend only.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/compile.h"
#include "passes/pipeline.h"

namespace burin::detail {

/// The function as a graph for Graphviz: a box for each op, an ellipse for each argument.
std::string graph_of(const ir::Function& f);

/// The stages of one compile, below a folder of its own: 00_trace.ir, 01_<pass>.ir ..., 11_lower.txt ..., program.txt,
/// memory.txt, fused.dot, timings.txt, kernels.ll, kernels.s. Throws Error when the folder cannot be written.
class Dump {
 public:
  /// Null unless BURIN_DUMP is set.
  static std::unique_ptr<Dump> start(const ir::Function& traced);
  /// An observer for the passes; valid as long as this.
  std::function<void(const passes::Options::Event&)> observer();
  /// A line of timings.txt.
  void timed(std::string_view what, double seconds);
  void finish(const CompiledFunction& compiled);

 private:
  explicit Dump(std::string folder) : folder_(std::move(folder)) {}
  void write(const std::string& name, const std::string& text);

  std::string folder_;
  std::string before_, timings_;
  int stage_ = 1;
};

}  // namespace burin::detail
