// Decodes images of one format. image_decoder.h chooses the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::data {

// Memory that grows, and is kept for the next image.
class PixelBuffer {
 public:
  // Returns `size` bytes with any content. They stay valid until the next call.
  std::span<uint8_t> Take(size_t size);

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  size_t capacity_ = 0;
};

struct DecodedImage {
  std::string_view format;    // "JPEG" or "PNG"
  int64_t file_channels = 0;  // of the colours in the file, such as 4 for CMYK
  int64_t height = 0, width = 0, channels = 0;
  std::span<const uint8_t> pixels;  // [height, width, channels]
};

struct DecodeOptions {
  int64_t channels = 3;  // 1: luminance; 3: RGB; 4: RGBA
  // An image with more values (height × width × channels, in the file or decoded) is an error,
  // which is returned before memory is allocated for the image.
  int64_t most_values = int64_t{1} << 28;
};

// The memory of a decoder.
struct DecodeBuffers {
  PixelBuffer pixels;   // of the image
  PixelBuffer colours;  // in the file's colours, if a library cannot convert these
};

// Returns InvalidArgument if the image is larger than the options allow.
Status CheckSize(int64_t height, int64_t width, int64_t channels, const DecodeOptions& options);

// Returns the luminance (ITU-R BT.601) of a colour, rounded.
inline uint8_t Luminance(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

// Return DataLoss if the bytes are not a complete image of this format, InvalidArgument if the
// image is of a kind that is not supported, ResourceExhausted if the library gets no memory, and
// the error of CheckSize. The pixels are in `buffers`. The libraries print nothing.
StatusOr<DecodedImage> DecodeJpeg(std::string_view bytes, const DecodeOptions& options,
                                  DecodeBuffers& buffers);
StatusOr<DecodedImage> DecodePng(std::string_view bytes, const DecodeOptions& options,
                                 DecodeBuffers& buffers);

}  // namespace tfjob::data
