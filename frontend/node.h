// What a Tensor points to. Inside the frontend only.
#pragma once
#include <cstddef>
#include <memory>
#include <source_location>
#include <string>

#include <burin/trace.h>

#include "ir/function.h"
#include "ir/literal.h"
#include "runtime/buffer.h"
#include "runtime/errors.h"

namespace burin::detail {

struct Node {
  enum class Kind : std::uint8_t {
    number,       // rank 0, from a C++ number; still exact, takes the dtype of what it meets
    concrete,     // bytes
    traced,       // a value of a trace
    abstract,     // shape and dtype only
    donated,      // its bytes went into a call
    no_gradient,  // stands for the gradient of a leaf that has none
  };
  Kind kind = Kind::concrete;
  bool weak = false;
  ir::Type type;
  std::source_location made_at;                // traced: the line; donated: the jit that took it

  std::shared_ptr<runtime::Buffer> buffer;     // concrete
  alignas(8) std::byte inline_bytes[8] = {};   // concrete of rank 0 without a buffer; number, in its own dtype
  bool integral = false;                       // number: which of the two below holds it
  double floating = 0;
  std::int64_t integer = 0;

  std::uint64_t trace = 0;                     // traced
  ir::ValueId value;

  std::string note;                            // leaf path of arguments and gradient-less leaves

  const void* bytes() const { return buffer ? buffer->data() : inline_bytes; }
};

struct Access {
  static const std::shared_ptr<Node>& node(const Tensor& t) { return t.node_; }
  static Tensor make(std::shared_ptr<Node> node) {
    Tensor t;
    t.node_ = std::move(node);
    return t;
  }
};

/// A concrete tensor over `buffer`.
Tensor make_concrete(const ir::Type& type, std::shared_ptr<runtime::Buffer> buffer, bool weak = false);
/// A concrete copy of a literal.
Tensor make_concrete(const ir::Literal& literal, bool weak = false);
/// The same in a buffer that was allocated for it.
Tensor make_concrete(const ir::Literal& literal, std::shared_ptr<runtime::Buffer> buffer, bool weak = false);
/// Memory for what `op` makes, or an error that names op, type and place.
std::shared_ptr<runtime::Buffer> allocate_for(const char* op, const ir::Type& type, const std::source_location& where);
/// The error with the place added to it.
[[noreturn]] void fail_memory(const runtime::OutOfMemory& error, const std::source_location& where);
/// The elements of a concrete tensor (number included).
ir::Literal to_literal(const Tensor& t, const std::source_location& where);
/// The number as a literal of `dtype`; an error when an integer does not fit.
ir::Literal number_literal(const Node& number, DType dtype, const std::source_location& where);
/// The node, after checking that it was given a value and may be used.
const Node& used_node(const Tensor& t, const std::source_location& where);

ir::Location make_location(const std::source_location& where);
/// A traced value for messages: its leaf if it is an argument, its type, the line that made it if it is none.
std::string traced_text(const Node& node);

}  // namespace burin::detail
