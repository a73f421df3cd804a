// Implements the functions that create Datasets from other Datasets or from functions of the
// program.
#include <optional>
#include <utility>

#include "runtime/api/access.h"
#include "runtime/api/datasets/examples.h"
#include "runtime/data/operators/cache.h"
#include "runtime/data/operators/cache_file.h"
#include "runtime/data/operators/computed.h"
#include "runtime/data/operators/filter.h"
#include "runtime/data/operators/join.h"
#include "runtime/data/operators/map.h"
#include "runtime/data/operators/select.h"
#include "runtime/data/operators/stream.h"
#include "runtime/data/operators/zip.h"

namespace tfjob::api {
namespace {

namespace operators = tfjob::data;

using SourceList = std::vector<SourcePtr>;

// Converts the error of a program's function. OutOfRange becomes InvalidArgument, because
// OutOfRange would end the run in all tasks (state/run_failure.h).
tfjob::Status FromFunction(const Status& status) {
  tfjob::Status error = FromPublic(status);
  if (!absl::IsOutOfRange(error)) return error;
  return InvalidArgument(Message(error));
}

// Returns a Dataset whose source `open` creates from the parts.
template <typename Open>
Dataset Operator(std::vector<Dataset> parts, Open open, bool needs_labels = false) {
  DatasetData made;
  made.needs_labels = needs_labels;
  made.parts = std::move(parts);
  made.open = std::move(open);
  return Access::MakeDataset(std::move(made));
}

Dataset Refused(tfjob::Status error) {
  DatasetData made;
  made.error = std::move(error);
  return Access::MakeDataset(std::move(made));
}

Dataset Selected(const Dataset& dataset, const operators::SelectOptions& options) {
  return Operator({dataset}, [options](const DatasetContext&, SourceList parts) {
    return operators::Select(std::move(parts[0]), options);
  });
}

// Returns `function` as a function of examples whose values are named after the model's feeds.
operators::MapFunction ForModel(
    const model::Model& model,
    const std::function<Result<data::Example>(const data::Example&)>& function) {
  auto names = std::make_shared<const ExampleNames>(model);
  return [names, function](const operators::Example& example) -> StatusOr<operators::Example> {
    const Result<data::Example> result = function(names->ToPublic(example));
    if (!result.ok()) return FromFunction(result.status());
    return names->ToInternal(*result);
  };
}

StatusOr<operators::NextExample> StartPass(const data::Generator& generator,
                                           const std::shared_ptr<const ExampleNames>& names) {
  Result<data::Generator::Next> started = generator.start();
  if (!started.ok()) return FromFunction(started.status());
  if (*started == nullptr) return InvalidArgument("start returned an empty function");
  return [names, next = *std::move(started)]() -> StatusOr<std::optional<operators::Example>> {
    const Result<std::optional<data::Example>> example = next();
    if (!example.ok()) return FromFunction(example.status());
    if (!*example) return std::optional<operators::Example>();
    ASSIGN_OR_RETURN(operators::Example made, names->ToInternal(**example));
    return made;
  };
}

}  // namespace

Dataset Dataset::Skip(int64_t count) const {
  return Selected(*this, {.skip = count});
}

Dataset Dataset::Take(int64_t count) const {
  if (count < 1) return Refused(InvalidArgument("take: expected at least 1, got ", count));
  return Selected(*this, {.take = count});
}

Dataset Dataset::Repeat(int64_t count) const {
  return Selected(*this, {.repeat = count});
}

Dataset Dataset::Concatenate(const Dataset& next) const {
  // Merge a chain of calls into one operator, because nested parts are opened by recursion.
  std::vector<Dataset> parts = {*this};
  if (data_->concatenation) parts = data_->parts;
  parts.push_back(next);
  DatasetData made;
  made.parts = std::move(parts);
  made.concatenation = true;
  made.open = [](const DatasetContext&, SourceList sources) {
    return operators::Concatenate(std::move(sources));
  };
  return Access::MakeDataset(std::move(made));
}

Dataset Dataset::Cache() const {
  return Operator({*this}, [](const DatasetContext&, SourceList parts) {
    return operators::Cache(std::move(parts[0]));
  });
}

Dataset Dataset::CacheFile(const std::string& path, const std::string& version) const {
  if (path.empty()) return Refused(InvalidArgument("CacheFile: expected a path, got none"));
  return Operator(
      {*this},
      [path, version](const DatasetContext&, SourceList parts) {
        return operators::CacheInFile(std::move(parts[0]), path, version);
      },
      /*needs_labels=*/true);
}

Dataset Dataset::Map(std::function<Result<data::Example>(const data::Example&)> function) const {
  if (function == nullptr) return Refused(InvalidArgument("Map: expected a function, got none"));
  return Operator(
      {*this},
      [function](const DatasetContext& context, SourceList parts) {
        return operators::Map(std::move(parts[0]), ForModel(context.model, function),
                              context.threads);
      },
      /*needs_labels=*/true);
}

Dataset Dataset::Filter(std::function<Result<bool>(const data::Example&)> function) const {
  if (function == nullptr) return Refused(InvalidArgument("Filter: expected a function, got none"));
  return Operator(
      {*this},
      [function](const DatasetContext& context, SourceList parts) {
        const ExampleNames names(context.model);
        const auto asked = [&](const operators::Example& example) -> StatusOr<bool> {
          const Result<bool> keep = function(names.ToPublic(example));
          if (!keep.ok()) return FromFunction(keep.status());
          return *keep;
        };
        return operators::Filter(std::move(parts[0]), asked, context.threads);
      },
      /*needs_labels=*/true);
}

namespace data {

Dataset From(std::shared_ptr<const Source> source) {
  if (source == nullptr) return Refused(InvalidArgument("From: expected a source, got null"));
  return Operator({}, [source](const DatasetContext& context, SourceList) {
    auto names = std::make_shared<const ExampleNames>(context.model);
    const auto row = [names, source](int64_t i) -> StatusOr<operators::Example> {
      const Result<Example> example = source->Row(i);
      if (!example.ok()) return FromFunction(example.status());
      return names->ToInternal(*example);
    };
    return operators::ComputeRows("the program's Source", source->size(), context.threads, row);
  });
}

Generator::operator Dataset() const {
  if (start == nullptr)
    return Refused(InvalidArgument("Generator: expected a function start, got none"));
  return Operator({}, [generator = *this](const DatasetContext& context, SourceList) {
    auto names = std::make_shared<const ExampleNames>(context.model);
    return operators::Stream("the program's Generator", generator.size,
                             [generator, names] { return StartPass(generator, names); });
  });
}

Dataset Mix(std::vector<Dataset> datasets, std::vector<double> weights, Stop stop) {
  if (datasets.empty() || datasets.size() != weights.size()) {
    return Refused(InvalidArgument("Mix: expected at least one dataset and as many weights, got ",
                                   datasets.size(), " datasets and ", weights.size(), " weights"));
  }
  return Operator(
      std::move(datasets), [weights, stop](const DatasetContext& context, SourceList parts) {
        return operators::Mix(std::move(parts),
                              {.weights = weights,
                               .stop = stop == Stop::kFirst ? operators::Mixture::Stop::kFirst
                                                            : operators::Mixture::Stop::kAll,
                               .seed = static_cast<uint64_t>(context.seed)});
      });
}

Dataset Interleave(std::vector<Dataset> datasets, int64_t cycle_length, int64_t block_length) {
  if (datasets.empty())
    return Refused(InvalidArgument("Interleave: expected at least one dataset, got none"));
  return Operator(
      std::move(datasets), [cycle_length, block_length](const DatasetContext&, SourceList parts) {
        return operators::Interleave(std::move(parts),
                                     {.cycle_length = cycle_length, .block_length = block_length});
      });
}

Dataset Zip(std::vector<Dataset> datasets) {
  if (datasets.empty())
    return Refused(InvalidArgument("Zip: expected at least one dataset, got none"));
  DatasetData made;
  made.parts = std::move(datasets);
  made.zip = true;
  made.open = [](const DatasetContext&, SourceList sources) {
    return operators::Zip(std::move(sources));
  };
  return Access::MakeDataset(std::move(made));
}

}  // namespace data
}  // namespace tfjob::api
