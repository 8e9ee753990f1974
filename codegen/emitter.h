// KernelEmitter: one Kernel becomes one LLVM function, statement by statement. Private to codegen/.
//
// A scalar of the kernel is an LLVM scalar where all iterations of the enclosing vector loop agree on it (`varying` is
// false), and an LLVM vector with one lane per iteration where they may not. LLVM splits vectors that are wider than
// the machine's. Missing lanes of the last group are switched off by mask_: loads give 0 there, stores and
// accumulators keep the old value, index errors are not reported.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/target.h"

namespace llvm {
class AllocaInst;
class Function;
class IRBuilderBase;
class MDNode;
class Module;
class Type;
class Value;
}  // namespace llvm

namespace burin::codegen {

class LineTable;

/// A scalar of the kernel in registers. bool is i1; half types are i16 bits as loaded, or the exact f32 (`wide`) as
/// computed: a value that is only moved keeps its bits, and a chain of operations converts at its ends alone.
struct Register {
  llvm::Value* value = nullptr;
  DType dtype = DType::f32;
  bool varying = false;
  bool wide = false;
};

/// An index: uniform + lane * (number of the lane) + varying, in i64. `varying` may be null.
struct Index {
  llvm::Value* uniform = nullptr;
  std::int64_t lane = 0;
  llvm::Value* varying = nullptr;
  bool is_uniform() const { return lane == 0 && varying == nullptr; }
};

class KernelEmitter {
 public:
  /// Adds the function `symbol` to the module. With `lines`, instructions say which line of the file `text` they come from.
  KernelEmitter(llvm::IRBuilderBase& builder, llvm::Module& module, const ir::Kernel& kernel, const ir::Target& target,
                const std::string& symbol, LineTable* lines = nullptr, const std::string& text = {});
  llvm::Function* emit();

  const ir::Kernel& kernel() const { return kernel_; }
  const ir::Target& target() const { return target_; }
  /// Which one is being emitted; null before the first and after the last.
  const ir::Stmt* statement() const { return statement_; }

 private:
  using Stmt = ir::Stmt;

  // emit_kernel.cpp: the frame around the body, and the statements that need no room of their own
  void emit_tasks();
  void bind_buffers();
  void emit_block(const ir::Block& block);
  void go_to(const Stmt* s);
  void emit_stmt(const Stmt& s);
  void emit_constant(const Stmt& s);
  void emit_let(const Stmt& s);
  void set(ir::ScalarId id, Register r);
  const Register& get(ir::ScalarId id) const;
  /// A vector with a lane per iteration when the block is vectorised, else the scalar.
  llvm::Value* spread(llvm::Value* uniform);
  Register spread(Register r);
  Register widened(Register r);            // half types: as f32
  llvm::Value* storable(const Register& r);  // as it lies in memory: bool as i8, half types as i16
  Register from_memory(llvm::Value* stored, DType dtype, bool varying);
  llvm::Type* register_type(DType dtype);
  llvm::Type* memory_type(DType dtype);
  llvm::Type* vector_type(llvm::Type* element, std::int64_t lanes);
  llvm::AllocaInst* allocate(llvm::Type* type, const std::string& name);
  llvm::Value* i64(std::int64_t value);

  // emit_memory.cpp: indices
  /// With `apart`, the constant part is added there instead.
  Index evaluate(const ir::Affine& affine, std::int64_t* apart = nullptr);
  /// The index in every lane, in i64; a scalar when the block is not vectorised.
  llvm::Value* expand(const Index& index);
  /// i1 (uniform) or a vector of i1: all conditions hold. Null when there are none.
  llvm::Value* all_hold(std::span<const ir::Affine> conditions, bool* varying);
  void emit_index(const Stmt& s);
  void emit_bind(const Stmt& s);
  void report_uniform(const Stmt& s, const Register& index, llvm::Value* bad);
  void report_lanes(const Stmt& s, const Register& index, llvm::Value* bad);
  void call_report(const Stmt& s, llvm::Value* index, DType dtype);
  template <class F>
  void unlikely(llvm::Value* condition, F&& f);

  // emit_kernel.cpp: loops
  void emit_loop(const Stmt& s);
  void emit_serial(const Stmt& s);
  void emit_unrolled(const Stmt& s);
  void emit_vector(const Stmt& s);
  void emit_vector_unrolled(const Stmt& s, std::int64_t lo, std::int64_t hi);
  void emit_group(const Stmt& s, llvm::Value* first, llvm::Value* mask);
  void emit_when(const Stmt& s);
  llvm::Value* upper_bound(const Stmt& s);
  std::optional<std::int64_t> constant_value(const ir::Affine& affine) const;
  std::optional<std::int64_t> constant_upper_bound(const Stmt& s, bool* only) const;
  bool touches_tile(const ir::Block& block) const;
  /// f is emitted in a block that runs where the condition holds.
  template <class F>
  void guarded(llvm::Value* condition, F&& f);
  template <class F>
  void counted(llvm::Value* lo, llvm::Value* hi, std::int64_t step, const std::string& name, F&& f);

  // emit_memory.cpp: elements
  void emit_load(const Stmt& s);
  void emit_store(const Stmt& s);
  /// Element of lane 0, and how the other lanes lie from there.
  struct Address {
    llvm::Value* pointer;
    Index lanes;  // its uniform part is 0
  };
  Address address_of(ir::BufferId buffer, std::span<const ir::Affine> indices);
  /// In elements; a tile's strides are codegen's own.
  ir::Affine offset_of(const ir::Buffer& buffer, std::span<const ir::Affine> indices) const;
  llvm::Value* load_uniform(ir::BufferId buffer, llvm::Value* pointer);
  llvm::Value* load_guarded(ir::BufferId buffer, llvm::Value* pointer, llvm::Value* condition, llvm::Value* otherwise);
  llvm::Value* load_lanes(ir::BufferId buffer, const Address& address, llvm::Value* mask);
  void store_lanes(ir::BufferId buffer, const Address& address, llvm::Value* value, llvm::Value* mask);
  llvm::Value* annotate(llvm::Value* access, ir::BufferId buffer);
  llvm::Value* lane_numbers(llvm::Type* integer);
  llvm::Value* combine_masks(llvm::Value* a, llvm::Value* b);

  // emit_memory.cpp: blocks turned in registers
  /// Whether the stores of an unrolled loop of `count` iterations are better written a block at a time.
  bool stores_transposed(const Stmt& loop, std::int64_t count) const;
  std::size_t transposed_block() const;
  void flush_transposed();

  // emit_accumulate.cpp: accumulators
  void emit_acc(const Stmt& s);
  void emit_accumulate(const Stmt& s);
  void emit_finish(const Stmt& s);
  llvm::Value* combine(const Stmt& acc, llvm::Value* a, llvm::Value* b);

  // emit_accumulate.cpp: tiles of products
  void emit_mma(const Stmt& s);
  /// Where a factor lies: an address for row = column = depth = 0, and what each index adds to it, in elements.
  struct Operand {
    ir::BufferId buffer;
    llvm::Value* base = nullptr;
    std::int64_t per_row = 0, per_column = 0, per_depth = 0;
  };
  Operand operand_of(const Stmt& s, ir::BufferId buffer, std::span<const ir::Affine> indices);
  /// `width` elements from `pointer` on along the columns, of which the first `left` are there, as they lie in memory.
  llvm::Value* load_columns(const Operand& o, llvm::Value* pointer, std::int64_t width, std::int64_t left);

  /// A loop over all of an extent of a tile.
  static bool runs_over(const Stmt& s, std::int64_t extent) {
    return s.kind == ir::StmtKind::loop && s.lo == ir::Affine(0) && s.hi == std::vector<ir::Affine>{extent};
  }
  /// An access to memory in a loop over all rows and columns of a tile.
  struct TileCopy {
    const Stmt* access = nullptr;
    ir::VarId row, column;
  };
  Operand operand_of(const TileCopy& copy);

  // emit_prefetch.cpp: memory that is needed behind a product
  /// Rows of memory as far apart as those of a tile are.
  struct Ahead {
    llvm::Value* base;
    std::int64_t row_bytes, bytes;
  };
  /// What loops over the product's tile behind it read and write in parameters.
  std::vector<Ahead> read_behind(const Stmt& mma);
  /// In step number `step` of so many.
  void prefetch(std::span<const Ahead> ahead, std::int64_t rows, llvm::Value* step, std::int64_t steps);
  std::span<const Stmt> behind_;  // what follows the statement in its block
  /// In step number `step` of a product: some of what the next round of a loop around it reads of the operand, which is now `at`; of so many
  /// rows or columns.
  void prefetch_next(const Operand& o, std::span<const ir::Affine> indices, std::int64_t extent, llvm::Value* at, llvm::Value* step, std::int64_t steps);
  void prefetch_line(llvm::Value* pointer);
  std::vector<ir::VarId> open_loops_;  // serial ones, the outermost first

  // emit_tiles.cpp: products by blocks of k
  /// How the registers of a product start and where they go, when loops beside it do nothing but clear or copy its tile.
  struct TileMoves {
    bool cleared = false;
    bool goes_on = false;  // from the registers of the product before it
    TileCopy from, to;
    bool stored = false;  // to the memory that stands for the tile, as somebody reads it
  };
  /// Those products of the kernel that are tile instructions.
  struct TilePlan {
    std::map<const Stmt*, TileMoves> products;
    std::set<const Stmt*> done;  // loops that are part of their moves
  };
  const TilePlan& tile_plan();
  void choose_tiles(const ir::Block& block, std::map<std::pair<std::int64_t, std::int64_t>, int>& registers);
  void find_moves(const ir::Block& block);
  void find_readers(const ir::Block& block, std::vector<std::pair<const Stmt*, std::span<const Stmt>>>& around);
  bool uses_tiles(const Stmt& s) { return target_.multiplies_tiles() && tile_plan().products.contains(&s); }
  bool is_done_by_tiles(const Stmt& s) { return target_.multiplies_tiles() && tile_plan().done.contains(&s); }
  /// Two loops over all rows and columns of a tile that hold `first`, and a store of what it gives that always takes place.
  struct Nest {
    const Stmt *first, *store;
    ir::VarId row, column;
  };
  static std::optional<Nest> nest_over(const Stmt& loop, const Shape& shape);
  void emit_tile_mma(const Stmt& s);
  std::vector<llvm::Value*> tile_registers_;  // that the last product gave
  void emit_block_mma(const Stmt& s);

  struct DelayedStore {
    Address address;
    llvm::Value* value;
  };
  struct Place {
    llvm::Value* pointer = nullptr;
    llvm::MDNode* scope = nullptr;
    llvm::MDNode* others = nullptr;
    std::int64_t row_stride = 0;  // tile: elements from row to row
  };
  struct Accumulator {
    const Stmt* stmt = nullptr;
    llvm::AllocaInst* slot = nullptr;
    bool per_iteration = false;  // declared inside the vector loop: each lane is an accumulator of its own
  };
  struct Variable {
    Index index;
    std::uint32_t depth = 0;  // order of definition: outer variables first
  };

  llvm::IRBuilderBase& b_;
  llvm::Module& module_;
  const ir::Kernel& kernel_;
  const Stmt* statement_ = nullptr;
  LineTable* lines_;
  const ir::Target& target_;
  llvm::Function* function_ = nullptr;
  llvm::Value* task_ = nullptr;
  llvm::Value* status_ = nullptr;
  std::vector<Place> places_;
  std::vector<Variable> variables_;
  std::vector<Register> scalars_;
  std::vector<Accumulator> accumulators_;
  std::vector<std::pair<const Stmt*, std::vector<DelayedStore>>> delayed_;
  bool delays_stores_ = false;
  std::optional<TilePlan> tile_plan_;
  std::uint32_t next_depth_ = 0;
  std::int64_t lanes_ = 1;         // width of the vector loop around this point, else 1
  llvm::Value* mask_ = nullptr;    // null: every lane runs
};

}  // namespace burin::codegen
