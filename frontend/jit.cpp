#include <burin/jit.h>

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "base/check.h"
#include "base/message_ids.h"
#include "base/place.h"
#include "frontend/compiled.h"
#include "frontend/trace_stack.h"
#include "ir/target.h"
#include "runtime/limits.h"
#include "runtime/small_blocks.h"

namespace burin {
namespace detail {
namespace {

std::atomic<std::int64_t> num_traces{0}, num_calls{0};

constexpr std::size_t static_values_before_note = 8;

// One compiled structure of arguments.
struct Entry {
  std::shared_ptr<const CompiledFunction> compiled;
  Hash128 program;                           // of the trace
  std::vector<Tensor> captures;
  std::shared_ptr<const void> result_like;
  std::vector<std::int64_t> slots;           // by result leaf: the function's result, or -1 when the leaf stays as it is
  std::vector<bool> weak;
  std::vector<std::string> labels;           // by argument leaf
  std::vector<PathFlattening::Entry> parts;  // of the arguments, for explaining recompiles
};

Hash128 program_hash(const ir::Function& f) {
  Hasher hasher;
  f.hash(hasher);
  return hasher.finish();
}

}  // namespace

class JitCore {
 public:
  JitCore(JitOptions o, std::source_location at) : options(std::move(o)), where(at) {}

  std::shared_ptr<const Entry> find(const Hash128& key) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->second;
  }
  void add(const Hash128& key, std::shared_ptr<const Entry> entry) {
    const std::lock_guard lock(mutex_);
    latest_ = entry;
    entries_[key] = std::move(entry);
  }
  std::shared_ptr<const Entry> latest() {
    const std::lock_guard lock(mutex_);
    return latest_;
  }
  /// Counts values of static numbers; returns the place that has just seen too many.
  std::string note_static(const std::string& place, const std::string& value) {
    const std::lock_guard lock(mutex_);
    auto& seen = static_values_[place];
    const bool added = seen.insert(value).second;
    return added && seen.size() == static_values_before_note ? place : "";
  }
  bool donates(std::size_t argument) const {
    return std::find(options.donate.begin(), options.donate.end(), static_cast<int>(argument)) != options.donate.end();
  }
  std::string label() const { return "jit (" + place_text(where) + ")"; }

  const JitOptions options;
  const std::source_location where;

 private:
  std::mutex mutex_;
  std::map<Hash128, std::shared_ptr<const Entry>> entries_;
  std::shared_ptr<const Entry> latest_;
  std::map<std::string, std::set<std::string>> static_values_;
};

void check_donation(const JitOptions& options, std::span<const bool> is_static_argument, std::source_location where) {
  std::set<int> seen;
  for (const int argument : options.donate) {
    if (argument < 0 || static_cast<std::size_t>(argument) >= is_static_argument.size())
      fail_at(where_text(where), Msg::donate_argument, argument, is_static_argument.size());
    if (is_static_argument[static_cast<std::size_t>(argument)])
      fail_at(where_text(where), Msg::donate_static, argument);
    if (!seen.insert(argument).second) fail_at(where_text(where), Msg::donate_twice, argument);
  }
}

namespace {

void check_options(const JitOptions& options, const std::source_location& where) {
  ir::Isa isa{};
  if (!options.max_isa.empty() && !ir::isa_from_name(options.max_isa, &isa))
    fail_at(where_text(where), Msg::unknown_isa, "jit: max_isa", options.max_isa, ir::known_isas());
  if (options.num_threads < 0 || options.num_threads > runtime::max_threads)
    fail_at(where_text(where), Msg::thread_count, "jit: num_threads", 0, runtime::max_threads, options.num_threads);
  if (options.memory_budget < -1) fail_at(where_text(where), Msg::memory_budget, options.memory_budget);
}

}  // namespace

void fail_empty_jit(std::source_location where) { fail_at(where_text(where), Msg::jit_empty); }

std::shared_ptr<JitCore> make_jit_core(JitOptions options, std::source_location where) {
  check_options(options, where);
  return std::make_shared<JitCore>(std::move(options), where);
}

bool is_tracing() { return current_trace() != nullptr; }

namespace {

// What a call lists, kept by the thread for the next one.
struct Lists {
  std::vector<Tensor*> leaves;                // of the arguments
  std::vector<std::uint32_t> leaf_arguments;  // by leaf: which argument it belongs to
  CallLists call;
};

thread_local std::unique_ptr<Lists> spare_lists;

std::unique_ptr<Lists> take_lists() { return spare_lists != nullptr ? std::move(spare_lists) : std::make_unique<Lists>(); }

void give_back(std::unique_ptr<Lists> lists) {
  lists->leaves.clear();
  lists->leaf_arguments.clear();
  lists->call.clear();
  spare_lists = std::move(lists);
}

// Reads arguments: leaves and the first key.
class KeyVisitor final : public TreeVisitor {
 public:
  explicit KeyVisitor(Lists& l) : lists(l) {}
  Lists& lists;
  std::uint32_t argument = 0;
  Hasher hasher;

  void leaf(Tensor& tensor) override {
    lists.leaves.push_back(&tensor);
    lists.leaf_arguments.push_back(argument);
    const Node* node = Access::node(tensor).get();
    if (!node) return hasher.add(0);
    const std::size_t kind = node->kind == Node::Kind::no_gradient ? 2 : 1;
    hasher.add(kind | std::size_t{node->weak} << 8 | static_cast<std::size_t>(node->type.dtype) << 16 | node->type.rank() << 32);
    for (std::int64_t extent : node->type.shape) hasher.add(extent);
  }
  void fixed(const Static& value) override {
    hasher.add(value.kind);
    hasher.add(value.bits);
    hasher.add(value.text);
    if (value.shape) {
      hasher.add(value.shape->rank());
      for (std::int64_t extent : *value.shape) hasher.add(extent);
    }
  }
  void length(std::size_t n) override { hasher.add(n); }
};

}  // namespace

struct JitCall::State {
  State(JitCore& c, const void* tag, Purpose p, const std::source_location& at)
      : core(c), purpose(p), where(at.line() != 0 ? at : c.where), lists(take_lists()), key_visitor(*lists) {
    key_visitor.hasher.add(reinterpret_cast<std::uintptr_t>(tag));
    key_visitor.hasher.add(chosen_backend());
  }
  ~State() { give_back(std::move(lists)); }
  static void* operator new(std::size_t bytes) {
    if (void* block = runtime::allocate_small(bytes)) return block;
    throw std::bad_alloc();
  }
  static void operator delete(void* block, std::size_t bytes) { runtime::release_small(block, bytes); }

  JitCore& core;
  Purpose purpose;
  std::source_location where;  // the call where it is known
  std::unique_ptr<Lists> lists;
  KeyVisitor key_visitor;
  Hash128 key;
  std::shared_ptr<const Entry> entry;
  std::shared_ptr<const Entry> to_check;  // BURIN_CHECK_CAPTURES: the entry that this trace should repeat

  std::unique_ptr<Trace> trace;
  std::shared_ptr<Entry> fresh;
  std::vector<ir::ValueId> values;
  std::vector<bool> donated;
  std::shared_ptr<const ir::Function> lowered;

  struct Bind final : PathFlattening {
    State* state = nullptr;
    std::size_t argument = 0;
    std::string label() const {
      return paths.back().empty() ? "arg" + std::to_string(argument) : paths.back();
    }
    void leaf(Tensor& tensor) override;
    void fixed(const Static& value) override;
  } bind;
  struct Collect final : PathFlattening {
    State* state = nullptr;
    void leaf(Tensor& tensor) override;
  } collect;
  struct Assign final : TreeVisitor {
    State* state = nullptr;
    std::size_t next = 0;
    void leaf(Tensor& tensor) override {
      const std::int64_t slot = state->entry->slots[next++];
      if (slot >= 0) tensor = std::move(state->lists->call.results[static_cast<std::size_t>(slot)]);  // one leaf has it
    }
  } assign;

  CompileOptions compile_options() const {
    const JitOptions& o = core.options;
    CompileOptions result;
    result.donated = donated;
    result.num_threads = o.num_threads;
    result.memory_budget = o.memory_budget;
    result.excess_precision = o.excess_precision;
    result.keep_packed = environment_flag("BURIN_KEEP_PACKED", true);
    result.max_isa = o.max_isa;
    result.label = core.label();
    result.place = where_text(where);
    return result;
  }
  [[noreturn]] void fail_donated(const Node& node, const std::string& leaf) const {
    fail_at(where_text(where), Msg::argument_donated, leaf, to_string(node.type), place_text(node.made_at));
  }
  void take_parts();  // of the argument that was bound last
  void explain() const;
  void check_captures(const ir::Function& f) const;
};

void JitCall::State::Bind::leaf(Tensor& tensor) {
  PathFlattening::leaf(tensor);
  const std::string name = label();
  state->fresh->labels.push_back(name);
  if (!tensor.defined()) fail_at(where_text(state->where), Msg::argument_without_value, "jit", name);
  const Node& node = *Access::node(tensor);
  if (node.kind == Node::Kind::donated) state->fail_donated(node, name);
  if (node.kind == Node::Kind::no_gradient) {
    entries.back().what = "a leaf without gradient";
    return;
  }
  const Node& used = used_node(tensor, state->where);
  entries.back().what = to_string(used.type) + (used.weak ? " (from a number)" : "");
  state->donated.push_back(state->core.donates(argument));
  tensor = state->trace->add_argument(used.type, used.weak, name);
}

void JitCall::State::Bind::fixed(const Static& value) {
  PathFlattening::fixed(value);
  using Kind = Static::Kind;
  if (value.kind != Kind::integer && value.kind != Kind::unsigned_integer && value.kind != Kind::floating) return;
  const auto& part = entries.back();
  const std::string place = "argument " + std::to_string(argument) + (part.path.empty() ? "" : ", `" + part.path + "`");
  const std::string type = value.kind == Kind::floating ? "floating point" : "integer";
  if (const std::string full = state->core.note_static(place, part.what); !full.empty())
    log_line(fmt::format("burin: {}: {} ({}) is static and has compiled {} times; pass a Tensor", state->core.label(), full,
                         type, static_values_before_note));
}

void JitCall::State::Collect::leaf(Tensor& tensor) {
  PathFlattening::leaf(tensor);
  const auto& node = Access::node(tensor);
  if (!node)
    fail_at(where_text(state->where), Msg::result_without_value, "jit", paths.back().empty() ? "result" : paths.back());
  if (node->kind == Node::Kind::no_gradient) {
    state->fresh->slots.push_back(-1);
    return;
  }
  state->fresh->slots.push_back(static_cast<std::int64_t>(state->values.size()));
  state->fresh->weak.push_back(tensor.weak());
  state->values.push_back(state->trace->resolve(tensor, state->where));
  tensor = Tensor();
}

void JitCall::State::take_parts() {
  if (!bind.state) return;
  const std::string name = "arg" + std::to_string(bind.argument);
  for (const auto& part : bind.entries)
    fresh->parts.push_back({part.path.empty() ? name : name + "." + part.path, part.what});
  bind.entries.clear();
}

void JitCall::State::explain() const {
  const auto before = core.latest();
  if (!before || !environment_flag("BURIN_EXPLAIN_RECOMPILES")) return;
  const auto& a = before->parts;
  const auto& b = fresh->parts;
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && a[i].path == b[i].path && a[i].what == b[i].what) ++i;
  const std::string place = i < b.size() ? b[i].path : i < a.size() ? a[i].path : "the arguments";
  const auto text = [&](const std::vector<PathFlattening::Entry>& parts) {
    if (i >= parts.size()) return std::string("nothing");
    return parts[i].path == place ? parts[i].what : parts[i].path + ": " + parts[i].what;
  };
  log_line(fmt::format("burin: {} compiles again: {}: {}, before {}", core.label(), place, text(b), text(a)));
}

void JitCall::State::check_captures(const ir::Function& f) const {
  const Entry& old = *to_check;
  const std::vector<Tensor>& now = trace->captures();
  for (std::size_t i = 0; i < std::min(now.size(), old.captures.size()); ++i) {
    if (Access::node(now[i]) == Access::node(old.captures[i])) continue;
    if (to_literal(now[i], {}) == to_literal(old.captures[i], {})) continue;
    log_line(fmt::format("burin: {}: captured value {}, {}, has changed since the trace; the compiled function uses the old "
                         "one (pass it as an argument)",
                         core.label(), i, type_text(now[i])));
  }
  if (program_hash(f) == old.program) return;
  const ir::Function& before = old.compiled->traced();
  std::string line = "the end";
  for (std::size_t i = 0; i < f.num_ops(); ++i) {
    const ir::OpId op{i};
    bool same = i < before.num_ops() && f.kind(op) == before.kind(op) && f.num_results(op) == before.num_results(op) &&
                std::ranges::equal(f.attributes(op), before.attributes(op));
    for (std::size_t r = 0; same && r < f.num_results(op); ++r) same = f.type(f.result(op, r)) == before.type(before.result(op, r));
    if (same) continue;
    line = to_string(f.location(op));
    break;
  }
  log_line(fmt::format("burin: {}: the function traces differently now, from {} on; the compiled one is used (what changed "
                       "must be an argument)",
                       core.label(), line));
}

JitCall::JitCall(JitCore& core, const void* type_tag, Purpose purpose, std::source_location where)
    : state_(std::make_unique<State>(core, type_tag, purpose, where)) {
  ++num_calls;
}
JitCall::~JitCall() = default;

TreeVisitor& JitCall::read(std::size_t argument) {
  state_->key_visitor.argument = static_cast<std::uint32_t>(argument);
  state_->key_visitor.hasher.add(argument);
  return state_->key_visitor;
}

bool JitCall::find() {
  State& s = *state_;
  s.key = s.key_visitor.hasher.finish();
  s.entry = s.core.find(s.key);
  if (s.entry && environment_flag("BURIN_CHECK_CAPTURES")) {
    s.to_check = s.entry;
    s.entry = nullptr;
  }
  return s.entry != nullptr;
}

void JitCall::begin_trace(std::span<const bool> is_static_argument) {
  State& s = *state_;
  check_donation(s.core.options, is_static_argument, s.core.where);
  s.trace = std::make_unique<Trace>("main");
  s.fresh = std::make_shared<Entry>();
  ++num_traces;
}

TreeVisitor& JitCall::bind(std::size_t argument) {
  State& s = *state_;
  s.take_parts();
  s.bind = State::Bind{};
  s.bind.state = &s;
  s.bind.argument = argument;
  return s.bind;
}

TreeVisitor& JitCall::result() {
  state_->collect.state = state_.get();
  return state_->collect;
}

void JitCall::end_trace(std::shared_ptr<const void> result_like) {
  State& s = *state_;
  s.take_parts();
  ir::Function f = s.trace->finish(std::move(s.values));
  s.fresh->captures = s.trace->captures();
  s.donated.resize(f.args().size(), false);
  if (s.purpose == Purpose::lower) {
    s.lowered = std::make_shared<const ir::Function>(std::move(f));
    return;
  }
  if (s.to_check) {
    s.check_captures(f);
    s.entry = s.to_check;
    return;
  }
  s.explain();
  s.fresh->program = program_hash(f);
  s.fresh->result_like = std::move(result_like);
  s.fresh->compiled = compile(std::move(f), s.compile_options());
  s.entry = s.fresh;
  s.core.add(s.key, s.fresh);
}

void JitCall::run() {
  State& s = *state_;
  const Entry& entry = *s.entry;
  CallLists& call = s.lists->call;
  for (std::size_t i = 0; i < s.lists->leaves.size(); ++i) {
    Tensor* leaf = s.lists->leaves[i];
    const Node& node = *Access::node(*leaf);
    if (node.kind == Node::Kind::no_gradient) continue;
    if (node.kind == Node::Kind::donated) s.fail_donated(node, entry.labels[i]);
    call.arguments.push_back(leaf);
    call.donated.push_back(s.core.donates(s.lists->leaf_arguments[i]));
  }
  run_compiled(*entry.compiled, call, entry.captures, s.where, s.core.where);
  for (std::size_t i = 0; i < call.results.size(); ++i) Access::node(call.results[i])->weak = entry.weak[i];
}

const void* JitCall::result_like() const { return state_->entry->result_like.get(); }

TreeVisitor& JitCall::assign() {
  state_->assign.state = state_.get();
  return state_->assign;
}

Lowered JitCall::lowered() const {
  auto lowered = std::make_shared<Lowered::State>();
  lowered->function = state_->lowered;
  lowered->options = state_->compile_options();
  return Lowered(std::move(lowered));
}

}  // namespace detail

JitStatistics jit_statistics() {
  return {detail::num_traces.load(), detail::compile_statistics().compiles, detail::num_calls.load()};
}

}  // namespace burin
