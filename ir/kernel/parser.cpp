#include "ir/kernel/parser.h"

#include <cstdlib>
#include <unordered_map>

#include "base/message_ids.h"
#include "ir/constant_text.h"

namespace burin::ir {
namespace {

constexpr int max_depth = 64;
constexpr std::int64_t max_magnitude = std::int64_t{1} << 48;

class KernelParser {
 public:
  explicit KernelParser(Lexer& in) : in_(in) {}

  Kernel run() {
    in_.expect("kernel");
    kernel_.name = in_.expect(Token::symbol, "a kernel name like @add").text;
    header();
    in_.expect("{");
    while (in_.at("scratch") || in_.at("tile")) buffer();
    while (in_.accept("site")) kernel_.sites.push_back({in_.expect_string("a message in quotes")});
    kernel_.body = rest_of_block();
    return std::move(kernel_);
  }

 private:
  void header() {
    in_.expect("(");
    while (!in_.at(")")) {
      if (!kernel_.buffers.empty()) in_.expect(",");
      if (!in_.at("in") && !in_.at("out") && !in_.at("inout")) in_.fail_expected("`in`, `out` or `inout`");
      buffer();
    }
    in_.expect(")");
    if (in_.accept("tasks")) {
      in_.expect("(");
      while (!in_.at(")")) {
        if (!kernel_.tasks.empty()) in_.expect(",");
        const VarId var = define_var(in_.expect(Token::word, "the name of a task index"));
        in_.expect("in");
        kernel_.tasks.emplace_back(var, natural("a number of tasks"));
      }
      in_.expect(")");
    }
    if (in_.accept("cost")) kernel_.cost = make_constant(in_, read_constant(in_), Type{f64, {}}).at(0);
    if (in_.accept("flops")) kernel_.flops = natural("a number of operations");
    if (in_.accept("bytes")) kernel_.bytes = natural("a number of bytes");
  }

  void buffer() {
    Buffer b;
    const std::string_view space = in_.take().text;
    b.space = space == "in"        ? Space::in
              : space == "out"     ? Space::out
              : space == "inout"   ? Space::inout
              : space == "scratch" ? Space::scratch
                                   : Space::tile;
    const Token name = in_.expect(Token::word, "the name of a buffer");
    b.name = name.text;
    in_.expect(":");
    const Type type = parse_type(in_);
    b.dtype = type.dtype;
    b.shape = type.shape;
    if (in_.accept("strides")) {
      in_.expect("[");
      while (!in_.at("]") || b.strides.size() < b.shape.rank()) {
        if (!b.strides.empty()) in_.expect(",");
        if (b.strides.size() == b.shape.rank()) in_.fail_expected("one stride per axis");
        b.strides.push_back(integer("a stride"));
      }
      in_.expect("]");
    } else {
      std::int64_t size = 1;
      for (std::int64_t extent : b.shape)
        if (__builtin_mul_overflow(size, extent > 0 ? extent : 1, &size) || size > max_magnitude)
          in_.fail(name, Msg::parse_expected, "a buffer of at most 2^48 elements", to_string(type));
      b.strides = dense_strides(b.shape);
    }
    if (!buffers_.emplace(b.name, BufferId{kernel_.buffers.size()}).second)
      in_.fail(name, Msg::kernel_name_twice, "buffer", name.text);
    kernel_.buffers.push_back(std::move(b));
  }

  // ---- names ----
  template <class Tag>
  Id<Tag> find(const std::unordered_map<std::string, Id<Tag>>& names, const Token& token, std::string_view what) {
    const auto found = names.find(std::string(token.text));
    if (found == names.end()) in_.fail(token, Msg::kernel_unknown_name, what, token.text);
    return found->second;
  }
  BufferId buffer_name() { return find(buffers_, in_.expect(Token::word, "the name of a buffer"), "buffer"); }
  ScalarId value() { return find(scalars_, in_.expect(Token::value, "a value like %1"), "value"); }
  AccId acc_name() { return find(accs_, in_.expect(Token::value, "an accumulator like %sum0"), "accumulator"); }
  VarId define_var(const Token& token) {
    const VarId var = kernel_.new_var(std::string(token.text));
    vars_[std::string(token.text)] = var;
    return var;
  }
  ScalarId define_value(const Token& token) {
    const ScalarId id = kernel_.new_scalar();
    if (!scalars_.emplace(token.text, id).second) in_.fail(token, Msg::kernel_name_twice, "value", token.text);
    return id;
  }

  // ---- numbers ----
  std::int64_t integer(std::string_view what) {
    const std::size_t start = in_.position();
    const std::int64_t value = in_.expect_int(what);
    if (value < -max_magnitude || value > max_magnitude) {
      in_.set_position(start);
      in_.fail_expected(what);
    }
    return value;
  }
  std::int64_t natural(std::string_view what) {
    if (in_.peek().text.starts_with('-')) in_.fail_expected(what);
    return integer(what);
  }
  // ---- expressions ----
  // A minus sign is part of the number behind it or stands alone.
  Affine term() {
    if (in_.peek().kind == Token::number) {
      const std::int64_t number = integer("an integer of at most 2^48");
      if (!in_.accept("*")) return number;
      return Affine(variable(), number);
    }
    const VarId var = variable();
    return Affine(var, in_.accept("*") ? integer("an integer of at most 2^48") : 1);
  }
  VarId variable() { return find(vars_, in_.expect(Token::word, "an index expression"), "variable"); }
  Affine affine() {
    const Token start = in_.peek();
    Affine sum = term();
    for (;;) {
      bool small = std::abs(sum.constant) <= max_magnitude;
      for (const auto& [var, coefficient] : sum.terms) small = small && std::abs(coefficient) <= max_magnitude;
      if (!small)
        in_.fail(start, Msg::parse_expected, "an index expression with factors of at most 2^48", "a larger one");
      if (in_.accept("-"))
        sum = sum - term();
      else if (in_.accept("+") || (in_.peek().kind == Token::number && in_.peek().text.starts_with('-')))
        sum = sum + term();
      else
        return sum;
    }
  }
  std::vector<Affine> bound() {
    if (!in_.accept("min")) return {affine()};
    in_.expect("(");
    std::vector<Affine> hi = {affine()};
    while (in_.accept(",")) hi.push_back(affine());
    in_.expect(")");
    return hi;
  }
  std::vector<Affine> indices() {
    std::vector<Affine> list;
    in_.expect("[");
    while (!in_.at("]")) {
      if (!list.empty()) in_.expect(",");
      list.push_back(affine());
    }
    in_.expect("]");
    return list;
  }
  std::vector<Affine> conditions() {
    std::vector<Affine> list;
    do {
      const Affine left = affine();
      in_.expect(">=");
      list.push_back(left - affine());
    } while (in_.accept("and"));
    return list;
  }
  // `if` belongs to the access before it when it stands on the same line.
  bool accept_guard() { return !in_.peek().first_on_line && in_.accept("if"); }

  // ---- statements ----
  Block rest_of_block() {
    if (++depth_ > max_depth) in_.fail(in_.peek(), Msg::kernel_too_deep, max_depth);
    Block block;
    while (!in_.accept("}")) {
      if (in_.peek().kind == Token::end) in_.fail_expected("a statement or `}`");
      block.push_back(statement());
    }
    --depth_;
    return block;
  }

  Stmt statement() {
    if (in_.peek().kind == Token::value) return definition();
    if (in_.accept("for")) return loop();
    if (in_.accept("if")) {
      Stmt s{.kind = StmtKind::when};
      s.conditions = conditions();
      in_.expect("{");
      s.body = rest_of_block();
      return s;
    }
    if (in_.accept("store")) {
      Stmt s{.kind = StmtKind::store};
      s.buffer = buffer_name();
      s.dtype = kernel_.buffers[s.buffer.index].dtype;
      s.indices = indices();
      in_.expect(",");
      s.args = {value()};
      if (accept_guard()) s.conditions = conditions();
      return s;
    }
    if (in_.accept("acc")) return accumulator();
    if (in_.accept("accumulate")) {
      Stmt s{.kind = StmtKind::accumulate};
      s.acc = acc_name();
      in_.expect(",");
      s.args = {value()};
      return s;
    }
    if (in_.accept("bind")) return bind();
    if (in_.accept("mma")) return mma();
    in_.fail_expected("a statement");
  }

  Stmt loop() {
    Stmt s{.kind = StmtKind::loop};
    const Token name = in_.expect(Token::word, "the name of a loop index");
    in_.expect("in");
    s.lo = affine();
    in_.expect("..");
    s.hi = bound();
    if (in_.accept("unroll")) {
      s.loop_kind = LoopKind::unroll;
    } else if (in_.accept("vector")) {
      s.loop_kind = LoopKind::vector;
      s.width = natural("a number of lanes");
    }
    in_.expect("{");
    // An inner loop may reuse the name of an outer one; behind it the name means the outer one again.
    const auto outer = vars_.find(std::string(name.text));
    const VarId hidden = outer == vars_.end() ? VarId{} : outer->second;
    s.var = define_var(name);
    s.body = rest_of_block();
    if (hidden.valid()) vars_[std::string(name.text)] = hidden;
    return s;
  }

  Stmt accumulator() {
    Stmt s{.kind = StmtKind::acc};
    const Token name = in_.expect(Token::value, "an accumulator like %sum0");
    in_.expect(":");
    s.dtype = parse_dtype(in_);
    bool known = false;
    for (Reduce reduce : {Reduce::sum, Reduce::prod, Reduce::max, Reduce::min, Reduce::bit_and, Reduce::bit_or})
      if (!known && in_.accept(burin::ir::name(reduce))) {
        s.reduce = reduce;
        known = true;
      }
    if (!known) in_.fail_expected("sum, prod, max, min, and or or");
    in_.expect("lanes");
    s.width = natural("a number of lanes");
    if (in_.accept("from")) s.args = {value()};
    s.acc = kernel_.new_acc();
    if (!accs_.emplace(name.text, s.acc).second) in_.fail(name, Msg::kernel_name_twice, "accumulator", name.text);
    return s;
  }

  Stmt bind() {
    Stmt s{.kind = StmtKind::bind};
    const Token name = in_.expect(Token::word, "the name of an index");
    in_.expect("=");
    s.args = {value()};
    in_.expect("in");
    if (natural("`0..extent`") != 0) in_.fail_expected("a range from 0");
    in_.expect("..");
    s.extent = natural("an extent");
    if (!in_.at("clip") && !in_.at("error")) in_.fail_expected("`clip` or `error`");
    s.mode = in_.take().text == "clip" ? IndexMode::clip : IndexMode::error;
    if (in_.accept("site")) {
      const Token token = in_.peek();
      const std::int64_t site = natural("the number of a site");
      if (site > INT32_MAX) in_.fail(token, Msg::kernel_unknown_name, "site", token.text);
      s.site = static_cast<std::int32_t>(site);
    }
    s.var = define_var(name);
    return s;
  }

  Stmt mma() {
    Stmt s{.kind = StmtKind::mma};
    s.buffer = buffer_name();
    s.dtype = kernel_.buffers[s.buffer.index].dtype;
    in_.expect("[");
    const Token row = in_.expect(Token::word, "the name of the row index");
    in_.expect(",");
    const Token column = in_.expect(Token::word, "the name of the column index");
    in_.expect("]");
    in_.expect("+=");
    // The depth index is named at the end of the line but used before: its name is looked up when it is known.
    const auto outer = vars_;
    s.row = define_var(row);
    s.column = define_var(column);
    const std::size_t factors = in_.position();
    skip_factors();
    in_.expect("for");
    const Token depth = in_.expect(Token::word, "the name of the depth index");
    in_.expect("in");
    if (natural("`0..extent`") != 0) in_.fail_expected("a range from 0");
    in_.expect("..");
    s.hi = bound();
    if (in_.accept("blocks")) {
      const std::size_t at = in_.position();
      s.block = natural("the pairs of a block");
      if (s.block == 0) {
        in_.set_position(at);
        in_.fail_expected("the pairs of a block, at least one");
      }
    }
    const std::size_t end = in_.position();
    s.depth = define_var(depth);
    in_.set_position(factors);
    s.a = buffer_name();
    s.a_indices = indices();
    in_.expect("*");
    s.b = buffer_name();
    s.b_indices = indices();
    in_.set_position(end);
    vars_ = outer;
    return s;
  }
  void skip_factors() {
    for (int factor = 0; factor < 2; ++factor) {
      if (factor > 0) in_.expect("*");
      in_.expect(Token::word, "the name of a buffer");
      in_.expect("[");
      while (!in_.at("]") && in_.peek().kind != Token::end) in_.take();
      in_.expect("]");
    }
  }

  Stmt definition() {
    const Token name = in_.take();
    in_.expect("=");
    const Token word = in_.expect(Token::word, "an op");
    Stmt s{.kind = StmtKind::let};
    if (word.text == "constant") {
      s.kind = StmtKind::constant;
      constant(s);
    } else if (word.text == "index") {
      s.kind = StmtKind::index;
      s.value = affine();
      in_.expect(":");
      s.dtype = parse_dtype(in_);
    } else if (word.text == "load") {
      s.kind = StmtKind::load;
      s.buffer = buffer_name();
      s.dtype = kernel_.buffers[s.buffer.index].dtype;
      s.indices = indices();
      if (accept_guard()) {
        s.conditions = conditions();
        in_.expect("else");
        s.args = {value()};
      }
    } else if (word.text == "finish") {
      s.kind = StmtKind::finish;
      s.acc = acc_name();
      in_.expect(":");
      s.dtype = parse_dtype(in_);
    } else {
      if (!op_from_name(word.text, &s.op)) fail_unknown_op(word);
      while (!in_.at(":")) {
        if (!s.args.empty()) in_.expect(",");
        s.args.push_back(value());
      }
      in_.expect(":");
      s.dtype = parse_dtype(in_);
    }
    s.result = define_value(name);
    return s;
  }

  void constant(Stmt& s) {
    const ConstantText text = read_constant(in_);
    in_.expect(":");
    s.dtype = parse_dtype(in_);
    s.literal = make_constant(in_, text, Type{s.dtype, {}});
  }
  [[noreturn]] void fail_unknown_op(const Token& word) {
    std::vector<std::string_view> names = {"constant", "index", "load", "finish"};
    for (int i = 0; i < num_ops; ++i)
      if (const Op op = static_cast<Op>(i); family_of(op) == Family::elementwise || family_of(op) == Family::compare)
        names.push_back(burin::ir::name(op));
    in_.fail(word, Msg::parse_unknown_op, word.text, suggestion(word.text, names));
  }

  Lexer& in_;
  Kernel kernel_;
  int depth_ = 0;
  std::unordered_map<std::string, BufferId> buffers_;
  std::unordered_map<std::string, VarId> vars_;
  std::unordered_map<std::string, ScalarId> scalars_;
  std::unordered_map<std::string, AccId> accs_;
};

}  // namespace

Kernel parse_kernel(Lexer& in) { return KernelParser(in).run(); }

Kernel parse_kernel(std::string_view text, std::string_view file) {
  Lexer in(text, file);
  Kernel kernel = parse_kernel(in);
  if (in.peek().kind != Token::end) in.fail_expected("the end of the text");
  return kernel;
}

}  // namespace burin::ir
