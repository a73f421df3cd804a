// Writes vocabularies and reads tokens, for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/text/byte_alphabet.h"
#include "runtime/data/text/code_points.h"
#include "runtime/data/text/tokenizer.h"

namespace tfjob::text::testing {

// Creates a temporary folder, which the destructor removes.
class TextFolder {
 public:
  TextFolder() {
    std::string name = "/tmp/tfjob_text_test_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~TextFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  // Writes a file, and returns its path.
  std::string Write(const std::string& name, std::string_view content) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << content;
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

// Returns a byte-level vocabulary. Byte b has the id b, and the tokens in `more` have the ids from
// 256 on.
inline nlohmann::json ByteVocabulary(const std::vector<std::string>& more) {
  nlohmann::json vocabulary;
  for (size_t byte = 0; byte < 256; ++byte) {
    std::string token;
    AppendUtf8(ByteAlphabet()[byte], token);
    vocabulary[token] = byte;
  }
  for (size_t i = 0; i < more.size(); ++i) vocabulary[more[i]] = 256 + i;
  return vocabulary;
}

// Returns all tokens of a text.
inline std::vector<int64_t> IdsOf(TokenEncoder& encoder, std::string_view text) {
  std::vector<int64_t> ids(1 << 16);
  TokenSink sink(ids);
  const Status encoded = encoder.Encode(text, sink);
  EXPECT_TRUE(encoded.ok()) << encoded;
  EXPECT_LE(sink.count(), ids.size());
  ids.resize(std::min(sink.count(), ids.size()));
  return ids;
}

}  // namespace tfjob::text::testing
