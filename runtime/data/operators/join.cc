#include "runtime/data/operators/join.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/base/check.h"
#include "runtime/base/fnv1a.h"
#include "runtime/data/operators/concatenation.h"
#include "runtime/data/operators/interleaving.h"
#include "runtime/data/operators/selection.h"

namespace tfjob::data {
namespace {

// Reads the examples of a batch source by source.
template <typename Layout>
class JoinedReader : public RowReader {
 public:
  JoinedReader(const Layout& layout, std::vector<std::unique_ptr<RowReader>> readers)
      : layout_(layout), readers_(std::move(readers)), shares_(readers_.size()) {}

  Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
    Divide(rows, {});
    for (size_t i = 0; i < readers_.size(); ++i) {
      if (shares_[i].rows.size() == rows.size()) return readers_[i]->Read(shares_[i].rows, tensors);
    }
    return ReadShares(tensors);
  }
  Status ReadAt(std::span<const int64_t> rows, std::span<const int64_t> places,
                std::span<NamedTensor> tensors) override {
    Divide(rows, places);
    return ReadShares(tensors);
  }

 private:
  struct Share {
    std::vector<int64_t> rows, places;
  };

  // Determines the examples that each source provides for the batch, and their places in the batch.
  // If `places` is empty, example rows[i] has the place i.
  void Divide(std::span<const int64_t> rows, std::span<const int64_t> places) {
    for (Share& share : shares_) {
      share.rows.clear();
      share.places.clear();
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const Place place = layout_.At(rows[i]);
      shares_[place.source].rows.push_back(place.row);
      shares_[place.source].places.push_back(places.empty() ? static_cast<int64_t>(i) : places[i]);
    }
  }

  Status ReadShares(std::span<NamedTensor> tensors) {
    for (size_t i = 0; i < readers_.size(); ++i) {
      if (shares_[i].rows.empty()) continue;
      RETURN_IF_ERROR(readers_[i]->ReadAt(shares_[i].rows, shares_[i].places, tensors));
    }
    return OkStatus();
  }

  const Layout& layout_;
  const std::vector<std::unique_ptr<RowReader>> readers_;
  std::vector<Share> shares_;  // one per source
};

// Combines several sources into one. `Layout` numbers the examples with size() and At().
template <typename Layout>
class Joined : public Source {
 public:
  // `hash` covers the settings that `text` does not contain.
  Joined(std::vector<SourcePtr> sources, Layout layout, std::string text, uint64_t hash)
      : sources_(std::move(sources)),
        layout_(std::move(layout)),
        text_(std::move(text)),
        hash_(hash) {
    for (const Field& field : sources_[0]->fields()) fields_.push_back(Common(field));
  }

  int64_t size() const override { return layout_.size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  bool in_memory() const override {
    return std::ranges::all_of(sources_, [](const SourcePtr& part) { return part->in_memory(); });
  }
  bool random_access() const override {
    return std::ranges::all_of(sources_,
                               [](const SourcePtr& part) { return part->random_access(); });
  }
  std::string Describe() const override { return DescribeAll(text_, sources_); }
  std::string LeftOut() const override { return LeftOutOf(sources_); }
  uint64_t fingerprint() const override {
    Fnv1a hash;
    hash.Add(text_).AddWord(hash_);
    for (const SourcePtr& part : sources_)
      hash.AddWord(part->fingerprint()).AddWord(static_cast<uint64_t>(part->size()));
    return hash.hash();
  }
  std::optional<uint64_t> values_hash() const override {
    return ValuesHashOf(sources_, Fnv1a().Add(text_).AddWord(hash_).hash());
  }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override {
    std::vector<std::unique_ptr<RowReader>> readers;
    for (const SourcePtr& part : sources_) {
      ASSIGN_OR_RETURN(readers.emplace_back(), part->Open(columns));
    }
    return std::make_unique<JoinedReader<Layout>>(layout_, std::move(readers));
  }

 private:
  // Returns `field` with a type that can represent the values of all sources. Replaces its padding
  // with NaN if the padding differs between sources.
  Field Common(Field field) const {
    const auto is_float = [&](const SourcePtr& part) {
      const DType dtype = part->Find(field.name)->dtype;
      return dtype == DType::kFloat32 || dtype == DType::kFloat64;
    };
    const DType wide = std::ranges::any_of(sources_, is_float) ? DType::kFloat64 : DType::kInt64;
    for (const SourcePtr& part : sources_) {
      const Field& other = *part->Find(field.name);
      if (other.dtype != field.dtype) field.dtype = wide;
      if (other.padding != field.padding) field.padding = std::nan("");
    }
    return field;
  }

  const std::vector<SourcePtr> sources_;
  const Layout layout_;
  const std::string text_;
  const uint64_t hash_;
  std::vector<Field> fields_;
};

StatusOr<std::vector<int64_t>> SizesOf(const std::vector<SourcePtr>& sources) {
  ENFORCE(!sources.empty(), "the caller gives at least one source");
  std::vector<int64_t> sizes;
  int64_t left = Selection::kMost;
  for (const SourcePtr& source : sources) {
    RETURN_IF_ERROR(CheckSameFields(*sources[0], *source));
    if (source->size() > left)
      return InvalidArgument("expected at most ", Selection::kMost, " examples in all datasets");
    left -= source->size();
    sizes.push_back(source->size());
  }
  return sizes;
}

template <typename Layout>
SourcePtr Join(std::vector<SourcePtr> sources, Layout layout, std::string text, uint64_t hash = 0) {
  return std::make_shared<const Joined<Layout>>(std::move(sources), std::move(layout),
                                                std::move(text), hash);
}

}  // namespace

StatusOr<SourcePtr> Concatenate(std::vector<SourcePtr> sources) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(sources));
  return Join(std::move(sources), Concatenation(sizes), "one after the other");
}

StatusOr<SourcePtr> Mix(std::vector<SourcePtr> sources, const MixOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(sources));
  ASSIGN_OR_RETURN(Mixture mixture,
                   Mixture::Create(sizes, options.weights, options.stop, options.seed));
  std::string text =
      StrCat("mixed with the weights ", absl::StrJoin(options.weights, ", "), ", until ",
             options.stop == Mixture::Stop::kFirst ? "the first ends" : "all have been read");
  // The hash covers the exact weights, because the description rounds them.
  Fnv1a hash;
  hash.AddWord(options.seed);
  for (const double weight : options.weights) hash.AddWord(std::bit_cast<uint64_t>(weight));
  return Join(std::move(sources), std::move(mixture), std::move(text), hash.hash());
}

StatusOr<SourcePtr> Interleave(std::vector<SourcePtr> sources, const InterleaveOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(sources));
  ASSIGN_OR_RETURN(Interleaving layout,
                   Interleaving::Create(sizes, options.cycle_length, options.block_length));
  std::string text = StrCat("interleaved ", options.cycle_length, " at a time, in blocks of ",
                            options.block_length);
  return Join(std::move(sources), std::move(layout), std::move(text));
}

}  // namespace tfjob::data
