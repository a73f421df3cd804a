#include "runtime/io/npz.h"

#include <filesystem>
#include <map>
#include <optional>

#include "absl/strings/str_join.h"
#include "runtime/data/array_checks.h"
#include "runtime/data/dataset.h"

namespace tfjob::data {
namespace {

// Provides the arrays of a dataset. Reads each array only once, even if it is used several times.
class NpzArrays {
 public:
  explicit NpzArrays(const NpzOptions& options)
      : file_(options.file), in_memory_(options.in_memory) {}

  // Returns whether there is such an array, or a file of this name.
  StatusOr<bool> Has(const std::string& array) {
    if (!in_memory_.empty()) return in_memory_.contains(array);
    if (array.ends_with(".npy")) {
      std::error_code error;  // for example, an unreadable folder: Get reports it
      return std::filesystem::exists(array, error) || static_cast<bool>(error);
    }
    ASSIGN_OR_RETURN(const io::NpzReader* archive, Archive());
    return archive->Has(array);
  }

  StatusOr<Array> Get(const NpzOptions::Source& source) {
    if (!in_memory_.empty()) return FromMemory(source);
    const bool own_file = source.array.ends_with(".npy");
    const std::string from = own_file ? source.array : StrCat(file_, ": array ", source.array);
    if (!read_.contains(source.array)) {
      StatusOr<Tensor> read = own_file ? io::ReadNpy(source.array) : FromArchive(source.array);
      RETURN_IF_ERROR(read.status());
      RETURN_IF_ERROR(CheckArrayShape(read->shape(), from));
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
    RETURN_IF_ERROR(CheckArrayShape(found->second.shape(), from));
    return Array{.name = source.name, .file = from, .values = found->second};
  }

  StatusOr<Tensor> FromArchive(const std::string& name) {
    ASSIGN_OR_RETURN(const io::NpzReader* archive, Archive());
    return archive->Read(name);
  }

  StatusOr<const io::NpzReader*> Archive() {
    if (!archive_) {
      ASSIGN_OR_RETURN(io::NpzReader reader, io::NpzReader::Open(file_));
      archive_.emplace(std::move(reader));
    }
    return &*archive_;
  }

  const std::string& file_;
  const std::map<std::string, Tensor>& in_memory_;
  std::optional<io::NpzReader> archive_;
  std::map<std::string, Tensor> read_;
};

}  // namespace

Status CheckArrayShape(const Shape& shape, const std::string& from) {
  if (shape.rank() < 1) {
    return InvalidArgument(from, ": expected an array whose first axis is that of the examples, ",
                           "got a single number");
  }
  if (shape.num_elements() > 0) return OkStatus();
  return InvalidArgument(from, ": expected at least one example, and at least one number in it, ",
                         "got shape ", shape.ToString());
}

Status CheckSameExamples(const std::string& first, int64_t first_examples, const std::string& other,
                         int64_t other_examples) {
  if (first_examples == other_examples) return OkStatus();
  return InvalidArgument(first, " has ", first_examples, " examples, but ", other, " has ",
                         other_examples, "; expected as many");
}

StatusOr<Dataset> LoadNpz(const NpzOptions& options) {
  NpzArrays arrays(options);
  Dataset dataset;
  for (const NpzOptions::Source& source : options.arrays) {
    if (source.optional) {
      ASSIGN_OR_RETURN(const bool present, arrays.Has(source.array));
      if (!present) continue;
    }
    ASSIGN_OR_RETURN(Array array, arrays.Get(source));
    dataset.arrays.push_back(std::move(array));
    const Array& first = dataset.arrays.front();
    const Array& last = dataset.arrays.back();
    RETURN_IF_ERROR(
        CheckSameExamples(first.file, dataset.size(), last.file, last.values.shape().dim(0)));
  }
  return dataset;
}

}  // namespace tfjob::data
