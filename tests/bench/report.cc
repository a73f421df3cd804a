#include "tests/bench/report.h"

#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace tfjob::bench {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double CpuSeconds() {
  double total = 0;
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    total += Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  }
  return total;
}

Times Now() {
  const auto wall = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration<double>(wall).count(), CpuSeconds()};
}

double PeakRssMb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // in kilobytes on Linux
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

Stopwatch::Stopwatch() : start_(Now()) {}

Times Stopwatch::Elapsed() const {
  const Times now = Now();
  return {now.wall_s - start_.wall_s, now.cpu_s - start_.cpu_s};
}

Report::Report(std::string_view name) {
  line_ = "{\"case\":" + Quoted(name);
}

Report& Report::Add(std::string_view name, std::string_view value) {
  return AddRaw(name, Quoted(value));
}

Report& Report::Add(std::string_view name, double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return AddRaw(name, std::isfinite(value) ? text : "null");
}

Report& Report::AddRaw(std::string_view name, const std::string& json) {
  line_.append(",").append(Quoted(name)).append(":").append(json);
  return *this;
}

void Report::Print(const Times& times) {
  Print(times, PeakRssMb());
}

void Report::Print(const Times& times, double peak_rss_mb) {
  double load = 0;
  getloadavg(&load, 1);
  Add("wall_s", times.wall_s).Add("cpu_s", times.cpu_s).Add("peak_rss_mb", peak_rss_mb);
  Add("load1", load);
  std::printf("%s}\n", line_.c_str());
  std::fflush(stdout);
}

}  // namespace tfjob::bench
