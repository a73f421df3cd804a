#include "runtime/api/fit/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "runtime/base/status.h"

namespace tfjob::api {
namespace {

constexpr Duration kBarInterval = 100ms;
constexpr int64_t kBarWidth = 20;
constexpr char kBold[] = "\x1b[1m", kGreen[] = "\x1b[32m", kGrey[] = "\x1b[37m",
               kPlain[] = "\x1b[0m";

template <typename... Parts>
std::string Printed(const char* format, Parts... parts) {
  std::array<char, 64> text;
  const int size = std::snprintf(text.data(), text.size(), format, parts...);
  return {text.data(), static_cast<size_t>(std::clamp(size, 0, 63))};
}

double SecondsOf(Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

// Returns a duration in the form "12s", "1:05" or "2:01:05".
std::string TimeText(double seconds) {
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole > 3600)
    return Printed("%lld:%02lld:%02lld", whole / 3600, whole % 3600 / 60, whole % 60);
  if (whole > 60) return Printed("%lld:%02lld", whole / 60, whole % 60);
  return Printed("%llds", whole);
}

std::string Repeated(const char* text, int64_t count) {
  std::string all;
  for (int64_t i = 0; i < count; ++i) all += text;
  return all;
}

Verbose Resolved(Verbose verbose) {
  if (verbose != Verbose::kAuto) return verbose;
  return isatty(STDOUT_FILENO) != 0 ? Verbose::kBar : Verbose::kEpochs;
}

}  // namespace

std::string TimePerStepText(Duration elapsed, int64_t steps) {
  const double each = SecondsOf(elapsed) / static_cast<double>(std::max<int64_t>(steps, 1));
  if (each >= 1) return Printed("%.0fs/step", each);
  if (each >= 1e-3) return Printed("%.0fms/step", each * 1e3);
  return Printed("%.0fus/step", each * 1e6);
}

std::string MetricsText(const Metrics& metrics) {
  auto sorted = metrics.values();
  std::ranges::sort(sorted);
  std::string text;
  for (const auto& [name, value] : sorted) {
    text += StrCat(" - ", name, ": ", Printed(std::fabs(value) > 1e-3 ? "%.4f" : "%.4e", value));
  }
  return text;
}

std::string BarText(int64_t step, int64_t steps, Duration elapsed) {
  const int64_t done = steps > 0 ? std::min(kBarWidth * step / steps, kBarWidth) : kBarWidth;
  const double each = SecondsOf(elapsed) / static_cast<double>(std::max<int64_t>(step, 1));
  const double shown =
      step >= steps ? SecondsOf(elapsed) : each * static_cast<double>(steps - step);
  return StrCat(kBold, step, "/", steps, kPlain, " ", kGreen, Repeated("━", done), kPlain, kGrey,
                Repeated("━", kBarWidth - done), kPlain, " ", kBold, TimeText(shown), kPlain, " ",
                TimePerStepText(elapsed, step));
}

ProgressBar::ProgressBar(Verbose verbose, Clock& clock)
    : verbose_(Resolved(verbose)), clock_(clock) {}

void ProgressBar::BeginEpoch(int64_t epoch, int64_t epochs, int64_t step, int64_t steps) {
  first_ = step;
  steps_ = steps;
  start_ = shown_ = clock_.Monotonic();
  if (verbose_ == Verbose::kSilent) return;
  std::printf("Epoch %lld/%lld\n", static_cast<long long>(epoch + 1),
              static_cast<long long>(epochs));
  std::fflush(stdout);
}

bool ProgressBar::Due() const {
  return verbose_ == Verbose::kBar && clock_.Monotonic() - shown_ >= kBarInterval;
}

void ProgressBar::Update(int64_t step, const Metrics& metrics) {
  if (!Due()) return;
  shown_ = clock_.Monotonic();
  PrintLine(BarText(step, steps_, shown_ - start_) + MetricsText(metrics), /*last=*/false);
}

void ProgressBar::EndEpoch(const Metrics& metrics) {
  if (verbose_ == Verbose::kSilent) return;
  const Duration elapsed = clock_.Monotonic() - start_;
  if (verbose_ == Verbose::kBar)
    return PrintLine(BarText(steps_, steps_, elapsed) + MetricsText(metrics), /*last=*/true);
  std::printf("%lld/%lld - %s - %s%s\n", static_cast<long long>(steps_),
              static_cast<long long>(steps_), TimeText(SecondsOf(elapsed)).c_str(),
              TimePerStepText(elapsed, steps_ - first_).c_str(), MetricsText(metrics).c_str());
  std::fflush(stdout);
}

void ProgressBar::PrintLine(const std::string& text, bool last) {
  std::printf("\r\x1b[K%s%s", text.c_str(), last ? "\n" : "");
  std::fflush(stdout);
}

}  // namespace tfjob::api
