#include "examples/train_text/report.h"

#include <burin/burin.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

std::string printable(const std::string& text) {
  std::string result;
  for (char c : text)
    if ((c >= 32 && c < 127) || c == '\n' || c == '\t')
      result += c;
    else
      result += "\u00b7";
  return result;
}

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

void check_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw burin::Error("train_text: cannot make the folder " + folder + ": " + error.message());
  const std::string probe = folder + "/train_text.probe";
  write_file(probe, "");
  std::remove(probe.c_str());
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
      default: result += c;
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
  const double width = 1000, height = 360, left = 46, bottom = 30, top = 14, right = 64;
  double end = 0, high = 0, low = 1e9;
  std::vector<Point> train;
  const std::size_t group = std::max<std::size_t>(1, report.train.size() / 400);
  for (std::size_t i = 0; i < report.train.size(); i += group) {
    const std::size_t n = std::min(group, report.train.size() - i);
    Point mean;
    for (std::size_t k = 0; k < n; ++k) {
      mean.seconds += report.train[i + k].seconds / static_cast<double>(n);
      mean.bits += report.train[i + k].bits / static_cast<double>(n);
    }
    train.push_back(mean);
  }
  for (const std::vector<Point>* points : {static_cast<const std::vector<Point>*>(&train), &report.validation})
    for (const Point& p : *points) {
      end = std::max(end, p.seconds);
      high = std::max(high, p.bits);
      low = std::min(low, p.bits);
    }
  if (end <= 0) end = 1;
  low = std::floor(std::min(low, high));
  high = std::max(std::ceil(high), low + 1);
  const auto x = [&](double seconds) { return left + (width - left - right) * seconds / end; };
  const auto y = [&](double bits) { return top + (height - bottom - top) * (high - bits) / (high - low); };
  const auto path = [&](const std::vector<Point>& points) {
    std::string text;
    for (const Point& p : points) text += number(x(p.seconds), 1) + ',' + number(y(p.bits), 1) + ' ';
    return text;
  };
  std::ostringstream svg;
  svg << "<svg viewBox='0 0 " << width << ' ' << height << "' role='img' aria-label='bits per byte against seconds'>";
  for (int b = static_cast<int>(low); b <= static_cast<int>(high); ++b)
    svg << "<line class='grid' x1='" << left << "' x2='" << width - right << "' y1='" << y(b) << "' y2='" << y(b) << "'/><text x='" << left - 10
        << "' y='" << y(b) + 4 << "' text-anchor='end'>" << b << "</text>";
  for (int i = 0; i <= 5; ++i)
    svg << "<text x='" << x(end * i / 5) << "' y='" << height - 8 << "' text-anchor='middle'>" << number(end * i / 5, end < 10 ? 1 : 0) << " s</text>";
  svg << "<polyline class='train' points='" << path(train) << "'/><polyline class='validation' points='" << path(report.validation) << "'/>";
  for (const Point& p : report.validation) svg << "<circle class='validation' cx='" << number(x(p.seconds), 1) << "' cy='" << number(y(p.bits), 1) << "' r='3'/>";
  if (!report.validation.empty())
    svg << "<text class='last' x='" << width - right + 10 << "' y='" << y(report.validation.back().bits) + 5 << "'>" << number(report.validation.back().bits) << "</text>";
  svg << "</svg>";
  return svg.str();
}

std::string bar(double share, const char* kind) {
  return "<span class='bar'><i class='" + std::string(kind) + "' style='width:" + number(100 * std::clamp(share, 0.0, 1.0), 1) + "%'></i></span>";
}

// On a logarithmic scale: layers differ by orders of magnitude.
std::string magnitudes(const std::vector<std::pair<std::string, double>>& values) {
  double least = 1e300, most = 1e-300;
  for (const auto& [name, value] : values)
    if (value > 0) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
  const double low = std::floor(std::log10(least)), high = std::max(std::ceil(std::log10(most)), low + 1);
  std::ostringstream out;
  out << "<table class='plain'>";
  for (const auto& [name, value] : values) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2e", value);
    out << "<tr><td class='mono'>" << escape(name) << "</td><td class='n'>" << text << "</td><td class='wide'>"
        << bar(value > 0 ? (std::log10(value) - low) / (high - low) : 0, "time") << "</td></tr>";
  }
  return out.str() + "</table>";
}

std::string kernel_table(const burin::Profile& profile) {
  std::ostringstream out;
  out << "<table class='kernels'><tr><th>kernel</th><th class='n'>calls</th><th class='n'>threads</th><th class='n'>&micro;s</th><th colspan='2'>share of the step</th>"
         "<th class='n'>GFLOP/s</th><th class='n'>GB/s</th><th colspan='2'>share of the limit</th></tr>";
  for (const burin::Profile::Kernel& k : profile.kernels) {
    const double time = std::max(k.seconds, 1e-9), share = k.seconds / std::max(profile.seconds, 1e-9);
    const bool flops = k.flop_share > k.byte_share;
    const std::size_t cut = k.name.find(" (");
    out << "<tr><td><b class='mono'>" << escape(k.name.substr(0, cut)) << "</b>"
        << (cut == std::string::npos ? "" : " <span class='where'>" + escape(k.name.substr(cut + 2, k.name.size() - cut - 3)) + "</span>") << "</td><td class='n'>" << k.calls
        << "</td><td class='n'>" << k.threads << "</td><td class='n'>" << number(k.seconds * 1e6, 1) << "</td><td class='n'>" << number(100 * share, 1) << "%</td><td>"
        << bar(share / std::max(1e-9, profile.kernels[0].seconds / std::max(profile.seconds, 1e-9)), "time") << "</td><td class='n'>" << number(k.flops * 1e-9 / time, 1)
        << "</td><td class='n'>" << number(k.bytes * 1e-9 / time, 1) << "</td><td class='n'>" << number(100 * k.of_limit(), 0) << "%</td><td>"
        << bar(k.of_limit(), flops ? "flops" : "bytes") << "</td></tr>";
  }
  return out.str() + "</table>";
}

std::string folded(const std::string& title, const std::string& text) {
  const auto lines = std::count(text.begin(), text.end(), '\n');
  return "<details><summary>" + escape(title) + " <span class='where'>" + std::to_string(lines) + " lines</span></summary><pre>" + escape(text) + "</pre></details>\n";
}

constexpr const char* style = R"css(
:root{--ink:#1d2330;--soft:#667085;--line:#e3e6ec;--paper:#fff;--panel:#f7f8fa;--time:#5b7ba8;--flops:#c8553d;--bytes:#3d8c7c;--curve:#c8553d;--train:#b9c3d3}
@media(prefers-color-scheme:dark){:root{--ink:#e4e7ee;--soft:#98a2b3;--line:#2d3340;--paper:#14171d;--panel:#1c2129;--time:#6f92c4;--flops:#e0755c;--bytes:#58b3a1;--curve:#ef8268;--train:#465063}}
*{box-sizing:border-box}body{font:15px/1.55 system-ui,"DejaVu Sans",sans-serif;max-width:1080px;margin:2.2em auto;padding:0 1.2em;color:var(--ink);background:var(--paper)}
h1{font-size:1.7em;margin:0 0 .1em;letter-spacing:-.01em}h2{font-size:1.15em;margin:2.2em 0 .5em}p{margin:.3em 0 .8em;color:var(--soft)}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(230px,1fr));gap:10px;margin-top:1.2em}.facts div{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.6em .9em}
.facts b{display:block;font-size:1.3em;font-variant-numeric:tabular-nums}.facts span,.where{color:var(--soft);font-size:12.5px}
table{border-collapse:collapse;width:100%;font-size:13.5px}td,th{padding:.22em .55em;text-align:left;border-bottom:1px solid var(--line);vertical-align:middle}th{color:var(--soft);font-weight:500;font-size:12.5px}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.mono{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:12.5px}.plain .wide{width:50%}
.bar{display:block;min-width:80px;height:9px;background:var(--panel);border-radius:4px;overflow:hidden}.bar i{display:block;height:100%}.time{background:var(--time)}.flops{background:var(--flops)}.bytes{background:var(--bytes)}
.key{display:inline-block;width:10px;height:10px;border-radius:3px;margin:0 .35em 0 .9em}
pre{font:12px/1.45 ui-monospace,"DejaVu Sans Mono",monospace;background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.9em;overflow:auto;max-height:36em;margin:.4em 0;white-space:pre-wrap;overflow-wrap:anywhere}
details pre{white-space:pre}.two{display:grid;grid-template-columns:1fr 1fr;gap:14px}.two>div{min-width:0}@media(max-width:760px){.two{grid-template-columns:1fr}}
svg{width:100%;height:auto;display:block}svg text{font-size:12px;fill:var(--soft);font-family:inherit}.last{font-weight:600;fill:var(--curve)!important;font-size:14px!important}.grid{stroke:var(--line)}
polyline{fill:none;stroke-linejoin:round}.train{stroke:var(--train);stroke-width:1.5}polyline.validation{stroke:var(--curve);stroke-width:2}circle.validation{fill:var(--curve)}
details{border-bottom:1px solid var(--line);padding:.35em 0}summary{cursor:pointer})css";

}  // namespace

std::string report_html(const Report& report) {
  const burin::Profile& profile = report.profile;
  std::ostringstream out;
  out << "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>Burin: a Transformer trained on text</title><style>"
      << style << "</style></head><body><h1>A Transformer, trained by Burin " << burin::version()
      << "</h1><p>Written over burin::Tensor, traced, differentiated, fused, compiled to vector code and trained, in one process.</p><div class='facts'>";
  for (const auto& [name, value] : report.facts) out << "<div><b>" << escape(value) << "</b><span>" << escape(name) << "</span></div>";
  out << "</div><h2>Bits per byte</h2><p><i class='key' style='background:var(--train);margin-left:0'></i>training batches, averaged"
         "<i class='key' style='background:var(--curve)'></i>validation: whole files never trained on</p>"
      << curve(report) << "<h2>What it writes</h2><div class='two'><div><p>before training</p><pre>" << escape(printable(report.sample_before))
      << "</pre></div><div><p>after</p><pre>" << escape(printable(report.sample_after)) << "</pre></div></div>";
  if (!profile.kernels.empty()) {
    double flops = 0;
    for (const burin::Profile::Kernel& k : profile.kernels) flops += k.flops;
    out << "<h2>Where a training step spends its time</h2><p>One step takes " << number(profile.seconds * 1e3, 2) << " ms on " << profile.threads << " thread"
        << (profile.threads == 1 ? "" : "s") << ", " << number(flops * 1e-9 / profile.seconds, 0) << " GFLOP/s over all. Limits measured on this machine: "
        << number(profile.peak_flops * 1e-9, 0) << " GFLOP/s in f32, copies at " << number(profile.cache_bytes * 1e-9, 0) << " GB/s in cache and "
        << number(profile.memory_bytes * 1e-9, 0) << " GB/s in memory. A kernel's share is of the limit that binds it:<i class='key flops'></i>arithmetic"
        << "<i class='key bytes'></i>bandwidth.</p>" << kernel_table(profile);
  }
  out << "<div class='two'><div><h2>Activations</h2><p>root mean square of the residual stream, logarithmic</p>" << magnitudes(report.activations)
      << "</div><div><h2>Gradients</h2><p>root mean square by parameter, logarithmic</p>" << magnitudes(report.gradients) << "</div></div><h2>Inside the compiler</h2>"
      << folded("IR of the training step as traced and differentiated, before fusion", report.ir_before) << folded("After fusion: which op is in which kernel, and why", report.fusion)
      << folded("After lowering: the steps and the loops of the kernels", report.ir_after) << folded("Memory, value by value", report.memory) << "</body></html>\n";
  return out.str();
}
