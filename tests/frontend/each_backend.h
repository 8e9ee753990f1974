// The fixture of tests that run on every backend: INSTANTIATE_TEST_SUITE_P(X, Fixture, test::every_backend(), test::backend_name).
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/support/machine.h"

namespace burin::test {

/// Sets BURIN_BACKEND to its parameter for its life. The machine is skipped in a build without code generation.
class EachBackend : public testing::TestWithParam<std::string_view> {
 public:
  EachBackend() : before_(std::getenv("BURIN_BACKEND")) { setenv("BURIN_BACKEND", std::string(GetParam()).c_str(), 1); }
  ~EachBackend() override { setenv("BURIN_BACKEND", before_.c_str(), 1); }
  bool is(std::string_view backend) const { return GetParam() == backend; }

 protected:
  void SetUp() override {
    if (is("machine") && !has_machine) GTEST_SKIP() << no_machine;
  }

 private:
  std::string before_;  // backend.cpp has set it
};

inline auto every_backend() { return testing::Values<std::string_view>("evaluator", "interpreter", "machine"); }
inline std::string backend_name(const testing::TestParamInfo<std::string_view>& info) { return std::string(info.param); }

}  // namespace burin::test
