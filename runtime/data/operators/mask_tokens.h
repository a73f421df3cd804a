// Masks tokens at random, for masked language models, as BERT does
// (https://arxiv.org/abs/1810.04805, section 3.1). The model has to predict a fraction of the
// tokens. Each of these tokens is replaced with the mask (80 %), replaced with a random token (10
// %), or left unchanged (10 %).
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
  int64_t vocabulary_size = 0;  // random ids are less than this; at most 2^32 - 1
  // Ids that are neither masked nor used as random replacements, in addition to mask_token. Must
  // include the padding.
  std::vector<int64_t> special_tokens = {0};
  double rate = 0.15;  // in (0, 1]; each token that is not special is chosen with this probability
  uint64_t seed = 0;
};

// Keeps all fields. At positions that the model need not predict, sets the weight to 0. At all
// other positions, the weight does not change, or is 1 if the source has no weights. The choice of
// masked tokens depends only on the seed, the epoch (RowReader::BeginEpoch) and the index of the
// example. The labels should be the same tokens, in a field with another name. Returns
// InvalidArgument if the source has no tokens, if the weights are not one per token, or if all ids
// are special.
StatusOr<SourcePtr> MaskTokens(SourcePtr source, MaskTokensOptions options);

}  // namespace tfjob::data
