// Checks, with arbitrary bytes, the readers of the data that a task gets from other programs. The
// first byte of an input selects how the remaining bytes are read: as TF_CONFIG (t), as the JSON of
// TFJOB_ADDRESS_PATTERNS (a) or of a task's progress (p), or as lines "key=value" that override
// keys of the training file (o).
//   - Reading never crashes.
//   - A value that is accepted and then printed reads back as the same value.
//   - A task of an accepted cluster has a role, and the tasks that train have ranks from 0 up.
//   - An override that is rejected changes nothing.
#include <nlohmann/json.hpp>

#include "runtime/base/check.h"
#include "runtime/base/json.h"
#include "runtime/cluster/cluster.h"
#include "runtime/cluster/sparse_cluster.h"
#include "runtime/config/training_config.h"
#include "runtime/progress/progress.h"

namespace tfjob::fuzz {
namespace {

// The tasks that follow from a task's own name include this task, and have addresses.
void CheckListed(const cluster::TfConfig& config) {
  const auto listed = cluster::ListTasks(config, 4);
  if (!listed.ok()) return;
  ENFORCE(cluster::TrainingRank(*listed, config.task) >= 0, "the list contains the task itself");
  ENFORCE(listed->cluster.address(config.task) == config.cluster.address(config.task),
          "the task keeps its address");
  for (const cluster::Task& task : cluster::TrainingTasks(*listed))
    ENFORCE(cluster::IsAddress(listed->cluster.address(task)), "every task has an address");
}

void CheckPatterns(std::string_view text) {
  const auto patterns = cluster::ParseAddressPatterns(text);
  if (!patterns.ok()) return;
  const auto again = cluster::ParseAddressPatterns(cluster::Print(*patterns));
  ENFORCE(again.ok(), StrCat("printed patterns must read: ", Message(again.status())));
  ENFORCE(*again == *patterns, "printed patterns must read as the same value");
}

void CheckTfConfig(std::string_view text) {
  const auto config = cluster::ParseTfConfig(text);
  if (!config.ok()) return;
  const auto again = cluster::ParseTfConfig(cluster::Print(*config));
  ENFORCE(again.ok(), StrCat("a printed TF_CONFIG must read: ", Message(again.status())));
  ENFORCE(*again == *config, "a printed TF_CONFIG must read as the same value");
  ENFORCE(!cluster::Name(cluster::RoleOf(*config)).empty(), "a task must have a role");
  if (config->cluster.sparse()) {
    const bool trains = cluster::RoleOf(*config) <= cluster::Role::kWorker;
    ENFORCE(!trains || cluster::TrainingRank(*config, config->task) >= 0, "a worker has a rank");
    if (trains) CheckListed(*config);
    return;
  }
  int rank = 0;
  for (const cluster::Task& task : cluster::TrainingTasks(*config)) {
    ENFORCE(cluster::TrainingRank(*config, task) == rank++, "ranks must count from 0");
  }
  ENFORCE(rank == cluster::TrainingTaskCount(*config), "every training task must have a rank");
}

void CheckProgress(std::string_view text) {
  const StatusOr<Json> json = ParseJson(text, "fuzz");
  if (!json.ok()) return;
  const StatusOr<progress::Progress> progress = progress::ParseProgress(*json);
  if (!progress.ok()) return;
  const auto again = progress::ParseProgress(progress::ToJson(*progress));
  ENFORCE(again.ok(), StrCat("printed progress must read: ", Message(again.status())));
  ENFORCE(*again == *progress, "printed progress must read as the same value");
}

void CheckOverrides(std::string_view text) {
  config::TrainingConfig config;
  Json before = config::TrainingConfigToJson(config);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const Status status = config::Override(config, line.substr(0, equals), line.substr(equals + 1));
    Json after = config::TrainingConfigToJson(config);
    ENFORCE(status.ok() || after == before, "a refused override must change nothing");
    before = std::move(after);
  }
  (void)config::Validate(config);
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 't') tfjob::fuzz::CheckTfConfig(rest);
  if (data[0] == 'a') tfjob::fuzz::CheckPatterns(rest);
  if (data[0] == 'p') tfjob::fuzz::CheckProgress(rest);
  if (data[0] == 'o') tfjob::fuzz::CheckOverrides(rest);
  return 0;
}
