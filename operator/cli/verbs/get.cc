#include "operator/cli/verbs/get.h"

#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "operator/cli/verbs/access_error.h"
#include "operator/cli/verbs/job_flags.h"
#include "operator/cli/verbs/job_row.h"
#include "operator/cli/verbs/verbs.h"
#include "operator/view/job_view.h"
#include "operator/view/object_cache.h"
#include "operator/view/printable.h"
#include "operator/view/table.h"
#include "runtime/base/yaml.h"

namespace tfjob::cli {
namespace {

using Output = GetOptions::Output;

// Returns the job without managedFields, which the API server needs for server-side apply but users
// do not.
Json ForPeople(const StoredJob& job) {
  Json object = *job.object;
  if (object.contains("metadata")) object["metadata"].erase("managedFields");
  return object;
}

class Getter {
 public:
  Getter(const GetOptions& options, const VerbContext& context)
      : options_(options),
        context_(context),
        columns_{options.selection.all_namespaces, options.output == Output::kWide},
        table_(Header(columns_)) {}

  void PrintAll(const std::vector<StoredJob>& jobs);
  Status Watch();

 private:
  bool rows() const {
    return options_.output == Output::kTable || options_.output == Output::kWide;
  }
  void PrintWhole(const Json& value);
  // Reports on standard error which parts the printed job lacks (StoredJob::missing).
  void WarnOfMissing(const StoredJob& job);
  void PrintDocuments(const std::vector<StoredJob>& jobs);
  void PrintChange(const StoredJob& job, bool deleted);
  std::vector<std::string> Row(const StoredJob& job) {
    return Cells(job, columns_, context_.clock.Now());
  }

  const GetOptions& options_;
  const VerbContext& context_;
  const JobColumns columns_;
  view::Table table_;
  std::map<std::string, std::string> last_rows_;  // by job: its last row without the age
};

void Getter::PrintWhole(const Json& value) {
  const bool json = options_.output == Output::kJson;
  context_.console.out << view::PrintableText(json ? PrintJsonIndented(value) + "\n"
                                                   : PrintYaml(value));
}

void Getter::WarnOfMissing(const StoredJob& job) {
  if (job.missing.ok()) return;
  std::istringstream problems{std::string(Message(job.missing))};
  for (std::string problem; std::getline(problems, problem);) {
    view::PrintWarning(
        context_.console,
        StrCat("TFJob ", job.job.key(), " is printed without what cannot be read: ", problem));
  }
}

void Getter::PrintDocuments(const std::vector<StoredJob>& jobs) {
  for (const StoredJob& job : jobs) WarnOfMissing(job);
  if (options_.selection.names.size() == 1 && jobs.size() == 1) {
    return PrintWhole(ForPeople(jobs.front()));
  }
  Json items = Json::array();
  for (const StoredJob& job : jobs) items.push_back(ForPeople(job));
  PrintWhole({{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}});
}

void Getter::PrintAll(const std::vector<StoredJob>& jobs) {
  std::ostream& out = context_.console.out;
  if (options_.output == Output::kName) {
    for (const StoredJob& job : jobs) out << ResourceName(job.job.metadata.name) << "\n";
    return;
  }
  if (!rows()) return PrintDocuments(jobs);
  if (jobs.empty() && options_.selection.names.empty()) {
    const std::string place = options_.selection.name_space(context_.cluster);
    context_.console.err << "No TFJobs found"
                         << (place.empty() ? "." : StrCat(" in namespace ", place, ".")) << "\n";
  }
  if (jobs.empty()) return;
  for (const StoredJob& job : jobs) table_.Add(Row(job));
  out << table_.Take();
}

// Returns the text of a row without the age, which changes with time.
std::string TextWithoutAge(const StoredJob& job, bool deleted) {
  return StrCat(view::StateOf(job.job.status), " ", ReadyText(job), " ", Restarts(job.job.status),
                " ", ReadyByType(job), deleted ? " deleted" : "");
}

void Getter::PrintChange(const StoredJob& job, bool deleted) {
  if (!rows()) {
    if (options_.output == Output::kName) {
      context_.console.out << ResourceName(job.job.metadata.name) << "\n";
    } else {
      if (options_.output == Output::kYaml) context_.console.out << "---\n";
      WarnOfMissing(job);
      PrintWhole(ForPeople(job));
    }
    return;
  }
  std::string text = TextWithoutAge(job, deleted);
  if (text == std::exchange(last_rows_[job.job.key()], text)) return;
  std::vector<std::string> row = Row(job);
  if (deleted) row[columns_.name_space ? 2 : 1] = "(deleted)";
  table_.Add(std::move(row));
  context_.console.out << table_.Take();
}

Status Getter::Watch() {
  Cluster& cluster = context_.cluster;
  const Selection& selection = options_.selection;
  const auto cache = view::ObjectCache::Create(cluster.client(), objects::Kind::kTFJob,
                                               selection.name_space(cluster), selection.labels);
  if (!cache.ok()) return Explain(cache.status(), cluster, "TFJobs");
  while (!context_.stop.requested() && context_.console.out.good()) {
    if (!(*cache)->AwaitChange(kPollInterval)) continue;
    for (const view::ObjectCache::Change& change : (*cache)->TakeChanges()) {
      if (!selection.Contains(client::MetadataOf(change.object))) continue;
      PrintChange(ReadStoredJob(change.object), change.deleted);
    }
    context_.console.out.flush();
  }
  return OkStatus();
}

}  // namespace

int Get(const GetOptions& options, const VerbContext& context) {
  int missing = 0;
  Getter getter(options, context);
  const auto jobs = ListJobs(context, options.selection, missing);
  Status status = jobs.status();
  if (jobs.ok() && options.watch && missing == 0) status = getter.Watch();
  if (jobs.ok() && !options.watch) getter.PrintAll(*jobs);
  if (!status.ok()) view::PrintError(context.console, status);
  return status.ok() && missing == 0 ? view::kSucceeded : view::kFailed;
}

namespace {

Output OutputOf(const std::string& word) {
  if (word == "wide") return Output::kWide;
  if (word == "name") return Output::kName;
  if (word == "json") return Output::kJson;
  return word == "yaml" ? Output::kYaml : Output::kTable;
}

class GetVerb : public ClusterVerb {
 public:
  GetVerb() : ClusterVerb("get", "List TFJobs, or print them in full") {}

  void AddFlags(FlagSet& flags) override {
    AddSelection(flags, options_.selection);
    const auto read = [this](const std::string& word) {
      options_.output = OutputOf(word);
      return OkStatus();
    };
    flags.TextAs("-o,--output", read, "Output format: wide, name, json or yaml")
        .AllowOnly({"table", "wide", "name", "json", "yaml"})
        .CompleteWords({"json", "name", "wide", "yaml"});
    flags.Switch("-w,--watch", options_.watch, "Continue with a line for each change");
  }
  int RunOn(const VerbContext& context) override { return Get(options_, context); }

 private:
  GetOptions options_;
};

}  // namespace

std::unique_ptr<ClusterVerb> MakeGetVerb() {
  return std::make_unique<GetVerb>();
}

}  // namespace tfjob::cli
