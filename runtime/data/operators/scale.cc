#include "runtime/data/operators/scale.h"

#include <bit>
#include <utility>

#include "runtime/base/fnv1a.h"

namespace tfjob::data {
namespace {

class Scaled : public Source {
 public:
  Scaled(SourcePtr source, std::set<std::string> scaled, float factor)
      : source_(std::move(source)), scaled_(std::move(scaled)), factor_(factor) {
    for (Field field : source_->fields()) {
      if (scaled_.contains(field.name)) field.dtype = DType::kFloat32;
      fields_.push_back(std::move(field));
    }
  }

  int64_t size() const override { return source_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  bool in_memory() const override { return source_->in_memory(); }
  bool random_access() const override { return source_->random_access(); }
  std::string Describe() const override {
    return StrCat(source_->Describe(), "; inputs multiplied by ", factor_);
  }
  std::string LeftOut() const override { return source_->LeftOut(); }
  uint64_t fingerprint() const override {
    return Fnv1a().AddWord(source_->fingerprint()).AddWord(std::bit_cast<uint32_t>(factor_)).hash();
  }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override {
    std::vector<Column> changed = columns;
    for (Column& column : changed) {
      if (column.dtype == DType::kFloat32 && scaled_.contains(column.array))
        column.scale *= factor_;
    }
    return source_->Open(changed);
  }

 private:
  const SourcePtr source_;
  const std::set<std::string> scaled_;
  const float factor_;
  std::vector<Field> fields_;
};

}  // namespace

SourcePtr Scale(SourcePtr source, std::set<std::string> fields, float factor) {
  if (factor == 1) return source;
  return std::make_shared<const Scaled>(std::move(source), std::move(fields), factor);
}

}  // namespace tfjob::data
