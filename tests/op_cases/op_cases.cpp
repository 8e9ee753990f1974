#include "tests/op_cases/op_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "tests/support/literals.h"
#include "tests/support/values.h"

namespace burin::op_cases {

Entry entry(Op op) {
  switch (family_of(op)) {
    case Family::elementwise: return elementwise_entry(op);
    case Family::compare: return compare_entry(op);
    case Family::reduce: return reduce_entry(op);
    case Family::movement: return movement_entry(op);
    case Family::contract: return contract_entry(op);
    case Family::index: return index_entry(op);
    case Family::structure: return structure_entry(op);
  }
  return {};
}

Arg within(const Type& type, double low, double high) {
  if (!is_float(type.dtype)) {
    low = std::ceil(low);
    high = std::floor(high);
    if (type.dtype == DType::bool_ || is_unsigned_int(type.dtype)) low = std::max(low, 0.0);
    if (type.dtype == DType::bool_) high = 1;
    high = std::max(high, low);
  }
  return {type, [=](std::uint64_t seed) { return test::spread(type, low, high, seed); }};
}

Arg exactly(const Literal& value) {
  return {value.type(), [=](std::uint64_t) { return value; }};
}

Arg exactly(DType dtype, const Shape& shape, std::string_view words) {
  return exactly(test::values(dtype, shape, words));
}

Literal extremes(DType dtype) {
  const auto float_words = [](const char* largest, const char* normal, const char* denormal) {
    return std::string("0 -0 1 -1 2.5 inf -inf nan ") + largest + " -" + largest + " " + normal + " " + denormal + " -" +
           denormal;
  };
  switch (dtype) {
    case DType::f64: return test::values(dtype, float_words("0x1.fffffffffffffp1023", "0x1p-1022", "0x1p-1074"));
    case DType::f32: return test::values(dtype, float_words("0x1.fffffep127", "0x1p-126", "0x1p-149"));
    case DType::bf16: return test::values(dtype, float_words("0x1.fep127", "0x1p-126", "0x1p-133"));
    case DType::f16: return test::values(dtype, float_words("65504", "0x1p-14", "0x1p-24"));
    case DType::i8: return test::values(dtype, "0 1 -1 2 127 -128 -127");
    case DType::i16: return test::values(dtype, "0 1 -1 2 32767 -32768");
    case DType::i32: return test::values(dtype, "0 1 -1 2 31 32 0x7fffffff -2147483648");
    case DType::i64: return test::values(dtype, "0 1 -1 2 63 64 0x7fffffffffffffff -9223372036854775808");
    case DType::u8: return test::values(dtype, "0 1 2 7 8 128 255");
    case DType::u16: return test::values(dtype, "0 1 2 16 32768 65535");
    case DType::u32: return test::values(dtype, "0 1 2 32 0x80000000 0xffffffff");
    case DType::u64: return test::values(dtype, "0 1 2 64 0x8000000000000000 0xffffffffffffffff");
    case DType::bool_: return test::values(dtype, "0 1");
  }
  return {};
}

Arg repeated_extremes(const Type& type, std::int64_t first) {
  const Literal each = extremes(type.dtype);
  Literal value(type);
  const std::size_t width = size_of(type.dtype);
  for (std::int64_t i = 0; i < type.size(); ++i)
    std::copy_n(each.raw().data() + static_cast<std::size_t>((first + i) % each.shape().size()) * width, width,
                value.mutable_raw().data() + static_cast<std::size_t>(i) * width);
  return exactly(value);
}

OpCase make_case(Op op, std::vector<Arg> args, std::vector<AttrValue> attributes, std::string_view note) {
  OpCase made;
  Builder b(std::string(ir::name(op)));
  std::vector<ValueId> operands;
  for (const Arg& arg : args) {
    operands.push_back(b.add_arg(arg.type));
    made.name += (made.name.empty() ? "" : " ") + to_string(arg.type);
  }
  if (!note.empty()) made.name += (made.name.empty() ? "" : " ") + std::string(note);
  std::vector<ValueId> results = b.call(op, operands, std::move(attributes));
  made.function = b.finish(std::move(results));
  made.args = [args = std::move(args)](std::size_t example) {
    std::vector<Literal> literals;
    for (std::size_t i = 0; i < args.size(); ++i) literals.push_back(args[i].fill(10 * example + i));
    return literals;
  };
  return made;
}

Refused refuse(Op op, std::vector<Type> types, std::vector<AttrValue> attributes, std::string message) {
  std::string name;
  for (const Type& type : types) name += (name.empty() ? "" : " ") + to_string(type);
  return {name, [=] { infer_types(op, types, attributes); }, std::move(message)};
}

std::vector<Op> all_ops() {
  std::vector<Op> ops;
  for (int i = 0; i < num_ops; ++i) ops.push_back(static_cast<Op>(i));
  return ops;
}

bool takes(Op op, const std::vector<Type>& types, const std::vector<AttrValue>& attributes) {
  try {
    infer_types(op, types, attributes);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void for_each_index(const Shape& shape, const std::function<void(const Ints&)>& f) {
  Ints index(shape.rank(), 0);
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    f(index);
    for (std::size_t axis = shape.rank(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

std::int64_t position(const Shape& shape, const Ints& index) {
  std::int64_t result = 0;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) result = result * shape[axis] + index[axis];
  return result;
}

}  // namespace burin::op_cases
