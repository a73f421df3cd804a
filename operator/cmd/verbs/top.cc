#include "operator/cmd/verbs/top.h"

#include <ostream>
#include <sstream>

#include "operator/cmd/job_view.h"
#include "operator/cmd/screen.h"
#include "operator/cmd/verbs/human.h"
#include "operator/cmd/verbs/job_row.h"
#include "operator/cmd/verbs/table.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::cmd {
namespace {

std::vector<std::string> Row(const StoredJob& stored, bool name_space, std::string progress,
                             Time now) {
  const objects::ObjectMeta& metadata = stored.job.metadata;
  std::vector<std::string> row;
  if (name_space) row.push_back(metadata.name_space);
  row.insert(row.end(), {metadata.name, StateOf(stored.job.status), ReadyText(stored),
                         HumanAge(metadata.creation_timestamp, now), std::move(progress)});
  return row;
}

StatusOr<std::string> Picture(const TopOptions& options, const Surroundings& around,
                              ProgressTeller& teller, int& missing) {
  constexpr int kThreads = 7;
  ASSIGN_OR_RETURN(const auto jobs, ListJobs(around, options.selection, missing));
  std::vector<std::string> progress(jobs.size());
  ThreadPool(std::string("top"), kThreads)
      .ParallelFor(static_cast<int64_t>(jobs.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) progress[i] = teller.Tell(jobs[i].job);
      });
  const bool name_space = options.selection.all_namespaces;
  std::vector<std::string> header = {"NAME", "STATE", "READY", "AGE", "PROGRESS"};
  if (name_space) header.insert(header.begin(), "NAMESPACE");
  Table table(std::move(header));
  for (size_t i = 0; i < jobs.size(); ++i) {
    table.Add(Row(jobs[i], name_space, std::move(progress[i]), around.clock.Now()));
  }
  return table.empty() ? "" : table.Take();
}

void Show(const std::string& picture, bool live, Screen& screen) {
  std::vector<std::string> lines;
  std::istringstream text(picture);
  for (std::string line; std::getline(text, line);) {
    lines.push_back(live ? line.substr(0, screen.width()) : line);
  }
  if (live) return screen.Live(std::move(lines));
  for (const std::string& line : lines) screen.Line(line);
}

}  // namespace

int Top(const TopOptions& options, const Surroundings& around, FetchProgress fetch) {
  ProgressTeller teller(around, std::move(fetch));
  Screen screen(around.console);
  const bool live = options.watch && around.console.terminal;
  while (true) {
    int missing = 0;
    const auto picture = Picture(options, around, teller, missing);
    if (!picture.ok()) PrintError(around.console, picture.status());
    if (!picture.ok() || missing > 0) return kFailed;
    if (picture->empty()) around.console.err << "No TFJobs found.\n";
    Show(*picture, live, screen);
    if (!options.watch || screen.broken() || around.stop.WaitFor(options.interval)) break;
  }
  return kSucceeded;
}

}  // namespace tfjob::cmd
