// BURIN_TRACE: what a process leaves, in processes of their own, as it is there when they end.
#include "frontend/timeline.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "passes/pipeline.h"
#include "runtime/timeline.h"
#include "tests/frontend/each_backend.h"
#include "tests/frontend/expect.h"

namespace burin {
namespace {

using Json = nlohmann::json;

class TraceFiles : public test::EachBackend {
 public:
  TraceFiles() {
    testing::FLAGS_gtest_death_test_style =
        "threadsafe";  // a child that begins anew, not one of a process with threads
    // The child goes through here again, and must find the same name.
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ranges::replace(name, '/', '_');
    path_ = std::filesystem::temp_directory_path() / ("burin_trace_" + name + ".json");
  }
  /// The events that are in the file, which goes.
  std::vector<Json> events() {
    const Json all = Json::parse(std::ifstream(path_));
    std::filesystem::remove(path_);
    EXPECT_TRUE(no_leftovers());
    return all.at("traceEvents");
  }
  bool no_leftovers() const {
    const std::filesystem::path path(path_);
    for (const auto& entry : std::filesystem::directory_iterator(path.parent_path()))
      if (entry.path().filename().string().starts_with(path.filename().string())) return false;
    return true;
  }
  std::string path_;
};

/// Ends the process: 0 if `f` gives the same bits with and without a recording.
[[noreturn]] void exit_of(const std::string& path, const std::function<std::vector<float>()>& f) {
  const std::vector<float> before = f();
  setenv("BURIN_TRACE", path.c_str(), 1);
  std::exit(f() == before ? 0 : 3);
}

std::vector<float> softmax_of_products() {
  const auto f =
      jit([](Tensor x, Tensor w) { return softmax(matmul(x, w), -1) * x.sum(-1, keepdims); }, {.num_threads = 8});
  const auto key = random::key(1);
  std::vector<float> all;
  for (int i = 0; i < 3; ++i) {
    const Tensor result = f(random::normal(key, {131, 33 + i}), random::normal(key, {33 + i, 65}));
    for (float value : result.to_vector<float>()) all.push_back(value);
  }
  return all;
}

TEST_P(TraceFiles, HavePassesKernelsThreadsAndMemory) {
  // The first round compiles nothing that the second could take from it: other options.
  const auto body = [] {
    std::vector<float> all;
    const auto f =
        jit([](Tensor x) { return softmax(x * 1.5, -1).sum(0); }, {.num_threads = std::getenv("BURIN_TRACE") ? 8 : 7});
    return f(reshape(arange(15), {3, 5}).astype(f32)).to_vector<float>();
  };
  const auto both = [&] {
    (void)softmax_of_products();  // a call that is shared out
    return body();
  };
  EXPECT_EXIT(exit_of(path_, both), testing::ExitedWithCode(0), "");

  std::map<std::string, std::set<std::string>> names;  // by category
  std::set<std::string> functions, tracks;
  std::int64_t samples = 0;
  for (const Json& event : events()) {
    if (event.at("ph") == "M") {
      if (event.at("name") == "thread_name") tracks.insert(event.at("args").at("name").get<std::string>());
    } else if (event.at("ph") == "C") {
      ++samples;
      EXPECT_GE(event.at("args").at("bytes").get<std::int64_t>(), 0);
    } else {
      ASSERT_EQ(event.at("ph"), "X");
      EXPECT_GE(event.at("dur").get<double>(), 0);
      names[event.at("cat")].insert(event.at("name").get<std::string>());
      if (event.at("cat") == "compile") functions.insert(event.at("args").at("function").get<std::string>());
    }
  }
  EXPECT_GT(samples, 0);
  EXPECT_TRUE(tracks.contains("main"));
  EXPECT_TRUE(std::ranges::any_of(
      functions, [](const std::string& name) { return name.find("timeline_test.cpp:") != std::string::npos; }));
  std::set<std::string> expected = {"compile"};
  if (!is("evaluator"))
    for (const passes::PassInfo& pass : passes::pass_table()) expected.insert(std::string(pass.name));
  if (is("machine")) expected.insert("codegen");
  EXPECT_EQ(names["compile"], expected);
  EXPECT_EQ(names.contains("kernel"), is("machine"));
  EXPECT_EQ(names.contains("run"), is("machine"));
  if (!is("machine")) return;
  EXPECT_TRUE(std::ranges::any_of(names["kernel"], [](const std::string& name) {
    return name.starts_with("rows_0") && name.find("timeline_test.cpp:") != std::string::npos;
  }));
}

TEST_P(TraceFiles, SeveralHostThreads) {
  constexpr int hosts = 5, calls = 7;
  const auto body = [] {
    const auto f = jit([](Tensor x) { return (x * 2 + 1).sum(); }, {.num_threads = std::getenv("BURIN_TRACE") ? 2 : 3});
    std::vector<float> results(hosts * calls);
    std::vector<std::thread> threads;
    for (int host = 0; host < hosts; ++host)
      threads.emplace_back([&, host] {
        for (int call = 0; call < calls; ++call)
          results[host * calls + call] = f(full({3, 5 + host}, call)).item<float>();
      });
    for (std::thread& thread : threads) thread.join();
    return results;
  };
  EXPECT_EXIT(exit_of(path_, body), testing::ExitedWithCode(0), "");
  std::set<std::int64_t> compiling, running;
  for (const Json& event : events()) {
    if (event.at("ph") != "X") continue;
    (event.at("cat") == "compile" ? compiling : running).insert(event.at("tid").get<std::int64_t>());
  }
  EXPECT_GE(compiling.size(), 1u);
  EXPECT_EQ(running.size(), is("machine") ? std::size_t{hosts} : 0);
}

TEST(TraceFile, EndsAtTheLimitAndSaysSo) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto fill = [] {
    setenv("BURIN_TRACE", "/dev/null", 1);  // no file, which nothing may take the place of
    runtime::Timeline* timeline = detail::timeline();
    const auto now = runtime::Timeline::Clock::now();
    for (std::int64_t i = 0; i < runtime::Timeline::default_limit + 10; ++i)
      timeline->span("compile", "x", "", now, now);
    (void)jit([](Tensor x) { return x + 1; })(ones({3, 5}));
    std::exit(detail::timeline() == nullptr ? 0 : 3);
  };
  EXPECT_EXIT(
      fill(), testing::ExitedWithCode(0),
      "^burin: BURIN_TRACE: /dev/null holds 1000000 events, the most there can be; nothing more is recorded\n$");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_P(TraceFiles, WhatCannotBeWrittenIsSaidAtTheFirstCompile) {
  const auto run = [this] {
    const std::string folder = path_ + ".folder";
    setenv("BURIN_TRACE", (folder + "/x.json").c_str(), 1);
    const std::string text = test::error_of([] { (void)jit([](Tensor x) { return x + 1; })(ones({3, 5})); });
    if (text != "BURIN_TRACE: cannot write " + folder + "/x.json: No such file or directory") std::exit(3);
    std::exit(0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "^$");
}

TEST_P(TraceFiles, AFileThatCannotBeWrittenInTheEndIsSaidToo) {
  const auto run = [this] {
    const std::string folder = path_ + ".folder";
    std::filesystem::create_directory(folder);
    setenv("BURIN_TRACE", (folder + "/x.json").c_str(), 1);
    (void)jit([](Tensor x) { return x + 1; })(ones({3, 5}));
    std::filesystem::remove_all(folder);
    std::exit(0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0),
              "^burin: BURIN_TRACE: cannot write .*/x.json: No such file or directory\n$");
}

INSTANTIATE_TEST_SUITE_P(Backends, TraceFiles, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace burin
