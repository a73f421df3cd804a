// Masks tokens at random, for masked language models, as BERT does
// (https://arxiv.org/abs/1810.04805, section 3.1): the model has to predict a share of the tokens,
// each of which is replaced by the mask (80 %) or by another token at random (10 %), or is left
// unchanged (10 %).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/operators/fields.h"

namespace tfjob::data {

struct MaskTokensOptions {
  std::string tokens;   // the name of the field to mask
  std::string weights;  // the name of the field of sample weights, which the source may lack
  int64_t mask_token = 0;
  int64_t vocabulary_size = 0;  // random ids are below it; at most 2^32 - 1
  // Ids that are neither masked nor drawn, in addition to mask_token; the padding is one of them.
  std::vector<int64_t> special_tokens = {0};
  double rate = 0.15;  // in (0, 1]; the probability of each other token, independent of the others
  uint64_t seed = 0;
};

// Keeps all fields. The weight of a place that need not be predicted becomes 0. The weight of any
// other place does not change, and is 1 if the source has no weights. The choice of masked tokens
// depends only on the seed, the epoch (RowReader::BeginEpoch) and the index of the example. The
// labels should be the same tokens, under another name. Returns InvalidArgument if the source has
// no tokens, if the weights are not one per token, or if all ids are special.
StatusOr<SourcePtr> MaskTokens(SourcePtr source, MaskTokensOptions options);

}  // namespace tfjob::data
