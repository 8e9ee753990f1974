// Machine code that outlives its process: which folder, what is said of it, and that a second process finds the first
// one's.
#include "frontend/code_files.h"

#include <burin/burin.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "tests/support/machine.h"
#include "tests/support/temporary_folder.h"

namespace burin {
namespace {

using test::TemporaryFolder;

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    if (value != nullptr)
      setenv(name, value, 1);
    else
      unsetenv(name);
  }
  ~Variable() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class CodeFiles : public testing::Test {
 protected:
  ~CodeFiles() override { set_runtime({}); }
  void choose(std::optional<std::string> directory) {
    set_runtime(
        {.log = [this](std::string_view line) { lines.emplace_back(line); }, .cache_directory = std::move(directory)});
  }
  std::vector<std::string> lines;
  TemporaryFolder folder;
};

TEST_F(CodeFiles, lie_where_the_program_the_variable_or_the_user_says) {
  const Variable home("HOME", (folder / "home").c_str());
  const Variable xdg("XDG_CACHE_HOME", (folder / "xdg").c_str());
  const Variable variable("BURIN_CACHE_DIR", (folder / "variable").c_str());
  choose((folder / "program").string());
  EXPECT_NE(detail::code_files(), nullptr);
  EXPECT_TRUE(std::filesystem::exists(folder / "program"));
  EXPECT_FALSE(std::filesystem::exists(folder / "variable"));
  choose(std::nullopt);
  EXPECT_NE(detail::code_files(), nullptr);
  EXPECT_TRUE(std::filesystem::exists(folder / "variable"));
  unsetenv("BURIN_CACHE_DIR");
  EXPECT_NE(detail::code_files(), nullptr);
  EXPECT_TRUE(std::filesystem::exists(folder / "xdg/burin"));
  EXPECT_FALSE(std::filesystem::exists(folder / "home"));
  setenv("XDG_CACHE_HOME", "relative", 1);  // counts as not given
  EXPECT_NE(detail::code_files(), nullptr);
  EXPECT_TRUE(std::filesystem::exists(folder / "home/.cache/burin"));
  EXPECT_EQ(lines.size(), 0u);
}

TEST_F(CodeFiles, are_off_when_asked_to_without_a_word) {
  choose("");
  EXPECT_EQ(detail::code_files(), nullptr);
  choose(std::nullopt);
  const Variable variable("BURIN_CACHE_DIR", "");
  EXPECT_EQ(detail::code_files(), nullptr);
  EXPECT_EQ(lines.size(), 0u);
}

TEST_F(CodeFiles, are_off_with_one_line_where_they_cannot_be) {
  const std::string open = (folder / "open").string();
  std::filesystem::create_directory(open);
  std::filesystem::permissions(open, std::filesystem::perms(0755));
  choose(open);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(detail::code_files(), nullptr);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "burin: compiled code is not kept for later runs: " + open + " has mode 0755, not 0700");
  std::filesystem::permissions(open, std::filesystem::perms(0700));
  EXPECT_NE(detail::code_files(), nullptr);
  choose(std::nullopt);
  const Variable variable("BURIN_CACHE_DIR", nullptr), xdg("XDG_CACHE_HOME", nullptr), home("HOME", nullptr);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(detail::code_files(), nullptr);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[1].find("neither BURIN_CACHE_DIR, XDG_CACHE_HOME nor HOME names a folder"), std::string::npos)
      << lines[1];
}

// In a process of its own: compiles, and says on standard error what it was told and what it computed.
[[noreturn]] void compile_and_exit() {
  setenv("BURIN_BACKEND", "machine", 1);
  setenv("BURIN_LOG_COMPILES", "1", 1);
  const auto step = jit([](Tensor x, Tensor w) {
    return value_and_grad([](Tensor a, Tensor b) { return sum(softmax(tanh(matmul(a, b)), -1) * a); })(x, w).first +
           sum(nn::rms_norm(x, ones({5})));
  });
  const Tensor result = step(arange(15.0).reshape({3, 5}) * 0.125, arange(25.0).reshape({5, 5}) * 0.0625);
  std::cerr << result << std::endl;
  std::exit(0);
}

TEST(CodeFilesDeathTest, of_an_earlier_process_are_used) {
  if (!test::has_machine) GTEST_SKIP() << test::no_machine;
  GTEST_FLAG_SET(death_test_style,
                 "threadsafe");  // the children start anew, and take the folder from their environment
  std::optional<TemporaryFolder> own;
  const char* given = std::getenv("BURIN_CACHE_DIR");
  const bool is_child = given != nullptr && std::string_view(given).find("burin_test_") != std::string_view::npos;
  if (!is_child) own.emplace();
  const Variable variable("BURIN_CACHE_DIR", own ? own->path().c_str() : given);

  EXPECT_EXIT(compile_and_exit(), testing::ExitedWithCode(0), "jit.* kernels?, [0-9.]+ ms\n(.|\n)*16\\.579");
  EXPECT_EXIT(compile_and_exit(), testing::ExitedWithCode(0),
              "jit.* kernels?, [0-9.]+ ms, machine code at hand\n(.|\n)*16\\.579");
}

}  // namespace
}  // namespace burin
