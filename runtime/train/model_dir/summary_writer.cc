#include "runtime/train/model_dir/summary_writer.h"

#include <deque>

#include "runtime/base/mutex.h"
#include "runtime/base/thread_pool.h"
#include "runtime/io/event_writer.h"
#include "runtime/train/model_dir/log.h"

namespace tfjob::train {
namespace {

constexpr Duration kFlushPatience = 5s;
constexpr Duration kSlowWrite = 10s;

}  // namespace

struct SummaryWriter::Entry {
  int64_t step = 0;
  Time time;
  bool start = false;
  std::string graph_def;
  std::vector<std::pair<std::string, double>> values;
};

struct SummaryWriter::Shared {
  explicit Shared(SummaryOptions given) : options(std::move(given)) {}

  // Writes one entry to the event file. Called only by the writer's thread.
  Status Write(const Entry& entry) {
    if (events == nullptr) {
      ASSIGN_OR_RETURN(events, io::EventWriter::Create(options.folder, entry.time, *options.files));
    }
    if (!entry.graph_def.empty()) return events->AddGraph(entry.graph_def, entry.time);
    if (entry.start) return events->AddStart(entry.step, entry.time);
    return events->AddScalars(entry.step, entry.values, entry.time);
  }
  void Show(std::string text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (text == problem) return;
    problem = std::move(text);
    if (!problem.empty()) kSummaryLog.Warning(problem);
    if (options.show && !abandoned) options.show(problem);
  }

  void OnWritten(const Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    writing = false;
    if (status.ok()) {
      if (!problem.empty()) kSummaryLog.Info("summaries are written again", {{"lost", lost}});
      lost = 0;
      waiting.pop_front();
      Show("");
    } else {
      problem.clear();  // log the error of each attempt
      Show(StrCat("a summary of step ", waiting.front().step,
                  " could not be written: ", Message(status), "; the task goes on"));
      attempt_failed = true;
    }
    changed.NotifyAll();
  }

  const SummaryOptions options;
  std::unique_ptr<io::EventWriter> events;
  Mutex mutex;
  CondVar changed;
  std::deque<Entry> waiting ABSL_GUARDED_BY(mutex);  // the first entry stays while it is written
  bool writing ABSL_GUARDED_BY(mutex) = false;
  Duration begun ABSL_GUARDED_BY(mutex){0};  // when the caller first noticed the write
  bool attempt_failed ABSL_GUARDED_BY(mutex) = false;
  int64_t lost ABSL_GUARDED_BY(mutex) = 0;
  std::string problem ABSL_GUARDED_BY(mutex);
  bool leaving ABSL_GUARDED_BY(mutex) = false;
  bool ended ABSL_GUARDED_BY(mutex) = false;
  // True if the writer has been destroyed. The thread must then not use any object of the writer's
  // owner.
  bool abandoned ABSL_GUARDED_BY(mutex) = false;
};

SummaryWriter::SummaryWriter(SummaryOptions options, Clock& clock)
    : clock_(clock),
      shared_(std::make_shared<Shared>(std::move(options))),
      thread_([shared = shared_] {
        SetThreadName("summary");
        Run(shared);
      }) {}

void SummaryWriter::Abandon() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(shared_->mutex);
    shared_->leaving = shared_->abandoned = true;
    shared_->changed.NotifyAll();
  }
  thread_.detach();
}

SummaryWriter::~SummaryWriter() {
  if (!thread_.joinable()) return;
  const auto deadline = std::chrono::steady_clock::now() + kFlushPatience;
  bool ended = false;
  {
    MutexLock lock(shared_->mutex);
    shared_->leaving = true;
    shared_->changed.NotifyAll();
    while (!shared_->ended && shared_->changed.WaitUntil(shared_->mutex, deadline)) {
    }
    ended = shared_->ended;
    shared_->abandoned = true;
  }
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void SummaryWriter::AddScalars(int64_t step, std::vector<std::pair<std::string, double>> values) {
  Add({.step = step,
       .time = clock_.Now(),
       .start = false,
       .graph_def = {},
       .values = std::move(values)});
}

void SummaryWriter::AddGraph(std::string graph_def) {
  Add({.step = 0,
       .time = clock_.Now(),
       .start = false,
       .graph_def = std::move(graph_def),
       .values = {}});
}

void SummaryWriter::AddStart(int64_t step) {
  Add({.step = step, .time = clock_.Now(), .start = true, .graph_def = {}, .values = {}});
}

void SummaryWriter::Add(Entry entry) {
  MutexLock lock(shared_->mutex);
  const Duration now = clock_.Monotonic();
  if (!shared_->writing) shared_->begun = now;
  if (now - shared_->begun >= kSlowWrite) {
    shared_->Show(StrCat("a summary of step ", shared_->waiting.front().step,
                         " is still being written: the disk is slow or hangs; the task goes on"));
  }
  if (shared_->waiting.size() >= shared_->options.most_waiting) {
    ++shared_->lost;
    return;
  }
  shared_->waiting.push_back(std::move(entry));
  shared_->changed.NotifyAll();
}

void SummaryWriter::Flush(Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(shared_->mutex);
  shared_->attempt_failed = false;
  while (!shared_->waiting.empty() && !shared_->attempt_failed &&
         shared_->changed.WaitUntil(shared_->mutex, deadline)) {
  }
}

void SummaryWriter::Run(const std::shared_ptr<Shared>& shared) {
  MutexLock lock(shared->mutex);
  for (;;) {
    while (shared->waiting.empty() && !shared->leaving) shared->changed.Wait(shared->mutex);
    if (shared->waiting.empty()) break;
    const Entry& entry = shared->waiting.front();  // stays in place: only this thread removes it
    shared->writing = true;
    shared->mutex.Unlock();
    const Status status = shared->Write(entry);
    shared->mutex.Lock();
    const bool last_attempt = shared->leaving;
    shared->OnWritten(status);
    if (status.ok()) continue;
    if (last_attempt) break;
    const auto retry_at = std::chrono::steady_clock::now() + shared->options.retry;
    while (!shared->leaving && shared->changed.WaitUntil(shared->mutex, retry_at)) {
    }
  }
  shared->ended = true;
  shared->changed.NotifyAll();
}

}  // namespace tfjob::train
