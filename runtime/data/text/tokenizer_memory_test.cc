// Measures how much memory is used while hostile tokenizer files are read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "runtime/data/text/byte_pair.h"
#include "runtime/data/text/test_files.h"
#include "runtime/data/text/tokenizer_json.h"

namespace {

std::atomic<int64_t> live = 0, most = 0;

void* Counted(void* memory) {
  const int64_t now = live += static_cast<int64_t>(malloc_usable_size(memory));
  if (now > most) most = now;
  return memory;
}
void Free(void* memory) {
  live -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(size_t bytes) {
  return Counted(std::malloc(bytes));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Counted(std::malloc(bytes));
}
void* operator new[](size_t bytes) {
  return Counted(std::malloc(bytes));
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return Counted(std::malloc(bytes));
}
void operator delete(void* memory) noexcept {
  Free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  Free(memory);
}
void operator delete[](void* memory) noexcept {
  Free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  Free(memory);
}

namespace tfjob::text {
namespace {

constexpr size_t kBytes = 512 << 10;

// Returns a JSON list of about `bytes` bytes, all of whose elements are `element`.
std::string ListOf(const std::string& element, size_t bytes = kBytes) {
  std::string list = "[";
  while (list.size() < bytes) list += element + ",";
  list.back() = ']';
  return list;
}

std::string ManyTokens() {
  std::string vocabulary = testing::ByteVocabulary({}).dump();
  for (int id = 256; vocabulary.size() < kBytes; ++id) {
    vocabulary.back() = ',';
    vocabulary += StrCat("\"x", id, "\":", id, "}");
  }
  return vocabulary;
}

class TokenizerMemory : public ::testing::Test {
 protected:
  // Reads a tokenizer.json with this content. Returns how many bytes of memory the reading takes
  // per byte of the file.
  int64_t BytesPerByte(const std::string& content) {
    const std::string path = folder_.Write("tokenizer.json", content);
    const int64_t before = live;
    most = before;
    error_ = std::string(Message(ReadTokenizerJson(path).status()));
    return (most - before) / static_cast<int64_t>(content.size());
  }
  static std::string BytePairs(const std::string& vocabulary, const std::string& merges) {
    return StrCat(R"({"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": )",
                  vocabulary, R"(, "merges": )", merges, "}}");
  }

  const testing::TextFolder folder_;
  std::string error_;
};

TEST_F(TokenizerMemory, IsASmallMultipleOfTheFile) {
  const std::string bytes = testing::ByteVocabulary({}).dump();
  for (const std::string& element : {"[]", "{}", "7", R"("a b")", R"({"":0})"}) {
    EXPECT_LE(BytesPerByte(BytePairs(bytes, ListOf(element))), 24) << element;
    EXPECT_THAT(error_, ::testing::HasSubstr("model.merges[0]: ")) << element;
    EXPECT_LE(BytesPerByte(BytePairs(ListOf(element), "[]")), 24) << element;
    EXPECT_THAT(error_, ::testing::HasSubstr("model.vocab: expected an object")) << element;
  }
  EXPECT_LE(BytesPerByte(BytePairs(ManyTokens(), "[]")), 24);
  EXPECT_EQ(error_, "");
}

TEST_F(TokenizerMemory, SettingsAreLimited) {
  EXPECT_LE(BytesPerByte(StrCat(R"({"added_tokens": )", ListOf("[]", 3 << 20), "}")), 24);
  EXPECT_THAT(error_, ::testing::HasSubstr("tokenizer.json: expected at most 2097152 bytes outside "
                                           "of model.vocab and model.merges, got 31457"));
}

TEST_F(TokenizerMemory, OfAVocabularyIsASmallMultipleOfTheFile) {
  const std::string vocabulary = folder_.Write("vocab.json", ListOf("{}"));
  const int64_t before = live;
  most = before;
  const Status status =
      BytePairTokenizer::Read({.vocabulary = vocabulary, .merges = folder_.Write("merges.txt", "")})
          .status();
  EXPECT_LE((most - before) / static_cast<int64_t>(kBytes), 24);
  EXPECT_THAT(
      std::string(Message(status)),
      ::testing::HasSubstr("vocab.json: expected an object that maps tokens to ids, got a"));
}

}  // namespace
}  // namespace tfjob::text
