#include "examples/train_text/corpus.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;
using burin::Error;

namespace {

// A pipe or a device might never end.
std::string read_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) throw Error("train_text: " + path.string() + " is no regular file");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("train_text: cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_source(const fs::path& path) {
  const std::string end = path.extension().string();
  return end == ".h" || end == ".cpp" || end == ".md";
}

text_model::Batch windows(const std::string& text, const std::vector<std::size_t>& starts, std::int64_t window) {
  std::vector<std::int32_t> inputs, targets;
  for (std::size_t start : starts)
    for (std::int64_t i = 0; i < window; ++i) {
      inputs.push_back(static_cast<unsigned char>(text[start + static_cast<std::size_t>(i)]));
      targets.push_back(static_cast<unsigned char>(text[start + static_cast<std::size_t>(i) + 1]));
    }
  const burin::Shape shape{static_cast<std::int64_t>(starts.size()), window};
  return {burin::tensor(std::span<const std::int32_t>(inputs), shape), burin::tensor(std::span<const std::int32_t>(targets), shape)};
}

}  // namespace

std::string source_tree() {
  for (fs::path at = fs::current_path(); ; at = at.parent_path()) {
    if (fs::exists(at / "CMakeLists.txt")) return at.string();
    if (at == at.parent_path()) return ".";
  }
}

Corpus read_corpus(const std::string& path, std::size_t window) {
  Corpus corpus;
  std::error_code error;
  if (!fs::exists(path, error)) throw Error("train_text: there is no file or folder " + path);
  if (!fs::is_directory(path)) {
    const std::string text = read_file(path);
    const std::size_t cut = text.size() - text.size() / 8;
    corpus = {text.substr(0, cut), text.substr(cut), 1, 1};
  } else {
    std::vector<fs::path> files;
    for (fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied), end; it != end; ++it) {
      const std::string name = it->path().filename().string();
      if (it->is_directory() && (name.starts_with(".") || name.starts_with("build") || name.starts_with("venv"))) {
        it.disable_recursion_pending();
        continue;
      }
      if (it->is_regular_file() && is_source(it->path())) files.push_back(it->path());
    }
    std::sort(files.begin(), files.end());
    for (std::size_t i = 0; i < files.size(); ++i) {
      const bool kept = i % 8 == 7;
      (kept ? corpus.validation : corpus.train) += read_file(files[i]);
      ++(kept ? corpus.validation_files : corpus.train_files);
    }
  }
  for (const std::string* part : {&corpus.train, &corpus.validation})
    if (part->size() < 16 * (window + 1))
      throw Error("train_text: " + path + " holds " + std::to_string(corpus.train.size()) + " bytes to train on and " +
                  std::to_string(corpus.validation.size()) + " to validate on; each must be at least " + std::to_string(16 * (window + 1)));
  return corpus;
}

text_model::Batch draw_batch(const std::string& text, std::int64_t batch, std::int64_t window, std::mt19937_64& rng) {
  std::uniform_int_distribution<std::size_t> start(0, text.size() - static_cast<std::size_t>(window) - 1);
  std::vector<std::size_t> starts;
  for (std::int64_t i = 0; i < batch; ++i) starts.push_back(start(rng));
  return windows(text, starts, window);
}

text_model::Batch fixed_batch(const std::string& text, std::int64_t batch, std::int64_t window, std::int64_t number, std::int64_t of) {
  const double step = static_cast<double>(text.size() - static_cast<std::size_t>(window) - 1) / static_cast<double>(batch * of);
  std::vector<std::size_t> starts;
  for (std::int64_t i = 0; i < batch; ++i) starts.push_back(static_cast<std::size_t>(static_cast<double>(number * batch + i) * step));
  return windows(text, starts, window);
}
