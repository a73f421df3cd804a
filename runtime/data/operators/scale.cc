#include "runtime/data/operators/scale.h"

#include <bit>
#include <utility>

#include "runtime/base/fnv1a.h"

namespace tfjob::data {
namespace {

// Multiplies float64 columns, to which Column::scale does not apply.
class ScaledReader : public RowReader {
 public:
  // `scaled` contains the indices of these columns.
  ScaledReader(std::unique_ptr<RowReader> reader, std::vector<size_t> scaled, double factor)
      : reader_(std::move(reader)), scaled_(std::move(scaled)), factor_(factor) {}

  Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
    RETURN_IF_ERROR(reader_->Read(rows, tensors));
    for (const size_t column : scaled_) {
      for (double& value : tensors[column].value.data<double>()) value *= factor_;
    }
    return OkStatus();
  }
  Status ReadAt(std::span<const int64_t> rows, std::span<const int64_t> places,
                std::span<NamedTensor> tensors) override {
    RETURN_IF_ERROR(reader_->ReadAt(rows, places, tensors));
    for (const size_t column : scaled_) {
      Tensor& tensor = tensors[column].value;
      const auto width = static_cast<size_t>(tensor.num_elements() / tensor.shape().dim(0));
      for (const int64_t place : places) {
        for (double& value :
             tensor.data<double>().subspan(static_cast<size_t>(place) * width, width))
          value *= factor_;
      }
    }
    return OkStatus();
  }

 private:
  const std::unique_ptr<RowReader> reader_;
  const std::vector<size_t> scaled_;
  const double factor_;
};

class Scaled : public Source {
 public:
  Scaled(SourcePtr source, std::set<std::string> scaled, float factor)
      : source_(std::move(source)), scaled_(std::move(scaled)), factor_(factor) {
    for (Field field : source_->fields()) {
      if (scaled_.contains(field.name)) {
        field.dtype = DType::kFloat32;
        if (field.padding) *field.padding *= factor_;
      }
      fields_.push_back(std::move(field));
    }
  }

  int64_t size() const override { return source_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  bool in_memory() const override { return source_->in_memory(); }
  std::vector<int64_t> file_starts() const override { return source_->file_starts(); }
  bool random_access() const override { return source_->random_access(); }
  std::string Describe() const override {
    return StrCat(source_->Describe(), "; inputs multiplied by ", factor_);
  }
  std::string LeftOut() const override { return source_->LeftOut(); }
  uint64_t fingerprint() const override {
    return Fnv1a().AddWord(source_->fingerprint()).AddWord(std::bit_cast<uint32_t>(factor_)).hash();
  }
  std::optional<uint64_t> values_hash() const override {
    return ValuesHashOf({&source_, 1}, std::bit_cast<uint32_t>(factor_));
  }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override {
    std::vector<Column> changed = columns;
    std::vector<size_t> doubles;
    for (size_t i = 0; i < changed.size(); ++i) {
      if (!scaled_.contains(changed[i].array)) continue;
      if (changed[i].dtype == DType::kFloat32) changed[i].scale *= factor_;
      if (changed[i].dtype == DType::kFloat64) doubles.push_back(i);
    }
    ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, source_->Open(changed));
    if (doubles.empty()) return reader;
    return std::make_unique<ScaledReader>(std::move(reader), std::move(doubles), factor_);
  }

 private:
  const SourcePtr source_;
  const std::set<std::string> scaled_;
  const float factor_;
  std::vector<Field> fields_;
};

}  // namespace

SourcePtr Scale(SourcePtr source, std::set<std::string> fields, float factor) {
  if (factor == 1 || fields.empty()) return source;
  return std::make_shared<const Scaled>(std::move(source), std::move(fields), factor);
}

}  // namespace tfjob::data
