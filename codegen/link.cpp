// Objects become callable: sections of one module lie in one mapping, within reach of 32-bit displacements.
#include "codegen/link.h"

#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/ExecutionEngine/JITEventListener.h>
#include <llvm/ExecutionEngine/RTDyldMemoryManager.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Object/SymbolSize.h>
#include <llvm/Support/MemoryBuffer.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/message_ids.h"
#include "codegen/perf_files.h"

namespace burin::codegen {
namespace {

/// Those who want to know of code: gdb, through LLVM's listener, and perf. (LLVM's listener for perf adds the size of an ELF header to the
/// addresses of lines, which perf has come to do itself.)
class Listeners {
 public:
  static Listeners& instance() {
    static auto* const all = new Listeners;
    return *all;
  }

  void announce(std::uint64_t key, const llvm::object::ObjectFile& object, const llvm::RuntimeDyld::LoadedObjectInfo& loaded,
                const std::string& folder) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (!perf_) perf_ = std::make_unique<PerfFiles>(folder);
    const llvm::object::OwningBinary<llvm::object::ObjectFile> placed = loaded.getObjectForDebug(object);
    tell_perf(*placed.getBinary());
    gdb_->notifyObjectLoaded(key, object, loaded);
  }
  void withdraw(std::uint64_t key) {
    const std::lock_guard lock(mutex_);
    if (!ended_) gdb_->notifyFreeingObject(key);
  }

 private:
  Listeners() : gdb_(llvm::JITEventListener::createGDBRegistrationListener()) {
    // A static object of LLVM's, which is gone before code that static objects hold. This runs before it goes.
    std::atexit([] {
      Listeners& all = instance();
      const std::lock_guard lock(all.mutex_);
      all.ended_ = true;
    });
  }

  void tell_perf(const llvm::object::ObjectFile& object) {
    const std::unique_ptr<llvm::DIContext> context = llvm::DWARFContext::create(object);
    for (const auto& [symbol, size] : llvm::object::computeSymbolSizes(object)) {
      if (llvm::cantFail(symbol.getType()) != llvm::object::SymbolRef::ST_Function) continue;
      const std::uint64_t address = llvm::cantFail(symbol.getAddress());
      const llvm::object::SectionedAddress start{address, llvm::cantFail(symbol.getSection())->getIndex()};
      std::vector<PerfLine> lines;
      for (const auto& [at, info] :
           context->getLineInfoForAddressRange(start, size, llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath)) {
        // 0: of no single statement. That is the kernel's first line here, as perf attributes every instruction to some.
        PerfLine line{at, std::max(info.Line, 1u), info.FileName};
        if (lines.empty() || lines.back().number != line.number) lines.push_back(std::move(line));
      }
      const std::string name = llvm::cantFail(symbol.getName()).str();
      perf_->add(name, {reinterpret_cast<const std::uint8_t*>(address), static_cast<std::size_t>(size)}, lines);
    }
  }

  std::mutex mutex_;
  bool ended_ = false;
  llvm::JITEventListener* gdb_;
  std::unique_ptr<PerfFiles> perf_;
};

/// One mapping per object: code first, then constants; writable until sealed.
class Memory final : public llvm::RTDyldMemoryManager {
 public:
  ~Memory() override {
    if (visible_) Listeners::instance().withdraw(key());
    if (mapped_)
      munmap(base_, size_);
    else
      std::free(base_);
  }
  /// errno of what the system refused; nothing here can be called then.
  int error() const { return error_; }
  void show(const llvm::object::ObjectFile& object, const llvm::RuntimeDyld::LoadedObjectInfo& loaded, const std::string& folder) {
    Listeners::instance().announce(key(), object, loaded, folder);
    visible_ = true;
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
    mapped_ = map != MAP_FAILED;
    if (!mapped_) {  // the linker takes no failure here: it works on memory that nobody will call
      error_ = errno;
      map = std::aligned_alloc(page, size_);
      BURIN_CHECK(map != nullptr, "no memory to link in");
    }
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
    // The linker asks nobody whether this went well.
    if (mapped_ && (mprotect(base_, code_size_, PROT_READ | PROT_EXEC) != 0 || mprotect(base_ + code_size_, size_ - code_size_, PROT_READ) != 0))
      error_ = errno;
    return false;
  }
  // Nothing throws through a kernel.
  void registerEHFrames(std::uint8_t*, std::uint64_t, std::size_t) override {}
  void deregisterEHFrames() override {}
  std::uint64_t getSymbolAddress(const std::string& name) override {
    if (name == "burin_report_index") return reinterpret_cast<std::uint64_t>(&burin_report_index);
    if (name == "memcpy")
      return reinterpret_cast<std::uint64_t>(static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memcpy));
    if (name == "memmove")
      return reinterpret_cast<std::uint64_t>(static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memmove));
    if (name == "memset")
      return reinterpret_cast<std::uint64_t>(static_cast<void* (*)(void*, int, std::size_t)>(&std::memset));
    BURIN_CHECK(false, "machine code refers to " + name);
    return 0;
  }

 private:
  std::uint64_t key() const { return reinterpret_cast<std::uintptr_t>(this); }
  static std::uint8_t* take(std::uint8_t** next, std::uint8_t* end, std::size_t size, std::size_t align) {
    const auto at = (reinterpret_cast<std::uintptr_t>(*next) + align - 1) / align * align;
    *next = reinterpret_cast<std::uint8_t*>(at + size);
    BURIN_CHECK(*next <= end, "machine code outgrew its mapping");
    return reinterpret_cast<std::uint8_t*>(at);
  }
  std::uint8_t* base_ = nullptr;
  std::uint8_t *code_end_ = nullptr, *data_end_ = nullptr;
  std::size_t size_ = 0, code_size_ = 0;
  bool visible_ = false, mapped_ = false;
  int error_ = 0;
};

}  // namespace

LinkedObject link(const std::string& object, const std::vector<std::string>& symbols, const std::string& perf_folder) {
  llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> file =
      llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "kernels"));
  if (!file) BURIN_CHECK(false, llvm::toString(file.takeError()));
  const auto memory = std::make_shared<Memory>();
  llvm::RuntimeDyld linker(*memory, *memory);
  const std::unique_ptr<llvm::RuntimeDyld::LoadedObjectInfo> loaded = linker.loadObject(**file);
  BURIN_CHECK(!linker.hasError(), linker.getErrorString().str());
  linker.finalizeWithMemoryManagerLocking();
  BURIN_CHECK(!linker.hasError(), linker.getErrorString().str());
  if (memory->error() != 0) fail(Msg::no_code_memory, std::strerror(memory->error()));
  LinkedObject linked{memory, {}};
  for (const std::string& symbol : symbols) {
    const llvm::JITEvaluatedSymbol found = linker.getSymbol(symbol);
    BURIN_CHECK(found.getAddress() != 0, "no machine code for " + symbol);
    linked.entries.push_back(reinterpret_cast<BurinKernel>(found.getAddress()));
  }
  if (!perf_folder.empty()) memory->show(**file, *loaded, perf_folder);
  return linked;
}

}  // namespace burin::codegen
