#include "runtime/data/operators/select.h"

#include <utility>

#include "runtime/base/fnv1a.h"

namespace tfjob::data {
namespace {

// Reads a part of a source. `Rows` maps positions in the part to positions in the source.
template <typename Rows>
class PartReader : public RowReader {
 public:
  PartReader(const Rows& rows, std::unique_ptr<RowReader> reader)
      : rows_(rows), reader_(std::move(reader)) {}

  Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
    return reader_->Read(Found(rows), tensors);
  }
  Status ReadAt(std::span<const int64_t> rows, std::span<const int64_t> places,
                std::span<NamedTensor> tensors) override {
    return reader_->ReadAt(Found(rows), places, tensors);
  }

 private:
  std::span<const int64_t> Found(std::span<const int64_t> rows) {
    found_.clear();
    for (const int64_t row : rows) found_.push_back(rows_.At(row));
    return found_;
  }

  const Rows& rows_;
  const std::unique_ptr<RowReader> reader_;
  std::vector<int64_t> found_;
};

// A source that consists of a part of another source. `Rows` numbers the examples of the part with
// size() and At().
template <typename Rows>
class PartOfSource : public Source {
 public:
  PartOfSource(SourcePtr source, Rows rows, std::string text, uint64_t hash)
      : source_(std::move(source)), rows_(std::move(rows)), text_(std::move(text)), hash_(hash) {}

  int64_t size() const override { return rows_.size(); }
  const std::vector<Field>& fields() const override { return source_->fields(); }
  bool in_memory() const override { return source_->in_memory(); }
  bool random_access() const override { return source_->random_access(); }
  std::string Describe() const override { return StrCat(source_->Describe(), "; ", text_); }
  std::string LeftOut() const override { return source_->LeftOut(); }
  uint64_t fingerprint() const override {
    return Fnv1a().AddWord(source_->fingerprint()).AddWord(hash_).hash();
  }
  std::optional<uint64_t> values_hash() const override {
    return ValuesHashOf({&source_, 1}, hash_);
  }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, source_->Open(columns));
    return std::make_unique<PartReader<Rows>>(rows_, std::move(reader));
  }

 private:
  const SourcePtr source_;
  const Rows rows_;
  const std::string text_;
  const uint64_t hash_;
};

}  // namespace

StatusOr<SourcePtr> Select(SourcePtr source, const SelectOptions& options) {
  if (options == SelectOptions()) return source;
  ASSIGN_OR_RETURN(const Selection rows, Selection::Create(options, source->size()));
  const std::string text = rows.Describe();
  return std::make_shared<const PartOfSource<Selection>>(std::move(source), rows, text,
                                                         Fnv1a().Add(text).hash());
}

StatusOr<SourcePtr> Keep(SourcePtr source, KeptRows kept) {
  if (kept.size() == 0) {
    return InvalidArgument(source->fields()[0].file, ": the filter keeps none of the ",
                           source->size(), " examples");
  }
  const std::string text =
      StrCat("a filter keeps ", kept.size(), "; an index of ", kept.bytes(), " bytes in memory");
  const uint64_t hash = kept.hash();
  return std::make_shared<const PartOfSource<KeptRows>>(std::move(source), std::move(kept), text,
                                                        hash);
}

}  // namespace tfjob::data
