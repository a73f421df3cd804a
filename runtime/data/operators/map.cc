#include "runtime/data/operators/map.h"

#include <utility>

#include "runtime/base/fnv1a.h"
#include "runtime/data/operators/computed.h"

namespace tfjob::data {
namespace {

class Mapper : public ExampleMaker {
 public:
  Mapper(const Source& source, std::unique_ptr<RowReader> reader, MapFunction function)
      : source_(source), reader_(std::move(reader)), function_(std::move(function)) {}

  Status Begin(std::span<const int64_t> rows) override {
    const auto count = static_cast<int64_t>(rows.size());
    if (read_.empty() || read_[0].value.shape().dim(0) != count) {
      read_.clear();
      for (const Field& field : source_.fields())
        read_.push_back({field.name, TensorFor(field, count)});
    }
    return reader_->Read(rows, read_);
  }
  StatusOr<Example> Make(size_t i) override { return function_(RowOf(read_, i)); }

 private:
  const Source& source_;
  const std::unique_ptr<RowReader> reader_;
  const MapFunction function_;
  std::vector<NamedTensor> read_;  // the examples of the batch, before the function is applied
};

}  // namespace

StatusOr<SourcePtr> Map(SourcePtr source, MapFunction function, int threads) {
  ComputedOptions options{
      .file = source->fields()[0].file,
      .text = StrCat(source->Describe(), "; mapped by ", threads,
                     threads == 1 ? " thread" : " threads"),
      .size = source->size(),
      .random_access = source->random_access(),
      .threads = threads,
      .fingerprint = Fnv1a().Add("map").AddWord(source->fingerprint()).hash(),
      .left_out = source->LeftOut(),
      .make_maker = nullptr,
  };
  options.make_maker = [source = std::move(source),
                        function =
                            std::move(function)]() -> StatusOr<std::unique_ptr<ExampleMaker>> {
    ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, source->Open(ColumnsOfFields(*source)));
    return std::make_unique<Mapper>(*source, std::move(reader), function);
  };
  return Compute(std::move(options));
}

}  // namespace tfjob::data
