// burin-bench: times one item and prints a JSON line with the times and check values that prove the work was done.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <burin/burin.h>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "runtime/limits.h"
#include "tools/bench/items.h"
#include "tools/execute/main.h"
#include "tools/execute/number_options.h"

int main(int argc, char** argv) {
  CLI::App app{"Times Burin on one item and prints a JSON line: item, system, median_s, min_s, compile_s, check.\nExit status: 0 done, 1 an item that there is not, 2 wrong usage.\nItems: " + bench::known_items()};
  std::vector<std::string> names;
  int reps = 5, threads = 0;
  app.add_option("item", names, "what to time")->required();
  app.add_option("--reps", reps, "timed repetitions")->check(tools::whole_number(1, 1'000'000))->capture_default_str();
  app.add_option("--threads", threads, "worker threads; 0: one per core")->check(tools::whole_number(0, burin::runtime::max_threads))->capture_default_str();
  bool profile = false;
  app.add_flag("--profile", profile, "print a table of the kernels instead: times, calls, rates, share of the machine's limit");
  const auto body = [&] {
    app.parse(argc, argv);
    burin::set_runtime({.cache_directory = ""});  // compile_s is the time of a compilation
    const auto written = [] {
      if (!std::cout.flush()) throw burin::Error("cannot write to stdout");
    };
    for (const std::string& name : names) {
      bench::Item item = bench::make_item(name, threads);
      if (profile) {
        std::cout << name << ": " << item.profile(reps).text();
        written();
        continue;
      }
      item.run();
      item.run();
      std::vector<double> times;
      for (int i = 0; i < reps; ++i) {
        const auto start = std::chrono::steady_clock::now();
        item.run();
        times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      }
      std::sort(times.begin(), times.end());
      const std::size_t n = times.size();
      const double median = n % 2 == 1 ? times[n / 2] : 0.5 * (times[n / 2 - 1] + times[n / 2]);
      std::vector<double> check = item.check_before;
      for (double value : item.check_after()) check.push_back(value);
      const nlohmann::ordered_json line = {{"item", name}, {"system", std::string("burin ") + std::string(burin::version())},
                                           {"median_s", median}, {"min_s", times.front()}, {"compile_s", item.compile_seconds}, {"check", check}};
      std::cout << line.dump() << '\n';
      written();
    }
    return 0;
  };
  return tools::run_main("burin-bench", app, body, [] { return "the tensors of an item do not fit into memory"; });
}
