// The parent forks workers, which check one seed after another and end at the first failure, by themselves or by a
// crash; the parent shrinks it and lets another worker go on behind it.
#include "tests/fuzz/campaign.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "ir/printer.h"
#include "tests/fuzz/isolate.h"
#include "tests/fuzz/properties.h"
#include "tests/fuzz/shrink.h"

namespace burin::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned seconds_per_program = 120;

/// Written by a worker, read by the parent.
struct Shared {
  std::atomic<std::uint64_t> seed, programs, checks, exact, erring, elements, free_elements;
  std::atomic<std::size_t> property;
  std::atomic<bool> failed;
  char text[8192];
};

bool is_chosen(const Property& property, const std::vector<std::string>& only, std::uint64_t seed) {
  if (only.empty()) return runs_on(property, seed);
  return std::find(only.begin(), only.end(), property.name) != only.end();
}

/// The first failure's text; `property` says whose it is, also while one runs.
std::string check_all(Case& c, const Settings& settings, Shared& shared) {
  for (std::size_t p = 0; p < properties().size(); ++p) {
    if (!is_chosen(properties()[p], settings.only, c.seed())) continue;
    shared.property = p;
    std::string text;
    try {
      text = properties()[p].check(c);
    } catch (const std::exception& error) {
      text = std::string("exception: ") + error.what();
    }
    ++shared.checks;
    if (!text.empty()) return text;
  }
  return "";
}

void count(Case& c, Shared& shared) {
  ++shared.programs;
  const Case::Expected& expected = c.expected();
  if (!expected.error.empty()) ++shared.erring;
  if (c.is_exact()) ++shared.exact;
  for (const Enclosure& e : expected.results) {
    shared.elements += static_cast<std::uint64_t>(e.value.type().size());
    shared.free_elements += static_cast<std::uint64_t>(e.num_free());
  }
}

[[noreturn]] void work(const Settings& settings, Shared& shared, std::uint64_t first, std::uint64_t stride,
                       Clock::time_point end) {
  for (std::uint64_t seed = first;; seed += stride) {
    if (settings.count > 0 && seed - settings.seed >= settings.count) break;
    if (settings.seconds > 0 && Clock::now() > end) break;
    alarm(seconds_per_program);
    shared.seed = seed;
    shared.property = properties().size();
    std::string text;
    try {
      Case c(generate(seed, settings.recipe), seed);
      text = check_all(c, settings, shared);
      if (text.empty() && settings.only.empty())
        count(c, shared);
      else
        ++shared.programs;
    } catch (const std::exception& error) {
      text = std::string("exception: ") + error.what();
    }
    if (!text.empty()) {
      std::snprintf(shared.text, sizeof shared.text, "%s", text.c_str());
      shared.failed = true;
      break;
    }
  }
  _exit(0);
}

struct Worker {
  pid_t id = -1;
  Shared* shared = nullptr;
  int errors = -1;
};

class Campaign {
 public:
  explicit Campaign(const Settings& settings) : settings_(settings), start_(Clock::now()) {
    end_ = start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(settings.seconds));
  }

  Summary run() {
    workers_.resize(static_cast<std::size_t>(std::max(settings_.processes, 1)));
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      workers_[w].shared = new (memory) Shared{};
      workers_[w].errors = memfd_create("errors", 0);
      launch(w, settings_.seed + w);
    }
    for (std::size_t running = workers_.size(); running > 0;) {
      int status = 0;
      const pid_t ended = waitpid(-1, &status, 0);
      const auto w = static_cast<std::size_t>(
          std::find_if(workers_.begin(), workers_.end(), [&](const Worker& x) { return x.id == ended; }) -
          workers_.begin());
      if (w == workers_.size()) continue;
      if (!settle(w, status)) --running;
    }
    for (const Worker& worker : workers_) add_counts(*worker.shared);
    summary_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    return std::move(summary_);
  }

 private:
  void launch(std::size_t w, std::uint64_t first) {
    Worker& worker = workers_[w];
    worker.shared->failed = false;
    if (ftruncate(worker.errors, 0) != 0) return;
    lseek(worker.errors, 0, SEEK_SET);
    worker.id = fork();
    if (worker.id == 0) {
      dup2(worker.errors, STDERR_FILENO);
      work(settings_, *worker.shared, first, workers_.size(), end_);
    }
  }

  // After a worker's end: false when it had nothing left to do.
  bool settle(std::size_t w, int status) {
    Shared& shared = *workers_[w].shared;
    if (!shared.failed && WIFEXITED(status) && WEXITSTATUS(status) == 0) return false;
    std::string text;
    if (shared.failed) {
      text = shared.text;
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
      text = "timeout";
    } else {
      char tail[4096] = {};
      if (pread(workers_[w].errors, tail, sizeof tail - 1, 0) < 0) tail[0] = 0;
      text = fmt::format("crash: signal {}\n{}", WIFSIGNALED(status) ? WTERMSIG(status) : 0, tail);
    }
    const std::uint64_t seed = shared.seed;
    const std::size_t property = shared.property;
    launch(w, seed + workers_.size());
    report(seed, property, text);
    if (summary_.failures.size() < settings_.max_kinds) return true;
    kill(workers_[w].id, SIGKILL);
    waitpid(workers_[w].id, &status, 0);
    return false;
  }

  void report(std::uint64_t seed, std::size_t property, const std::string& text) {
    const std::string name = property < properties().size() ? properties()[property].name : "generate";
    const std::string kind = name + ": " + kind_of(text);
    if (const auto known = kinds_.find(kind); known != kinds_.end()) {
      ++summary_.failures[known->second].times;
      return;
    }
    kinds_[kind] = summary_.failures.size();
    Failure failure{seed, name, text, "", 1};
    fmt::print("FAILED {} at seed {}: {}\n", name, seed, text);
    std::fflush(stdout);
    if (property < properties().size()) shrink_failure(failure, properties()[property]);
    summary_.failures.push_back(failure);
    if (!settings_.save.empty()) save(failure);
  }

  void shrink_failure(Failure& failure, const Property& property) {
    const ir::Function whole = generate(failure.seed, settings_.recipe);
    const auto failing = [&](const ir::Function& f) {
      return isolated(
          [&] {
            Case c(f, failure.seed);
            return property.check(c);
          },
          30);
    };
    const bool crashes = failure.text.starts_with("crash") || failure.text == "timeout";
    std::string last = failure.text;
    const std::function<bool(const ir::Function&)> fails = [&](const ir::Function& f) {
      const std::string text = failing(f);
      if (text.empty() || (text.starts_with("crash") || text == "timeout") != crashes) return false;
      if (text.starts_with("exception") != failure.text.starts_with("exception")) return false;
      last = text;
      return true;
    };
    ir::Function small = whole;
    if (fails(whole)) small = shrink(whole, fails, settings_.shrink_seconds);
    ir::PrintOptions options;
    options.max_elements = -1;
    failure.program = ir::print(small, options);
    failure.text = last;
    fmt::print(
        "shrunk to: {}\n{}repeat: burin-fuzz --seed {} --count 1 --only {}; of the text: burin-fuzz --file FILE --seed "
        "{} --only {}\n\n",
        last, failure.program, failure.seed, property.name, failure.seed, property.name);
    std::fflush(stdout);
  }

  void save(const Failure& failure) const {
    std::filesystem::create_directories(settings_.save);
    std::ofstream file(std::filesystem::path(settings_.save) / fmt::format("{}_{}.ir", failure.property, failure.seed));
    std::string note = "// " + failure.text;
    for (std::size_t at = 0; (at = note.find('\n', at)) != std::string::npos; at += 4) note.replace(at, 1, "\n// ");
    file << note << "\n// burin-fuzz --file THIS --seed " << failure.seed << " --only " << failure.property << "\n"
         << failure.program;
  }

  void add_counts(const Shared& shared) {
    summary_.programs += shared.programs;
    summary_.checks += shared.checks;
    summary_.exact += shared.exact;
    summary_.erring += shared.erring;
    summary_.elements += shared.elements;
    summary_.free_elements += shared.free_elements;
  }

  const Settings& settings_;
  Clock::time_point start_, end_;
  std::vector<Worker> workers_;
  std::map<std::string, std::size_t> kinds_;
  Summary summary_;
};

}  // namespace

Summary run(const Settings& settings) { return Campaign(settings).run(); }

std::string check(const ir::Function& f, std::uint64_t seed, const std::vector<std::string>& only) {
  Case c(f, seed);
  for (const Property& property : properties()) {
    if (!only.empty() && std::find(only.begin(), only.end(), property.name) == only.end()) continue;
    if (const std::string text = property.check(c); !text.empty()) return property.name + ": " + text;
  }
  return "";
}

std::string to_string(const Summary& s) {
  std::uint64_t failures = 0;
  for (const Failure& failure : s.failures) failures += failure.times;
  return fmt::format(
      "{} programs in {:.0f} s ({:.0f} a minute), {} checks; {} bit for bit, {} with an index out of range; {:.2f} % "
      "of {} result elements "
      "excluded; {} failures of {} kinds",
      s.programs, s.seconds, 60 * static_cast<double>(s.programs) / std::max(s.seconds, 1e-3), s.checks, s.exact,
      s.erring, 100 * static_cast<double>(s.free_elements) / std::max<double>(static_cast<double>(s.elements), 1),
      s.elements, failures, s.failures.size());
}

}  // namespace burin::fuzz
