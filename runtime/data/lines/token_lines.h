// Creates a source of examples for language models from text files. Each line is an example. Its
// inputs are the tokens of the line; the label of each token is either the next token or the same
// token.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/source.h"
#include "runtime/data/text/sequence_encoder.h"

namespace tfjob::data {

// The label at each position. Masked language models (operators/mask_tokens.h) use kSameToken.
enum class TokenLabels { kNextToken, kSameToken };

struct TokenLinesOptions {
  std::vector<std::string> files;  // paths, or patterns as in a shell
  text::SequenceOptions sequence;
  int64_t length = 0;  // number of inputs, at least 1. With kNextToken, a line may have one more
  TokenLabels labels = TokenLabels::kNextToken;
  // The names of the fields. `tokens` and `next` are int64 [length]. `weights` is float32 [length]:
  // 1 where `next` is a token, and 0 where it is padding. With kNextToken, a truncated line has no
  // end token, because that would be a wrong label.
  std::string tokens = "tokens", next = "next", weights = "weights";
  bool skip_damaged = false;  // as in RecordOptions
  std::string cache_dir;      // as in RecordOptions
  int threads = 1;            // as in RecordOptions
};

// Returns a source with one example per nonblank line. Propagates errors from OpenRecords.
// RowReader::Read also returns InvalidArgument, with the file and the line, if a line has too many
// tokens and `truncate` is not set.
StatusOr<std::shared_ptr<const Source>> OpenTokenLines(const TokenLinesOptions& options);

}  // namespace tfjob::data
