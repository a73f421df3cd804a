// Records the training steps that the user requests, writes them as a trace, and logs the ops that
// took the most time. A separate thread writes the trace while training continues.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/file_system.h"
#include "runtime/base/status.h"

namespace tfjob::train {

struct ProfileOptions {
  // The first and the last global step to record, counted from 1. If both are 0, no step is
  // recorded.
  int64_t first = 0, last = 0;
  // The file to write. If empty, the file is <model_dir>/profile/<task>.json.
  std::string file;
};

// Parses "10..20", or "10" for a single step. Returns InvalidArgument for any other string.
StatusOr<ProfileOptions> ParseProfiledSteps(const std::string& text);

// Owned by the thread that trains. Only one profile of a process may record at a time.
class StepProfile {
 public:
  // `task` is the name of the task in the trace. `task` and `options.file` are used only if the
  // options request steps. `files` must never be destroyed if its operations may hang.
  StepProfile(ProfileOptions options, std::string task, FileSystem& files = RealFileSystem());
  // Writes the steps recorded so far if the run ends before the last profiled step. Waits up to 10
  // s until the trace is written, and logs an error if this fails.
  ~StepProfile();
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  // Call these functions before and after each step, with the global step at that time. If the
  // profile cannot be written, the error is logged and the run continues.
  void BeforeStep(int64_t global_step);
  void AfterStep(int64_t global_step);

 private:
  enum class State { kBefore, kRecording, kDone };
  struct Writing;
  void Write();

  const ProfileOptions options_;
  const std::string task_;
  FileSystem& files_;
  State state_;
  std::shared_ptr<Writing> writing_;  // shared with the writing thread; null before Write
  int64_t steps_ = 0;                 // recorded so far
};

}  // namespace tfjob::train
