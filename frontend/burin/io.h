// Trees in files. A file is written beside its place and moved there when complete: nothing half-written is left
// behind.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <burin/tree.h>

namespace burin {
namespace detail {
void save_safetensors(const std::string& path, const std::vector<std::string>& names, const std::vector<Tensor>& leaves,
                      const std::map<std::string, std::string>& metadata, std::source_location where);
/// Puts the file's tensors into the leaves; one error lists all that are missing, extra, or of another type.
void load_safetensors(const std::string& path, const std::vector<std::string>& names, const std::vector<Tensor*>& leaves,
                      std::source_location where);
}  // namespace detail

namespace io {

/// Every leaf by its path, as .safetensors (a tree that is one Tensor: "tensor"), with `metadata` in the header.
/// Throws, naming path and reason, when the file cannot be written, a leaf has no value, or two leaves have the same
/// path; what stood there before then stays. A link stays and
/// leads to the new file; a file that is replaced keeps its permissions. Errors of this header name the caller's line.
template <class T>
void save(const std::string& path, const T& tree, const std::map<std::string, std::string>& metadata = {},
          std::source_location where = std::source_location::current()) {
  detail::PathFlattening flat;
  detail::read_tree(tree, flat);
  std::vector<Tensor> leaves;
  for (const Tensor* leaf : flat.leaves) leaves.push_back(*leaf);
  detail::save_safetensors(path, flat.paths, leaves, metadata, where);
}
/// A tree like `like`, static values included, with the leaves of the file, which must have exactly these names, dtypes
/// and shapes: one error lists all that are missing, extra, or of another type. Throws, naming path and place, for a
/// file that is missing, cut off or malformed.
template <class T>
T load(const std::string& path, const T& like, std::source_location where = std::source_location::current()) {
  T result = like;
  detail::PathFlattening flat;
  detail::visit_tree(result, flat);
  detail::load_safetensors(path, flat.paths, flat.leaves, where);
  return result;
}
/// All tensors of a file by name, with the file's dtypes (the 13 of Burin; another is an error) and shapes of at most 8
/// axes.
std::map<std::string, Tensor> load_safetensors(const std::string& path,
                                               std::source_location where = std::source_location::current());

}  // namespace io
}  // namespace burin
