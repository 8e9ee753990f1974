// The parent forks workers, which check one seed after another and end at the first failure, by themselves or by a
// crash; the parent shrinks it and lets another worker go on behind it.
#include "tests/fuzz/campaign.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include "base/check.h"
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
  std::atomic<std::uint64_t> seed, programs, exact, erring, elements, free_elements;
  std::array<std::atomic<std::uint64_t>, 32> checks;  // by property
  std::atomic<std::size_t> property;
  std::atomic<bool> failed;
  char text[8192];
};

// In the parent and in each worker: a worker ends at its next program.
volatile std::sig_atomic_t stopped = 0;
void stop(int) { stopped = 1; }

bool is_chosen(const Property& property, const std::vector<std::string>& only, Case& c) {
  if (only.empty()) return has_share(property, c);
  return std::find(only.begin(), only.end(), property.name) != only.end();
}

/// The first failure's text; `property` says whose it is, also while one runs.
std::string check_all(Case& c, const Settings& settings, Shared& shared) {
  for (std::size_t p = 0; p < properties().size(); ++p) {
    shared.property = p;
    std::string text;
    try {
      if (!is_chosen(properties()[p], settings.only, c)) continue;
      text = properties()[p].check(c);
    } catch (const std::exception& error) {
      text = std::string("exception: ") + error.what();
    }
    ++shared.checks[p];
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
    if (stopped != 0 || (settings.seconds > 0 && Clock::now() > end)) break;
    limit_time(seconds_per_program);
    shared.seed = seed;
    shared.property = properties().size();
    std::string text;
    try {
      Case c(generate(seed, settings.recipe), seed, settings.only.empty());
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
      _exit(0);
    }
    shared.seed = seed + stride;
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
      const pid_t ended = waitpid(-1, &status, settings_.progress > 0 ? WNOHANG : 0);
      if (ended <= 0) {
        if (stopped != 0) pass_on(SIGTERM);
        if (settings_.progress > 0) wait_and_tell();
        continue;
      }
      const auto w = static_cast<std::size_t>(
          std::find_if(workers_.begin(), workers_.end(), [&](const Worker& x) { return x.id == ended; }) -
          workers_.begin());
      if (w == workers_.size()) continue;
      if (!settle(w, status)) --running;
    }
    return counted();
  }

 private:
  void pass_on(int signal) {
    for (const Worker& worker : workers_) kill(worker.id, signal);
  }

  void wait_and_tell() {
    usleep(100000);
    if (std::chrono::duration<double>(Clock::now() - told_).count() < settings_.progress) return;
    told_ = Clock::now();
    const Summary now = counted();
    std::uint64_t failures = 0;
    for (const Failure& failure : now.failures) failures += failure.times;
    fmt::print("{} programs, {:.0f} a minute, {} failures; all before seed {}\n", now.programs,
               60 * static_cast<double>(now.programs) / now.seconds, failures, now.next_seed);
    std::fflush(stdout);
  }

  void launch(std::size_t w, std::uint64_t first) {
    Worker& worker = workers_[w];
    worker.shared->failed = false;
    worker.shared->seed = first;
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
    } else if (WIFSIGNALED(status) && is_timeout(WTERMSIG(status))) {
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

  Summary counted() const {
    Summary sum = summary_;
    sum.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    sum.checks.resize(properties().size());
    sum.next_seed = workers_[0].shared->seed;
    for (const Worker& worker : workers_) {
      const Shared& shared = *worker.shared;
      sum.next_seed = std::min<std::uint64_t>(sum.next_seed, shared.seed);
      sum.programs += shared.programs;
      for (std::size_t p = 0; p < sum.checks.size(); ++p) sum.checks[p] += shared.checks[p];
      sum.exact += shared.exact;
      sum.erring += shared.erring;
      sum.elements += shared.elements;
      sum.free_elements += shared.free_elements;
    }
    return sum;
  }

  const Settings& settings_;
  Clock::time_point start_, end_, told_ = start_;
  std::vector<Worker> workers_;
  std::map<std::string, std::size_t> kinds_;
  Summary summary_;
};

}  // namespace

Summary run(const Settings& settings) {
  BURIN_CHECK(properties().size() <= std::tuple_size_v<decltype(Shared::checks)>, "more properties than are counted");
  struct sigaction action = {};
  action.sa_handler = stop;  // without SA_RESTART: it ends a wait
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return Campaign(settings).run();
}

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
  std::string checks;
  for (std::size_t p = 0; p < s.checks.size(); ++p)
    if (s.checks[p] > 0) checks += fmt::format("{}{} {}", checks.empty() ? "" : ", ", properties()[p].name, s.checks[p]);
  return fmt::format(
      "checked: {}\n{} programs in {:.0f} s ({:.0f} a minute), all before seed {}; {} bit for bit, {} with an index out of range; "
      "{:.2f} % of {} result elements excluded; {} failures of {} kinds",
      checks, s.programs, s.seconds, 60 * static_cast<double>(s.programs) / std::max(s.seconds, 1e-3), s.next_seed, s.exact, s.erring, 100 * static_cast<double>(s.free_elements) / std::max<double>(static_cast<double>(s.elements), 1),
      s.elements, failures, s.failures.size());
}

}  // namespace burin::fuzz
