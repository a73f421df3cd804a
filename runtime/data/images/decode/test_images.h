// Writes images for tests, with the libraries that also read them.
#pragma once

#include <png.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

// jpeglib.h uses FILE and size_t without declaring them.
#include <jpeglib.h>

namespace tfjob::data::testing {

// The pixels to be written to a file, row by row.
struct TestImage {
  uint32_t height = 0, width = 0;
  int channels = 3;
  std::vector<uint8_t> values = {};
};

// Returns an image whose colours change slowly, so that JPEG compression loses little.
inline TestImage Gradient(uint32_t height, uint32_t width, int channels) {
  TestImage image{.height = height, .width = width, .channels = channels};
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const uint32_t at = (2 * x + 3 * y + 50 * static_cast<uint32_t>(c)) % 400;
        image.values.push_back(static_cast<uint8_t>(20 + (at < 200 ? at : 400 - at)));
      }
    }
  }
  return image;
}

// Returns an image of one colour.
inline TestImage Uniform(uint32_t height, uint32_t width, const std::vector<uint8_t>& colour) {
  TestImage image{.height = height, .width = width, .channels = static_cast<int>(colour.size())};
  for (uint32_t i = 0; i < height * width; ++i)
    image.values.insert(image.values.end(), colour.begin(), colour.end());
  return image;
}

struct JpegForm {
  int quality = 95;
  bool progressive = false;
  bool subsampled = false;
  bool separate = false;  // writes a scan for each channel; not with `progressive`
  bool only_dc = false;   // writes one progressive scan, of the DC coefficients of all channels
  J_COLOR_SPACE colours = JCS_UNKNOWN;  // colour space of the file; JCS_UNKNOWN: the usual one
};

// Returns a JPEG file. The image has 1 channel (grey), 3 (RGB) or 4 (CMYK).
inline std::string WriteJpeg(const TestImage& image, const JpegForm& form = {}) {
  jpeg_compress_struct library;
  jpeg_error_mgr errors;
  library.err = jpeg_std_error(&errors);
  jpeg_create_compress(&library);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): the library's type
  jpeg_mem_dest(&library, &bytes, &size);
  library.image_height = image.height;
  library.image_width = image.width;
  library.input_components = image.channels;
  library.in_color_space = image.channels == 1   ? JCS_GRAYSCALE
                           : image.channels == 3 ? JCS_RGB
                                                 : JCS_CMYK;
  jpeg_set_defaults(&library);
  if (form.colours != JCS_UNKNOWN) jpeg_set_colorspace(&library, form.colours);
  jpeg_set_quality(&library, form.quality, TRUE);
  if (form.progressive) jpeg_simple_progression(&library);
  if (!form.subsampled) library.comp_info[0].h_samp_factor = library.comp_info[0].v_samp_factor = 1;
  jpeg_scan_info scans[MAX_COMPONENTS] = {};
  if (form.separate) {
    for (int c = 0; c < library.num_components; ++c)
      scans[c] = {.comps_in_scan = 1, .component_index = {c}, .Se = DCTSIZE2 - 1};
    library.num_scans = library.num_components;
  }
  if (form.only_dc) {
    scans[0].comps_in_scan = library.num_components;
    for (int c = 0; c < library.num_components; ++c) scans[0].component_index[c] = c;
    library.num_scans = 1;
  }
  if (form.separate || form.only_dc) library.scan_info = scans;
  jpeg_start_compress(&library, TRUE);
  const size_t row = image.width * static_cast<size_t>(image.channels);
  while (library.next_scanline < library.image_height) {
    auto* values = const_cast<uint8_t*>(image.values.data()) + library.next_scanline * row;
    jpeg_write_scanlines(&library, &values, 1);
  }
  jpeg_finish_compress(&library);
  jpeg_destroy_compress(&library);
  std::string written(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return written;
}

struct PngForm {
  int kind = PNG_COLOR_TYPE_RGB;
  int bits = 8;
  bool interlaced = false;
  std::vector<png_color> palette = {};
  std::vector<png_byte> palette_alpha = {};   // tRNS of a palette
  const png_color_16* transparent = nullptr;  // tRNS of grey and RGB images
};

// Returns a PNG file. The values of the image are the bytes of its rows, packed as in PNG.
inline std::string WritePng(const TestImage& image, const PngForm& form = {}) {
  png_structp library = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(library);
  std::string written;
  png_set_write_fn(
      library, &written,
      [](png_structp to, png_bytep bytes, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<char*>(bytes), size);
      },
      [](png_structp) {});
  png_set_IHDR(library, info, image.width, image.height, form.bits, form.kind,
               form.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!form.palette.empty())
    png_set_PLTE(library, info, form.palette.data(), static_cast<int>(form.palette.size()));
  if (!form.palette_alpha.empty() || form.transparent != nullptr) {
    png_set_tRNS(library, info, form.palette_alpha.data(),
                 static_cast<int>(form.palette_alpha.size()), form.transparent);
  }
  png_write_info(library, info);
  const size_t row = image.values.size() / image.height;
  std::vector<png_bytep> rows;
  for (uint32_t y = 0; y < image.height; ++y)
    rows.push_back(const_cast<png_bytep>(image.values.data() + y * row));
  png_write_image(library, rows.data());
  png_write_end(library, info);
  png_destroy_write_struct(&library, &info);
  return written;
}

}  // namespace tfjob::data::testing
