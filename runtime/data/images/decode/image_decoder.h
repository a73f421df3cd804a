// Decodes images, whose format is recognised by their first bytes. Trusts no byte of an image.
#pragma once

#include <string_view>

#include "runtime/base/status.h"
#include "runtime/data/images/decode/decoded_image.h"

namespace tfjob::data {

// Returns whether the bytes begin like a JPEG or PNG image.
bool IsImage(std::string_view bytes);

// Owned by one thread. Keeps its memory for the next image, unless the image was very large.
//
// JPEG: baseline and progressive; grey, RGB, YCbCr, CMYK and YCCK, of 8 bits. CMYK is taken to be
// inverted, as Adobe's programs write it, and becomes RGB as in Pillow. An image whose data are
// damaged or end too early is an error; bytes that libjpeg skips without loss are not.
//
// PNG: all kinds of colours, interlaced or not. 16 bits become 8 by dropping the lower byte, as
// TensorFlow does. Transparency is kept with 4 channels and ignored otherwise. A wrong checksum is
// an error, also that of a chunk that is not needed. Gamma and colour profiles are ignored.
//
// In both formats, a missing alpha channel becomes 255, the orientation that EXIF data may state is
// ignored, and so is what follows the image.
class ImageDecoder {
 public:
  explicit ImageDecoder(const DecodeOptions& options) : options_(options) {}

  // The pixels stay valid until the next call. Returns DataLoss if the bytes are not a complete
  // image, InvalidArgument if the image is too large or of a kind that is not supported, and
  // ResourceExhausted if a library gets no memory.
  StatusOr<DecodedImage> Decode(std::string_view bytes);

 private:
  const DecodeOptions options_;
  DecodeBuffers buffers_;
};

}  // namespace tfjob::data
