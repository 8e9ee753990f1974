// What is left behind: the loss as a table, and one page for people.
#pragma once
#include <burin/profile.h>

#include <string>
#include <utility>
#include <vector>

struct Point {
  long step = 0;
  double seconds = 0, bits = 0;
};

struct Report {
  std::vector<Point> train, validation;                           // bits per byte
  std::vector<std::pair<std::string, std::string>> facts;         // name, value
  std::vector<std::pair<std::string, double>> activations, gradients;  // RMS by place
  burin::Profile profile;
  std::string ir_before, fusion, ir_after, memory, sample_before, sample_after;
};

/// The text with a dot for each byte that is no printable ASCII: what an untrained model writes is no text, and no terminal should obey it.
std::string printable(const std::string& text);
/// Writes beside its place and renames: nobody sees half a file. Throws burin::Error naming the path and the reason.
void write_file(const std::string& path, const std::string& text);
/// Throws burin::Error naming the folder and the reason when no file can be made in it; makes the folder when it is missing.
void check_folder(const std::string& folder);
std::string loss_csv(const Report& report);
std::string report_html(const Report& report);
