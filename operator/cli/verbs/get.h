// tfjob get: TFJobs as a table, as names, or whole.
#pragma once

#include "operator/cli/verbs/stored_job.h"

namespace tfjob::cli {

struct GetOptions {
  enum class Output { kTable, kWide, kName, kJson, kYaml };
  Selection selection;
  Output output = Output::kTable;
  bool watch = false;
};

// kFailed when the server could not be asked or a named job does not exist. With `watch` it goes on
// with a row for each change until `stop` is requested or the output breaks, and is then kSucceeded.
int Get(const GetOptions& options, const Surroundings& around);

}  // namespace tfjob::cli
