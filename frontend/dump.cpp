#include "frontend/dump.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "base/message_ids.h"
#include "frontend/compiled.h"
#include "frontend/io/file.h"
#include "ir/printer.h"

namespace burin::detail {
namespace {

std::atomic<int> number{0};

}  // namespace

std::string graph_of(const ir::Function& f) {
  std::string text = fmt::format("digraph \"{}\" {{\n  node [shape=box, fontname=monospace];\n", f.name());
  for (ir::ValueId arg : f.args())
    text += fmt::format("  v{} [label=\"{} {}\", shape=ellipse];\n", arg.index, f.value_name(arg), to_string(f.type(arg)));
  f.for_each_op([&](ir::OpId op) {
    const std::uint32_t self = f.num_results(op) > 0 ? f.result(op).index : 0;
    const std::string kind = f.kind(op) == ir::Op::fusion ? "@" + f.attrs<ir::Op::fusion>(op).body->name() : std::string(name(f.kind(op)));
    text += fmt::format("  v{} [label=\"{}\\n{}\"];\n", self, kind,
                        f.num_results(op) > 0 ? to_string(f.type(f.result(op))) : std::string());
    for (std::size_t i = 1; i < f.num_results(op); ++i)
      text += fmt::format("  v{} [label=\"result {}\"];\n  v{} -> v{};\n", f.result(op, i).index, i, self, f.result(op, i).index);
    for (ir::ValueId operand : f.operands(op)) text += fmt::format("  v{} -> v{};\n", operand.index, self);
  });
  return text + "}\n";
}

std::unique_ptr<Dump> Dump::start(const ir::Function& traced) {
  const char* root = std::getenv("BURIN_DUMP");
  if (!root || !*root) return nullptr;
  const std::string folder = fmt::format("{}/{:04}_{}", root, number++, traced.name());
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(Msg::dump_unwritable, folder, error.message());
  std::unique_ptr<Dump> dump(new Dump(folder));
  dump->before_ = print(traced, {.locations = true});
  dump->write("00_trace.ir", dump->before_);
  return dump;
}

void Dump::write(const std::string& name, const std::string& text) {
  io::replace_file(folder_ + "/" + name, {std::as_bytes(std::span(text))});
}

std::function<void(const passes::Options::Event&)> Dump::observer() {
  return [this](const passes::Options::Event& event) {
    timed(event.pass, event.seconds);
    const std::string text = event.function ? print(*event.function, {.locations = true}) : print(*event.program);
    write(fmt::format("{:02}_{}.{}", stage_++, event.pass, event.function ? "ir" : "txt"), text == before_ ? "(unchanged)\n" : text);
    if (event.pass == "fuse") write("fused.dot", graph_of(*event.function));
    before_ = text;
  };
}

void Dump::timed(std::string_view what, double seconds) { timings_ += fmt::format("{:>10.3f} ms  {}\n", seconds * 1e3, what); }

void Dump::finish(const CompiledFunction& compiled) {
  write("timings.txt", timings_);
  if (!compiled.has_program()) return;
  write("program.txt", print(compiled.program()));
  const CallMemory memory = compiled.memory();
  write("memory.txt", memory_text(compiled.program(), &memory));
  if (chosen_backend() != Backend::machine) return;
  write("kernels.ll", compiled.llvm());
  write("kernels.s", compiled.assembly());
}

}  // namespace burin::detail
