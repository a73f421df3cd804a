// Implements the rules for data.bucket_by_length, data.mask_tokens and data.augment.
#include "runtime/config/token_keys.h"

#include <algorithm>
#include <cmath>

namespace tfjob::config {
namespace {

Status CheckWhole(const char* key, const std::vector<double>& values) {
  for (const double value : values) {
    if (value == std::floor(value)) continue;
    return InvalidArgument(key, ": expected whole numbers, got ", value);
  }
  return OkStatus();
}

Status CheckBucketsUnset(const BucketConfig& buckets) {
  const char* const set = !buckets.batch_sizes.empty() ? "batch_sizes"
                          : buckets.batch_tokens       ? "batch_tokens"
                          : buckets.padding            ? "padding"
                                                       : nullptr;
  if (set == nullptr) return OkStatus();
  return InvalidArgument("data.bucket_by_length.boundaries: expected the lengths that separate ",
                         "the buckets, such as [32, 64, 128], but they are missing; add them, or ",
                         "remove data.bucket_by_length.", set);
}

// Checks that the targets of a masked language model are the tokens themselves, not the tokens that
// follow.
Status CheckSameTokens(const SourceConfig& source, const char* at) {
  const std::map<std::string, std::string> same = {{"", "same_token"}};
  if (source.format != DataFormat::kText || source.targets == same) return OkStatus();
  return InvalidArgument(at, ".targets: expected same_token with data.mask_tokens; add it, or ",
                         "remove data.mask_tokens");
}

}  // namespace

Status CheckBuckets(const TrainingConfig& config) {
  const BucketConfig& buckets = config.data.bucket_by_length;
  if (!buckets.present()) return CheckBucketsUnset(buckets);
  RETURN_IF_ERROR(CheckWhole("data.bucket_by_length.boundaries", buckets.boundaries));
  RETURN_IF_ERROR(CheckWhole("data.bucket_by_length.batch_sizes", buckets.batch_sizes));
  const auto unordered = std::ranges::adjacent_find(buckets.boundaries, std::greater_equal<>());
  if (unordered != buckets.boundaries.end()) {
    return InvalidArgument("data.bucket_by_length.boundaries: expected ascending lengths, got ",
                           *std::next(unordered), " after ", *unordered);
  }
  if (!buckets.batch_sizes.empty() && buckets.batch_sizes.size() != buckets.boundaries.size() + 1) {
    return InvalidArgument("data.bucket_by_length.batch_sizes: expected ",
                           buckets.boundaries.size() + 1, " sizes, one for each boundary and one ",
                           "for longer examples, got ", buckets.batch_sizes.size());
  }
  if (!buckets.batch_sizes.empty() && buckets.batch_tokens) {
    return InvalidArgument("data.bucket_by_length.batch_tokens: expected either batch_sizes or ",
                           "batch_tokens, got both; remove one of the two");
  }
  const bool sizes = !buckets.batch_sizes.empty() || buckets.batch_tokens;
  if (sizes && (config.batch_size || config.global_batch_size)) {
    return InvalidArgument(config.batch_size ? "batch_size" : "global_batch_size",
                           ": data.bucket_by_length already gives the sizes of batches; remove ",
                           "one of the two");
  }
  const ShardPolicy shard = config.data.shard;
  if (shard == ShardPolicy::kFile || shard == ShardPolicy::kOff) {
    return InvalidArgument("data.shard: ", shard == ShardPolicy::kFile ? "file" : "off",
                           " cannot be combined with data.bucket_by_length; use data, or remove ",
                           "one of the two");
  }
  if (config.data.shuffle_buffer == 0) return OkStatus();
  return InvalidArgument("data.shuffle_buffer: cannot be combined with data.bucket_by_length, ",
                         "whose batches have examples of all files; remove one of the two");
}

Status CheckMasking(const DataConfig& data) {
  const MaskConfig& mask = data.mask_tokens;
  if (!mask.present()) {
    if (!mask.vocabulary_size && mask.special_tokens.empty() && !mask.rate) return OkStatus();
    return InvalidArgument("data.mask_tokens.mask_token: expected the id of the token that ",
                           "replaces others, such as that of [MASK], but it is missing");
  }
  if (!mask.vocabulary_size) {
    return InvalidArgument("data.mask_tokens.vocabulary_size: expected the number of ids, from ",
                           "which random tokens are drawn, but it is missing");
  }
  RETURN_IF_ERROR(CheckWhole("data.mask_tokens.special_tokens", mask.special_tokens));
  for (const double id : mask.special_tokens) {
    if (id < static_cast<double>(*mask.vocabulary_size)) continue;
    return InvalidArgument("data.mask_tokens.special_tokens: expected ids below vocabulary_size (",
                           *mask.vocabulary_size, "), got ", id);
  }
  if (*mask.mask_token >= *mask.vocabulary_size) {
    return InvalidArgument("data.mask_tokens.mask_token: expected an id below vocabulary_size (",
                           *mask.vocabulary_size, "), got ", *mask.mask_token);
  }
  RETURN_IF_ERROR(CheckSameTokens(data.train, "data.train"));
  RETURN_IF_ERROR(CheckSameTokens(data.eval, "data.eval"));
  const double rate = mask.rate.value_or(kMaskRate);
  if (rate > 0 && rate <= 1) return OkStatus();
  return InvalidArgument("data.mask_tokens.rate: expected a share above 0 and at most 1, got ",
                         rate);
}

// Rejects data.augment in combination with keys for tokens, because the layers require numeric
// examples of a single shape.
Status CheckAugment(const DataConfig& data) {
  if (data.augment == nullptr) return OkStatus();
  const char* const other = data.bucket_by_length.present() ? "data.bucket_by_length"
                            : data.mask_tokens.present()    ? "data.mask_tokens"
                                                            : nullptr;
  if (other == nullptr) return OkStatus();
  return InvalidArgument("data.augment: cannot be combined with ", other,
                         "; remove one of the two");
}

std::vector<int64_t> BucketBatchSizes(const TrainingConfig& config, int64_t longest, int rank,
                                      int training_tasks, bool together) {
  const BucketConfig& buckets = config.data.bucket_by_length;
  const int64_t parts = together ? std::max(training_tasks, 1) : 1;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i <= buckets.boundaries.size(); ++i) {
    if (buckets.batch_tokens) {
      const bool last = i == buckets.boundaries.size();
      const int64_t length = last ? longest : static_cast<int64_t>(buckets.boundaries[i]);
      sizes.push_back(std::max<int64_t>(*buckets.batch_tokens / length, 1) * parts);
    } else if (!buckets.batch_sizes.empty()) {
      sizes.push_back(static_cast<int64_t>(buckets.batch_sizes[i]) * parts);
    } else {
      sizes.push_back(together ? GlobalBatchSize(config, training_tasks)
                               : BatchSize(config, rank, training_tasks));
    }
  }
  return sizes;
}

}  // namespace tfjob::config
