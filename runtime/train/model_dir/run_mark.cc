#include "runtime/train/model_dir/run_mark.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/io/crc32c.h"

namespace tfjob::train {
namespace {

std::string FinishedPath(const std::string& folder) {
  return folder + "/finished.json";
}

}  // namespace

std::string RunFingerprint(const RunMark& run) {
  std::string name = StrCat(run.job_uid, "/", run.attempt);
  if (run.number > 0) name += StrCat("/", run.number);
  char digits[9];
  std::snprintf(digits, sizeof(digits), "%08x", io::Crc32c(std::string_view(name)));
  return digits;
}

Status MarkFinished(const std::string& folder, const RunMark& run, int64_t step, Time now,
                    FileSystem& files) {
  return MarkFailed(folder, run, {.step = step, .failure = ""}, now, files);
}

Status MarkFailed(const std::string& folder, const RunMark& run, const RunEnd& end, Time now,
                  FileSystem& files) {
  Json mark = {{"global_step", end.step},
               {"job_uid", run.job_uid},
               {"attempt", run.attempt},
               {"time", FormatMicroTime(now)}};
  if (run.number > 0) mark["run"] = run.number;
  if (!end.failure.empty()) mark["failure"] = end.failure;
  return WriteFileAtomically(FinishedPath(folder), PrintJson(mark) + "\n", files);
}

Status ClearFinished(const std::string& folder) {
  if (unlink(FinishedPath(folder).c_str()) == 0 || errno == ENOENT) return OkStatus();
  return ErrnoStatus(errno, StrCat("remove ", FinishedPath(folder)));
}

StatusOr<std::optional<RunEnd>> ReadRunEnd(const std::string& folder, const RunMark& run) {
  StatusOr<std::string> text = ReadFile(FinishedPath(folder));
  if (absl::IsNotFound(text.status())) return std::optional<RunEnd>();
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(Json document, ParseJson(*text, FinishedPath(folder)));
  const JsonField mark(document);
  RunEnd end;
  ASSIGN_OR_RETURN(end.step, mark["global_step"].Int());
  ASSIGN_OR_RETURN(end.failure, mark["failure"].StringOr(""));
  ASSIGN_OR_RETURN(std::string job_uid, mark["job_uid"].StringOr(""));
  ASSIGN_OR_RETURN(int64_t attempt, mark["attempt"].IntOr(0));
  ASSIGN_OR_RETURN(int64_t number, mark["run"].IntOr(0));
  if (job_uid != run.job_uid || attempt != run.attempt || number != run.number)
    return std::optional<RunEnd>();
  if (job_uid.empty() && run.oldest != Time()) {
    ASSIGN_OR_RETURN(std::string text_of_time, mark["time"].StringOr(""));
    const StatusOr<Time> time = ParseTime(text_of_time);
    if (!time.ok() || *time < run.oldest) return std::optional<RunEnd>();
  }
  return std::optional<RunEnd>(std::move(end));
}

StatusOr<std::optional<int64_t>> FinishedStep(const std::string& folder, const RunMark& run) {
  ASSIGN_OR_RETURN(const std::optional<RunEnd> end, ReadRunEnd(folder, run));
  if (!end || !end->failure.empty()) return std::optional<int64_t>();
  return std::optional<int64_t>(end->step);
}

}  // namespace tfjob::train
