// Gradients of what models are made of: against finite differences in f64, and narrow ones against those in f64.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <burin/testing.h>

#include "tests/frontend/each_backend.h"
#include "tests/frontend/expect.h"

namespace burin {
namespace {

using Leaves = std::vector<Tensor>;

struct Audited {
  const char* name;
  std::vector<Shape> shapes;
  std::function<Tensor(const Leaves&)> f;
};

Tensor masked_attention(const Leaves& x) {
  const auto [b, h, t, d] = x[0].shape<4>();
  const Tensor scores = matmul(x[0], x[1].swapaxes(-1, -2)) / std::sqrt(static_cast<double>(d));
  const Tensor seen = tril(ones({t, t}, bool_));
  return matmul(softmax(where(seen, scores, -INFINITY), -1), x[2]);
}

const std::vector<Audited>& audited() {
  static const auto* const table = new std::vector<Audited>{
      {"softmax", {{3, 5}}, [](const Leaves& x) { return softmax(x[0], -1); }},
      {"softmax of axis 0", {{5, 1, 3}}, [](const Leaves& x) { return softmax(x[0], 0); }},
      {"log_softmax", {{3, 5}}, [](const Leaves& x) { return log_softmax(x[0], -1); }},
      {"logsumexp", {{4, 7}}, [](const Leaves& x) { return logsumexp(x[0], -1); }},
      {"rms_norm", {{3, 5}, {5}}, [](const Leaves& x) { return nn::rms_norm(x[0], x[1]); }},
      {"layer_norm", {{3, 5}, {5}, {5}}, [](const Leaves& x) { return nn::layer_norm(x[0], x[1], x[2]); }},
      {"gelu, tanh", {{3, 5}}, [](const Leaves& x) { return nn::gelu(x[0]); }},
      {"gelu, erf", {{3, 5}}, [](const Leaves& x) { return nn::gelu(x[0], nn::Gelu::erf); }},
      {"silu", {{3, 5}}, [](const Leaves& x) { return nn::silu(x[0]); }},
      {"softplus", {{3, 5}}, [](const Leaves& x) { return nn::softplus(x[0]); }},
      {"linear", {{2, 3, 5}, {5, 7}, {7}}, [](const Leaves& x) { return nn::linear(x[0], x[1], x[2]); }},
      {"embedding", {{5, 3}}, [](const Leaves& x) { return nn::embedding(x[0], tensor({4, 0, 4, 4, 1})); }},
      {"attention", {{2, 3, 2, 4}, {2, 5, 2, 4}, {2, 5, 2, 4}}, [](const Leaves& x) { return nn::attention(x[0], x[1], x[2]); }},
      {"causal attention", {{1, 5, 3, 4}, {1, 5, 3, 4}, {1, 5, 3, 4}},
       [](const Leaves& x) { return nn::attention(x[0], x[1], x[2], {.causal = true}); }},
      {"attention by hand", {{2, 3, 5, 4}, {2, 3, 5, 4}, {2, 3, 5, 4}}, masked_attention},
      {"cross entropy", {{4, 7}}, [](const Leaves& x) { return nn::cross_entropy(x[0], tensor({6, 0, 3, 3})); }},
      {"cross entropy of valid positions", {{4, 7}},
       [](const Leaves& x) { return nn::cross_entropy(x[0], tensor({6, 0, 3, 3}), tensor({1, 0, 1, 1}) > 0); }},
  };
  return *table;
}

Leaves drawn(const Audited& row, DType dtype) {
  Leaves leaves;
  for (std::size_t i = 0; i < row.shapes.size(); ++i)
    leaves.push_back(random::normal(random::key(static_cast<std::int64_t>(i) + 1), row.shapes[i]).astype(bf16).astype(dtype));
  return leaves;
}

class Gradients : public test::EachBackend {};

TEST_P(Gradients, AgreeWithFiniteDifferences) {
  for (const Audited& row : audited())
    EXPECT_NO_THROW(check_grads([&](const Leaves& x) { return row.f(x); })(drawn(row, f64))) << row.name;
}

// The inputs are the same numbers in every dtype, so all that differs is rounding: some tens of unit roundoffs.
TEST_P(Gradients, OfNarrowFloatsAreThoseOfF64Rounded) {
  for (const Audited& row : audited()) {
    const auto gradient = [&](DType dtype) {
      const auto loss = [&](const Leaves& x) {
        const Tensor y = row.f(x);
        const Tensor weights = random::normal(random::key(99), y.shape()).astype(bf16);
        return (y.astype(f64) * weights.astype(f64)).sum();
      };
      return grad(loss)(drawn(row, dtype));
    };
    const Leaves exact = gradient(f64);
    for (const auto& [dtype, roundoff] : {std::pair{f32, 0x1p-24}, std::pair{f16, 0x1p-11}, std::pair{bf16, 0x1p-8}}) {
      const Leaves found = gradient(dtype);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        EXPECT_EQ(found[i].dtype(), dtype) << row.name;
        const double miss = double(sqrt(square(found[i].astype(f64) - exact[i]).sum()));
        const double size = double(sqrt(square(exact[i]).sum()));
        EXPECT_LE(miss, 16 * roundoff * size) << row.name << ", argument " << i << " in " << name(dtype);
        EXPECT_GT(size, 1e-3) << row.name << ": nothing is compared";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Audit, Gradients, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace burin
