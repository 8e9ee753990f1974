#include "examples/train_text/report.h"

#include <burin/burin.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

void write_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".part";
  {
    std::ofstream file(temporary, std::ios::binary);
    file << text;
    file.flush();
    if (!file) {
      const int reason = errno;
      std::remove(temporary.c_str());
      throw burin::Error("train_text: cannot write " + path + ": " + std::strerror(reason));
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    std::remove(temporary.c_str());
    throw burin::Error("train_text: cannot write " + path + ": " + std::strerror(reason));
  }
}

std::string loss_csv(const Report& report) {
  std::ostringstream out;
  out << "set,step,seconds,bits_per_byte\n";
  for (const Point& p : report.train) out << "train," << p.step << ',' << p.seconds << ',' << p.bits << '\n';
  for (const Point& p : report.validation) out << "validation," << p.step << ',' << p.seconds << ',' << p.bits << '\n';
  return out.str();
}

namespace {

std::string escape(const std::string& text) {
  std::string result;
  for (char c : text) switch (c) {
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '&': result += "&amp;"; break;
      default: result += static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\t' ? '.' : c;
    }
  return result;
}

std::string number(double x, int digits = 2) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, x);
  return text;
}

// Bits per byte against seconds, with axes; the training curve is averaged over neighbours so that its course is seen.
std::string curve(const Report& report) {
  const double width = 860, height = 340, left = 50, bottom = 34, top = 12, right = 14;
  double end = 1, high = 1;
  for (const auto* points : {&report.train, &report.validation})
    for (const Point& p : *points) {
      end = std::max(end, p.seconds);
      high = std::max(high, p.bits);
    }
  high = std::ceil(high);
  const auto x = [&](double seconds) { return left + (width - left - right) * seconds / end; };
  const auto y = [&](double bits) { return height - bottom - (height - bottom - top) * bits / high; };
  std::ostringstream svg;
  svg << "<svg viewBox='0 0 " << width << ' ' << height << "' role='img' aria-label='bits per byte against seconds'>";
  for (int b = 0; b <= static_cast<int>(high); b += high > 6 ? 2 : 1)
    svg << "<line class='grid' x1='" << left << "' x2='" << width - right << "' y1='" << y(b) << "' y2='" << y(b) << "'/><text x='" << left - 8
        << "' y='" << y(b) + 4 << "' text-anchor='end'>" << b << "</text>";
  for (int i = 0; i <= 5; ++i)
    svg << "<text x='" << x(end * i / 5) << "' y='" << height - 12 << "' text-anchor='middle'>" << number(end * i / 5, 0) << " s</text>";
  const std::size_t group = std::max<std::size_t>(1, report.train.size() / 300);
  svg << "<polyline class='train' points='";
  for (std::size_t i = 0; i < report.train.size(); i += group) {
    double bits = 0;
    const std::size_t n = std::min(group, report.train.size() - i);
    for (std::size_t k = 0; k < n; ++k) bits += report.train[i + k].bits / static_cast<double>(n);
    svg << number(x(report.train[i].seconds), 1) << ',' << number(y(bits), 1) << ' ';
  }
  svg << "'/><polyline class='validation' points='";
  for (const Point& p : report.validation) svg << number(x(p.seconds), 1) << ',' << number(y(p.bits), 1) << ' ';
  svg << "'/>";
  for (const Point& p : report.validation) svg << "<circle class='validation' cx='" << number(x(p.seconds), 1) << "' cy='" << number(y(p.bits), 1) << "' r='3'/>";
  svg << "</svg>";
  return svg.str();
}

std::string bars(const std::vector<std::pair<std::string, double>>& values) {
  double most = 1e-30;
  for (const auto& [name, value] : values) most = std::max(most, value);
  std::ostringstream out;
  out << "<table>";
  for (const auto& [name, value] : values) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    out << "<tr><td>" << escape(name) << "</td><td class='n'>" << text << "</td><td><div class='bar' style='width:" << number(220 * value / most, 1)
        << "px'></div></td></tr>";
  }
  return out.str() + "</table>";
}

std::string folded(const std::string& title, const std::string& text) {
  return "<details><summary>" + escape(title) + "</summary><pre>" + escape(text) + "</pre></details>\n";
}

}  // namespace

std::string report_html(const Report& report) {
  std::ostringstream out;
  out << "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Burin: a Transformer trained on text</title><style>"
         "body{font:15px/1.5 system-ui,sans-serif;max-width:920px;margin:2em auto;padding:0 1em;color:#222}h1{font-size:1.5em}h2{font-size:1.15em;margin-top:1.8em}"
         "table{border-collapse:collapse}td{padding:.15em .8em .15em 0;vertical-align:middle}.n{text-align:right;font-variant-numeric:tabular-nums}"
         "pre{background:#f6f6f4;padding:.8em;overflow:auto;max-height:34em;font-size:12px;line-height:1.4}svg text{font-size:12px;fill:#555}.grid{stroke:#ddd}"
         ".train{fill:none;stroke:#9ab}.validation{fill:none;stroke:#c33;stroke-width:2}circle.validation{fill:#c33}.bar{height:.7em;background:#469}"
         "details{margin:.6em 0}summary{cursor:pointer}</style></head><body><h1>A Transformer trained on text by Burin</h1><table>";
  for (const auto& [name, value] : report.facts) out << "<tr><td>" << escape(name) << "</td><td>" << escape(value) << "</td></tr>";
  out << "</table><h2>Bits per byte</h2><p>Grey: training batches, averaged. Red: files never trained on.</p>" << curve(report)
      << "<h2>What it writes</h2><p>Before training:</p><pre>" << escape(report.sample_before) << "</pre><p>After:</p><pre>" << escape(report.sample_after)
      << "</pre><h2>Root mean square of activations, after each block</h2>" << bars(report.activations)
      << "<h2>Root mean square of gradients</h2>" << bars(report.gradients) << "<h2>The compiled step</h2>"
      << "<pre>" << escape(report.times) << "</pre>" << folded("Kernels, step by step", report.kernels) << folded("Memory", report.memory)
      << folded("IR of the training step as traced and differentiated", report.ir_before)
      << folded("Program after fusion: steps and kernels", report.ir_after) << "</body></html>\n";
  return out.str();
}
