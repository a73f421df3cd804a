#include "runtime/strategy/bucket_plan.h"

#include <algorithm>
#include <utility>

namespace tfjob::strategy {
namespace {

size_t AlignedBytes(const BucketItem& item) {
  const size_t bytes = static_cast<size_t>(item.elements) * SizeOf(item.dtype);
  return (bytes + kBucketAlignment - 1) / kBucketAlignment * kBucketAlignment;
}

void BeginBucket(BucketPlan& plan, DType dtype, size_t first) {
  plan.buckets.push_back({.dtype = dtype, .begin = plan.bytes, .first = first});
}

void Append(BucketPlan& plan, BucketItem& item) {
  item.begin = plan.bytes;
  plan.bytes += AlignedBytes(item);
  plan.buckets.back().bytes += AlignedBytes(item);
  ++plan.buckets.back().count;
}

// Moves the last items to a new last bucket: as many items as fit in a small bucket, but at least
// one.
void SplitLast(BucketPlan& plan) {
  Bucket& last = plan.buckets.back();
  if (last.bytes <= static_cast<size_t>(kSmallBucketBytes) || last.count < 2) return;
  Bucket tail{.dtype = last.dtype};
  while (last.count > 1) {
    const size_t bytes = AlignedBytes(plan.items[last.first + last.count - 1]);
    if (tail.count > 0 && tail.bytes + bytes > static_cast<size_t>(kSmallBucketBytes)) break;
    --last.count;
    last.bytes -= bytes;
    tail.first = last.first + last.count;
    tail.begin = plan.items[tail.first].begin;
    tail.bytes += bytes;
    ++tail.count;
  }
  plan.buckets.push_back(tail);
}

}  // namespace

StatusOr<BucketPlan> PlanStep(const ModelDefinition& definition, int64_t bytes_per_pack) {
  ASSIGN_OR_RETURN(const model::BuiltGraph training,
                   BuildGraph(definition, model::Mode::kTrain, definition.build.batch_size,
                              /*with_updates=*/false));
  std::vector<BucketItem> items;
  std::vector<TableItem> tables;
  for (const model::Contribution& contribution : training.contributions) {
    const auto spec =
        std::ranges::find(definition.variables, contribution.variable, &model::VariableSpec::name);
    const auto variable = static_cast<int>(spec - definition.variables.begin());
    if (spec->dtype != DType::kFloat32 && spec->dtype != DType::kFloat64) {
      return Unimplemented("the variable ", spec->name, " has type ", Name(spec->dtype),
                           ", and only float32 and float64 can be averaged over several tasks; "
                           "use strategy.name: parameter_server or one_device");
    }
    if (contribution.change == model::Change::kGradientRows) {
      const graph::Fetch* const indices = training.graph.FindFetch(contribution.indices);
      const int64_t ids = training.graph.type(indices->output).shape.num_elements();
      tables.push_back({.variable = variable,
                        .name = spec->name,
                        .dtype = spec->dtype,
                        .rows = spec->shape.dim(0),
                        .cols = spec->shape.dim(1),
                        .batch_rows = std::min(ids, spec->shape.dim(0))});
      continue;
    }
    items.push_back({.variable = variable,
                     .gradient = contribution.change == model::Change::kGradient,
                     .dtype = spec->dtype,
                     .elements = spec->shape.num_elements()});
  }
  BucketPlan plan = PlanBuckets(std::move(items), bytes_per_pack);
  plan.tables = std::move(tables);
  return plan;
}

BucketPlan PlanBuckets(std::vector<BucketItem> items, int64_t bytes_per_pack) {
  const int64_t usual =
      bytes_per_pack > 0 ? std::min(bytes_per_pack, kMostBucketBytes) : kDefaultBucketBytes;
  BucketPlan plan{.items = std::move(items)};
  for (size_t i = 0; i < plan.items.size(); ++i) {
    BucketItem& item = plan.items[i];
    const int64_t most = plan.buckets.size() <= 1 ? std::min(usual, kSmallBucketBytes) : usual;
    if (plan.buckets.empty() || plan.buckets.back().dtype != item.dtype ||
        plan.buckets.back().bytes + AlignedBytes(item) > static_cast<size_t>(most)) {
      BeginBucket(plan, item.dtype, i);
    }
    Append(plan, item);
  }
  if (!plan.buckets.empty()) SplitLast(plan);
  return plan;
}

std::string Describe(const BucketPlan& plan) {
  std::string text;
  for (const Bucket& bucket : plan.buckets) {
    text += StrCat(text.empty() ? "" : ", ", bucket.count, " in ", bucket.bytes, " bytes of ",
                   Name(bucket.dtype));
  }
  for (const TableItem& table : plan.tables)
    text += StrCat(text.empty() ? "" : ", ", table.name, " by rows");
  return text;
}

}  // namespace tfjob::strategy
