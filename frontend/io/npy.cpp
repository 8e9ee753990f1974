#include "frontend/io/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/counted.h"
#include "base/message_ids.h"
#include "frontend/io/file.h"

namespace burin::io {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::int64_t longest_header = 1 << 20;  // a shape and a dtype take a few hundred bytes

constexpr std::array<std::pair<const char*, const char*>, 12> codes{{{"f8", "f64"},
                                                                     {"f4", "f32"},
                                                                     {"f2", "f16"},
                                                                     {"i1", "i8"},
                                                                     {"i2", "i16"},
                                                                     {"i4", "i32"},
                                                                     {"i8", "i64"},
                                                                     {"u1", "u8"},
                                                                     {"u2", "u16"},
                                                                     {"u4", "u32"},
                                                                     {"u8", "u64"},
                                                                     {"b1", "bool"}}};

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

// Reads the one kind of Python text that a header may hold: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  Header read() {
    Header header;
    std::array<bool, 3> seen{};
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      const std::size_t which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : 3;
      if (which == 3) fail_reading(path_, Msg::npy_key, key);
      if (std::exchange(seen[which], true)) fail_reading(path_, Msg::npy_key_twice, key);
      if (which == 0) header.descr = descr();
      if (which == 1) header.fortran_order = boolean();
      if (which == 2) header.shape = tuple();
      if (!accept(',') && peek() != '}') fail_expected("',' or '}'");
    }
    if (skip(); at_ != text_.size()) fail_expected("the end of the header");
    for (std::size_t i = 0; i < 3; ++i)
      if (!seen[i]) fail_reading(path_, Msg::npy_key_missing, std::array{"descr", "fortran_order", "shape"}[i]);
    return header;
  }

 private:
  [[noreturn]] void fail_expected(std::string_view expected) {
    skip();
    const std::string found = at_ < text_.size() ? fmt::format("{:?}", text_.substr(at_, 12)) : "its end";
    fail_reading(path_, Msg::npy_expected, expected, at_, found);
  }

  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail_expected(fmt::format("'{}'", c));
  }

  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail_expected("a string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail_expected("a string that ends");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return std::string(value);
  }

  std::string descr() {
    if (peek() == '[' || peek() == '(') fail_reading(path_, Msg::npy_records);
    return string();
  }

  bool boolean() {
    skip();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {std::string_view("False"), false}})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    fail_expected("True or False");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      skip();
      std::int64_t size = 0;
      const char* end = text_.data() + text_.size();
      const auto [stop, error] = std::from_chars(text_.data() + at_, end, size);
      if (error == std::errc::invalid_argument) fail_expected("a size");
      if (error != std::errc() || size < 0) fail_expected("a size from 0 to 2^63-1");
      at_ = static_cast<std::size_t>(stop - text_.data());
      accept('L');  // Python 2 wrote long integers so
      sizes.push_back(size);
      if (!accept(',') && peek() != ')') fail_expected("',' or ')'");
    }
    return sizes;
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
};

std::string dtype_of(const std::string& path, const std::string& descr) {
  const bool order = !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  if (order)
    for (const auto& [code, dtype] : codes)
      if (descr.compare(1, std::string::npos, code) == 0 && (descr[0] != '|' || code[1] == '1')) return dtype;
  const bool is_void = descr.size() > 1 && descr[1] == 'V';
  fail_reading(path, Msg::npy_dtype, descr, is_void ? " (bf16 has no type in .npy files: use .safetensors)" : "");
}

void swap_bytes(HostTensor& tensor) {
  const std::ptrdiff_t size = dtype_bytes(tensor.dtype);
  for (auto at = tensor.data.begin(); at != tensor.data.end(); at += size) std::reverse(at, at + size);
}

// From column-major, first axis fastest, to row-major.
void transpose(HostTensor& tensor) {
  const std::size_t rank = tensor.shape.size(), size = static_cast<std::size_t>(dtype_bytes(tensor.dtype));
  if (rank < 2 || tensor.data.empty()) return;
  std::vector<std::size_t> strides(rank), index(rank, 0);
  std::size_t stride = size;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    strides[axis] = stride;
    stride *= static_cast<std::size_t>(tensor.shape[axis]);
  }
  std::vector<std::byte> rows(tensor.data.size());
  std::size_t from = 0;
  for (std::size_t to = 0; to < rows.size(); to += size) {
    std::memcpy(rows.data() + to, tensor.data.data() + from, size);
    for (std::size_t axis = rank; axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < static_cast<std::size_t>(tensor.shape[axis])) break;
      from -= strides[axis] * index[axis];
      index[axis] = 0;
    }
  }
  tensor.data = std::move(rows);
}

}  // namespace

HostTensor read_npy(const std::string& path) {
  const InputFile file(path);
  std::array<unsigned char, 12> start{};
  const std::size_t known = static_cast<std::size_t>(std::min<std::int64_t>(file.size(), 12));
  file.read(0, std::as_writable_bytes(std::span(start).first(known)));
  if (std::memcmp(start.data(), magic.data(), magic.size()) != 0) fail_reading(path, Msg::npy_magic);
  const int major = start[6], minor = start[7];
  if (known < 10 || (major > 1 && known < 12)) fail_reading(path, Msg::npy_short, counted(known, "byte"));
  if (major < 1 || major > 3 || minor != 0)
    fail_reading(path, Msg::npy_version, major, minor);
  const std::int64_t prefix = major == 1 ? 10 : 12;
  std::int64_t header_bytes = start[8] | start[9] << 8;
  if (major > 1) header_bytes |= std::int64_t{start[10]} << 16 | std::int64_t{start[11]} << 24;
  if (header_bytes > longest_header || prefix + header_bytes > file.size())
    fail_reading(path, Msg::file_header_size, counted(header_bytes, "byte"), file.size());
  std::string text(static_cast<std::size_t>(header_bytes), '\0');
  file.read(prefix, std::as_writable_bytes(std::span(text.data(), text.size())));

  const Header header = HeaderReader(path, text).read();
  HostTensor tensor{dtype_of(path, header.descr), header.shape, {}};
  const std::string type = describe(tensor.dtype, tensor.shape);
  const std::int64_t bytes = tensor_bytes(tensor.dtype, tensor.shape), found = file.size() - prefix - header_bytes;
  if (bytes < 0) fail_reading(path, Msg::file_tensor_too_large, type);
  if (bytes != found) fail_reading(path, Msg::npy_data_size, type, counted(bytes, "byte"), found);
  make_room("cannot read " + path, tensor, bytes);
  file.read(prefix + header_bytes, tensor.data);
  if (header.descr[0] == '>') swap_bytes(tensor);
  if (header.fortran_order) transpose(tensor);
  normalize_bools(tensor);
  return tensor;
}

void write_npy(const std::string& path, const HostTensor& tensor) {
  check_before_writing(path, tensor);
  const auto at = std::find_if(codes.begin(), codes.end(), [&](auto& row) { return tensor.dtype == row.second; });
  if (at == codes.end())
    fail_writing(path, Msg::npy_has_no, tensor.dtype);
  std::string shape;
  for (const std::int64_t size : tensor.shape) shape += fmt::format("{}, ", size);
  if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
  if (tensor.shape.size() == 1) shape.pop_back();
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 dtype_bytes(tensor.dtype) == 1 ? '|' : '<', at->first, shape);
  // The data begins at a multiple of 64, after a newline.
  const std::size_t prefix = magic.size() + 4;
  text.resize((prefix + text.size() + 1 + 63) / 64 * 64 - prefix - 1, ' ');
  text += '\n';
  if (text.size() > 0xffff) fail_writing(path, Msg::npy_rank, tensor.shape.size());
  std::string start(magic);
  start += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  start += text;
  replace_file(path, {std::as_bytes(std::span(start.data(), start.size())), tensor.data});
}

}  // namespace burin::io
