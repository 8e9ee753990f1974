// The loop level. A Kernel is a grid of tasks over buffers with affine accesses and a handful of statement kinds: what
// is computed in which order is settled here, codegen only chooses instructions.
//
//   kernel @rms_norm(in x: f32[32,64], in scale: f32[64], out y: f32[32,64]) tasks (t in 8) {
//     for r in 0..4 {
//       acc %s: f32 sum lanes 16
//       for j in 0..64 vector 16 {
//         %a = load x[4*t + r, j]
//         %b = mul %a, %a : f32
//         accumulate %s, %b
//       }
//       %m = finish %s : f32
//       ...
//       for j in 0..64 vector 16 { ... store y[4*t + r, j], %e }
//     }
//   }
//
// Values are scalars of one iteration. In a `vector W` loop, W iterations run as lanes of one vector; the last, partial
// group runs with its missing lanes switched off. That never changes a result: statements of one iteration see no other
// iteration's values, except through accumulators, whose order is part of the text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "ir/op.h"

namespace burin::ir {

using VarId = Id<struct VarTag>;          // a loop or task index, or a bound index: an integer
using BufferId = Id<struct BufferTag>;    // a parameter, scratch or register tile
using ScalarId = Id<struct ScalarTag>;    // a value of one iteration
using AccId = Id<struct AccTag>;          // an accumulator

/// constant + sum of coefficient * variable. Terms are sorted by variable, coefficients are not 0.
struct Affine {
  std::int64_t constant = 0;
  std::vector<std::pair<VarId, std::int64_t>> terms;

  Affine() = default;
  Affine(std::int64_t c) : constant(c) {}  // NOLINT: a number is an affine expression
  explicit Affine(VarId var, std::int64_t coefficient = 1);
  bool is_constant() const { return terms.empty(); }
  std::int64_t coefficient(VarId var) const;
  friend bool operator==(const Affine&, const Affine&) = default;
};
Affine operator+(const Affine& a, const Affine& b);
Affine operator-(const Affine& a, const Affine& b);
Affine operator*(const Affine& a, std::int64_t factor);
/// a with `var` replaced.
Affine substitute(const Affine& a, VarId var, const Affine& replacement);

enum class Space : std::uint8_t {
  in,       // parameter, only read
  out,      // parameter, written; may be read back by the task that wrote it
  inout,    // parameter, read and written in place
  scratch,  // private to a task, contents undefined at its start
  tile      // registers: private to a task, extents constant, accessed only with constant row after unrolling
};

struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;    // the view that indices refer to
  Ints strides;   // in elements, one per axis; 0 repeats
  Space space = Space::in;

  /// Elements from the first to one past the last reachable one.
  std::int64_t span() const;
};
/// Row-major strides of a shape.
Ints dense_strides(const Shape& shape);

enum class Reduce : std::uint8_t { sum, prod, max, min, bit_and, bit_or };
/// "sum", "prod", "max", "min", "and", "or".
std::string_view name(Reduce reduce);

enum class LoopKind : std::uint8_t { serial, unroll, vector };

enum class StmtKind : std::uint8_t {
  loop,        // for var in lo..min(hi...) [vector W | unroll] { body }
  when,        // if (all conditions >= 0) { body }
  constant,    // result = literal : dtype
  index,       // result = affine : dtype (an integer or float dtype)
  let,         // result = op args : dtype; an elementwise or compare op of ops.def
  load,        // result = load buffer[indices] [if conditions >= 0 else arg]
  store,       // store buffer[indices], arg [if conditions >= 0]
  acc,         // acc: dtype reduce lanes L, every lane starts at the identity of the reduction (lane 0 at arg, if given)
  accumulate,  // lane n mod L of acc = lane op arg; n counts the vector loop's iterations from 0 in each run, else n = 0
  finish,      // result = finish acc: lane[i] op= lane[i + h] for h = L/2, ..., 2, 1; then lane 0, converted to dtype
  bind,        // var = bind arg in 0..extent mode: an integer value becomes an index variable with a known range
  mma          // tile[r,c] += a[...] * b[...] for (r, c, k): factors in the tile's dtype, fused multiply-add, k ascending; factors
               // in u32 are pairs of bf16, whose products are added high half first, subnormals flushed, or block by block of k
               // (ir/kernel/pairs.h)
};

struct Stmt;
using Block = std::vector<Stmt>;

// Every field has an initialiser, so that Stmt{.kind = ...} leaves out the ones its kind does not use.
struct Stmt {
  StmtKind kind = StmtKind::loop;

  // loop, bind: the variable. loop: lo inclusive, hi exclusive (the least of several), width of a vector loop.
  VarId var{};
  Affine lo{};
  std::vector<Affine> hi{};
  LoopKind loop_kind = LoopKind::serial;
  std::int64_t width = 1;  // vector: lanes; acc: lanes
  Block body{};

  // when, load, store: each must be >= 0. A load whose conditions fail gives args[0]; such a store does nothing.
  std::vector<Affine> conditions{};

  ScalarId result{};
  std::vector<ScalarId> args{};
  DType dtype = DType::f32;  // of the result; acc: of the accumulator
  Op op = Op::add;           // let
  Literal literal{};         // constant, rank 0
  Affine value{};            // index

  BufferId buffer{};              // load, store; mma: the tile
  std::vector<Affine> indices{};  // one per axis of the buffer

  AccId acc{};
  Reduce reduce = Reduce::sum;

  // bind: the index is args[0]. mode error: an index outside 0..extent-1 is reported with `site` and 0 used; clip: clamped.
  std::int64_t extent = 0;
  IndexMode mode = IndexMode::clip;
  std::int32_t site = -1;  // row of Kernel::sites

  // mma: tile[r, c] += a[a_indices] * b[b_indices] for r, c in the tile's shape and k in 0..hi[0]; vars bound in the indices.
  VarId row{}, column{}, depth{};
  BufferId a{}, b{};
  std::vector<Affine> a_indices{}, b_indices{};
  std::int64_t block = 0;  // mma of pairs: so many of k at a time, as tile instructions sum them; 0: k by k
};

/// Where an out-of-range index is reported: "gather: index {index} is out of range for axis 0 of f32[32,64]: expected 0 to
/// 31 (model.cpp:42)".
struct Site {
  std::string message;  // with {index} and {extent} as placeholders
};

struct Kernel {
  std::string name;
  std::vector<Buffer> buffers;  // parameters first, in the order of the step's arguments
  std::vector<std::pair<VarId, std::int64_t>> tasks;  // the grid, outermost first; no entry: one task
  Block body;
  std::vector<std::string> var_names;     // by VarId; "" prints as i7
  std::vector<Site> sites;
  std::uint32_t num_scalars = 0, num_accs = 0;
  double cost = 0;  // estimated nanoseconds on one core for all tasks: the scheduler's threading threshold
  // Of one call: floating-point operations and bytes that its ops ask for, whatever the loops do. For profiles.
  std::int64_t flops = 0, bytes = 0;

  std::int64_t num_tasks() const;
  std::size_t num_params() const;
  /// Bytes of scratch that one running task needs, each buffer 64-byte aligned.
  std::int64_t scratch_bytes() const;
  VarId new_var(std::string var_name = "");
  ScalarId new_scalar() { return ScalarId{num_scalars++}; }
  AccId new_acc() { return AccId{num_accs++}; }
  BufferId add_buffer(Buffer buffer);
  /// Structure, not names: equal hashes may share machine code.
  void hash(Hasher& hasher) const;
};

/// parse_kernel(print(k)) is k, names aside. Values are numbered in the order of their definitions.
std::string print(const Kernel& kernel);
/// The text without the names that somebody gave, costs and messages of sites: what kernels of equal hash have in common.
std::string print_structure(const Kernel& kernel);
/// Throws Error ("file:line:column: ...") for text that is no kernel. What it returns is not verified.
Kernel parse_kernel(std::string_view text, std::string_view file = "<text>");
/// "", or the first broken invariant and the statement that breaks it:
///   K1   every id is defined once, before its uses, in a scope around them
///   K2   dtypes agree: of `let` by the op's type rule, of the others exactly; finish alone converts; blocks are of pairs
///   K3   every index lies inside its axis, for all values of the variables that bounds and conditions leave
///   K4   what one task stores into a parameter no other task stores or loads
///   K5   a vector loop holds no mma and no other vector loop; the bounds of loops inside it are the same for all lanes
///   K6   an index of a tile is a number after unrolling; the last one may add the index of a vector loop with known bounds
///   K7   lanes are a power of two up to 64 that divides the vector loop's; 1 elsewhere and for an acc inside the vector loop; one
///        finish, in the block of the acc, ends accumulating
///   K8   `in` parameters are not stored to; mma adds to a tile of two axes
///   K9   numbers make sense (strides >= 0, bounds of unrolled loops known, ...) and are bounded, as docs/kernel.md lists
///   K10  a bind with mode error names a site
///   K11  what one iteration of a vector loop stores no other iteration stores or loads
///   K12  scratch and tiles are loaded (mma loads its tile) behind a store to them, in the order of the text
/// K3, K4 and K11 must be proven: a kernel may be refused that would run well.
std::string verify(const Kernel& kernel);

}  // namespace burin::ir
