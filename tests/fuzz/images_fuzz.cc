// Checks the decoder of images with arbitrary bytes. The first byte of an input selects the number
// of channels: 1, 3 or 4. The properties: decoding never crashes; a decoded image has the size that
// it states, has the same pixels each time, and can be decoded and resized with any channels; all
// errors have one of two codes.
#include <algorithm>
#include <string_view>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/data/images/decode/image_decoder.h"
#include "runtime/data/images/decode/resize.h"

namespace tfjob::fuzz {
namespace {

constexpr int64_t kMostValues = 1 << 20;

// Checks that all values of the resized image are between the smallest and the greatest value of
// the image.
void CheckResized(const data::DecodedImage& image, const data::ResizeOptions& options) {
  std::vector<float> resized(static_cast<size_t>(options.height * options.width * image.channels),
                             -1);
  data::Resizer(options).Run(image, resized);
  const auto [least, greatest] = std::ranges::minmax(image.pixels);
  const auto low = static_cast<float>(least), high = static_cast<float>(greatest);
  // An interpolated value is rounded, so it may be slightly outside of the range.
  ENFORCE(std::ranges::all_of(resized,
                              [&](float v) { return v >= low - 0.001f && v <= high + 0.001f; }),
          "values between those of the image");
}

void Check(std::string_view bytes, int64_t channels) {
  data::ImageDecoder first({.channels = channels, .most_values = kMostValues});
  const StatusOr<data::DecodedImage> image = first.Decode(bytes);
  if (!image.ok()) {
    const StatusCode code = image.status().code();
    ENFORCE(code == StatusCode::kDataLoss || code == StatusCode::kInvalidArgument,
            "an error of the file");
    return;
  }
  ENFORCE(data::IsImage(bytes), "its first bytes");
  ENFORCE(image->channels == channels && image->height > 0 && image->width > 0, "a size");
  ENFORCE(static_cast<int64_t>(image->pixels.size()) == image->height * image->width * channels &&
              static_cast<int64_t>(image->pixels.size()) <= kMostValues,
          "all pixels");
  for (const int64_t other : {1, 3, 4}) {
    data::ImageDecoder second({.channels = other, .most_values = 4 * kMostValues});
    const StatusOr<data::DecodedImage> again = second.Decode(bytes);
    ENFORCE(again.ok() && again->height == image->height && again->width == image->width,
            "the same image");
    if (other == channels) ENFORCE(std::ranges::equal(again->pixels, image->pixels), "pixels");
  }
  CheckResized(*image, {.height = 3, .width = 5});
  CheckResized(*image, {.height = 4, .width = 1, .crop_to_aspect_ratio = true});
  CheckResized(*image, {.height = 2, .width = 7, .method = data::Resize::kNearest});
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == '1' || data[0] == '3' || data[0] == '4') tfjob::fuzz::Check(rest, data[0] - '0');
  return 0;
}
