// Declares the JPEG and PNG decoders. image_decoder.h chooses between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::data {

// Provides memory that is reused from image to image, and grows for a larger image.
class PixelBuffer {
 public:
  // Returns `size` uninitialised bytes, which stay valid until the next call.
  std::span<uint8_t> Take(size_t size);

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  size_t capacity_ = 0;
};

struct DecodedImage {
  std::string_view format;    // "JPEG" or "PNG"
  int64_t file_channels = 0;  // channels of the image in the file, such as 4 for CMYK
  int64_t height = 0, width = 0, channels = 0;
  std::span<const uint8_t> pixels;  // [height, width, channels]
};

struct DecodeOptions {
  int64_t channels = 3;  // 1: luminance; 3: RGB; 4: RGBA
  // The maximum number of values of an image (height × width × channels), both in the file and
  // decoded. A larger image is rejected before memory is allocated for it.
  int64_t most_values = int64_t{1} << 28;
};

// The memory of a decoder.
struct DecodeBuffers {
  PixelBuffer pixels;   // the decoded image
  PixelBuffer colours;  // the image before a conversion that the library lacks
};

// Returns InvalidArgument if the image is larger than the options allow, and DataLoss if it has no
// pixels.
Status CheckSize(int64_t height, int64_t width, int64_t channels, const DecodeOptions& options);

// Returns the luminance (ITU-R BT.601) of a colour, rounded.
inline uint8_t Luminance(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

// Decode an image into `buffers`. Return DataLoss if the bytes are not a complete image of this
// format, InvalidArgument if the image is of an unsupported kind, and ResourceExhausted if the
// library cannot allocate memory. Propagate errors from CheckSize. The libraries print nothing.
StatusOr<DecodedImage> DecodeJpeg(std::string_view bytes, const DecodeOptions& options,
                                  DecodeBuffers& buffers);
StatusOr<DecodedImage> DecodePng(std::string_view bytes, const DecodeOptions& options,
                                 DecodeBuffers& buffers);

}  // namespace tfjob::data
