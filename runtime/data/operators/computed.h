// Makes a source of examples that functions compute while batches are made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/operators/example.h"

namespace tfjob::data {

// Computes the examples of one reader.
class ExampleMaker {
 public:
  virtual ~ExampleMaker() = default;
  // Begins with the examples `rows` of a batch, which stay valid until the next call.
  virtual Status Begin(std::span<const int64_t> rows) = 0;
  // Returns the example rows[i]. Several threads may call it between two calls of Begin. If the
  // source has one thread, the calls are in the order of the rows.
  virtual StatusOr<Example> Make(size_t i) = 0;
};

struct ComputedOptions {
  std::string file;  // what error messages call the source
  std::string text;  // for Source::Describe
  int64_t size = 0;  // from 1 to Selection::kMost
  bool random_access = true;
  int threads = 1;  // that call Make for one reader, including the reader's own
  uint64_t fingerprint = 0;
  std::string left_out = {};
  std::function<StatusOr<std::unique_ptr<ExampleMaker>>()> make_maker;
};

// Makes example 0 to learn the fields, which all examples must have in common. Returns the errors
// of make_maker and of ExampleMaker for this example, and InvalidArgument for a wrong size.
// RowReader::Read returns the errors of ExampleMaker, with the number of the example, and
// InvalidArgument if an example has other fields.
StatusOr<SourcePtr> Compute(ComputedOptions options);

// Makes a source of `size` examples, of which `row` returns any; several threads may call it at the
// same time. `name` is what error messages call the source. The examples must be the same in every
// task and in every call.
StatusOr<SourcePtr> ComputeRows(const std::string& name, int64_t size, int threads,
                                std::function<StatusOr<Example>(int64_t row)> row);

}  // namespace tfjob::data
