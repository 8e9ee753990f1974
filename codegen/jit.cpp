// Kernels become a module of LLVM, and machine code that those who need it share.
#include "codegen/module.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/file_cache.h"
#include "base/hash.h"
#include "codegen/codegen.h"
#include "codegen/emitter.h"
#include "codegen/line_table.h"
#include "codegen/link.h"
#include "codegen/stored_objects.h"
#include "ir/kernel/printer.h"

namespace burin::codegen {

namespace {

std::string plain_symbol(const std::string& name) {
  std::string symbol;
  for (char c : name) symbol += llvm::isAlnum(c) ? c : '_';
  constexpr std::array<std::string_view, 5> taken = {"", "burin_report_index", "memcpy", "memmove", "memset"};
  if (std::ranges::find(taken, symbol) != taken.end() || llvm::isDigit(symbol[0])) symbol = "kernel_" + symbol;
  return symbol;
}

// Its number in the order of the text; false when it is none of this block's.
bool count_to(const ir::Stmt* statement, const ir::Block& block, std::size_t* number) {
  for (const ir::Stmt& s : block) {
    if (&s == statement) return true;
    ++*number;
    if (count_to(statement, s.body, number)) return true;
  }
  return false;
}

// For a check that fails: the kernel, its statement, and the command that repeats it. Takes a KernelEmitter.
std::string describe_emission(const void* data) {
  const auto& emitter = *static_cast<const KernelEmitter*>(data);
  const ir::Kernel& kernel = emitter.kernel();
  std::string at;
  if (std::size_t number = 0; count_to(emitter.statement(), kernel.body, &number))
    at = "  at statement " + std::to_string(number) + ": " + ir::print_statement(kernel, number) + "\n";
  const std::string path = save_crash_input(ir::print(kernel));
  return at + "  in code generation of kernel @" + kernel.name + "\n  which is in " + path + "; repeat with: burin-opt " + path +
         " --emit=llvm" + ir::target_option(emitter.target());
}

}  // namespace

std::unique_ptr<llvm::Module> build_module(llvm::LLVMContext& context, llvm::TargetMachine& machine,
                                           std::span<const ir::Kernel* const> kernels, const ir::Target& target,
                                           std::vector<std::string>* symbols, std::span<const std::string> texts) {
  auto module = std::make_unique<llvm::Module>("kernels", context);
  module->setTargetTriple(machine.getTargetTriple());
  module->setDataLayout(machine.createDataLayout());
  llvm::IRBuilder<> builder(context);
  std::optional<LineTable> lines;
  if (!texts.empty()) lines.emplace(*module);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const ir::Kernel* kernel = kernels[k];
    std::string symbol = plain_symbol(kernel->name);
    for (int i = 1; module->getNamedValue(symbol) != nullptr; ++i) symbol = plain_symbol(kernel->name) + "_" + std::to_string(i);
    KernelEmitter emitter(builder, *module, *kernel, target, symbol, lines ? &*lines : nullptr, lines ? texts[k] : "");
    const CrashContext crash_context(&describe_emission, &emitter);
    const llvm::Function* function = emitter.emit();
#if BURIN_ASSERTS
    std::string problem;
    llvm::raw_string_ostream text(problem);
    BURIN_CHECK(!llvm::verifyFunction(*function, &text), problem);
#else
    (void)function;
#endif
    if (symbols != nullptr) symbols->push_back(symbol);
  }
  if (lines) lines->finish();
  return module;
}

namespace {

class LinkedModule final : public Module {
 public:
  std::span<const BurinKernel> entries() const override { return entries_; }
  std::size_t num_compiled() const override { return num_compiled_; }

  std::size_t num_compiled_ = 0;
  std::vector<BurinKernel> entries_;
  std::vector<std::shared_ptr<const void>> memories_;
};

Hash128 code_key(const ir::Kernel& kernel, const ir::Target& target, bool visible) {
  Hasher hasher;
  kernel.hash(hasher);
  if (visible) hasher.add(visible);
  hasher.add(ir::to_string(target));
  return hasher.finish();
}

/// The machine code that some Module of the process keeps alive, by kernel and target.
class LiveCode {
 public:
  struct Code {
    std::shared_ptr<const void> memory;
    BurinKernel entry;
  };
  std::optional<Code> find(const Hash128& key, const ir::Kernel& kernel) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(key);
    if (found == all_.end()) return std::nullopt;
    std::shared_ptr<const void> memory = found->second.memory.lock();
    if (memory == nullptr) return std::nullopt;
#if BURIN_ASSERTS
    BURIN_CHECK(ir::print_structure(kernel) == found->second.text, "kernels of one hash differ:\n" + ir::print(kernel) + found->second.text);
#else
    (void)kernel;
#endif
    return Code{std::move(memory), found->second.entry};
  }
  void add(const Hash128& key, const ir::Kernel& kernel, const std::shared_ptr<const void>& memory, BurinKernel entry) {
    const std::lock_guard lock(mutex_);
    all_[key] = {memory, entry, BURIN_ASSERTS ? ir::print_structure(kernel) : ""};
    if (all_.size() < sweep_at_) return;
    std::erase_if(all_, [](const auto& code) { return code.second.memory.expired(); });
    sweep_at_ = std::max<std::size_t>(1024, 2 * all_.size());
  }

 private:
  struct Weak {
    std::weak_ptr<const void> memory;
    BurinKernel entry;
    std::string text;  // the kernel's structure, in builds that check that the hash tells all
  };
  std::mutex mutex_;
  std::map<Hash128, Weak> all_;
  std::size_t sweep_at_ = 1024;
};

LiveCode& live_code() {
  static auto* const all = new LiveCode;
  return *all;
}

std::int64_t weight(const ir::Block& block) {
  std::int64_t sum = 0;
  for (const ir::Stmt& s : block) {
    const bool copies = s.kind == ir::StmtKind::loop && s.loop_kind == ir::LoopKind::unroll && s.hi.size() == 1;
    const std::int64_t times = copies && s.hi[0].is_constant() ? std::max<std::int64_t>(s.hi[0].constant - s.lo.constant, 1) : 1;
    sum += 1 + times * weight(s.body);
  }
  return sum;
}

}  // namespace

std::vector<std::vector<std::size_t>> split(std::span<const ir::Kernel* const> kernels, std::size_t parts) {
  std::vector<std::size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::int64_t> weights;
  for (const ir::Kernel* kernel : kernels) weights.push_back(20 + weight(kernel->body));
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(-weights[i], i); });
  std::vector<std::vector<std::size_t>> result(std::max<std::size_t>(1, std::min(parts, kernels.size())));
  std::vector<std::int64_t> loads(result.size());
  for (std::size_t i : order) {
    const std::size_t least = static_cast<std::size_t>(std::ranges::min_element(loads) - loads.begin());
    result[least].push_back(i);
    loads[least] += weights[i];
  }
  for (auto& part : result) std::ranges::sort(part);
  return result;
}

namespace {

std::string folder_of(const std::string& path) { return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1)); }

/// Runs f(0) to f(n - 1), each on a thread of its own.
template <class F>
void at_once(std::size_t n, const F& f) {
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < n; ++i) threads.emplace_back(f, i);
  if (n > 0) f(0);
  for (std::thread& thread : threads) thread.join();
}

std::vector<CompiledObject> compile_objects(std::span<const ir::Kernel* const> kernels, const ir::Target& target, int num_threads,
                                            std::span<const std::string> texts) {
  const auto parts = split(kernels, static_cast<std::size_t>(num_threads));
  std::vector<CompiledObject> objects(parts.size());
  at_once(parts.size(), [&](std::size_t p) {
    std::vector<const ir::Kernel*> own;
    std::vector<std::string> own_texts;
    for (std::size_t i : parts[p]) {
      own.push_back(kernels[i]);
      if (!texts.empty()) own_texts.push_back(texts[i]);
    }
    objects[p].kernels = parts[p];
    objects[p].bytes = compile_to_object(own, target, &objects[p].symbols, own_texts);
  });
  return objects;
}

}  // namespace

std::shared_ptr<Module> compile(std::span<const ir::Kernel* const> kernels, const ir::Target& target, int num_threads, FileCache* files,
                                const TextOf& text_of) {
  BURIN_CHECK(num_threads >= 1);
  const bool visible = static_cast<bool>(text_of);
  auto module = std::make_shared<LinkedModule>();
  module->entries_.resize(kernels.size());
  std::vector<const ir::Kernel*> missing;
  std::vector<Hash128> keys;        // of the missing ones
  std::vector<std::size_t> places;  // theirs in `kernels`
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Hash128 key = code_key(*kernels[i], target, visible);
    if (const std::optional<LiveCode::Code> code = live_code().find(key, *kernels[i])) {
      module->entries_[i] = code->entry;
      module->memories_.push_back(code->memory);
    } else {
      missing.push_back(kernels[i]);
      keys.push_back(key);
      places.push_back(i);
    }
  }
  if (missing.empty()) return module;

  std::vector<std::string> texts;
  if (visible) {
    files = nullptr;
    for (const ir::Kernel* kernel : missing) texts.push_back(text_of(*kernel));
  }
  std::optional<std::vector<CompiledObject>> objects;
  const Hash128 key = objects_key(keys);
  if (const auto stored = files != nullptr ? files->read(key) : std::nullopt) objects = unpack(*stored, missing.size());
  if (!objects) {
    objects = compile_objects(missing, target, num_threads, texts);
    module->num_compiled_ = objects->size();
    if (files != nullptr) files->write(key, pack(*objects));
  }
  for (const CompiledObject& object : *objects) {
    const auto [memory, entries] = link(object.bytes, object.symbols, visible ? folder_of(texts.front()) : "");
    module->memories_.push_back(memory);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::size_t missed = object.kernels[i];
      module->entries_[places[missed]] = entries[i];
      live_code().add(keys[missed], *missing[missed], memory, entries[i]);
    }
  }
  return module;
}

}  // namespace burin::codegen
