// Kernels become a module of LLVM, and objects become callable.
#include "codegen/module.h"

#include <llvm/ExecutionEngine/RTDyldMemoryManager.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
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
#include "codegen/stored_objects.h"
#include "ir/kernel/printer.h"

namespace burin::codegen {

namespace {

std::string plain_symbol(const std::string& name) {
  std::string symbol;
  for (char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    symbol += plain ? c : '_';
  }
  constexpr std::array<std::string_view, 5> taken = {"", "burin_report_index", "memcpy", "memmove", "memset"};
  if (std::ranges::find(taken, symbol) != taken.end() || (symbol[0] >= '0' && symbol[0] <= '9')) symbol = "kernel_" + symbol;
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
                                           std::vector<std::string>* symbols) {
  auto module = std::make_unique<llvm::Module>("kernels", context);
  module->setTargetTriple(machine.getTargetTriple());
  module->setDataLayout(machine.createDataLayout());
  llvm::IRBuilder<> builder(context);
  for (const ir::Kernel* kernel : kernels) {
    std::string symbol = plain_symbol(kernel->name);
    for (int i = 1; module->getNamedValue(symbol) != nullptr; ++i) symbol = plain_symbol(kernel->name) + "_" + std::to_string(i);
    KernelEmitter emitter(builder, *module, *kernel, target, symbol);
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
  return module;
}

// Objects become callable: sections of one module lie in one mapping, within reach of 32-bit displacements.

namespace {

/// One mapping per object: code first, then constants; writable until sealed.
class Memory final : public llvm::RTDyldMemoryManager {
 public:
  ~Memory() override {
    if (base_ != nullptr) munmap(base_, size_);
  }
  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(std::uintptr_t code, llvm::Align code_align, std::uintptr_t constants,
                              llvm::Align constants_align, std::uintptr_t data, llvm::Align data_align) override {
    const std::size_t slack = code_align.value() + constants_align.value() + data_align.value();
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    auto pages = [&](std::size_t bytes) { return (bytes + page - 1) / page * page; };
    // Room beyond the sums, as sections are aligned one by one.
    code_size_ = pages(code + slack + 4096);
    size_ = code_size_ + pages(constants + data + slack + 64 * 64);
    void* map = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    BURIN_CHECK(map != MAP_FAILED, "no memory for machine code");
    base_ = static_cast<std::uint8_t*>(map);
    code_end_ = base_;
    data_end_ = base_ + code_size_;
  }
  std::uint8_t* allocateCodeSection(std::uintptr_t size, unsigned align, unsigned, llvm::StringRef) override {
    return take(&code_end_, base_ + code_size_, size, align);
  }
  std::uint8_t* allocateDataSection(std::uintptr_t size, unsigned align, unsigned, llvm::StringRef, bool) override {
    return take(&data_end_, base_ + size_, size, align);
  }
  bool finalizeMemory(std::string*) override {
    return mprotect(base_, code_size_, PROT_READ | PROT_EXEC) != 0 ||
           mprotect(base_ + code_size_, size_ - code_size_, PROT_READ) != 0;
  }
  // Nothing throws through a kernel.
  void registerEHFrames(std::uint8_t*, std::uint64_t, std::size_t) override {}
  void deregisterEHFrames() override {}
  std::uint64_t getSymbolAddress(const std::string& name) override {
    if (name == "burin_report_index") return reinterpret_cast<std::uint64_t>(&burin_report_index);
    if (name == "memcpy") return reinterpret_cast<std::uint64_t>(static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memcpy));
    if (name == "memmove") return reinterpret_cast<std::uint64_t>(static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memmove));
    if (name == "memset") return reinterpret_cast<std::uint64_t>(static_cast<void* (*)(void*, int, std::size_t)>(&std::memset));
    BURIN_CHECK(false, "machine code refers to " + name);
    return 0;
  }

 private:
  static std::uint8_t* take(std::uint8_t** next, std::uint8_t* end, std::size_t size, std::size_t align) {
    const auto at = (reinterpret_cast<std::uintptr_t>(*next) + align - 1) / align * align;
    *next = reinterpret_cast<std::uint8_t*>(at + size);
    BURIN_CHECK(*next <= end, "machine code outgrew its mapping");
    return reinterpret_cast<std::uint8_t*>(at);
  }
  std::uint8_t* base_ = nullptr;
  std::uint8_t *code_end_ = nullptr, *data_end_ = nullptr;
  std::size_t size_ = 0, code_size_ = 0;
};

/// The entry points of one object, in the order of `symbols`.
std::vector<BurinKernel> link(const std::string& object, const std::vector<std::string>& symbols, Memory& memory) {
  llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> file =
      llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "kernels"));
  if (!file) BURIN_CHECK(false, llvm::toString(file.takeError()));
  llvm::RuntimeDyld linker(memory, memory);
  linker.loadObject(**file);
  BURIN_CHECK(!linker.hasError(), linker.getErrorString().str());
  linker.finalizeWithMemoryManagerLocking();
  BURIN_CHECK(!linker.hasError(), linker.getErrorString().str());
  std::vector<BurinKernel> entries;
  for (const std::string& symbol : symbols) {
    const llvm::JITEvaluatedSymbol found = linker.getSymbol(symbol);
    BURIN_CHECK(found.getAddress() != 0, "no machine code for " + symbol);
    entries.push_back(reinterpret_cast<BurinKernel>(found.getAddress()));
  }
  return entries;
}

class LinkedModule final : public Module {
 public:
  std::span<const BurinKernel> entries() const override { return entries_; }
  bool is_recalled() const override { return recalled_; }

  bool recalled_ = true;
  std::vector<BurinKernel> entries_;
  std::vector<std::shared_ptr<const Memory>> memories_;
};

Hash128 code_key(const ir::Kernel& kernel, const ir::Target& target) {
  Hasher hasher;
  kernel.hash(hasher);
  hasher.add(ir::to_string(target));
  return hasher.finish();
}

/// The machine code that some Module of the process keeps alive, by kernel and target.
class LiveCode {
 public:
  struct Code {
    std::shared_ptr<const Memory> memory;
    BurinKernel entry;
  };
  std::optional<Code> find(const Hash128& key) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(key);
    if (found == all_.end()) return std::nullopt;
    std::shared_ptr<const Memory> memory = found->second.memory.lock();
    if (memory == nullptr) return std::nullopt;
    return Code{std::move(memory), found->second.entry};
  }
  void add(const Hash128& key, const std::shared_ptr<const Memory>& memory, BurinKernel entry) {
    const std::lock_guard lock(mutex_);
    all_[key] = {memory, entry};
    if (all_.size() < sweep_at_) return;
    std::erase_if(all_, [](const auto& code) { return code.second.memory.expired(); });
    sweep_at_ = std::max<std::size_t>(1024, 2 * all_.size());
  }

 private:
  struct Weak {
    std::weak_ptr<const Memory> memory;
    BurinKernel entry;
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

/// Kernels of about equal total weight per part; each part lists positions in `kernels`, in order.
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

/// Runs f(0) to f(n - 1), each on a thread of its own.
template <class F>
void at_once(std::size_t n, const F& f) {
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < n; ++i) threads.emplace_back(f, i);
  if (n > 0) f(0);
  for (std::thread& thread : threads) thread.join();
}

std::vector<CompiledObject> compile_objects(std::span<const ir::Kernel* const> kernels, const ir::Target& target, int num_threads) {
  const auto parts = split(kernels, static_cast<std::size_t>(std::max(num_threads, 1)));
  std::vector<CompiledObject> objects(parts.size());
  at_once(parts.size(), [&](std::size_t p) {
    std::vector<const ir::Kernel*> own;
    for (std::size_t i : parts[p]) own.push_back(kernels[i]);
    objects[p].kernels = parts[p];
    objects[p].bytes = compile_to_object(own, target, &objects[p].symbols);
  });
  return objects;
}

}  // namespace

std::shared_ptr<Module> compile(std::span<const ir::Kernel* const> kernels, const ir::Target& target, int num_threads, FileCache* files) {
  auto module = std::make_shared<LinkedModule>();
  module->entries_.resize(kernels.size());
  std::vector<const ir::Kernel*> missing;
  std::vector<Hash128> keys;        // of the missing ones
  std::vector<std::size_t> places;  // theirs in `kernels`
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Hash128 key = code_key(*kernels[i], target);
    if (const std::optional<LiveCode::Code> code = live_code().find(key)) {
      module->entries_[i] = code->entry;
      module->memories_.push_back(code->memory);
    } else {
      missing.push_back(kernels[i]);
      keys.push_back(key);
      places.push_back(i);
    }
  }
  if (missing.empty()) return module;

  std::optional<std::vector<CompiledObject>> objects;
  const Hash128 key = objects_key(keys);
  if (const auto stored = files != nullptr ? files->read(key) : std::nullopt) objects = unpack(*stored, missing.size());
  if (!objects) {
    objects = compile_objects(missing, target, num_threads);
    module->recalled_ = false;
    if (files != nullptr) files->write(key, pack(*objects));
  }
  for (const CompiledObject& object : *objects) {
    const auto memory = std::make_shared<Memory>();
    const std::vector<BurinKernel> entries = link(object.bytes, object.symbols, *memory);
    module->memories_.push_back(memory);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::size_t missed = object.kernels[i];
      module->entries_[places[missed]] = entries[i];
      live_code().add(keys[missed], memory, entries[i]);
    }
  }
  return module;
}

}  // namespace burin::codegen
