// Reads the files tokenizer.json of Hugging Face's library `tokenizers`
// (https://huggingface.co/docs/tokenizers), as far as they describe BERT's WordPiece or GPT-2's
// byte-level BPE.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/data/text/tokenizer.h"

namespace tfjob::text {

// Reads one file. Supports the following settings; returns InvalidArgument, with the file and the
// path of the setting, for all others.
//
//   model           WordPiece, for words of up to 100 characters; BPE without dropout, prefixes,
//                   suffixes, byte_fallback and ignore_merges
//   normalizer      WordPiece: BertNormalizer with clean_text and handle_chinese_chars; BPE: none
//   pre_tokenizer   WordPiece: BertPreTokenizer; BPE: ByteLevel with use_regex
//   post_processor  none, ByteLevel, BertProcessing, RobertaProcessing, and TemplateProcessing that
//                   adds at most one token before and one behind a text
//   added_tokens    special ones
//
// The special tokens are those that the post-processor adds to text. The padding is that of the
// member `padding` or, if there is none, "[PAD]", "<pad>" or "<|endoftext|>". `decoder` and
// `truncation` have no effect. Unlike in `tokenizers`, text that looks like a special token is
// ordinary text. Also returns I/O errors, and InvalidArgument if the file is larger than
// kMostTokenizerBytes.
StatusOr<std::shared_ptr<const Tokenizer>> ReadTokenizerJson(const std::string& path);

}  // namespace tfjob::text
