#include "runtime/strategy/bucket_plan.h"

#include <algorithm>
#include <span>
#include <utility>

namespace tfjob::strategy {
namespace {

size_t Aligned(size_t bytes) {
  return (bytes + kBucketAlignment - 1) / kBucketAlignment * kBucketAlignment;
}

size_t AlignedBytes(const BucketItem& item) {
  return Aligned(static_cast<size_t>(item.elements) * SizeOf(SentType(item)));
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

// Moves the last items to a new last bucket: as many items as fit in `most` bytes, but at least
// one.
void SplitLast(BucketPlan& plan, int64_t most) {
  Bucket& last = plan.buckets.back();
  if (last.bytes <= static_cast<size_t>(most) || last.count < 2) return;
  Bucket tail{.dtype = last.dtype};
  while (last.count > 1) {
    const size_t bytes = AlignedBytes(plan.items[last.first + last.count - 1]);
    if (tail.count > 0 && tail.bytes + bytes > static_cast<size_t>(most)) break;
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

StatusOr<BucketPlan> PlanStep(const ModelDefinition& definition, int64_t bytes_per_pack,
                              config::Compression compression) {
  // The order of the nodes must be equal on all ranks, regardless of their parts of a batch. A
  // graph for one example may lack sums over the batch, and order its nodes differently.
  const int64_t batch_size = std::max<int64_t>(2, definition.build.batch_size);
  ASSIGN_OR_RETURN(const model::BuiltGraph training,
                   BuildGraph(definition, model::Mode::kTrain, batch_size, /*with_updates=*/false));
  std::vector<BucketItem> items;
  std::vector<TableItem> tables;
  std::vector<std::string> fetches;  // of the items
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
    const bool gradient = contribution.change == model::Change::kGradient;
    items.push_back({.variable = variable,
                     .gradient = gradient,
                     .dtype = spec->dtype,
                     .compressed = gradient && spec->dtype == DType::kFloat32 &&
                                   compression == config::Compression::kBFloat16,
                     .elements = spec->shape.num_elements()});
    fetches.push_back(contribution.fetch);
  }
  BucketPlan plan = PlanBuckets(std::move(items), bytes_per_pack);
  AddExchanges(exec::ExchangesOf(training.graph), exec::AnnouncedAt(training.graph, fetches), plan);
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
    if (plan.buckets.empty() || plan.buckets.back().dtype != SentType(item) ||
        plan.buckets.back().bytes + AlignedBytes(item) > static_cast<size_t>(most)) {
      BeginBucket(plan, SentType(item), i);
    }
    Append(plan, item);
  }
  if (plan.buckets.empty()) return plan;
  // The bucket before the last is at most twice as large as the last, so that it has mostly been
  // exchanged when the backward pass completes the last one.
  SplitLast(plan, 3 * kSmallBucketBytes);
  SplitLast(plan, kSmallBucketBytes);
  return plan;
}

void AddExchanges(const std::vector<exec::PlannedExchange>& exchanges,
                  const std::vector<int>& announced, BucketPlan& plan) {
  std::vector<Bucket> buckets;
  size_t next = 0;
  const auto add = [&] {
    const exec::PlannedExchange& exchange = exchanges[next];
    const size_t bytes = static_cast<size_t>(exchange.elements) * SizeOf(exchange.dtype);
    buckets.push_back({.dtype = exchange.dtype,
                       .begin = plan.bytes,
                       .bytes = bytes,
                       .first = buckets.empty() ? 0 : buckets.back().first + buckets.back().count,
                       .exchange = static_cast<int64_t>(next),
                       .name = exchange.name});
    plan.bytes += Aligned(bytes);
    ++next;
  };
  for (const Bucket& bucket : plan.buckets) {
    for (size_t i = bucket.first; i < bucket.first + bucket.count; ++i)
      while (next < exchanges.size() && exchanges[next].position <= announced[i]) add();
    buckets.push_back(bucket);
  }
  while (next < exchanges.size()) add();
  plan.buckets = std::move(buckets);
}

bool SuitsDevice(const BucketPlan& plan, const Bucket& bucket) {
  const auto items = std::span(plan.items).subspan(bucket.first, bucket.count);
  return !items.empty() && std::ranges::all_of(items, [](const BucketItem& item) {
    return item.gradient && !item.compressed;
  });
}

std::string Describe(const BucketPlan& plan) {
  std::string text;
  for (const Bucket& bucket : plan.buckets) {
    text += text.empty() ? "" : ", ";
    text += bucket.exchange >= 0 ? "exchange of " : StrCat(bucket.count, " in ");
    text += StrCat(bucket.bytes, " bytes of ", Name(bucket.dtype));
  }
  for (const TableItem& table : plan.tables)
    text += StrCat(text.empty() ? "" : ", ", table.name, " by rows");
  return text;
}

}  // namespace tfjob::strategy
