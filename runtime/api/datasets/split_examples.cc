#include "runtime/api/datasets/split_examples.h"

#include <algorithm>
#include <cmath>

namespace tfjob::api {
namespace {

// Returns a copy of some rows.
tfjob::Tensor RowsOf(const tfjob::Tensor& array, int64_t begin, int64_t end) {
  std::vector<int64_t> lengths = array.shape().dims();
  const auto row = array.bytes().size() / static_cast<size_t>(lengths[0]);
  lengths[0] = end - begin;
  tfjob::Tensor rows(array.dtype(), tfjob::Shape(lengths));
  std::ranges::copy(array.bytes().subspan(static_cast<size_t>(begin) * row, rows.bytes().size()),
                    rows.bytes().begin());
  return rows;
}

}  // namespace

StatusOr<std::pair<Dataset, Dataset>> SplitExamples(const Dataset& dataset, double fraction) {
  if (!(fraction >= 0 && fraction < 1))
    return InvalidArgument("validation_split: expected 0 to below 1, got ", fraction);
  const DatasetData& data = Access::Data(dataset);
  RETURN_IF_ERROR(data.error);
  if (data.arrays.empty()) {
    return InvalidArgument(
        "validation_split: only arrays in memory (data::Arrays) can be split; give the examples "
        "to ",
        "evaluate as `validation`");
  }
  DatasetData first = data, last = data;
  for (const auto& [name, array] : data.arrays) {
    const int64_t examples = array.shape().rank() > 0 ? array.shape().dims()[0] : 0;
    const auto kept = static_cast<int64_t>(static_cast<double>(examples) * (1 - fraction));
    if (kept < 1 || kept >= examples) {
      return InvalidArgument("validation_split: ", fraction, " of the ", examples,
                             " examples in array ", name, " leaves one of the two parts empty");
    }
    first.arrays[name] = RowsOf(array, 0, kept);
    last.arrays[name] = RowsOf(array, kept, examples);
  }
  return std::pair(Access::MakeDataset(std::move(first)), Access::MakeDataset(std::move(last)));
}

}  // namespace tfjob::api
