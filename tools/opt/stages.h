// The passes that a command line asks for, and the artefact that stands at their end.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/target.h"
#include "passes/pipeline.h"
#include "tools/execute/input_text.h"

namespace opt {

struct Request {
  std::vector<std::string> passes;  // in this order; with `pipeline` empty
  bool pipeline = false;            // all passes up to what `emit` shows
  std::string emit;                 // ir, kernel, llvm, asm, dot, memory; "": whatever the passes give
  std::vector<std::string> disabled;  // of the pipeline; with `passes` empty
  std::string stop_after;             // the last pass of the pipeline, "" for all
  std::int64_t memory_budget = -1, split_elements = burin::passes::Options{}.split_elements;
  bool explain_fusion = false;
  bool full_constants = false, locations = false;
  bool verify_each = BURIN_ASSERTS;
  bool excess_precision = true;
  burin::ir::Target target;
  std::function<void(const burin::passes::Options::Event&)> observer;
};

/// Pass names in order, "infer_shapes" first.
std::vector<std::string> known_passes();
/// Those of the pipeline; those that it may leave out.
std::vector<std::string> pipeline_passes();
std::vector<std::string> optional_passes();
/// Does `emit` show a Program?
bool shows_program(std::string_view emit);
/// Applies the passes; throws burin::Error when one does not take what the one before gives.
tools::Unit run_passes(const tools::Unit& input, const Request& request);
/// What goes to stdout.
std::string text_of(const tools::Unit& unit, const Request& request);

}  // namespace opt
