#include "runtime/data/operators/zip.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/fnv1a.h"

namespace tfjob::data {
namespace {

// Fills those tensors of a batch that come from one source.
struct ZippedPart {
  std::unique_ptr<RowReader> reader;
  std::vector<size_t> columns;       // indices of the source's columns among all columns
  std::vector<NamedTensor> tensors;  // they share the memory of the batch
};

class ZippedReader : public RowReader {
 public:
  explicit ZippedReader(std::vector<ZippedPart> parts) : parts_(std::move(parts)) {}

  Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
    for (ZippedPart& part : parts_) {
      Share(tensors, part);
      RETURN_IF_ERROR(part.reader->Read(rows, part.tensors));
    }
    return OkStatus();
  }
  Status ReadAt(std::span<const int64_t> rows, std::span<const int64_t> places,
                std::span<NamedTensor> tensors) override {
    for (ZippedPart& part : parts_) {
      Share(tensors, part);
      RETURN_IF_ERROR(part.reader->ReadAt(rows, places, part.tensors));
    }
    return OkStatus();
  }

 private:
  static void Share(std::span<NamedTensor> tensors, ZippedPart& part) {
    for (size_t i = 0; i < part.columns.size(); ++i)
      part.tensors[i].value = tensors[part.columns[i]].value;
  }

  std::vector<ZippedPart> parts_;
};

class Zipped : public Source {
 public:
  explicit Zipped(std::vector<SourcePtr> sources) : sources_(std::move(sources)) {
    for (const SourcePtr& part : sources_)
      fields_.insert(fields_.end(), part->fields().begin(), part->fields().end());
    size_ =
        std::ranges::min(sources_, {}, [](const SourcePtr& part) { return part->size(); })->size();
  }

  int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  bool in_memory() const override {
    return std::ranges::all_of(sources_, [](const SourcePtr& part) { return part->in_memory(); });
  }
  bool random_access() const override {
    return std::ranges::all_of(sources_,
                               [](const SourcePtr& part) { return part->random_access(); });
  }
  std::string Describe() const override { return DescribeAll("side by side", sources_); }
  std::string LeftOut() const override { return LeftOutOf(sources_); }
  uint64_t fingerprint() const override {
    Fnv1a hash;
    hash.Add("zip");
    for (const SourcePtr& part : sources_)
      hash.AddWord(part->fingerprint()).AddWord(static_cast<uint64_t>(part->size()));
    return hash.hash();
  }
  std::optional<uint64_t> values_hash() const override {
    return ValuesHashOf(sources_, Fnv1a().Add("zip").hash());
  }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override {
    for (const Column& column : columns) {
      if (Find(column.array) != nullptr) continue;
      return InvalidArgument(fields_[0].file, ": none of the zipped datasets provides ",
                             column.array);
    }
    std::vector<ZippedPart> parts;
    for (const SourcePtr& source : sources_) {
      ZippedPart part;
      std::vector<Column> own;
      for (size_t i = 0; i < columns.size(); ++i) {
        if (source->Find(columns[i].array) == nullptr) continue;
        own.push_back(columns[i]);
        part.columns.push_back(i);
      }
      if (own.empty()) continue;
      part.tensors.resize(own.size());
      ASSIGN_OR_RETURN(part.reader, source->Open(own));
      parts.push_back(std::move(part));
    }
    return std::make_unique<ZippedReader>(std::move(parts));
  }

 private:
  const std::vector<SourcePtr> sources_;
  std::vector<Field> fields_;
  int64_t size_ = 0;
};

}  // namespace

StatusOr<SourcePtr> Zip(std::vector<SourcePtr> sources) {
  ENFORCE(!sources.empty(), "the caller gives at least one source");
  for (size_t i = 0; i < sources.size(); ++i) {
    for (const Field& field : sources[i]->fields()) {
      for (size_t j = 0; j < i; ++j) {
        const Field* same = sources[j]->Find(field.name);
        if (same == nullptr) continue;
        return InvalidArgument("zip: expected ", field.name, " from one dataset only, but both ",
                               same->file, " and ", field.file, " provide it");
      }
    }
  }
  return std::make_shared<const Zipped>(std::move(sources));
}

}  // namespace tfjob::data
