// Measures the rate at which files of records are indexed and read into batches, both in file order
// and shuffled.
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
  int64_t features = 20;  // even ones int64, odd ones float, with one value each
  int64_t batch = 128;
  std::string folder = "/tmp";
};

// Returns the name of a feature.
std::string FeatureName(int64_t feature);

struct RecordsCase {
  std::string name;
  // Returns the bytes of one record in a file.
  std::function<std::string(int64_t example, const RecordsOptions&)> record;
  std::function<StatusOr<std::shared_ptr<const data::Source>>(const data::RecordOptions&)> open;
};

// Writes a file of records in a folder of the command line, reports on it, and deletes it. Returns
// the exit status of the program.
int RecordsMain(int argc, char** argv, const RecordsCase& records);

}  // namespace tfjob::bench
