// A tensor as a file sees it: a type and bytes. What reads and writes files works on these alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace burin::io {

struct HostTensor {
  std::string dtype;  // Burin's name: f64 f32 bf16 f16 i8 i16 i32 i64 u8 u16 u32 u64 bool
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;  // row-major, little-endian; a bool is a byte 0 or 1
  friend bool operator==(const HostTensor&, const HostTensor&) = default;
};

/// Bytes of one element; 0 when there is no such type.
std::int64_t dtype_bytes(std::string_view dtype);
/// Bytes of a tensor, or -1 when a size is negative or the product of the sizes that are not 0 leaves 63 bits.
std::int64_t tensor_bytes(std::string_view dtype, const std::vector<std::int64_t>& shape);
/// "f32[2,3]"; of more axes than a tensor may have the first ones.
std::string describe(std::string_view dtype, const std::vector<std::int64_t>& shape);

/// Gives the tensor `bytes` bytes of data. Throws "<failing>: out of memory: ..." when there is no room for them; `failing` is
/// "cannot read x.npy".
void make_room(const std::string& failing, HostTensor& tensor, std::int64_t bytes);
/// Throws "cannot write <place>: ..." unless the tensor is what its type says.
void check_before_writing(const std::string& place, const HostTensor& tensor);
/// Makes every byte of a bool tensor 0 or 1: in files of others any byte but 0 is true.
void normalize_bools(HostTensor& tensor);

}  // namespace burin::io
