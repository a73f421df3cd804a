// Formats a TFJob as a row of `tfjob get`: the columns of kubectl get tfjob and, with -o wide,
// three more.
#pragma once

#include <string>
#include <vector>

#include "operator/cli/verbs/stored_job.h"

namespace tfjob::cli {

struct JobColumns {
  bool name_space = false;  // adds the namespace as the first column
  bool wide = false;
};
std::vector<std::string> Header(const JobColumns& columns);
std::vector<std::string> Cells(const StoredJob& job, const JobColumns& columns, Time now);

// Returns the number of active replicas and the number of replicas wanted, such as "3/4"; "?" if
// the spec cannot be read.
std::string ReadyText(const StoredJob& job);
// Returns the same numbers for each replica type, such as "Chief 1/1, Worker 2/3".
std::string ReadyByType(const StoredJob& job);
int64_t Restarts(const api::TFJobStatus& status);

}  // namespace tfjob::cli
