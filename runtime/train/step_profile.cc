#include "runtime/train/step_profile.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "runtime/base/file.h"
#include "runtime/trace/chrome.h"
#include "runtime/trace/totals.h"
#include "runtime/trace/trace.h"
#include "runtime/train/log.h"

namespace tfjob::train {
namespace {

constexpr size_t kLoggedOps = 10;

void LogOps(const std::vector<trace::Total>& totals, int64_t steps) {
  int64_t all = 0;
  for (const trace::Total& total : totals) all += total.ns;
  for (size_t i = 0; i < std::min(kLoggedOps, totals.size()); ++i) {
    const trace::Total& total = totals[i];
    const double ns = static_cast<double>(total.ns);
    const double share = 100 * ns / static_cast<double>(std::max<int64_t>(all, 1));
    kTrainLog.Info("profiled op",
                   {{"node", total.name},
                    {"op", total.kind},
                    {"share", absl::StrFormat("%.1f%%", share)},
                    {"us_per_step", absl::StrFormat("%.1f", ns / 1e3 / static_cast<double>(steps))},
                    {"calls", total.calls}});
  }
}

int64_t DroppedIn(const trace::Trace& trace) {
  int64_t dropped = 0;
  for (const trace::ThreadEvents& thread : trace.threads) dropped += thread.dropped;
  return dropped;
}

}  // namespace

StatusOr<ProfileOptions> ParseProfiledSteps(const std::string& text) {
  const std::vector<std::string> ends = absl::StrSplit(text, "..");
  ProfileOptions options;
  if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &options.first) ||
      !absl::SimpleAtoi(ends.back(), &options.last) || options.first < 1 ||
      options.last < options.first) {
    return InvalidArgument(
        "expected the first and the last step to profile, such as 10..20, got \"", text, "\"");
  }
  return options;
}

StepProfile::StepProfile(ProfileOptions options, std::string task)
    : options_(std::move(options)),
      task_(std::move(task)),
      state_(options_.last > 0 ? State::kBefore : State::kDone) {}

StepProfile::~StepProfile() {
  if (state_ == State::kRecording) Write();
  if (state_ == State::kBefore) {
    kTrainLog.Warning("no step was profiled: the run ended before the first step to profile",
                      {{"first_step", options_.first}});
  }
}

void StepProfile::BeforeStep(int64_t global_step) {
  if (state_ != State::kBefore || global_step + 1 < options_.first) return;
  if (global_step >= options_.last) {
    state_ = State::kDone;
    kTrainLog.Warning("no step was profiled: training continues after the last step to profile",
                      {{"last_step", options_.last}, {"step", global_step}});
    return;
  }
  state_ = State::kRecording;
  trace::Start();
}

void StepProfile::AfterStep(int64_t global_step) {
  if (state_ != State::kRecording) return;
  ++steps_;
  if (global_step >= options_.last) Write();
}

void StepProfile::Write() {
  state_ = State::kDone;
  const trace::Trace trace = trace::Stop();
  const std::string& file = options_.file;
  Status written = MakeDirectories(ParentFolder(file));
  if (written.ok()) written = WriteFileAtomically(file, trace::ChromeTrace(trace, task_));
  if (!written.ok()) {
    kTrainLog.Warning("the profile cannot be written", {{"error", written}});
  } else {
    kTrainLog.Info("wrote a profile, which ui.perfetto.dev shows",
                   {{"file", file}, {"steps", steps_}});
  }
  if (const int64_t dropped = DroppedIn(trace); dropped > 0) {
    kTrainLog.Warning("the profile is incomplete: profile fewer steps", {{"dropped", dropped}});
  }
  LogOps(trace::OpTotals(trace), std::max<int64_t>(steps_, 1));
}

}  // namespace tfjob::train
