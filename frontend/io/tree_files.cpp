// Trees and tensors in files: the formats know host tensors only, here they meet Tensor.
#include <burin/io.h>
#include <burin/npy.h>
#include <burin/trace.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/message_ids.h"
#include "frontend/io/file.h"
#include "frontend/io/npy.h"
#include "frontend/io/safetensors.h"

namespace burin {
namespace {

template <class F>
auto with_element(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64: return f(double{});
    case DType::f32: return f(float{});
    case DType::bf16: return f(bfloat16{});
    case DType::f16: return f(float16{});
    case DType::i8: return f(std::int8_t{});
    case DType::i16: return f(std::int16_t{});
    case DType::i32: return f(std::int32_t{});
    case DType::i64: return f(std::int64_t{});
    case DType::u8: return f(std::uint8_t{});
    case DType::u16: return f(std::uint16_t{});
    case DType::u32: return f(std::uint32_t{});
    case DType::u64: return f(std::uint64_t{});
    case DType::bool_: break;
  }
  return f(bool{});
}

io::HostTensor to_host(const std::string& path, const Tensor& t) {
  const Shape shape = t.shape();
  io::HostTensor host{std::string(name(t.dtype())), {shape.begin(), shape.end()}, {}};
  with_element(t.dtype(), [&]<class T>(T) {
    const std::span<const std::byte> bytes = std::as_bytes(t.data<T>());
    io::make_room("cannot write " + path, host, static_cast<std::int64_t>(bytes.size()));
    if (!bytes.empty()) std::memcpy(host.data.data(), bytes.data(), bytes.size());
  });
  return host;
}

Tensor from_host(const std::string& path, const io::HostTensor& host) {
  DType dtype = DType::f64;
  while (name(dtype) != host.dtype) dtype = static_cast<DType>(static_cast<int>(dtype) + 1);
  if (host.shape.size() > Shape::max_rank)
    io::fail_reading(path, Msg::file_rank, io::describe(host.dtype, host.shape), Shape::max_rank);
  const Shape shape{std::span<const std::int64_t>(host.shape)};
  return detail::from_bytes(host.data.data(), static_cast<std::size_t>(shape.size()), dtype, dtype, shape, {});
}

std::string file_name(const std::string& path) { return path.empty() ? "tensor" : path; }

}  // namespace

namespace detail {

void save_safetensors(const std::string& path, const std::vector<std::string>& names, const std::vector<Tensor>& leaves,
                      const std::map<std::string, std::string>& metadata, std::source_location where) {
  library_function in("save", where);
  io::Safetensors file{{}, metadata};
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const std::string leaf = file_name(names[i]);
    if (!leaves[i].defined()) io::fail_writing(path, Msg::file_leaf_without_value, leaf);
    if (!file.tensors.emplace(leaf, to_host(path, leaves[i])).second) io::fail_writing(path, Msg::file_leaf_twice, leaf);
  }
  io::write_safetensors(path, file);
}

void load_safetensors(const std::string& path, const std::vector<std::string>& names, const std::vector<Tensor*>& leaves,
                      std::source_location where) {
  library_function in("load", where);
  const io::Safetensors file = io::read_safetensors(path);
  std::vector<std::string> problems;
  std::set<std::string> wanted;
  std::vector<Tensor> loaded(leaves.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const std::string leaf = file_name(names[i]);
    wanted.insert(leaf);
    if (!leaves[i]->defined()) io::fail_reading(path, Msg::file_leaf_without_value, leaf);
    const Shape shape = leaves[i]->shape();
    const std::string expected = io::describe(name(leaves[i]->dtype()), {shape.begin(), shape.end()});
    const auto found = file.tensors.find(leaf);
    if (found == file.tensors.end()) problems.push_back("`" + leaf + "` is missing");
    else if (const auto& host = found->second; io::describe(host.dtype, host.shape) != expected)
      problems.push_back("`" + leaf + "` is " + io::describe(host.dtype, host.shape) + ", expected " + expected);
    else loaded[i] = from_host(path, host);
  }
  for (const auto& [name, host] : file.tensors)
    if (!wanted.contains(name)) problems.push_back("`" + name + "` is not part of the tree");
  if (!problems.empty()) {
    std::string text;
    for (const std::string& problem : problems) text += "\n  " + problem;
    io::fail_reading(path, Msg::file_tree, text);
  }
  for (std::size_t i = 0; i < leaves.size(); ++i) *leaves[i] = loaded[i];
}

}  // namespace detail

namespace io {

std::map<std::string, Tensor> load_safetensors(const std::string& path, std::source_location where) {
  library_function in("load_safetensors", where);
  std::map<std::string, Tensor> result;
  for (const auto& [name, host] : read_safetensors(path).tensors) result.emplace(name, from_host(path, host));
  return result;
}

void save_npy(const std::string& path, const Tensor& tensor, std::source_location where) {
  library_function in("save_npy", where);
  write_npy(path, to_host(path, tensor));
}
Tensor load_npy(const std::string& path, std::source_location where) {
  library_function in("load_npy", where);
  return from_host(path, read_npy(path));
}

}  // namespace io
}  // namespace burin
