// tfjob get: prints TFJobs as a table, as a list of names, or in full.
#pragma once

#include "operator/cli/verbs/stored_job.h"

namespace tfjob::cli {

struct GetOptions {
  enum class Output { kTable, kWide, kName, kJson, kYaml };
  Selection selection;
  Output output = Output::kTable;
  bool watch = false;
};

// Prints the selected jobs. Returns kFailed if the server cannot be queried or a named job does not
// exist. With `watch`, prints a row for each change until `stop` is requested or the output can no
// longer be written, and then returns kSucceeded.
int Get(const GetOptions& options, const VerbContext& context);

}  // namespace tfjob::cli
