#include "runtime/data/operators/computed.h"

#include <numeric>
#include <utility>

#include "runtime/base/fnv1a.h"
#include "runtime/data/column_rows.h"
#include "runtime/data/operators/selection.h"
#include "runtime/data/row_pool.h"

namespace tfjob::data {
namespace {

class ComputedReader : public RowReader {
 public:
  ComputedReader(const ComputedOptions& options, const std::vector<Field>& fields,
                 std::vector<Column> columns, std::unique_ptr<ExampleMaker> maker)
      : options_(options),
        fields_(fields),
        columns_(std::move(columns)),
        maker_(std::move(maker)),
        pool_(options.threads) {}

  Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
    Stage(rows.size());
    staged_.place = [rows](int64_t index) {
      return StrCat("example ", rows[static_cast<size_t>(index)]);
    };
    RETURN_IF_ERROR(maker_->Begin(rows));
    RETURN_IF_ERROR(pool_.ForEach(rows.size(), [&](size_t, size_t i) {
      const Status made = MakeRow(i);
      return made.ok() ? made : Annotate(made, StrCat(options_.file, ": example ", rows[i]));
    }));
    for (size_t i = 0; i < columns_.size(); ++i) {
      ASSIGN_OR_RETURN(const ColumnValues values, ReadColumn(staged_, columns_[i]));
      CopyRows(values, numbers_, tensors[i].value);
    }
    return OkStatus();
  }

 private:
  void Stage(size_t rows) {
    if (numbers_.size() == rows) return;
    numbers_.resize(rows);
    std::iota(numbers_.begin(), numbers_.end(), 0);
    staged_.arrays.clear();
    for (const Field& field : fields_)
      staged_.arrays.push_back(
          {field.name, field.file, TensorFor(field, static_cast<int64_t>(rows))});
  }

  Status MakeRow(size_t i) {
    ASSIGN_OR_RETURN(const Example example, maker_->Make(i));
    return Store(example, fields_, i, staged_.arrays);
  }

  const ComputedOptions& options_;
  const std::vector<Field>& fields_;
  const std::vector<Column> columns_;
  const std::unique_ptr<ExampleMaker> maker_;
  RowPool pool_;
  Dataset staged_;
  std::vector<int64_t> numbers_;  // 0, 1, …
};

class Computed : public Source {
 public:
  Computed(ComputedOptions options, std::vector<Field> fields)
      : options_(std::move(options)), fields_(std::move(fields)) {}

  int64_t size() const override { return options_.size; }
  const std::vector<Field>& fields() const override { return fields_; }
  bool in_memory() const override { return false; }
  bool random_access() const override { return options_.random_access; }
  std::string Describe() const override { return options_.text; }
  std::string LeftOut() const override { return options_.left_out; }
  uint64_t fingerprint() const override { return options_.fingerprint; }
  std::optional<uint64_t> values_hash() const override { return std::nullopt; }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<ExampleMaker> maker, options_.make_maker());
    return std::make_unique<ComputedReader>(options_, fields_, columns, std::move(maker));
  }

 private:
  const ComputedOptions options_;
  const std::vector<Field> fields_;
};

class RowMaker : public ExampleMaker {
 public:
  explicit RowMaker(std::function<StatusOr<Example>(int64_t row)> row) : row_(std::move(row)) {}
  Status Begin(std::span<const int64_t> rows) override {
    rows_ = rows;
    return OkStatus();
  }
  StatusOr<Example> Make(size_t i) override { return row_(rows_[i]); }

 private:
  const std::function<StatusOr<Example>(int64_t row)> row_;
  std::span<const int64_t> rows_;
};

}  // namespace

StatusOr<SourcePtr> Compute(ComputedOptions options) {
  if (options.size < 1)
    return InvalidArgument(options.file, ": expected at least one example, got ", options.size);
  if (options.size > Selection::kMost) {
    return InvalidArgument(options.file, ": expected at most ", Selection::kMost, " examples, got ",
                           options.size);
  }
  const auto first = [&]() -> StatusOr<Example> {
    ASSIGN_OR_RETURN(const std::unique_ptr<ExampleMaker> maker, options.make_maker());
    const int64_t row = 0;
    RETURN_IF_ERROR(maker->Begin({&row, 1}));
    return maker->Make(0);
  };
  const StatusOr<Example> example = first();
  if (!example.ok()) return Annotate(example.status(), StrCat(options.file, ": example 0"));
  ASSIGN_OR_RETURN(std::vector<Field> fields, FieldsOf(*example, options.file));
  return std::make_shared<const Computed>(std::move(options), std::move(fields));
}

StatusOr<SourcePtr> ComputeRows(const std::string& name, int64_t size, int threads,
                                std::function<StatusOr<Example>(int64_t row)> row) {
  return Compute(
      {.file = name,
       .text = StrCat(name, ", read when a batch needs it by ", threads,
                      threads == 1 ? " thread" : " threads"),
       .size = size,
       .threads = threads,
       .fingerprint = Fnv1a().Add(name).AddWord(static_cast<uint64_t>(size)).hash(),
       .make_maker = [row = std::move(row)]() -> StatusOr<std::unique_ptr<ExampleMaker>> {
         return std::make_unique<RowMaker>(row);
       }});
}

}  // namespace tfjob::data
