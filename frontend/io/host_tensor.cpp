#include "frontend/io/host_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <new>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/counted.h"
#include "base/message_ids.h"
#include "frontend/io/file.h"

namespace burin::io {

static_assert(std::endian::native == std::endian::little, "files are read into memory as they are");

std::int64_t dtype_bytes(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, int>, 13> sizes{{{"f64", 8},
                                                                           {"f32", 4},
                                                                           {"bf16", 2},
                                                                           {"f16", 2},
                                                                           {"i8", 1},
                                                                           {"i16", 2},
                                                                           {"i32", 4},
                                                                           {"i64", 8},
                                                                           {"u8", 1},
                                                                           {"u16", 2},
                                                                           {"u32", 4},
                                                                           {"u64", 8},
                                                                           {"bool", 1}}};
  for (const auto& [name, bytes] : sizes)
    if (name == dtype) return bytes;
  return 0;
}

std::int64_t tensor_bytes(std::string_view dtype, const std::vector<std::int64_t>& shape) {
  std::int64_t bytes = dtype_bytes(dtype);
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return -1;
    if (size == 0)
      empty = true;
    else if (__builtin_mul_overflow(bytes, size, &bytes))
      return -1;
  }
  return empty ? 0 : bytes;
}

std::string describe(std::string_view dtype, const std::vector<std::int64_t>& shape) {
  constexpr std::size_t most = 16;  // axes: twice what a tensor may have
  if (shape.size() <= most) return fmt::format("{}[{}]", dtype, fmt::join(shape, ","));
  return fmt::format("{}[{},...: {} axes]", dtype, fmt::join(std::span(shape).first(most / 2), ","), shape.size());
}

void make_room(const std::string& failing, HostTensor& tensor, std::int64_t bytes) {
  const auto no_room = [&] {
    const std::string type = describe(tensor.dtype, tensor.shape);
    const std::string text = format_message(Msg::memory_for, type, bytes, static_cast<double>(bytes) / 1048576.0);
    throw_message(Msg::memory_for, failing + ": " + text, detail::where_text({}));
  };
  try {
    tensor.data.resize(static_cast<std::size_t>(bytes));
  } catch (const std::bad_alloc&) {
    no_room();
  } catch (const std::length_error&) {
    no_room();
  }
}

void check_before_writing(const std::string& place, const HostTensor& tensor) {
  if (dtype_bytes(tensor.dtype) == 0) fail_writing(place, Msg::file_no_dtype, tensor.dtype);
  const std::int64_t expected = tensor_bytes(tensor.dtype, tensor.shape);
  const std::string type = describe(tensor.dtype, tensor.shape);
  if (expected < 0) fail_writing(place, Msg::file_no_shape, type);
  if (expected != static_cast<std::int64_t>(tensor.data.size()))
    fail_writing(place, Msg::file_tensor_size, type, counted(expected, "byte"), tensor.data.size());
}

void normalize_bools(HostTensor& tensor) {
  if (tensor.dtype != "bool") return;
  for (std::byte& b : tensor.data) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
}

}  // namespace burin::io
