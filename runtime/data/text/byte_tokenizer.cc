#include "runtime/data/text/byte_tokenizer.h"

namespace tfjob::text {
namespace {

class ByteEncoder : public TokenEncoder {
 public:
  Status Encode(std::string_view text, TokenSink& to) override {
    for (size_t i = 0; i < text.size() && !to.overflown(); ++i)
      to.Add(ByteTokenizer::kFirstByte + static_cast<unsigned char>(text[i]));
    return OkStatus();
  }
};

}  // namespace

std::unique_ptr<TokenEncoder> ByteTokenizer::MakeEncoder() const {
  return std::make_unique<ByteEncoder>();
}

}  // namespace tfjob::text
