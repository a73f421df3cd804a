// Creates sources whose examples are computed by functions when a batch needs them.
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
  // Starts a batch of the examples `rows`. The span stays valid until the next call.
  virtual Status Begin(std::span<const int64_t> rows) = 0;
  // Returns example rows[i] of the current batch. Several threads may call this function at the
  // same time. If the source has one thread, the calls are in the order of `rows`.
  virtual StatusOr<Example> Make(size_t i) = 0;
};

struct ComputedOptions {
  std::string file;  // name of the source in error messages
  std::string text;  // the result of Source::Describe
  int64_t size = 0;  // from 1 to Selection::kMost
  bool random_access = true;
  int threads = 1;  // threads that call Make for a reader, including its own
  uint64_t fingerprint = 0;
  std::string left_out = {};
  std::function<StatusOr<std::unique_ptr<ExampleMaker>>()> make_maker;
};

// Returns a source of computed examples. Computes example 0 to determine the fields, which must be
// the same in all examples. Propagates errors from make_maker, and errors from ExampleMaker while
// it computes example 0. Returns InvalidArgument if the size is out of range. RowReader::Read
// propagates errors from ExampleMaker, with the index of the example, and returns InvalidArgument
// if an example has different fields.
StatusOr<SourcePtr> Compute(ComputedOptions options);

// Returns a source of `size` examples. row(i) must return the same example i in every task and in
// every call. Several threads may call it at the same time. Error messages call the source `name`.
StatusOr<SourcePtr> ComputeRows(const std::string& name, int64_t size, int threads,
                                std::function<StatusOr<Example>(int64_t row)> row);

}  // namespace tfjob::data
