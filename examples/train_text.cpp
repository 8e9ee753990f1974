// Trains a small byte-level Transformer on real text and leaves loss.csv, model.safetensors and report.html behind.
#include <burin/burin.h>
#include <burin/io.h>
#include <burin/optim.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <numbers>

#include "examples/train_text/corpus.h"
#include "examples/train_text/report.h"
using namespace burin;
using text_model::Batch;
using text_model::Params;

namespace {

constexpr std::int64_t batch_size = 16;
constexpr double expected_bits = 3.0;  // of a byte of the validation, after the usual time on the usual text
std::atomic<bool> interrupted{false};

struct Arguments {
  std::string path, out = "build/train_text";
  double seconds = -1;  // no limit, like steps
  long steps = -1;
  bool by_default = false;  // the usual time on the usual text
};

Arguments parse_arguments(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == argc) throw Error("train_text: " + word + " needs a value");
      return argv[++i];
    };
    const auto number = [&] {
      const std::string text = value();
      char* end = nullptr;
      const double x = std::strtod(text.c_str(), &end);
      if (text.empty() || *end != 0 || !(x >= 0 && x < 1e15)) throw Error("train_text: " + word + " expects a number of at least 0, found `" + text + "`");
      return x;
    };
    if (word == "--seconds") a.seconds = number();
    else if (word == "--steps") a.steps = static_cast<long>(number());
    else if (word == "--out") a.out = value();
    else if (word == "--help") {
      std::cout << "usage: train_text [FILE or FOLDER] [--seconds N] [--steps N] [--out FOLDER]\n"
                   "Trains on the bytes of a file, or of the *.h, *.cpp and *.md below a folder (this source tree unless given), for 100 seconds\n"
                   "unless told otherwise, and leaves loss.csv, model.safetensors and report.html in build/train_text. Ctrl-C ends it early.\n";
      std::exit(0);
    } else if (word.starts_with("-") || !a.path.empty()) throw Error("train_text: unknown argument `" + word + "`; see --help");
    else a.path = word;
  }
  a.by_default = a.path.empty() && a.seconds < 0 && a.steps < 0;
  if (a.path.empty()) a.path = source_tree();
  if (a.seconds < 0 && a.steps < 0) a.seconds = 100;
  return a;
}

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Warm-up over the first twentieth of the training, then a cosine down to a tenth.
double rate_at(double progress) {
  const double peak = 3e-3;
  if (progress < 0.05) return peak * std::max(progress, 0.001) / 0.05;
  return peak * (0.1 + 0.45 * (1 + std::cos(std::numbers::pi * (progress - 0.05) / 0.95)));
}

// Draws the bytes of one window one after another, the whole prefix each time; what is behind the prefix is hidden by the causal mask.
template <class Forward>
std::string sample(Forward& forward, const Params& params, const std::string& prompt, std::int64_t window) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(window), 0);
  std::copy(prompt.begin(), prompt.end(), ids.begin());
  std::mt19937_64 rng(1);
  std::string text = prompt;
  std::vector<std::vector<float>> used;
  for (std::size_t at = prompt.size(); at < ids.size(); ++at) {
    const Tensor logits = forward(params, tensor(std::span<const std::int32_t>(ids), {1, window}));
    used.push_back(logits[{0, static_cast<std::int64_t>(at) - 1}].to_vector<float>());
    std::vector<double> weights;
    float most = *std::max_element(used.back().begin(), used.back().end());
    for (float l : used.back()) weights.push_back(std::exp((l - most) / 0.8));
    ids[at] = std::discrete_distribution<int>(weights.begin(), weights.end())(rng);
    text += static_cast<char>(ids[at]);
  }
  // The same bytes given at once must have given the same logits.
  const Tensor forced = forward(params, tensor(std::span<const std::int32_t>(ids), {1, window}));
  for (std::size_t i = 0; i < used.size(); ++i)
    if (forced[{0, static_cast<std::int64_t>(prompt.size() + i) - 1}].to_vector<float>() != used[i])
      throw Error("train_text: sampling by prefix and teacher forcing disagree at position " + std::to_string(prompt.size() + i));
  return text;
}

std::string first_lines(const std::string& text, int count) {
  std::size_t end = 0;
  for (; count > 0 && end < text.size(); --count) end = std::min(text.find('\n', end), text.size() - 1) + 1;
  return text.substr(0, end);
}

std::string files(std::size_t n) { return std::to_string(n) + (n == 1 ? " file" : " files"); }

int run(const Arguments& arguments) {
  const text_model::Config config;
  const std::int64_t window = config.positions;
  const Corpus corpus = read_corpus(arguments.path, static_cast<std::size_t>(window));
  check_folder(arguments.out);
  std::cout << "train_text: " << corpus.train.size() << " bytes of " << files(corpus.train_files) << " to train on, " << corpus.validation.size()
            << " bytes of " << files(corpus.validation_files) << " to validate on\n";

  Params params = text_model::init(random::key(0), config);
  AdamState<Params> state = optim::adam_state(params);
  const int heads = config.heads;
  auto step = jit([heads](Params p, AdamState<Params> s, Batch b, Tensor rate) {
    auto [l, grads] = value_and_grad(text_model::loss)(p, b, heads);
    auto [next, moments] = optim::adamw(p, optim::clip_by_global_norm(grads, 1.0), s, rate, {.b2 = 0.99, .weight_decay = 0.01});
    return std::tuple{next, moments, l};
  }, {.donate = {0, 1}});
  auto evaluate = jit([heads](Params p, Batch b) { return text_model::loss(p, b, heads); });
  auto forward = jit([heads](Params p, Tensor ids) { return text_model::forward(p, ids, heads); });

  std::mt19937_64 rng(0);
  Report report;
  Batch batch = draw_batch(corpus.train, batch_size, window, rng);
  const auto compile_start = Clock::now();
  const auto lowered = step.lower(params, state, batch, Tensor(0.001));
  const auto compiled = lowered.compile();
  const double compile_seconds = since(compile_start);
  const auto plain = evaluate.lower(params, batch);
  char line[256];
  std::snprintf(line, sizeof line, "train_text: traced %ld ops, differentiated to %ld with AdamW, fused into %ld kernels (%ld calls), compiled in %.0f ms, peak memory %.1f MB",
                static_cast<long>(plain.num_ops()), static_cast<long>(lowered.num_ops()), static_cast<long>(compiled.num_kernels()),
                static_cast<long>(compiled.num_steps()), compile_seconds * 1e3, static_cast<double>(compiled.peak_bytes()) / 1e6);
  std::cout << line << "\n";
  const std::string prompt = "#include ";
  report.sample_before = sample(forward, params, prompt, window);

  const auto validate = [&] {
    double total = 0;
    const int batches = 16;
    for (int i = 0; i < batches; ++i) total += float(evaluate(params, fixed_batch(corpus.validation, batch_size, window, i, batches)));
    return total / batches / std::numbers::ln2;
  };
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  winsize size{};
  const int columns = terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 120;
  const auto start = Clock::now();
  report.validation.push_back({0, 0, validate()});
  double shown = -1, validated = 0, average = 0;  // shown: seconds in a terminal, else progress; validated: progress
  long done = 0;
  Tensor loss;
  const auto progress = [&] {
    const auto part = [](double now, double limit) { return limit < 0 ? 0.0 : limit > 0 ? now / limit : 1.0; };
    return std::min(1.0, std::max(part(since(start), arguments.seconds), part(static_cast<double>(done), static_cast<double>(arguments.steps))));
  };
  while (progress() < 1 && !interrupted) {
    std::tie(params, state, loss) = step(params, state, draw_batch(corpus.train, batch_size, window, rng), static_cast<float>(rate_at(progress())));
    ++done;
    const double bits = float(loss) / std::numbers::ln2, now = since(start);
    average = done == 1 ? bits : 0.98 * average + 0.02 * bits;
    report.train.push_back({done, now, bits});
    const double share = progress();
    if (share - validated > 0.05 && share < 1) {
      validated = share;
      report.validation.push_back({done, now, validate()});
    }
    if (share < 1 && (terminal ? now - shown < 0.1 : share - shown < 0.05)) continue;
    shown = terminal ? now : share;
    const int filled = static_cast<int>(24 * share);
    const std::string bar = '[' + std::string(static_cast<std::size_t>(filled), '#') + std::string(static_cast<std::size_t>(24 - filled), '.') + "] ";
    std::snprintf(line, sizeof line, "%s%sstep %ld  loss %.2f  %.2f bits/byte, validation %.2f  %.0f tokens/s  ETA %.0f s%s", terminal ? "\r" : "",
                  columns < 110 ? "" : bar.c_str(), done, average * std::numbers::ln2, average, report.validation.back().bits,
                  static_cast<double>(done * batch_size * window) / now, now / std::max(share, 1e-9) * (1 - share), terminal ? "\033[K" : "\n");
    std::cout << line << std::flush;
  }
  if (terminal) std::cout << '\n';
  if (interrupted) std::cout << "interrupted: writing what there is\n";
  const double seconds = since(start);
  const double bits = validate();
  report.validation.push_back({done, seconds, bits});
  report.sample_after = sample(forward, params, prompt, window);
  std::snprintf(line, sizeof line, "validation: %.3f bits per byte after %ld step%s and %.0f s", bits, done, done == 1 ? "" : "s", seconds);
  std::cout << line << "\n--- before training\n" << printable(report.sample_before) << "\n--- after\n" << printable(report.sample_after) << "\n---\n";

  const auto activations = jit([heads](Params p, Tensor ids) {
    std::vector<Tensor> rms;
    (void)text_model::forward(p, ids, heads, &rms);
    return rms;
  })(params, batch.inputs);
  for (std::size_t i = 0; i < activations.size(); ++i) report.activations.emplace_back("block " + std::to_string(i), float(activations[i]));
  const auto grads = grad(text_model::loss)(params, batch, heads);
  for (const auto& [path, g] : tree::leaves(grads)) report.gradients.emplace_back(path, float(sqrt(mean(square(g)))));
  report.profile = compiled.profile(50);
  std::cout << "where a step spends its time:\n" << first_lines(report.profile.text(), 7);
  report.fusion = compiled.explain_fusion();
  report.memory = compiled.memory();
  report.ir_before = lowered.text();
  report.ir_after = compiled.text();
  const auto text = [](auto n) {
    std::string digits = std::to_string(n);
    for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
    return digits;
  };
  const auto format = [&](const char* form, double x) {
    std::snprintf(line, sizeof line, form, x);
    return std::string(line);
  };
  report.facts = {{"bits per byte of validation", format("%.3f", bits)},
                  {"steps in " + format("%.0f s", seconds), text(done)},
                  {"tokens per second", text(seconds > 0 ? static_cast<std::int64_t>(static_cast<double>(done * batch_size * window) / seconds) : 0)},
                  {"parameters", text(tree::count(params))},
                  {"ops traced; " + text(lowered.num_ops()) + " with derivatives", text(plain.num_ops())},
                  {"kernels; " + text(compiled.num_steps()) + " calls a step", text(compiled.num_kernels())},
                  {"to trace and compile", format("%.0f ms", compile_seconds * 1000)},
                  {"memory of a step", format("%.1f MB", static_cast<double>(compiled.peak_bytes()) / 1e6)}};
  write_file(arguments.out + "/loss.csv", loss_csv(report));
  io::save(arguments.out + "/model.safetensors", params);
  write_file(arguments.out + "/report.html", report_html(report));
  std::cout << "left in " << arguments.out << ": loss.csv, model.safetensors, report.html\n";
  if (!arguments.by_default || interrupted) return 0;
  std::cout << (bits < expected_bits ? "ok   " : "FAIL ") << "the validation ends below " << expected_bits << " bits per byte\n";
  return bits < expected_bits ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, [](int) {
    interrupted = true;
    std::signal(SIGINT, SIG_DFL);  // the second one is meant
  });
  try {
    return run(parse_arguments(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
