#include <burin/tree.h>

#include <burin/ops.h>

#include <charconv>

#include "base/counted.h"
#include "base/hash.h"
#include "base/message_ids.h"
#include "frontend/trace_stack.h"

namespace burin::detail {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  Hasher hasher;
  hasher.add(hash);
  hasher.add(word);
  return hasher.finish().low;
}

std::string text_of(const Static& value) {
  using Kind = Static::Kind;
  switch (value.kind) {
    case Kind::boolean: return value.bits ? "true" : "false";
    case Kind::integer: return std::to_string(static_cast<std::int64_t>(value.bits));
    case Kind::unsigned_integer: return std::to_string(value.bits);
    case Kind::floating: {
      char buffer[64];
      const auto end = std::to_chars(buffer, buffer + sizeof buffer, std::bit_cast<double>(value.bits)).ptr;
      return {buffer, end};
    }
    case Kind::enumeration: return "enumerator " + std::to_string(static_cast<std::int64_t>(value.bits));
    case Kind::text: return "\"" + std::string(value.text) + "\"";
    case Kind::dtype: return std::string(name(static_cast<DType>(value.bits)));
    case Kind::shape: return to_string(*value.shape);
  }
  return "";
}

}  // namespace

void Flattening::leaf(Tensor& tensor) {
  leaves.push_back(&tensor);
  structure = mix(structure, 1);
}

void Flattening::fixed(const Static& value) {
  Hasher hasher;
  hasher.add(structure);
  hasher.add(value.kind);
  hasher.add(value.bits);
  hasher.add(value.text);
  if (value.shape) {
    hasher.add(value.shape->rank());
    for (std::int64_t extent : *value.shape) hasher.add(extent);
  }
  structure = hasher.finish().low;
}

void Flattening::length(std::size_t n) { structure = mix(structure + 2, n); }

void PathFlattening::leaf(Tensor& tensor) {
  Flattening::leaf(tensor);
  paths.push_back(path_);
  entries.push_back({path_, "a tensor"});
}
void PathFlattening::fixed(const Static& value) {
  Flattening::fixed(value);
  entries.push_back({path_, text_of(value)});
}
void PathFlattening::length(std::size_t n) {
  Flattening::length(n);
  entries.push_back({path_, counted(n, "element")});
}
void PathFlattening::enter(std::string_view name) {
  lengths_.push_back(path_.size());
  if (!path_.empty()) path_ += '.';
  path_ += name;
}
void PathFlattening::enter(std::size_t i) { enter(std::string_view(std::to_string(i))); }
void PathFlattening::leave() {
  path_.resize(lengths_.back());
  lengths_.pop_back();
}

void fail_tree_mismatch(const char* function, const PathFlattening& tree, const std::string& name,
                        const PathFlattening& other, const std::string& other_name, std::source_location where) {
  // Names of members are no part of the structure, so what stands at a place decides, not its path.
  const std::size_t n = std::min(tree.entries.size(), other.entries.size());
  std::size_t i = 0;
  while (i < n && tree.entries[i].what == other.entries[i].what) ++i;
  const auto describe = [&](const PathFlattening& t) {
    if (i >= t.entries.size()) return std::string("nothing more");
    const auto& [path, what] = t.entries[i];
    return what + (path.empty() ? " at the top" : " at `" + path + "`");
  };
  fail_at(where_text(where), Msg::trees_differ, function, describe(tree), name, describe(other), other_name);
}

Tensor all_finite(const std::vector<Tensor*>& leaves, std::source_location where) {
  OpScope scope("all_finite", where);
  Tensor all = constant(ir::Literal::scalar(DType::bool_, 1));
  for (const Tensor* leaf : leaves)
    if (is_float(leaf->dtype())) all = emit(ir::Op::bit_and, {all, all_of(isfinite(*leaf))});
  return scope.done(all);
}

std::int64_t count(const std::vector<Tensor*>& leaves, std::source_location where) {
  std::int64_t n = 0;
  for (const Tensor* leaf : leaves) n += leaf->size(where);
  return n;
}

void check_leaf_count(std::size_t found, std::size_t expected, std::source_location where) {
  if (found != expected) fail_at(where_text(where), Msg::leaf_count, counted(expected, "leaf", "leaves"), found);
}

Tensor zeros_like_leaf(const Tensor& leaf, const std::source_location& where) { return zeros_like({leaf, where}); }

}  // namespace burin::detail
