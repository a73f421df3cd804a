#include "runtime/data/images/decode/image_decoder.h"

#include <algorithm>

#include "absl/strings/escaping.h"

namespace tfjob::data {
namespace {

constexpr std::string_view kJpeg = "\xFF\xD8\xFF";
constexpr std::string_view kPng = "\x89PNG\r\n\x1A\n";
constexpr size_t kKept = 64 << 20;  // a larger buffer is not kept for the next image

// Returns a description of bytes that are neither JPEG nor PNG, for messages.
std::string KindOf(std::string_view bytes) {
  if (bytes.empty()) return "no bytes";
  if (bytes.starts_with("RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP")
    return "a WebP image";
  constexpr struct {
    std::string_view start, name;
  } kOthers[] = {{"GIF8", "a GIF image"}, {"BM", "a BMP image"}, {"II*", "a TIFF image"}};
  for (const auto& other : kOthers) {
    if (bytes.starts_with(other.start)) return std::string(other.name);
  }
  const std::string_view first = bytes.substr(0, 8);
  return StrCat("bytes that begin with \"",
                absl::CHexEscape(absl::string_view(first.data(), first.size())), "\"");
}

}  // namespace

std::span<uint8_t> PixelBuffer::Take(size_t size) {
  if (size > capacity_ || capacity_ > kKept) {
    bytes_.reset();  // free the old block before allocating the new one
    bytes_ = std::make_unique_for_overwrite<uint8_t[]>(size);
    capacity_ = size;
  }
  return {bytes_.get(), size};
}

Status CheckSize(int64_t height, int64_t width, int64_t channels, const DecodeOptions& options) {
  const int64_t most = std::max(channels, options.channels);
  if (height <= 0 || width <= 0 || most <= 0)
    return DataLoss("the image has a size of ", width, " × ", height, " pixels");
  if (width <= options.most_values / most / height) return OkStatus();
  return InvalidArgument("the image has ", width, " × ", height, " pixels of ", most,
                         " values; expected at most ", options.most_values,
                         " values; make it smaller, or remove it");
}

bool IsImage(std::string_view bytes) {
  return bytes.starts_with(kJpeg) || bytes.starts_with(kPng);
}

StatusOr<DecodedImage> ImageDecoder::Decode(std::string_view bytes) {
  if (bytes.starts_with(kJpeg)) return DecodeJpeg(bytes, options_, buffers_);
  if (bytes.starts_with(kPng)) return DecodePng(bytes, options_, buffers_);
  return DataLoss("expected a JPEG or PNG image, got ", KindOf(bytes));
}

}  // namespace tfjob::data
