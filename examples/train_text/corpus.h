// Bytes to train on, and bytes of whole other files to judge by.
#pragma once
#include <burin/burin.h>

#include <random>
#include <string>
#include <vector>

#include "examples/train_text/model.h"

struct Corpus {
  std::string train, validation;
  std::size_t train_files = 0, validation_files = 0;
};

/// A file, or all *.h, *.cpp and *.md below a folder; every eighth file is kept for validation (of a single file: its last eighth).
/// Throws burin::Error when the path cannot be read or holds too little text.
Corpus read_corpus(const std::string& path, std::size_t window);
/// The nearest folder from here upwards that holds a CMakeLists.txt; "." when there is none.
std::string source_tree();

/// Random windows [batch, window] and the bytes that follow each position.
text_model::Batch draw_batch(const std::string& text, std::int64_t batch, std::int64_t window, std::mt19937_64& rng);
/// Windows spread evenly over the text: the same for each call.
text_model::Batch fixed_batch(const std::string& text, std::int64_t batch, std::int64_t window, std::int64_t number, std::int64_t of);
