// Decodes PNG images with libpng. To report an error, the library calls a function that its user
// provides. This function must not return. The one in this file calls longjmp, which skips
// destructors. Therefore, only functions without objects that have destructors may call the library
// (PngStep).
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/data/images/decode/decoded_image.h"

namespace tfjob::data {
namespace {

constexpr size_t kMostMessage = 200;

struct PngState {
  png_structp library;
  png_infop info;
  const char* next;  // the first byte that has not been read
  size_t left;       // the number of bytes that have not been read
  std::jmp_buf failed;
  char message[kMostMessage];
  int64_t channels;  // 3 or 4, or 1 for grey images
  uint8_t* pixels;   // the memory for the rows
  size_t row_bytes;
  bool out_of_memory;
};
using PngStep = void (*)(PngState&);

[[noreturn]] void FailPng(png_structp library, png_const_charp message) {
  auto& state = *static_cast<PngState*>(png_get_error_ptr(library));
  std::snprintf(state.message, sizeof(state.message), "%s", message);
  std::longjmp(state.failed, 1);
}

// Allocates memory. Records failed allocations, because the library's messages do not identify them
// reliably.
png_voidp AllocateForPng(png_structp library, png_alloc_size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) static_cast<PngState*>(png_get_mem_ptr(library))->out_of_memory = true;
  return memory;
}

void FreeForPng(png_structp, png_voidp memory) {
  std::free(memory);
}

void IgnoreWarning(png_structp, png_const_charp) {}

void ReadPngBytes(png_structp library, png_bytep bytes, size_t size) {
  auto& state = *static_cast<PngState*>(png_get_io_ptr(library));
  if (size > state.left) FailPng(library, "it ends too early");
  std::memcpy(bytes, state.next, size);
  state.next += size;
  state.left -= size;
}

void ReadPngHeader(PngState& state) {
  // Remove the library's own limits on the size, because CheckSize checks the size later.
  png_set_user_limits(state.library, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_crc_action(state.library, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  // Make the library skip all chunks except the necessary ones (IHDR, PLTE, tRNS, IDAT and IEND).
  png_set_keep_unknown_chunks(state.library, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_read_fn(state.library, &state, ReadPngBytes);
  png_read_info(state.library, state.info);
}

// Configures the library to convert all pixels to `state.channels` channels of 8 bits.
void ConvertPng(PngState& state) {
  const png_byte kind = png_get_color_type(state.library, state.info);
  const bool stated_alpha = png_get_valid(state.library, state.info, PNG_INFO_tRNS) != 0;
  if (kind == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(state.library);
  if (kind == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(state.library);
  png_set_strip_16(state.library);
  if ((kind & PNG_COLOR_MASK_COLOR) == 0 && state.channels > 1) png_set_gray_to_rgb(state.library);
  if (state.channels != 4) {
    png_set_strip_alpha(state.library);
  } else if (stated_alpha) {
    png_set_tRNS_to_alpha(state.library);
  } else if ((kind & PNG_COLOR_MASK_ALPHA) == 0) {
    png_set_add_alpha(state.library, 0xFF, PNG_FILLER_AFTER);
  }
}

void ReadPngPixels(PngState& state) {
  ConvertPng(state);
  const int passes = png_set_interlace_handling(state.library);
  png_read_update_info(state.library, state.info);
  if (png_get_rowbytes(state.library, state.info) != state.row_bytes)
    FailPng(state.library, "its rows have an unexpected length");
  const png_uint_32 height = png_get_image_height(state.library, state.info);
  for (int pass = 0; pass < passes; ++pass) {
    for (png_uint_32 y = 0; y < height; ++y)
      png_read_row(state.library, state.pixels + y * state.row_bytes, nullptr);
  }
  png_read_end(state.library, nullptr);
}

class PngReader {
 public:
  explicit PngReader(std::string_view bytes) : state_() {
    state_.next = bytes.data();
    state_.left = bytes.size();
    state_.library = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &state_, FailPng,
                                              IgnoreWarning, &state_, AllocateForPng, FreeForPng);
    if (state_.library != nullptr) state_.info = png_create_info_struct(state_.library);
  }
  ~PngReader() { png_destroy_read_struct(&state_.library, &state_.info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  Status Run(PngStep step) {
    if (state_.info != nullptr && Returns(state_, step)) return OkStatus();
    if (state_.info == nullptr || state_.out_of_memory)
      return ResourceExhausted("not enough memory to read a PNG image");
    return DataLoss("the PNG image is damaged: ", state_.message);
  }
  PngState& state() { return state_; }

 private:
  // Returns false if the library reported an error.
  static bool Returns(PngState& state, PngStep step) {
    // longjmp is safe, because no stack frame between this one and the call of longjmp has
    // destructors to run.
    if (setjmp(state.failed) != 0)
      return false;  // NOLINT(cert-err52-cpp,modernize-avoid-setjmp-longjmp)
    step(state);
    return true;
  }

  PngState state_;
};

// Returns the number of channels in the file or, if the file has a palette, of the palette's
// colours.
int64_t ChannelsOf(PngState& state) {
  const png_byte kind = png_get_color_type(state.library, state.info);
  const bool stated_alpha = png_get_valid(state.library, state.info, PNG_INFO_tRNS) != 0;
  const bool alpha = stated_alpha || (kind & PNG_COLOR_MASK_ALPHA) != 0;
  return ((kind & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1) + (alpha ? 1 : 0);
}

void ToLuminance(std::span<const uint8_t> rgb, std::span<uint8_t> grey) {
  for (size_t i = 0; i < grey.size(); ++i)
    grey[i] = Luminance(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
}

}  // namespace

StatusOr<DecodedImage> DecodePng(std::string_view bytes, const DecodeOptions& options,
                                 DecodeBuffers& buffers) {
  PngReader reader(bytes);
  RETURN_IF_ERROR(reader.Run(ReadPngHeader));
  PngState& state = reader.state();
  DecodedImage image{.format = "PNG",
                     .file_channels = ChannelsOf(state),
                     .height = png_get_image_height(state.library, state.info),
                     .width = png_get_image_width(state.library, state.info),
                     .channels = options.channels};
  RETURN_IF_ERROR(CheckSize(image.height, image.width, image.file_channels, options));
  const bool to_grey = options.channels == 1 && image.file_channels >= 3;
  state.channels = to_grey ? 3 : options.channels;
  const auto count = static_cast<size_t>(image.height * image.width);
  const std::span<uint8_t> pixels =
      buffers.pixels.Take(count * static_cast<size_t>(options.channels));
  const std::span<uint8_t> stored = to_grey ? buffers.colours.Take(count * 3) : pixels;
  state.pixels = stored.data();
  state.row_bytes = static_cast<size_t>(image.width * state.channels);
  RETURN_IF_ERROR(reader.Run(ReadPngPixels));
  if (to_grey) ToLuminance(stored, pixels);
  image.pixels = pixels;
  return image;
}

}  // namespace tfjob::data
