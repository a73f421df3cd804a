// Computes an order of the examples in which each worker reads whole files. As in order.h, the
// orders must never change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/data/order.h"

namespace tfjob::data {

struct FileOrderOptions {
  Order::Kind kind = Order::Kind::kList;  // the order of the examples within a group of files
  uint64_t seed = 0;
  int64_t window = 1;  // as in Order
  int64_t groups = 1;  // the number of workers
  // Every `batch` consecutive places are divided among the workers by PartOf (pipeline.h). At least
  // `groups`.
  int64_t batch = 1;
};

// Divides the files into groups of similar size, one per worker, and maps the places of an epoch to
// examples: the part of worker w of each batch contains examples of group w. Once a group has too
// few examples left for its part, the remaining examples of all groups follow one after another.
// The order does not depend on how many workers actually share the batches, so every example occurs
// once per epoch, even if that number changes. Only one thread may use an order.
class FileOrder {
 public:
  // `starts` contains the number of the first example of each file, in ascending order, beginning
  // with 0; a file may be empty. There are `size` examples, at least one.
  FileOrder(std::span<const int64_t> starts, int64_t size, const FileOrderOptions& options);

  // Makes `epoch` the current epoch. Must be called before At.
  void Begin(int64_t epoch);
  // Returns the index of the example at `place`, which is in [0, size).
  int64_t At(int64_t place);

  // Returns the number of batches in which every worker reads only files of its group.
  int64_t batches_by_file() const { return batches_; }
  // Returns the numbers of the files of a group.
  const std::vector<size_t>& files(size_t group) const { return groups_[group].files; }

 private:
  struct Group {
    std::vector<size_t> files;
    std::vector<int64_t> starts;  // of the files: in the source
    std::vector<int64_t> before;  // of the files: the number of examples of the group before them
    int64_t size = 0;
    int64_t part = 0;          // rows per batch
    int64_t rest = 0;          // the number of remaining examples of the groups before this one
    std::vector<Order> order;  // one element, or none if the group has no examples
  };

  int64_t InGroup(Group& group, int64_t index);

  const int64_t batch_;
  std::vector<Group> groups_;
  int64_t batches_ = 0;
};

}  // namespace tfjob::data
