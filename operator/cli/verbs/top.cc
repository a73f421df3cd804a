#include "operator/cli/verbs/top.h"

#include <ostream>
#include <sstream>

#include "operator/cli/verbs/job_flags.h"
#include "operator/cli/verbs/job_row.h"
#include "operator/cli/verbs/verbs.h"
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

StatusOr<std::string> ProgressTable(const TopOptions& options, const VerbContext& context,
                                    ProgressReader& reader, int& missing) {
  constexpr int kThreads = 7;
  ASSIGN_OR_RETURN(const auto jobs, ListJobs(context, options.selection, missing));
  std::vector<std::string> progress(jobs.size());
  ThreadPool(std::string("top"), kThreads)
      .ParallelFor(static_cast<int64_t>(jobs.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) progress[i] = reader.TextOf(jobs[i].job);
      });
  const bool name_space = options.selection.all_namespaces;
  std::vector<std::string> header = {"NAME", "STATE", "READY", "AGE", "PROGRESS"};
  if (name_space) header.insert(header.begin(), "NAMESPACE");
  view::Table table(std::move(header));
  for (size_t i = 0; i < jobs.size(); ++i) {
    table.Add(Row(jobs[i], name_space, std::move(progress[i]), context.clock.Now()));
  }
  return table.empty() ? "" : table.Take();
}

void ShowOnScreen(const std::string& table_text, bool live, view::Screen& screen) {
  std::vector<std::string> lines;
  std::istringstream text(table_text);
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line);
  }
  if (live) return screen.Live(std::move(lines));
  for (const std::string& line : lines) screen.Line(line);
}

// Returns whether the error may be temporary.
bool MayPass(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

int Top(const TopOptions& options, const VerbContext& context, FetchProgress fetch) {
  ProgressReader reader(context, std::move(fetch));
  view::Screen screen(context.console);
  const bool live = options.watch && context.console.terminal;
  std::string shown;     // the last table
  bool failing = false;  // the last refresh failed
  while (true) {
    int missing = 0;
    const auto table_text = ProgressTable(options, context, reader, missing);
    if (!table_text.ok()) {
      const bool goes_on = options.watch && !shown.empty() && MayPass(table_text.status());
      screen.Live({});  // clear the table first: standard error may be the same terminal
      if (!goes_on || !failing) view::PrintError(context.console, table_text.status());
      if (!goes_on) return view::kFailed;
    }
    if (missing > 0) return view::kFailed;
    failing = !table_text.ok();
    if (!failing && table_text->empty()) context.console.err << "No TFJobs found.\n";
    if (!failing) shown = *table_text;
    if (!failing || live) ShowOnScreen(shown, live, screen);
    if (!options.watch || screen.broken() || context.stop.WaitFor(options.interval)) break;
  }
  return view::kSucceeded;
}

namespace {

class TopVerb : public ClusterVerb {
 public:
  TopVerb() : ClusterVerb("top", "Show the training progress of TFJobs") {}

  void AddFlags(FlagSet& flags) override {
    AddSelection(flags, options_.selection);
    flags.Switch("-w,--watch", options_.watch, "Refresh the output repeatedly");
  }
  int RunOn(const VerbContext& context) override { return Top(options_, context); }

 private:
  TopOptions options_;
};

}  // namespace

std::unique_ptr<ClusterVerb> MakeTopVerb() {
  return std::make_unique<TopVerb>();
}

}  // namespace tfjob::cli
