// Decodes JPEG and PNG images. Recognises the format by the first bytes. Treats every byte of an
// image as untrusted.
#pragma once

#include <string_view>

#include "runtime/base/status.h"
#include "runtime/data/images/decode/decoded_image.h"

namespace tfjob::data {

// Returns whether the bytes start like a JPEG or PNG image.
bool IsImage(std::string_view bytes);

// Decodes one image after another. Only one thread may use a decoder. Keeps its memory for the next
// image, unless the image was very large.
//
// JPEG: supports baseline and progressive images of 8 bits, in grey, RGB, YCbCr, CMYK and YCCK.
// Assumes that CMYK is inverted, as Adobe's programs write it, and converts it to RGB as Pillow
// does. Damaged or truncated data is an error, but bytes that libjpeg skips without loss are not.
//
// PNG: supports all colour types, interlaced or not. Reduces values of 16 bits to 8 bits by
// dropping the lower byte, as TensorFlow does. Keeps transparency if 4 channels are requested, and
// ignores it otherwise. A wrong checksum is an error, even in a chunk that is not needed. Ignores
// gamma and colour profiles.
//
// In both formats, an image without an alpha channel is opaque (255). The orientation in EXIF data,
// and any bytes after the image, are ignored.
class ImageDecoder {
 public:
  explicit ImageDecoder(const DecodeOptions& options) : options_(options) {}

  // Decodes an image. The pixels stay valid until the next call. Returns DataLoss if the bytes are
  // not a complete image, InvalidArgument if the image is too large or of an unsupported kind, and
  // ResourceExhausted if a library cannot allocate memory.
  StatusOr<DecodedImage> Decode(std::string_view bytes);

 private:
  const DecodeOptions options_;
  DecodeBuffers buffers_;
};

}  // namespace tfjob::data
