#include "runtime/model/layer/axes.h"

#include <algorithm>

namespace tfjob::model::layers {

int ExampleAxis(int64_t axis, const Shape& in) {
  const int64_t found = axis < 0 ? axis + in.rank() : axis - 1;
  return found >= 0 && found < in.rank() ? static_cast<int>(found) : -1;
}

Status NoSuchAxis(int64_t axis, const Shape& in) {
  return InvalidArgument("axis ", axis, " is not an axis of examples of shape ", in.ToString(),
                         " (axis 0 is the batch)");
}

StatusOr<std::vector<int64_t>> AxesOfBatch(std::span<const int64_t> axes, const Shape& in) {
  if (axes.empty() || axes.size() > static_cast<size_t>(in.rank())) {
    return InvalidArgument("expected 1 to ", in.rank(), " axes of examples of shape ",
                           in.ToString(), ", got ", axes.size());
  }
  std::vector<int64_t> found;
  for (const int64_t axis : axes) {
    const int64_t of_batch = ExampleAxis(axis, in) + 1;
    if (of_batch == 0) return NoSuchAxis(axis, in);
    if (std::ranges::find(found, of_batch) != found.end())
      return InvalidArgument("axis ", axis, " is given twice");
    found.push_back(of_batch);
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace tfjob::model::layers
