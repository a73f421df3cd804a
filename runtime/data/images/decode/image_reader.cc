#include "runtime/data/images/decode/image_reader.h"

namespace tfjob::data {

std::string Print(const ImageOptions& options) {
  const ResizeOptions& resize = options.resize;
  return StrCat("image of ", resize.width, " × ", resize.height, " pixels, ", options.channels,
                options.channels == 1 ? " channel" : " channels",
                resize.method == Resize::kNearest ? ", nearest" : ", bilinear",
                resize.crop_to_aspect_ratio ? ", cropped" : "");
}

}  // namespace tfjob::data
