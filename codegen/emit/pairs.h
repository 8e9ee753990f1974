// Sums of products of pairs of bf16 in i32, as ir/kernel/pairs.h defines them. Private to codegen/.
#pragma once

#include "ir/target.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace burin::codegen {

/// sum + left * right for vectors of 4, 8 or 16 pairs: one instruction where the target has one, else what it does, step by step.
llvm::Value* add_pairs(llvm::IRBuilderBase& b, const ir::Target& target, llvm::Value* sum, llvm::Value* left, llvm::Value* right);

/// What a tile instruction sums of one block of k, step by step.
struct PairSums {
  llvm::Value* low;
  llvm::Value* high;
};
PairSums add_pairs(llvm::IRBuilderBase& b, const PairSums& sums, llvm::Value* left, llvm::Value* right);
llvm::Value* added_to(llvm::IRBuilderBase& b, const PairSums& sums, llvm::Value* sum);

}  // namespace burin::codegen
