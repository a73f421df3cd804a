#include "runtime/train/step_profile.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "runtime/base/thread.h"
#include "runtime/trace/chrome.h"
#include "runtime/trace/totals.h"
#include "runtime/trace/trace.h"
#include "runtime/train/log.h"

namespace tfjob::train {
namespace {

constexpr size_t kLoggedOps = 10;
// How long the end of the run waits for the trace.
constexpr Duration kProfilePatience{10s};

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

// Writes the trace, and logs the result.
void WriteTrace(const trace::Trace& trace, const std::string& file, const std::string& task,
                int64_t steps, FileSystem& files) {
  Status written = MakeDirectories(ParentFolder(file));
  if (written.ok()) written = WriteFileAtomically(file, trace::ChromeTrace(trace, task), files);
  if (!written.ok()) {
    kTrainLog.Error("the profile cannot be written; training goes on", {{"error", written}});
  } else {
    kTrainLog.Info("wrote a profile, which ui.perfetto.dev shows",
                   {{"file", file}, {"steps", steps}});
  }
  if (const int64_t dropped = DroppedIn(trace); dropped > 0) {
    kTrainLog.Warning("the profile is incomplete: profile fewer steps", {{"dropped", dropped}});
  }
  LogOps(trace::OpTotals(trace), std::max<int64_t>(steps, 1));
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

struct StepProfile::Writing {
  Mutex mutex;
  CondVar changed;
  bool done ABSL_GUARDED_BY(mutex) = false;
};

StepProfile::StepProfile(ProfileOptions options, std::string task, FileSystem& files)
    : options_(std::move(options)),
      task_(std::move(task)),
      files_(files),
      state_(options_.last > 0 ? State::kBefore : State::kDone) {}

StepProfile::~StepProfile() {
  if (state_ == State::kRecording) Write();
  if (state_ == State::kBefore) {
    kTrainLog.Warning("no step was profiled: the run ended before the first step to profile",
                      {{"first_step", options_.first}});
  }
  if (writing_ == nullptr) return;
  const SteadyTime deadline = SteadyNow() + kProfilePatience;
  MutexLock lock(writing_->mutex);
  while (!writing_->done && writing_->changed.WaitUntil(writing_->mutex, deadline)) {
  }
  if (!writing_->done) {
    kTrainLog.Error("the profile is not written: the disk is slow or hangs",
                    {{"file", options_.file}});
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

// Does not wait for the thread, because a disk may hang forever.
void StepProfile::Write() {
  state_ = State::kDone;
  auto writing = std::make_shared<Writing>();
  try {
    std::thread([writing, trace = std::make_shared<const trace::Trace>(trace::Stop()),
                 file = options_.file, task = task_, steps = steps_, files = &files_] {
      SetThreadName("profile");
      WriteTrace(*trace, file, task, steps, *files);
      MutexLock lock(writing->mutex);
      writing->done = true;
      writing->changed.NotifyAll();
    }).detach();
  } catch (const std::system_error& error) {
    kTrainLog.Error("the profile cannot be written: no thread can be started",
                    {{"error", error.what()}});
    return;
  }
  writing_ = std::move(writing);
}

}  // namespace tfjob::train
