#include "runtime/train/run_failure_record.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/base/mutex.h"
#include "runtime/state/run_failure.h"
#include "runtime/train/log.h"

namespace tfjob::train {
namespace {

constexpr Duration kRecordPatience = 10s;
constexpr Duration kRecordRetry = 500ms;

// Shared with the thread that writes. If the disk hangs, this thread is abandoned.
struct Writing {
  Mutex mutex;
  CondVar done;
  std::optional<Status> result ABSL_GUARDED_BY(mutex);
};

// Writes the marker on a separate thread. Returns DeadlineExceeded if the disk hangs.
Status WriteMark(TaskContext& context, const RunEnd& end, Duration patience) {
  auto writing = std::make_shared<Writing>();
  std::thread([writing, end, folder = context.config().model_dir, run = context.run(),
               now = context.clock().Now(), files = &context.files()] {
    const Status result = MarkFailed(folder, run, end, now, *files);
    MutexLock lock(writing->mutex);
    writing->result = result;
    writing->done.NotifyAll();
  }).detach();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  MutexLock lock(writing->mutex);
  while (!writing->result) {
    if (!writing->done.WaitUntil(writing->mutex, deadline) && !writing->result)
      return DeadlineExceeded("the disk has not answered within ", FormatDuration(patience));
  }
  return *writing->result;
}

}  // namespace

Status RecordedFailure(TaskContext& context) {
  const std::string& folder = context.config().model_dir;
  if (folder.empty()) return OkStatus();
  const StatusOr<std::optional<RunEnd>> end = ReadRunEnd(folder, context.run());
  if (!end.ok() || !*end || (*end)->failure.empty()) return OkStatus();
  return state::RunFailure((*end)->failure);
}

void RecordFailure(TaskContext& context, const Status& failure, int64_t step) {
  const RunEnd end{.step = step, .failure = std::string(Message(failure))};
  context.board().Update([&](progress::Progress& p) {
    p.state = progress::State::kFailed;
    p.run_end = progress::RunEnd{
        .step = step, .run = RunFingerprint(context.run()), .failure = end.failure};
  });
  const std::string& folder = context.config().model_dir;
  if (folder.empty()) return;
  const Duration deadline = context.clock().Monotonic() + kRecordPatience;
  for (;;) {
    const Duration now = context.clock().Monotonic();
    const Status written = WriteMark(context, end, std::max(deadline - now, kRecordRetry));
    if (written.ok()) return;
    if (context.clock().Monotonic() + kRecordRetry >= deadline ||
        context.stop().WaitFor(kRecordRetry)) {
      kChiefLog.Error("could not record that the run has failed; restarted tasks will train again",
                      {{"model_dir", folder}, {"error", written}});
      return;
    }
  }
}

}  // namespace tfjob::train
