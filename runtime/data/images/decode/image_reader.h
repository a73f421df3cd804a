// Reads images into the values of examples.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/data/images/decode/image_decoder.h"
#include "runtime/data/images/decode/resize.h"

namespace tfjob::data {

struct ImageOptions {
  int64_t channels = 3;  // 1, 3 or 4: see DecodeOptions
  ResizeOptions resize;
};

// Returns different strings for different options.
std::string Print(const ImageOptions& options);

// Decodes and resizes images. Only one thread may use a reader.
class ImageReader {
 public:
  explicit ImageReader(const ImageOptions& options)
      : decoder_({.channels = options.channels}), resizer_(options.resize) {}

  // Decodes an image, resizes it, and fills `to`, [height, width, channels], with values from 0 to
  // 255. Propagates errors from ImageDecoder::Decode, and then leaves `to` unchanged.
  Status Read(std::string_view bytes, std::span<float> to) {
    ASSIGN_OR_RETURN(const DecodedImage image, decoder_.Decode(bytes));
    resizer_.Run(image, to);
    return OkStatus();
  }

 private:
  ImageDecoder decoder_;
  Resizer resizer_;
};

}  // namespace tfjob::data
