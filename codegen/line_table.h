// Which line of a Kernel's printed text an instruction comes from, as debug information of its module. Private to
// codegen/.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>

#include "ir/kernel/kernel.h"

namespace llvm {
class DIBuilder;
class DICompileUnit;
class DILocation;
class DISubprogram;
class Function;
class IRBuilderBase;
class Module;
}  // namespace llvm

namespace burin::codegen {

class LineTable {
 public:
  explicit LineTable(llvm::Module& module);
  ~LineTable();
  LineTable(const LineTable&) = delete;
  LineTable& operator=(const LineTable&) = delete;

  /// What is asked from here on is about this kernel, whose text is the file `path`.
  void start(llvm::Function& function, const ir::Kernel& kernel, const std::string& path);
  /// What the builder emits next belongs to the statement; null: to the kernel's first line.
  void go_to(llvm::IRBuilderBase& builder, const ir::Stmt* statement);
  /// After the last kernel.
  void finish();

 private:
  llvm::Module& module_;
  std::unique_ptr<llvm::DIBuilder> builder_;
  llvm::DICompileUnit* unit_ = nullptr;
  llvm::DISubprogram* kernel_ = nullptr;
  std::unordered_map<const ir::Stmt*, unsigned> lines_;
};

}  // namespace burin::codegen
