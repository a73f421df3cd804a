// Describes pipelines as text.
#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/data/batch_maker.h"

namespace tfjob::data {
namespace {

std::string OrderText(Order::Kind kind, const PipelineOptions& options, int64_t size) {
  if (kind == Order::Kind::kFiles) return "that of the files, in every epoch";
  const std::string seed = StrCat("shuffled for every epoch, seed ", options.seed);
  if (kind == Order::Kind::kWindows)
    return StrCat(seed, ", within windows of ", options.shuffle_buffer, " examples");
  if (kind == Order::Kind::kPermutation)
    return StrCat(seed, "; computed by a keyed permutation, without a list");
  return StrCat(seed, "; a list of ", static_cast<size_t>(size) * sizeof(uint32_t), " bytes");
}

// Describes how the values of a column are converted to a tensor.
std::string ConversionText(const Column& column) {
  std::string text = column.name == column.array ? "" : StrCat(", from ", column.array);
  if (!column.class_weights.empty()) return text + ", weights of the classes";
  if (column.classes > 0) {
    text +=
        StrCat(column.one_hot ? ", one-hot rows of " : ", numbers of ", column.classes, " classes");
  }
  if (column.scale != 1) text += StrCat(", multiplied by ", column.scale);
  return text;
}

std::string ColumnText(const Column& column, int64_t rows) {
  std::vector<int64_t> dims = column.shape.dims();
  dims.insert(dims.begin(), rows);
  return StrCat("  ", column.name, ": ", Name(column.dtype), " ", Shape(std::move(dims)).ToString(),
                ConversionText(column), "\n");
}

// Returns the size of a batch of `rows` rows, in bytes.
size_t BytesOf(const std::vector<Column>& columns, int64_t rows) {
  size_t bytes = 0;
  for (const Column& column : columns)
    bytes += static_cast<size_t>(column.shape.num_elements() * rows) * SizeOf(column.dtype);
  return bytes;
}

std::string BufferText(const PipelineOptions& options, size_t bytes) {
  const int64_t buffers = options.prefetch + 1;  // plus one for the batch in use
  return StrCat("buffers: ", buffers, " of ", bytes, " bytes; ",
                options.prefetch == 0 ? "each batch is prepared when it is needed"
                                      : StrCat(options.prefetch, " batches are prepared ahead"),
                "\n");
}

}  // namespace

StatusOr<std::string> Pipeline::Describe(std::shared_ptr<const Source> source,
                                         const PipelineOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Maker> maker, Maker::Create(std::move(source), options));
  return maker->Describe();
}

std::string Pipeline::Maker::Describe() const {
  if (bucketed_ != nullptr) return BucketText();
  const Part full = shapes_[0].part, rest = shapes_[1].part;
  const int64_t left_out = remainder_ > 0 ? 0 : rows_ - batches_ * step_;
  const int64_t usual = rows_ >= step_ ? full.size : rest.size;
  std::string text =
      StrCat("order: ", OrderText(order_kind_, options_, source_->size()), "\n", ShareText());
  text += StrCat("batches: ", batches_, " per epoch, of ", usual,
                 usual == 1 ? " example" : " examples");
  if (remainder_ > 0 && batches_ > 1) text += StrCat("; the last of ", rest.size);
  if (left_out > 0)
    text += StrCat("; ", left_out, left_out == 1 ? " example" : " examples", " left out");
  text += options_.epochs == 0 ? "\n" : StrCat("; epochs: ", options_.epochs, "\n");
  text += "tensors of a batch:\n";
  for (const Column& column : options_.columns) text += ColumnText(column, usual);
  // Full batches have separate memory from the smaller batch at the end of an epoch.
  size_t bytes = rows_ >= step_ ? BytesOf(options_.columns, full.size) : 0;
  if (remainder_ > 0) bytes += BytesOf(options_.columns, rest.size);
  return text + BufferText(options_, bytes);
}

std::string Pipeline::Maker::ShareText() const {
  if (own()) return "share: all examples, in an order of this task\n";
  if (file_order_ != nullptr) {
    std::vector<std::string> files;
    if (worker_ < file_groups()) {
      for (const size_t file : file_order_->files(static_cast<size_t>(worker_))) {
        if (files.size() < 10) files.push_back(StrCat(file));
        if (files.size() == 10) files.back() = "…";
      }
    }
    return StrCat("share: whole files, counted from 0: ", absl::StrJoin(files, ", "), "; after ",
                  file_order_->batches_by_file() / (together() ? 1 : step_),
                  " batches, a part of what remains of all files\n");
  }
  if (together()) {
    return StrCat("share: part ", worker_, " of ", workers_, " of every batch of ", step_, "\n");
  }
  if (workers_ == 1) return "share: all examples\n";
  return StrCat("share: examples ", worker_, ", ", worker_ + workers_, ", … of the order; ", rows_,
                " per epoch\n");
}

// Describes the batches of a source with buckets: all examples in a batch come from the same
// bucket.
std::string Pipeline::Maker::BucketText() const {
  const Buckets& buckets = *source_->buckets();
  std::string text =
      options_.shuffle
          ? StrCat("order: batches, and the examples of each length, shuffled for every epoch, ",
                   "seed ", options_.seed, "\n")
          : std::string("order: that of the files, by length, in every epoch\n");
  if (own()) {
    text += ShareText();
  } else if (together() && workers_ > 1) {
    text += StrCat("share: part ", worker_, " of ", workers_, " of every batch\n");
  } else if (workers_ == 1) {
    text += "share: all examples\n";
  } else {
    text += StrCat("share: batches ", worker_, ", ", worker_ + workers_, ", … of the order\n");
  }
  text += StrCat("batches: ", batches_, " per epoch, by length",
                 options_.epochs == 0 ? "" : StrCat("; epochs: ", options_.epochs), "\n");
  int64_t above = 0;
  size_t bytes = 0;
  for (size_t i = 0; i < buckets.count(); ++i) {
    const int64_t length = buckets.lengths()[i], rest = shapes_[2 * i + 1].rows;
    text +=
        StrCat("  lengths ", above + 1, " to ", length, ": ", buckets.size(i),
               buckets.size(i) == 1 ? " example" : " examples", ", in batches of ",
               options_.bucket_batches[i], rest > 0 ? StrCat("; the last of ", rest) : "", "\n");
    above = length;
  }
  text += "tensors of the longest batch:\n";
  const int64_t usual = std::max(shapes_[shapes_.size() - 2].part.size, shapes_.back().part.size);
  for (const Column& column : options_.columns) text += ColumnText(column, usual);
  for (const Column& column : options_.columns) {
    size_t most = 0;  // batches of all lengths share their memory
    for (size_t s = 0; s < shapes_.size(); ++s)
      most = std::max(most, NewTensor(column, shapes_[s], Cuts(column, s)).num_bytes());
    bytes += most;
  }
  return text + BufferText(options_, bytes);
}

}  // namespace tfjob::data
