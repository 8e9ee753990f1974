// Trees: structs, containers and their nestings, whose leaves are Tensors.
//
//   struct Mlp { Tensor w1, w2;  BURIN_TREE(w1, w2) };
//
// Everything that takes several tensors (jit, grad, optimisers, files) takes trees. vector, array, map<string, T>,
// pair, tuple and optional nest freely. Numbers, enums, strings, DType and Shape are static: compared, hashed, part of
// a compiled function's key, copied by map.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <burin/tensor.h>

/// Lists every data member of the struct it stands in, without a semicolon behind. Adds no data member.
#define BURIN_TREE(...)                                                                               \
  friend struct ::burin::detail::TreeAccess;                                                          \
  static constexpr const char* burin_tree_names() { return #__VA_ARGS__; }                            \
  auto burin_tree_members() { return ::std::tie(__VA_ARGS__); }

namespace burin {
namespace detail {

struct TreeAccess {
  template <class T>
  static auto members(T& t) -> decltype(t.burin_tree_members()) {
    return t.burin_tree_members();
  }
  template <class T>
  static constexpr const char* names() {
    return T::burin_tree_names();
  }
  template <class T>
  static auto leaf(T& t) -> decltype(t.burin_leaf()) {  // types that are one tensor by another name: Key
    return t.burin_leaf();
  }
};

template <class T>
concept HasMembers = requires(T& t) { TreeAccess::members(t); };
template <class T>
concept IsLeaf = std::is_same_v<T, Tensor> || requires(T& t) { TreeAccess::leaf(t); };

// ---- how many members an aggregate has ---------------------------------------------------------------------------------
struct AnyMember {
  template <class T>
  operator T() const;
};
template <class T, std::size_t... i>
constexpr bool takes_members(std::index_sequence<i...>) {
  return requires { T{(static_cast<void>(i), AnyMember{})...}; };
}
/// True when the aggregate T has at most n members.
template <class T, std::size_t n>
constexpr bool has_at_most_members() {
  return !takes_members<T>(std::make_index_sequence<n + 1>{});
}

// ---- visiting ------------------------------------------------------------------------------------------------------------
/// A static value as the visitor sees it.
struct Static {
  enum class Kind : std::uint8_t { boolean, integer, unsigned_integer, floating, enumeration, text, dtype, shape };
  Kind kind;
  std::uint64_t bits = 0;  // integers and enums extended to 64 bits, floats as the bits of a double
  std::string_view text = {};
  const Shape* shape = nullptr;
};

/// Sees a tree in its fixed order. Not a template, so that each type costs one small function.
class TreeVisitor {
 public:
  virtual ~TreeVisitor() = default;
  virtual void leaf(Tensor& tensor) = 0;
  virtual void fixed(const Static&) {}
  /// Before the elements of a container: their number; for an optional 0 or 1.
  virtual void length(std::size_t) {}
  virtual void enter(std::string_view) {}
  virtual void enter(std::size_t) {}
  virtual void leave() {}
};

template <class T>
void visit_tree(T& t, TreeVisitor& v);

/// The next name of "a, b , c", which is cut off.
constexpr std::string_view next_name(std::string_view& names) {
  std::size_t begin = 0;
  while (begin < names.size() && (names[begin] == ' ' || names[begin] == ',')) ++begin;
  std::size_t end = begin;
  while (end < names.size() && names[end] != ',' && names[end] != ' ') ++end;
  const std::string_view name = names.substr(begin, end - begin);
  names.remove_prefix(end);
  return name;
}

template <class T>
inline constexpr bool is_container = false;
template <class T, class A>
inline constexpr bool is_container<std::vector<T, A>> = true;
template <class T, std::size_t n>
inline constexpr bool is_container<std::array<T, n>> = true;
template <class T>
inline constexpr bool is_product = false;
template <class A, class B>
inline constexpr bool is_product<std::pair<A, B>> = true;
template <class... T>
inline constexpr bool is_product<std::tuple<T...>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class T, class C, class A>
inline constexpr bool is_map<std::map<std::string, T, C, A>> = true;
template <class T>
inline constexpr bool is_static = (std::is_arithmetic_v<T> && sizeof(T) <= 8) || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
                                  std::is_same_v<T, Shape>;
template <class T>
inline constexpr bool is_tree =
    IsLeaf<T> || HasMembers<T> || is_container<T> || is_product<T> || is_optional<T> || is_map<T> || is_static<T>;

template <class T>
Static describe(const T& t) {
  using Kind = Static::Kind;
  if constexpr (std::is_same_v<T, bool>) return {Kind::boolean, static_cast<std::uint64_t>(t)};
  else if constexpr (std::is_same_v<T, DType>) return {Kind::dtype, static_cast<std::uint64_t>(t)};
  else if constexpr (std::is_enum_v<T>) return {Kind::enumeration, static_cast<std::uint64_t>(t)};
  else if constexpr (std::is_floating_point_v<T>)
    return {Kind::floating, __builtin_bit_cast(std::uint64_t, static_cast<double>(t))};
  else if constexpr (std::is_same_v<T, std::string>) return {Kind::text, 0, t};
  else if constexpr (std::is_same_v<T, Shape>) return {Kind::shape, 0, {}, &t};
  else if constexpr (std::is_unsigned_v<T>) return {Kind::unsigned_integer, static_cast<std::uint64_t>(t)};
  else return {Kind::integer, static_cast<std::uint64_t>(static_cast<std::int64_t>(t))};
}

template <class M>
void visit_member(M& member, std::string_view name, TreeVisitor& v) {
  v.enter(name);
  visit_tree(member, v);
  v.leave();
}
template <class M>
void visit_element(M& element, std::size_t i, TreeVisitor& v) {
  v.enter(i);
  visit_tree(element, v);
  v.leave();
}

template <class T>
void visit_tree(T& t, TreeVisitor& v) {
  static_assert(is_tree<T>,
                "burin: this type is no tree: put BURIN_TREE(all, data, members) into the struct (leaves are Tensors; vector, "
                "array, map<string, T>, pair, tuple, optional, numbers, enums and strings may nest)");
  if constexpr (std::is_same_v<T, Tensor>) {
    v.leaf(t);
  } else if constexpr (IsLeaf<T>) {
    v.leaf(TreeAccess::leaf(t));
  } else if constexpr (HasMembers<T>) {
    auto members = TreeAccess::members(t);
    if constexpr (std::is_aggregate_v<T>)
      static_assert(has_at_most_members<T, std::tuple_size_v<decltype(members)>>(),
                    "burin: BURIN_TREE leaves out a data member: list every one of them");
    std::string_view names = TreeAccess::names<T>();
    std::apply([&](auto&... member) { (visit_member(member, next_name(names), v), ...); }, members);
  } else if constexpr (is_container<T>) {
    v.length(t.size());
    if constexpr (std::is_same_v<T, std::vector<bool>>) {
      for (bool flag : t) v.fixed(describe(flag));
    } else {
      std::size_t i = 0;
      for (auto& element : t) visit_element(element, i++, v);
    }
  } else if constexpr (is_product<T>) {
    std::size_t i = 0;
    std::apply([&](auto&... element) { (visit_element(element, i++, v), ...); }, t);
  } else if constexpr (is_optional<T>) {
    v.length(t.has_value() ? 1 : 0);
    if (t) visit_tree(*t, v);
  } else if constexpr (is_map<T>) {
    v.length(t.size());
    for (auto& [key, value] : t) {
      v.fixed({Static::Kind::text, 0, key});
      visit_member(value, key, v);
    }
  } else if constexpr (is_static<T>) {
    v.fixed(describe(t));
  }
}

/// The visitors that only read leave the tree as it was.
template <class T>
void read_tree(const T& t, TreeVisitor& v) {
  visit_tree(const_cast<T&>(t), v);
}

/// Leaves in order; whether structures agree is decided by a hash of lengths, keys and static values.
class Flattening : public TreeVisitor {
 public:
  std::vector<Tensor*> leaves;
  std::uint64_t structure = 0;
  void leaf(Tensor& tensor) override;
  void fixed(const Static& value) override;
  void length(std::size_t n) override;
};
/// Also the paths of leaves, "blocks.0.attn.wq", and of everything else that makes the structure.
class PathFlattening : public Flattening {
 public:
  struct Entry {
    std::string path, what;  // what: "leaf", "length 3", "4", "\"gelu\""
  };
  std::vector<std::string> paths;  // by leaf
  std::vector<Entry> entries;      // everything
  void leaf(Tensor& tensor) override;
  void fixed(const Static& value) override;
  void length(std::size_t n) override;
  void enter(std::string_view name) override;
  void enter(std::size_t i) override;
  void leave() override;

 private:
  std::string path_;
  std::vector<std::size_t> lengths_;
};
/// Calls one function for each leaf.
class LeafVisitor : public TreeVisitor {
 public:
  LeafVisitor(void* context, void (*f)(void*, Tensor&)) : context_(context), f_(f) {}
  void leaf(Tensor& tensor) override { f_(context_, tensor); }

 private:
  void* context_;
  void (*f_)(void*, Tensor&);
};
template <class T, class F>
void for_each_leaf(T& t, F&& f) {
  LeafVisitor v(&f, [](void* context, Tensor& leaf) { (*static_cast<std::remove_reference_t<F>*>(context))(leaf); });
  visit_tree(t, v);
}

/// Throws the first difference of two structures, which messages call `name` and `other_name`.
[[noreturn]] void fail_tree_mismatch(const char* function, const PathFlattening& tree, const std::string& name,
                                     const PathFlattening& other, const std::string& other_name,
                                     std::source_location where);

/// The leaves of `other`, which must have the structure `flat` of `first`.
template <class A, class B>
std::vector<Tensor*> matching_leaves(const char* function, const A& first, const std::string& name, const B& other,
                                     const std::string& other_name, const Flattening& flat, std::source_location where) {
  Flattening mine;
  read_tree(other, mine);
  if (mine.structure != flat.structure || mine.leaves.size() != flat.leaves.size()) {
    PathFlattening a, b;
    read_tree(first, a);
    read_tree(other, b);
    fail_tree_mismatch(function, a, name, b, other_name, where);
  }
  return std::move(mine.leaves);
}
Tensor all_finite(const std::vector<Tensor*>& leaves, std::source_location where);
std::int64_t count(const std::vector<Tensor*>& leaves, std::source_location where);
void check_leaf_count(std::size_t found, std::size_t expected, std::source_location where);

template <class F, class T, class... More>
T map_trees([[maybe_unused]] std::source_location where, F&& f, const T& t, const More&... more) {
  T result = t;
  Flattening flat;
  visit_tree(result, flat);
  std::size_t number = 1;
  const std::array<std::vector<Tensor*>, sizeof...(More)> others{
      matching_leaves("tree::map", t, "tree 1", more, "tree " + std::to_string(++number), flat, where)...};
  for (std::size_t i = 0; i < flat.leaves.size(); ++i) {
    const Tensor leaf = *flat.leaves[i];
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      *flat.leaves[i] = f(leaf, *others[k][i]...);
    }(std::make_index_sequence<sizeof...(More)>{});
  }
  return result;
}
template <class F, class T, class... More>
T map_trees_with_path(std::source_location where, F&& f, const T& t, const More&... more) {
  PathFlattening flat;
  read_tree(t, flat);
  std::size_t i = 0;
  const auto with_path = [&](const Tensor& leaf, const auto&... others) {
    return f(std::string_view(flat.paths[i++]), leaf, others...);
  };
  return map_trees(where, with_path, t, more...);
}

}  // namespace detail

namespace tree {

using Where = std::source_location;

/// A tree like t whose leaves are f(leaf of t, leaf of each other tree): map(f, t, others...). Leaves may have any
/// shapes and dtypes; static values come from t. Throws when the trees differ in structure (lengths, keys, static
/// values): the first place that differs, both sides, the caller's line. Behind more than three others no line is
/// known: a place can be a default argument only behind a fixed number of parameters.
template <class F, class T>
T map(F&& f, const T& t) {
  return detail::map_trees({}, f, t);
}
template <class F, class T, class A>
T map(F&& f, const T& t, const A& a, Where where = Where::current()) {
  return detail::map_trees(where, f, t, a);
}
template <class F, class T, class A, class B>
T map(F&& f, const T& t, const A& a, const B& b, Where where = Where::current()) {
  return detail::map_trees(where, f, t, a, b);
}
template <class F, class T, class A, class B, class C>
T map(F&& f, const T& t, const A& a, const B& b, const C& c, Where where = Where::current()) {
  return detail::map_trees(where, f, t, a, b, c);
}
template <class F, class T, class A, class B, class C, class D, class... More>
T map(F&& f, const T& t, const A& a, const B& b, const C& c, const D& d, const More&... more) {
  return detail::map_trees({}, f, t, a, b, c, d, more...);
}

/// map with the leaf's path, "blocks.0.attn.wq", as first argument of f.
template <class F, class T>
T map_with_path(F&& f, const T& t) {
  return detail::map_trees_with_path({}, f, t);
}
template <class F, class T, class A>
T map_with_path(F&& f, const T& t, const A& a, Where where = Where::current()) {
  return detail::map_trees_with_path(where, f, t, a);
}
template <class F, class T, class A, class B>
T map_with_path(F&& f, const T& t, const A& a, const B& b, Where where = Where::current()) {
  return detail::map_trees_with_path(where, f, t, a, b);
}
template <class F, class T, class A, class B, class C>
T map_with_path(F&& f, const T& t, const A& a, const B& b, const C& c, Where where = Where::current()) {
  return detail::map_trees_with_path(where, f, t, a, b, c);
}
template <class F, class T, class A, class B, class C, class D, class... More>
T map_with_path(F&& f, const T& t, const A& a, const B& b, const C& c, const D& d, const More&... more) {
  return detail::map_trees_with_path({}, f, t, a, b, c, d, more...);
}

/// f(leaf) for each leaf in order: members as BURIN_TREE lists them, elements by index, maps by key.
template <class F, class T>
void for_each(F&& f, const T& t) {
  detail::Flattening flat;
  detail::read_tree(t, flat);
  for (const Tensor* leaf : flat.leaves) f(*leaf);
}

/// (path, leaf) in order.
template <class T>
std::vector<std::pair<std::string, Tensor>> leaves(const T& t) {
  detail::PathFlattening flat;
  detail::read_tree(t, flat);
  std::vector<std::pair<std::string, Tensor>> result;
  for (std::size_t i = 0; i < flat.leaves.size(); ++i) result.emplace_back(flat.paths[i], *flat.leaves[i]);
  return result;
}

/// The leaves alone, in order, and a tree like t with other leaves, of any shapes; another number of them is an error.
template <class T>
std::vector<Tensor> flatten(const T& t) {
  std::vector<Tensor> result;
  for_each([&](const Tensor& leaf) { result.push_back(leaf); }, t);
  return result;
}
template <class T>
T unflatten(const T& like, const std::vector<Tensor>& leaves,
            std::source_location where = std::source_location::current()) {
  T result = like;
  detail::Flattening flat;
  detail::visit_tree(result, flat);
  detail::check_leaf_count(leaves.size(), flat.leaves.size(), where);
  for (std::size_t i = 0; i < leaves.size(); ++i) *flat.leaves[i] = leaves[i];
  return result;
}

/// Number of elements of all leaves.
template <class T>
std::int64_t count(const T& t, Where where = Where::current()) {
  detail::Flattening flat;
  detail::read_tree(t, flat);
  return detail::count(flat.leaves, where);
}
/// A bool tensor of rank 0: no NaN and no infinity in any leaf. Leaves that are no floats are finite.
template <class T>
Tensor all_finite(const T& t, std::source_location where = std::source_location::current()) {
  detail::Flattening flat;
  detail::read_tree(t, flat);
  return detail::all_finite(flat.leaves, where);
}

}  // namespace tree

namespace detail {
Tensor zeros_like_leaf(const Tensor& leaf, const std::source_location& where);
}
namespace tree {
/// Zeros of the same shapes and dtypes.
template <class T>
T zeros_like(const T& t, Where where = Where::current()) {
  return map([&](const Tensor& leaf) { return detail::zeros_like_leaf(leaf, where); }, t);
}
}  // namespace tree
}  // namespace burin
