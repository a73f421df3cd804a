#include "runtime/api/loops/batch_form.h"

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "runtime/api/access.h"

namespace tfjob::api {
namespace {

// Calls visit(name, array) for all arrays.
template <typename Only, typename Visit>
void ForEachArray(const char* only_name, Only& only, const char* group, auto& named,
                  const Visit& visit) {
  if (only.present()) visit(only_name, only);
  for (auto& [name, array] : named)
    if (array.present()) visit(StrCat(group, "/", name), array);
}

template <typename Arrays, typename Visit>
void ForEachArrayOf(Arrays& batch, const Visit& visit) {
  ForEachArray("x", batch.x, "inputs", batch.inputs, visit);
  ForEachArray("y", batch.y, "targets", batch.targets, visit);
  ForEachArray("sample_weight", batch.sample_weight, "sample_weights", batch.sample_weights, visit);
}

std::string TypeOfExamples(const tfjob::Tensor& array) {
  std::vector<int64_t> dims = array.shape().dims();
  if (!dims.empty()) dims.erase(dims.begin());
  return StrCat(tfjob::Name(array.dtype()), Shape(std::move(dims)).ToString());
}

}  // namespace

std::string FormOf(const Batch& batch) {
  std::string text;
  ForEachArrayOf(batch, [&](const std::string& name, const Tensor& array) {
    text += StrCat(text.empty() ? "" : ", ", name, " ", TypeOfExamples(Access::Data(array)));
  });
  return text;
}

int64_t RowsOf(const Batch& batch) {
  int64_t rows = -1;
  ForEachArrayOf(batch, [&](const std::string&, const Tensor& array) {
    const Shape& shape = Access::Data(array).shape();
    if (rows < 0 && shape.rank() > 0) rows = shape.dim(0);
  });
  return rows < 0 ? 0 : rows;
}

StatusOr<Batch> OneExampleLike(const Batch& batch) {
  Batch made = batch;
  tfjob::Status status;
  ForEachArrayOf(made, [&](const std::string& name, Tensor& array) {
    const tfjob::Tensor& own = Access::Data(array);
    std::vector<int64_t> dims = own.shape().dims();
    if (dims.empty() || dims[0] != 0) {
      status.Update(InvalidArgument(name, ": expected no example, as in the other arrays, got ",
                                    own.shape().ToString()));
      return;
    }
    dims[0] = 1;
    array = Access::MakeTensor(tfjob::Tensor(own.dtype(), Shape(std::move(dims))));
  });
  RETURN_IF_ERROR(status);
  return made;
}

}  // namespace tfjob::api
