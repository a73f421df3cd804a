// Defines the table of merges of a byte-level BPE tokenizer: which pairs of tokens are merged, and
// into which token.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "runtime/base/status.h"
#include "runtime/data/text/token_ids.h"

namespace tfjob::text {

struct BytePairFiles {
  // A file with a JSON object that maps tokens, written in ByteAlphabet (byte_alphabet.h), to ids.
  std::string vocabulary;
  // A file with one merge per line: two tokens, separated by a space. Earlier lines take precedence
  // over later ones. Lines that start with "#version" are ignored.
  std::string merges;
};

// Finds the merge of two tokens. Immutable once read.
class MergeTable {
 public:
  struct Merge {
    int32_t rank = 0;  // merges of lower rank take precedence
    int32_t id = 0;    // the id of the resulting token
  };

  // Reads both files. Returns InvalidArgument, with the file and the line or the token, if an id is
  // not an integer from 0 to kMostId, if two tokens have the same id, if a single byte is not a
  // token, if a line is not a merge or repeats an earlier one, or if a merge requires a token that
  // the vocabulary lacks. Also returns I/O errors.
  static StatusOr<MergeTable> Read(const BytePairFiles& files);
  // Reads the table from the text of two JSON values, the members "vocab" and "merges" of the value
  // `at`. `vocabulary` is an object that maps tokens to ids. `merges` is a list of merges; each is
  // a list of two tokens, or a string in the form of a line of the file. `merges` may be empty.
  // Returns the same errors as Read, but messages start with the path of the member.
  static StatusOr<MergeTable> Parse(std::string_view vocabulary, std::string_view merges,
                                    const std::string& at);

  int32_t IdOf(unsigned char byte) const { return bytes_[byte]; }
  // Returns the merge of two tokens, or null if they are not merged.
  const Merge* Find(int32_t left, int32_t right) const {
    const auto found = merges_.find(KeyOf(left, right));
    return found == merges_.end() ? nullptr : &found->second;
  }
  // Returns the id of "<|endoftext|>", or -1 if the vocabulary lacks it.
  int32_t end_of_text() const { return end_of_text_; }
  int64_t size() const { return size_; }  // every id is in [0, size())
  uint64_t fingerprint() const { return fingerprint_; }

  static constexpr int64_t kMostId = TokenIds::kMostId;

 private:
  MergeTable() = default;
  static uint64_t KeyOf(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }
  Status AddTokens(const TokenIds& ids);
  Status AddBytes(const TokenIds& ids);
  Status AddMerges(std::string_view content, const std::string& path, const TokenIds& ids);
  Status AddMerge(std::string_view line, const TokenIds& ids);
  Status AddMerge(std::string_view left, std::string_view right, const TokenIds& ids);
  Status AddMerge(const JsonView& merge, const TokenIds& ids);

  std::array<int32_t, 256> bytes_{};
  absl::flat_hash_map<uint64_t, Merge> merges_;
  int32_t end_of_text_ = -1;
  int64_t size_ = 0;
  uint64_t fingerprint_ = 0;
};

}  // namespace tfjob::text
