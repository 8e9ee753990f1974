#include "tools/bench/items.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <tuple>

#include "tools/bench/model.h"

namespace bench {
namespace {

using namespace burin;

constexpr int check_steps = 3;

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

std::vector<std::int64_t> numbers(const std::string& text, std::size_t count, const std::string& item) {
  std::vector<std::int64_t> values;
  for (const std::string& part : split_at(text, 'x')) {
    if (part.empty() || part.find_first_not_of("0123456789") != std::string::npos)
      throw Error("item `" + item + "`: expected sizes such as 4096x1024, found `" + text + "`");
    if (part.size() > 9) throw Error("item `" + item + "`: sizes are at most 999999999, found " + part);
    values.push_back(std::stoll(part));
  }
  if (values.size() != count) throw Error("item `" + item + "`: expected " + std::to_string(count) + " sizes, found `" + text + "`");
  return values;
}

constexpr std::int64_t max_leaves = 100'000;

std::int64_t dispatch_leaves(const std::string& text, const std::string& item) {
  const bool short_number = !text.empty() && text.size() <= 9 && text.find_first_not_of("0123456789") == std::string::npos;
  if (const std::int64_t leaves = short_number ? std::stoll(text) : -1; leaves >= 0 && leaves <= max_leaves) return leaves;
  throw Error("item `" + item + "`: expected 0 to " + std::to_string(max_leaves) + " leaves, found `" + text + "`");
}

DType dtype_of(const std::string& text, const std::string& item) {
  if (text == "f32") return f32;
  if (text == "bf16") return bf16;
  throw Error("item `" + item + "`: expected the dtype f32 or bf16, found `" + text + "`");
}

/// [sum |y|, sum y * ramp] in f64; ramp is (i mod 13) - 6 over the row-major elements.
void add_check(const Tensor& y, std::vector<double>& check) {
  const std::vector<float> values = y.astype(f32).to_vector<float>();
  double total = 0, ramp = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    total += std::abs(static_cast<double>(values[i]));
    ramp += values[i] * (static_cast<double>(i % 13) - 6);
  }
  check.push_back(total);
  check.push_back(ramp);
}

Item train_step(const std::string& name, DType dtype, int num_threads) {
  const Config c = config(name);
  struct State {
    Params params, start;
    Tensor loss;
  };
  auto state = std::make_shared<State>();
  state->params = init(c);
  const Tensor ids = (arange(c.batch * c.positions) % c.vocabulary).reshape({c.batch, c.positions});
  const Tensor targets = (ids + 1) % c.vocabulary;
  // The starting values are kept apart: donation takes the parameters' own memory.
  state->start = tree::map([](Tensor t) { return t + 0; }, state->params);
  auto step = std::make_shared<Jit<std::pair<Params, Tensor>(Params, Tensor, Tensor)>>(jit(
      [heads = c.heads, dtype](Params p, Tensor inputs, Tensor wanted) {
        auto [l, grads] = value_and_grad(loss)(p, inputs, wanted, heads, dtype);
        return std::pair{tree::map([](Tensor a, Tensor g) { return a - 1e-3 * g; }, p, grads), l};
      },
      {.donate = {0}, .num_threads = num_threads}));
  Item item;
  item.compile_seconds = seconds_of([&] { step->lower(state->params, ids, targets).compile(); });
  item.profile = [state, step, ids, targets](int runs) { return step->lower(state->params, ids, targets).compile().profile(runs); };
  item.run = [state, step, ids, targets] { std::tie(state->params, state->loss) = (*step)(state->params, ids, targets); };
  const auto check = [state] {
    double moved = 0;
    const auto now = tree::leaves(state->params), then = tree::leaves(state->start);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const std::vector<float> a = now[i].second.to_vector<float>(), b = then[i].second.to_vector<float>();
      for (std::size_t k = 0; k < a.size(); ++k) moved += std::abs(static_cast<double>(a[k]) - b[k]);
    }
    return std::vector<double>{float(state->loss), moved};
  };
  for (int i = 0; i < check_steps; ++i) item.run();
  item.check_before = check();
  item.check_after = check;
  return item;
}

/// f(inputs) -> results, compiled and repeated.
Item compiled_call(std::function<std::vector<Tensor>(const std::vector<Tensor>&)> f, std::vector<Tensor> inputs, int num_threads) {
  struct State {
    std::vector<Tensor> inputs, results;
  };
  auto state = std::make_shared<State>();
  state->inputs = std::move(inputs);
  auto call = std::make_shared<Jit<std::vector<Tensor>(std::vector<Tensor>)>>(
      jit([f](std::vector<Tensor> in) { return f(in); }, {.num_threads = num_threads}));
  Item item;
  item.compile_seconds = seconds_of([&] { call->lower(state->inputs).compile(); });
  item.profile = [state, call](int runs) { return call->lower(state->inputs).compile().profile(runs); };
  item.run = [state, call] { state->results = (*call)(state->inputs); };
  item.check_after = [state] {
    std::vector<double> check;
    for (const Tensor& y : state->results) add_check(y, check);
    return check;
  };
  return item;
}

}  // namespace

std::string known_items() {
  return "train_step/{seed,small,gpt2}/{f32,bf16}, matmul/{nn,nt,tn}/MxNxK/DTYPE, attention_grad/BxHxTxD/DTYPE, "
         "{rms_norm,rms_norm_grad,softmax,gelu,gelu_grad,cross_entropy_grad}/ROWSxCOLUMNS/DTYPE, dispatch/LEAVES/f32";
}

Item make_item(const std::string& name, int num_threads) {
  const std::vector<std::string> parts = split_at(name, '/');
  const std::string& kind = parts[0];
  const auto need = [&](std::size_t n) {
    if (parts.size() != n) throw Error("item `" + name + "`: expected one of " + known_items());
  };
  if (kind == "train_step") {
    need(3);
    return train_step(parts[1], dtype_of(parts[2], name), num_threads);
  }
  std::int64_t draws = 0;
  const auto draw = [&](const Shape& shape, DType dtype) { return random::normal(random::key(++draws), shape).astype(dtype); };
  if (kind == "dispatch") {
    need(3);
    const std::int64_t leaves = dispatch_leaves(parts[1], name);
    std::vector<Tensor> xs;
    for (std::int64_t i = 0; i < leaves; ++i) xs.push_back(full({8}, static_cast<double>(i)));
    return compiled_call(
        [](const std::vector<Tensor>& in) {
          std::vector<Tensor> out;
          for (const Tensor& x : in) out.push_back(x + 1);
          return out;
        },
        xs, num_threads);
  }
  if (kind == "matmul") {
    need(4);
    const auto mnk = numbers(parts[2], 3, name);
    const DType dtype = dtype_of(parts[3], name);
    const std::string form = parts[1];
    if (form != "nn" && form != "nt" && form != "tn") throw Error("item `" + name + "`: expected nn, nt or tn");
    const Tensor a = form[0] == 't' ? draw({mnk[2], mnk[0]}, dtype) : draw({mnk[0], mnk[2]}, dtype);
    const Tensor b = form[1] == 't' ? draw({mnk[1], mnk[2]}, dtype) : draw({mnk[2], mnk[1]}, dtype);
    return compiled_call(
        [form](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{matmul(form[0] == 't' ? in[0].swapaxes(0, 1) : in[0], form[1] == 't' ? in[1].swapaxes(0, 1) : in[1])};
        },
        {a, b}, num_threads);
  }
  need(3);
  const DType dtype = dtype_of(parts[2], name);
  if (kind == "attention_grad") {
    const auto s = numbers(parts[1], 4, name);
    const Shape shape{s[0], s[1], s[2], s[3]};
    std::vector<Tensor> inputs;
    for (int i = 0; i < 4; ++i) inputs.push_back(draw(shape, dtype));
    return compiled_call(
        [](const std::vector<Tensor>& in) {
          auto [y, pull] = vjp(causal_attention, in[0], in[1], in[2]);
          auto [dq, dk, dv] = pull(in[3]);
          return std::vector<Tensor>{dq, dk, dv};
        },
        inputs, num_threads);
  }
  const auto s = numbers(parts[1], 2, name);
  const std::int64_t columns = s[1];
  const Shape shape{s[0], columns};
  const Tensor x = draw(shape, dtype);
  if (kind == "softmax")
    return compiled_call([](const std::vector<Tensor>& in) { return std::vector<Tensor>{softmax(in[0], -1)}; }, {x}, num_threads);
  if (kind == "gelu")
    return compiled_call([](const std::vector<Tensor>& in) { return std::vector<Tensor>{nn::gelu(in[0])}; }, {x}, num_threads);
  const Tensor scale = ones({columns}, dtype);
  if (kind == "rms_norm")
    return compiled_call([](const std::vector<Tensor>& in) { return std::vector<Tensor>{rms_norm(in[0], in[1])}; }, {scale, x}, num_threads);
  if (kind == "cross_entropy_grad") {
    const Tensor ids = arange(s[0]) % columns;
    return compiled_call(
        [](const std::vector<Tensor>& in) {
          const Tensor targets = in[1];
          auto [l, dx] = value_and_grad([targets](const Tensor& logits) {
            return -take_along_axis(log_softmax(logits.astype(f32), -1), targets[{ellipsis, newaxis}], -1).mean();
          })(in[0]);
          return std::vector<Tensor>{l, dx};
        },
        {x, ids}, num_threads);
  }
  const Tensor g = draw(shape, dtype);
  if (kind == "rms_norm_grad")
    return compiled_call(
        [](const std::vector<Tensor>& in) {
          auto [y, pull] = vjp(rms_norm, in[0], in[1]);
          auto [dscale, dx] = pull(in[2]);
          return std::vector<Tensor>{dscale, dx};
        },
        {scale, x, g}, num_threads);
  if (kind == "gelu_grad")
    return compiled_call(
        [](const std::vector<Tensor>& in) {
          auto [y, pull] = vjp([](const Tensor& v) { return nn::gelu(v); }, in[0]);
          auto [dx] = pull(in[1]);
          return std::vector<Tensor>{dx};
        },
        {x, g}, num_threads);
  throw Error("unknown item `" + name + "`: expected one of " + known_items());
}

}  // namespace bench
