#include <burin/tensor.h>

#include <cmath>
#include <cstring>

#include "base/counted.h"
#include "base/message_ids.h"
#include "base/place.h"
#include "frontend/node.h"
#include "frontend/promote.h"
#include "runtime/small_blocks.h"

namespace burin {

using detail::Access;
using detail::Node;

namespace {

std::shared_ptr<Node> new_number(DType dtype, bool weak) {
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::number;
  node->type = ir::Type{dtype, {}};
  node->weak = weak;
  return node;
}

void store_inline(Node& node) {
  const ir::Literal value = node.integral ? ir::Literal::scalar_int(node.type.dtype, node.integer)
                                          : ir::Literal::scalar(node.type.dtype, node.floating);
  std::memcpy(node.inline_bytes, value.raw().data(), value.raw().size());
}

// Concrete elements of a tensor, or an error that says what to do instead.
const Node& concrete_node(const Tensor& t, const Tensor::Where& where) {
  const Node& node = detail::used_node(t, where);
  if (node.kind == Node::Kind::traced) fail_at(detail::where_text(where), Msg::traced_value_read, detail::traced_text(node),
            node.type.dtype == DType::bool_ ? " and `&`, `|` instead of `&&`, `||`" : "");
  if (node.kind == Node::Kind::abstract)
    fail_at(detail::where_text(where), Msg::abstract_value_read, to_string(node.type));
  return node;
}

}  // namespace

namespace detail {

std::string traced_text(const Node& node) {
  std::string text = node.note.empty() ? to_string(node.type) : node.note + ", " + to_string(node.type);
  if (node.made_at.line() != 0) text += ", made at " + place_text(node.made_at);  // an argument is made at no line
  return text;
}

const Node& used_node(const Tensor& t, const std::source_location& where) {
  const auto& node = Access::node(t);
  if (!node) fail_at(where_text(where), Msg::tensor_without_value);
  if (node->kind == Node::Kind::donated) fail_at(where_text(where), Msg::tensor_donated, to_string(node->type), place_text(node->made_at));
  if (node->kind == Node::Kind::no_gradient)
    fail_at(where_text(where), Msg::leaf_without_gradient, node->note, to_string(node->type));
  return *node;
}

Tensor make_concrete(const ir::Type& type, std::shared_ptr<runtime::Buffer> buffer, bool weak) {
  auto node = std::allocate_shared<Node>(runtime::SmallBlockAllocator<Node>());
  node->type = type;
  node->buffer = std::move(buffer);
  node->weak = weak;
  return Access::make(std::move(node));
}

void fail_memory(const runtime::OutOfMemory& error, const std::source_location& where) {
  fail_at(where_text(where), Msg::out_of_memory, error.bytes, static_cast<double>(error.bytes) / 1048576.0);
}

std::shared_ptr<runtime::Buffer> allocate_for(const char* op, const ir::Type& type, const std::source_location& where) {
  try {
    return runtime::Buffer::allocate(type.bytes());
  } catch (const runtime::OutOfMemory& error) {
    fail_at(where_text(where), Msg::maker_memory, op, to_string(type), error.bytes, static_cast<double>(error.bytes) / 1048576.0);
  }
}

Tensor make_concrete(const ir::Literal& literal, bool weak) {
  auto buffer = runtime::Buffer::allocate(literal.type().bytes());  // before the copy, as it says what does not fit
  return make_concrete(literal, std::move(buffer), weak);
}

Tensor make_concrete(const ir::Literal& literal, std::shared_ptr<runtime::Buffer> buffer, bool weak) {
  ir::Literal full = literal;
  full.expand();
  if (!full.raw().empty()) std::memcpy(buffer->data(), full.raw().data(), full.raw().size());
  return make_concrete(full.type(), std::move(buffer), weak);
}

ir::Literal to_literal(const Tensor& t, const std::source_location& where) {
  const Node& node = concrete_node(t, where);
  return ir::Literal(node.type, {static_cast<const std::byte*>(node.bytes()), static_cast<std::size_t>(node.type.bytes())});
}

ir::Literal number_literal(const Node& number, DType dtype, const std::source_location& where) {
  if (!number.integral) return ir::Literal::scalar(dtype, number.floating);
  const ir::Literal value = ir::Literal::scalar_int(dtype, number.integer);
  if (is_int(dtype) && value.int_at(0) != number.integer)
    fail_at(where_text(where), Msg::number_does_not_fit, number.integer, name(dtype));
  return value;
}

void fail_ragged(std::source_location where) { fail_at(where_text(where), Msg::tensor_ragged); }

Tensor from_bytes(const void* data, std::size_t count, DType from, DType dtype, const IntList& dims,
                  std::source_location where) {
  const Shape shape = checked_shape("tensor", dims, dtype, where);
  if (static_cast<std::int64_t>(count) != shape.size())
    fail_at(where_text(where), Msg::tensor_element_count, counted(count, "element"), to_string(shape), shape.size());
  const ir::Type type{from, shape};
  const auto bytes = static_cast<std::size_t>(type.bytes());
  auto buffer = allocate_for("tensor", ir::Type{dtype, shape}, where);
  if (from == dtype) {
    if (bytes > 0) std::memcpy(buffer->data(), data, bytes);
    return make_concrete(type, std::move(buffer));
  }
  const ir::Literal given(type, {static_cast<const std::byte*>(data), bytes});
  ir::Literal result(ir::Type{dtype, shape});
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    if (is_float(from)) result.set(i, given.at(i));
    else if (is_float(dtype)) result.set(i, static_cast<double>(given.int_at(i)));
    else {
      result.set_int(i, given.int_at(i));
      if (dtype != DType::bool_ && result.int_at(i) != given.int_at(i))
        fail_at(where_text(where), Msg::number_does_not_fit, given.int_at(i), name(dtype));
    }
  }
  return make_concrete(result, std::move(buffer));
}

}  // namespace detail

void Tensor::set_bool(bool value) {
  node_ = new_number(DType::bool_, false);
  node_->integral = true;
  node_->integer = value;
  store_inline(*node_);
}
void Tensor::set_float(double value) {
  node_ = new_number(DType::f32, true);
  node_->floating = value;
  store_inline(*node_);
}
void Tensor::set_int(std::int64_t value) {
  const bool small = value == static_cast<std::int32_t>(value);
  node_ = new_number(small ? DType::i32 : DType::i64, true);
  node_->integral = true;
  node_->integer = value;
  store_inline(*node_);
}
void Tensor::set_unsigned(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    fail(Msg::number_does_not_fit, value, "i64");
  set_int(static_cast<std::int64_t>(value));
}

bool Tensor::traced() const { return node_ && node_->kind == Node::Kind::traced; }
Shape Tensor::shape(Where where) const { return detail::used_node(*this, where).type.shape; }
DType Tensor::dtype(Where where) const { return detail::used_node(*this, where).type.dtype; }
bool Tensor::weak(Where where) const { return detail::used_node(*this, where).weak; }

void Tensor::copy_shape(std::span<std::int64_t> dims, Where where) const {
  const Node& node = detail::used_node(*this, where);
  const Shape& shape = node.type.shape;
  if (shape.rank() != dims.size())
    fail_at(detail::where_text(where), Msg::shape_rank, counted(dims.size(), "axis", "axes"), to_string(node.type), shape.rank());
  std::copy(shape.begin(), shape.end(), dims.begin());
}

double Tensor::item_double(Where where) const {
  const Node& node = concrete_node(*this, where);
  if (node.type.size() != 1) fail_at(detail::where_text(where), Msg::item_of_many, to_string(node.type));
  if (node.kind == Node::Kind::number) return node.integral ? static_cast<double>(node.integer) : node.floating;
  return detail::to_literal(*this, where).at(0);
}

std::int64_t Tensor::item_int(Where where) const {
  const Node& node = concrete_node(*this, where);
  if (node.type.size() != 1) fail_at(detail::where_text(where), Msg::item_of_many, to_string(node.type));
  if (is_float(node.type.dtype)) return static_cast<std::int64_t>(item_double(where));
  return detail::to_literal(*this, where).int_at(0);
}

const void* Tensor::raw(DType dtype, Where where) const {
  const Node& node = concrete_node(*this, where);
  if (node.type.dtype != dtype)
    fail_at(detail::where_text(where), Msg::data_dtype, name(dtype), to_string(node.type));
  return node.bytes();
}

void Tensor::fail_no_room(std::size_t element_bytes, Where where) const {
  const Node& node = detail::used_node(*this, where);
  const std::int64_t bytes = node.type.size() * static_cast<std::int64_t>(element_bytes);
  fail_at(detail::where_text(where), Msg::maker_memory, "to_vector", to_string(node.type), bytes, static_cast<double>(bytes) / 1048576.0);
}

void Tensor::copy_elements(void* to, DType dtype, Where where) const {
  const Node& node = concrete_node(*this, where);
  const std::int64_t n = node.type.size();
  const std::size_t bytes = static_cast<std::size_t>(n) * size_of(dtype);
  if (bytes == 0) return;
  if (node.type.dtype == dtype) {
    std::memcpy(to, node.bytes(), bytes);
    return;
  }
  const ir::Literal all = detail::to_literal(*this, where);
  ir::Literal converted(ir::Type{dtype, node.type.shape});
  const bool through_double = is_float(node.type.dtype) || is_float(dtype);
  for (std::int64_t i = 0; i < n; ++i) {
    if (through_double) converted.set(i, all.at(i));
    else converted.set_int(i, all.int_at(i));
  }
  std::memcpy(to, converted.raw().data(), bytes);
}

Tensor abstract_tensor(const IntList& shape, DType dtype, std::source_location where) {
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::abstract;
  node->type = ir::Type{dtype, detail::checked_shape("abstract_tensor", shape, dtype, where)};
  return Access::make(std::move(node));
}

}  // namespace burin
