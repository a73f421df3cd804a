// Measures the rates at which files of records are indexed, and read into batches in file order and
// in random order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/data/records/record_source.h"
#include "runtime/data/source.h"

namespace tfjob::bench {

struct RecordsOptions {
  int64_t examples = 500'000;
  int64_t features = 20;  // with one value each; even ones are int64, and odd ones are float
  int64_t batch = 128;
  std::string folder = "/tmp";
};

// Returns the name of a feature.
std::string FeatureName(int64_t feature);

struct RecordsCase {
  std::string name;
  // Returns the bytes of one record, as stored in a file.
  std::function<std::string(int64_t example, const RecordsOptions&)> record;
  std::function<StatusOr<std::shared_ptr<const data::Source>>(const data::RecordOptions&)> open;
};

// Writes a file of records to the folder that the command line specifies, measures and reports, and
// deletes the file. Returns the exit status of the program.
int RecordsMain(int argc, char** argv, const RecordsCase& records);

}  // namespace tfjob::bench
