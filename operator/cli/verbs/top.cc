#include "operator/cli/verbs/top.h"

#include <ostream>
#include <sstream>

#include "operator/cli/verbs/job_row.h"
#include "operator/view/human.h"
#include "operator/view/job_view.h"
#include "operator/view/screen.h"
#include "operator/view/table.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::cli {
namespace {

std::vector<std::string> Row(const StoredJob& stored, bool name_space, std::string progress,
                             Time now) {
  const objects::ObjectMeta& metadata = stored.job.metadata;
  std::vector<std::string> row;
  if (name_space) row.push_back(metadata.name_space);
  row.insert(row.end(), {metadata.name, view::StateOf(stored.job.status), ReadyText(stored),
                         view::HumanAge(metadata.creation_timestamp, now), std::move(progress)});
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
  view::Table table(std::move(header));
  for (size_t i = 0; i < jobs.size(); ++i) {
    table.Add(Row(jobs[i], name_space, std::move(progress[i]), around.clock.Now()));
  }
  return table.empty() ? "" : table.Take();
}

void Show(const std::string& picture, bool live, view::Screen& screen) {
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
  view::Screen screen(around.console);
  const bool live = options.watch && around.console.terminal;
  while (true) {
    int missing = 0;
    const auto picture = Picture(options, around, teller, missing);
    if (!picture.ok()) view::PrintError(around.console, picture.status());
    if (!picture.ok() || missing > 0) return view::kFailed;
    if (picture->empty()) around.console.err << "No TFJobs found.\n";
    Show(*picture, live, screen);
    if (!options.watch || screen.broken() || around.stop.WaitFor(options.interval)) break;
  }
  return view::kSucceeded;
}

}  // namespace tfjob::cli
