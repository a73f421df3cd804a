// Makes a source of examples for language models from text files. Each line is an example: the
// inputs are its tokens, and the labels are either the tokens that follow each of them or the same
// tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/source.h"
#include "runtime/data/text/sequence_encoder.h"

namespace tfjob::data {

// The label of each place. Masked language models (operators/mask_tokens.h) learn the same tokens.
enum class TokenLabels { kNextToken, kSameToken };

struct TokenLinesOptions {
  std::vector<std::string> files;  // paths, or patterns as in a shell
  text::SequenceOptions sequence;
  int64_t length = 0;  // number of inputs; with kNextToken, a line may have one more. At least 1
  TokenLabels labels = TokenLabels::kNextToken;
  // The field names of an example: `tokens` and `next` are int64 [length], and `weights` are
  // float32 [length]: 1 where `next` is a token, and 0 where it is padding. With kNextToken, a line
  // that is truncated has no end token, which would be a wrong label.
  std::string tokens = "tokens", next = "next", weights = "weights";
  bool skip_damaged = false;  // as in RecordOptions
  std::string cache_dir;      // as in RecordOptions
  int threads = 1;            // as in RecordOptions
};

// Returns a source with one example per nonblank line. Propagates errors from OpenRecords.
// RowReader::Read also returns InvalidArgument, with the file and the line, if a line has too many
// tokens and the sequence does not truncate.
StatusOr<std::shared_ptr<const Source>> OpenTokenLines(const TokenLinesOptions& options);

}  // namespace tfjob::data
