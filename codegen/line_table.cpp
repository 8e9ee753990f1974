#include "codegen/line_table.h"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <vector>

#include "ir/kernel/printer.h"

namespace burin::codegen {
namespace {

// In the order of the text.
void number(const ir::Block& block, const std::vector<unsigned>& lines, std::size_t* next,
            std::unordered_map<const ir::Stmt*, unsigned>* numbered) {
  for (const ir::Stmt& s : block) {
    numbered->emplace(&s, lines.at((*next)++));
    number(s.body, lines, next, numbered);
  }
}

}  // namespace

LineTable::LineTable(llvm::Module& module) : module_(module), builder_(std::make_unique<llvm::DIBuilder>(module)) {
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  module.addModuleFlag(llvm::Module::Warning, "Dwarf Version", 4);
}

LineTable::~LineTable() = default;

void LineTable::start(llvm::Function& function, const ir::Kernel& kernel, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const bool has_folder = slash != std::string::npos;
  llvm::DIFile* file =
      builder_->createFile(has_folder ? path.substr(slash + 1) : path, has_folder ? path.substr(0, slash) : ".");
  // Debuggers know C, and there is nothing to evaluate.
  if (unit_ == nullptr)
    unit_ =
        builder_->createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C99), file, "burin", true, "", 0);
  kernel_ = builder_->createFunction(file, function.getName(), function.getName(), file, 1,
                                     builder_->createSubroutineType(builder_->getOrCreateTypeArray({})), 1,
                                     llvm::DINode::FlagZero,
                                     llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
  function.setSubprogram(kernel_);
  lines_.clear();
  std::size_t next = 0;
  number(kernel.body, ir::statement_lines(kernel), &next, &lines_);
}

void LineTable::go_to(llvm::IRBuilderBase& builder, const ir::Stmt* statement) {
  const unsigned line = statement == nullptr ? 1 : lines_.at(statement);
  builder.SetCurrentDebugLocation(llvm::DILocation::get(module_.getContext(), line, 0, kernel_));
}

void LineTable::finish() { builder_->finalize(); }

}  // namespace burin::codegen
