#include "operator/cli/verbs/get.h"

#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "operator/cli/verbs/access_error.h"
#include "operator/cli/verbs/job_row.h"
#include "operator/view/job_view.h"
#include "operator/view/object_cache.h"
#include "operator/view/table.h"
#include "runtime/base/yaml.h"

namespace tfjob::cli {
namespace {

using Output = GetOptions::Output;

// Removes managedFields, the API server's records for server-side apply, which are not for users.
Json ForPeople(const StoredJob& job) {
  Json object = *job.object;
  if (object.contains("metadata")) object["metadata"].erase("managedFields");
  return object;
}

class Getter {
 public:
  Getter(const GetOptions& options, const Surroundings& around)
      : options_(options),
        around_(around),
        columns_{options.selection.all_namespaces, options.output == Output::kWide},
        table_(Header(columns_)) {}

  void PrintAll(const std::vector<StoredJob>& jobs);
  Status Watch();

 private:
  bool rows() const {
    return options_.output == Output::kTable || options_.output == Output::kWide;
  }
  void PrintWhole(const Json& value);
  void PrintDocuments(const std::vector<StoredJob>& jobs);
  void PrintChange(const StoredJob& job, bool deleted);
  std::vector<std::string> Row(const StoredJob& job) {
    return Cells(job, columns_, around_.clock.Now());
  }

  const GetOptions& options_;
  const Surroundings& around_;
  const JobColumns columns_;
  view::Table table_;
  std::map<std::string, std::string> told_;  // by job, the text of its last row without the age
};

void Getter::PrintWhole(const Json& value) {
  const bool json = options_.output == Output::kJson;
  around_.console.out << (json ? PrintJsonIndented(value) + "\n" : PrintYaml(value));
}

void Getter::PrintDocuments(const std::vector<StoredJob>& jobs) {
  if (options_.selection.names.size() == 1 && jobs.size() == 1) {
    return PrintWhole(ForPeople(jobs.front()));
  }
  Json items = Json::array();
  for (const StoredJob& job : jobs) items.push_back(ForPeople(job));
  PrintWhole({{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}});
}

void Getter::PrintAll(const std::vector<StoredJob>& jobs) {
  std::ostream& out = around_.console.out;
  if (options_.output == Output::kName) {
    for (const StoredJob& job : jobs) out << ResourceName(job.job.metadata.name) << "\n";
    return;
  }
  if (!rows()) return PrintDocuments(jobs);
  if (jobs.empty() && options_.selection.names.empty()) {
    const std::string place = options_.selection.name_space(around_.cluster);
    around_.console.err << "No TFJobs found"
                        << (place.empty() ? "." : StrCat(" in namespace ", place, ".")) << "\n";
  }
  if (jobs.empty()) return;
  for (const StoredJob& job : jobs) table_.Add(Row(job));
  out << table_.Take();
}

// Returns the text of a row without the age, which changes by itself.
std::string Told(const StoredJob& job, bool deleted) {
  return StrCat(view::StateOf(job.job.status), " ", ReadyText(job), " ", Restarts(job.job.status),
                " ", ReadyByType(job), deleted ? " deleted" : "");
}

void Getter::PrintChange(const StoredJob& job, bool deleted) {
  if (!rows()) {
    if (options_.output == Output::kName) {
      around_.console.out << ResourceName(job.job.metadata.name) << "\n";
    } else {
      if (options_.output == Output::kYaml) around_.console.out << "---\n";
      PrintWhole(ForPeople(job));
    }
    return;
  }
  std::string told = Told(job, deleted);
  if (told == std::exchange(told_[job.job.key()], told)) return;
  std::vector<std::string> row = Row(job);
  if (deleted) row[columns_.name_space ? 2 : 1] = "(deleted)";
  table_.Add(std::move(row));
  around_.console.out << table_.Take();
}

Status Getter::Watch() {
  Cluster& cluster = around_.cluster;
  const Selection& selection = options_.selection;
  const auto cache = view::ObjectCache::Create(cluster.client(), client::Kind::kTFJob,
                                               selection.name_space(cluster), selection.labels);
  if (!cache.ok()) return Explain(cache.status(), cluster, "TFJobs");
  while (!around_.stop.requested() && around_.console.out.good()) {
    if (!(*cache)->AwaitChange(kPollInterval)) continue;
    for (const view::ObjectCache::Change& change : (*cache)->TakeChanges()) {
      if (!selection.Contains(client::MetadataOf(change.object))) continue;
      PrintChange(ReadStoredJob(change.object), change.deleted);
    }
    around_.console.out.flush();
  }
  return OkStatus();
}

}  // namespace

int Get(const GetOptions& options, const Surroundings& around) {
  int missing = 0;
  Getter getter(options, around);
  const auto jobs = ListJobs(around, options.selection, missing);
  Status status = jobs.status();
  if (jobs.ok() && options.watch && missing == 0) status = getter.Watch();
  if (jobs.ok() && !options.watch) getter.PrintAll(*jobs);
  if (!status.ok()) view::PrintError(around.console, status);
  return status.ok() && missing == 0 ? view::kSucceeded : view::kFailed;
}

}  // namespace tfjob::cli
