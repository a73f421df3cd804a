#include "runtime/io/npz.h"

#include <map>
#include <optional>

#include "absl/strings/str_join.h"
#include "runtime/data/dataset.h"

namespace tfjob::data {
namespace {

// Provides the arrays of a dataset. Reads each array only once, even if it is used several times.
class NpzArrays {
 public:
  explicit NpzArrays(const NpzOptions& options)
      : file_(options.file), in_memory_(options.in_memory) {}

  StatusOr<Array> Get(const NpzOptions::Source& source) {
    if (!in_memory_.empty()) return FromMemory(source);
    const bool own_file = source.array.ends_with(".npy");
    const std::string from = own_file ? source.array : StrCat(file_, ": array ", source.array);
    if (!read_.contains(source.array)) {
      StatusOr<Tensor> read = own_file ? io::ReadNpy(source.array) : FromArchive(source.array);
      RETURN_IF_ERROR(read.status());
      RETURN_IF_ERROR(Check(*read, from));
      read_.emplace(source.array, *std::move(read));
    }
    return Array{.name = source.name, .file = from, .values = read_.at(source.array)};
  }

 private:
  StatusOr<Array> FromMemory(const NpzOptions::Source& source) const {
    const std::string from = StrCat("array ", source.array);
    const auto found = in_memory_.find(source.array);
    if (found == in_memory_.end()) {
      std::vector<std::string> names;
      for (const auto& [name, tensor] : in_memory_) names.push_back(name);
      return InvalidArgument("expected the ", from, ", but the data have only ",
                             absl::StrJoin(names, ", "));
    }
    RETURN_IF_ERROR(Check(found->second, from));
    return Array{.name = source.name, .file = from, .values = found->second};
  }

  StatusOr<Tensor> FromArchive(const std::string& name) {
    if (!archive_) {
      ASSIGN_OR_RETURN(io::NpzReader reader, io::NpzReader::Open(file_));
      archive_.emplace(std::move(reader));
    }
    return archive_->Read(name);
  }

  static Status Check(const Tensor& tensor, const std::string& from) {
    if (tensor.shape().rank() < 1) {
      return InvalidArgument(from, ": expected an array whose first axis is that of the examples, ",
                             "got a single number");
    }
    if (tensor.num_elements() > 0) return OkStatus();
    return InvalidArgument(from, ": expected at least one example, and at least one number in it, ",
                           "got shape ", tensor.shape().ToString());
  }

  const std::string& file_;
  const std::map<std::string, Tensor>& in_memory_;
  std::optional<io::NpzReader> archive_;
  std::map<std::string, Tensor> read_;
};

}  // namespace

StatusOr<Dataset> LoadNpz(const NpzOptions& options) {
  NpzArrays arrays(options);
  Dataset dataset;
  for (const NpzOptions::Source& source : options.arrays) {
    ASSIGN_OR_RETURN(Array array, arrays.Get(source));
    dataset.arrays.push_back(std::move(array));
    const Array& first = dataset.arrays.front();
    const Array& last = dataset.arrays.back();
    if (last.values.shape().dim(0) == dataset.size()) continue;
    return InvalidArgument(first.file, " has ", dataset.size(), " examples, but ", last.file,
                           " has ", last.values.shape().dim(0), "; expected as many");
  }
  return dataset;
}

}  // namespace tfjob::data
