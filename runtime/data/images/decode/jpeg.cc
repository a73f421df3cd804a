// Decodes JPEG images with libjpeg-turbo. To report an error, the library calls a function that its
// user provides. This function must not return. The one in this file calls longjmp, which skips
// destructors. Therefore, only functions without objects that have destructors may call the library
// (JpegStep).
#include <csetjmp>
#include <cstdio>
#include <cstring>

// This header uses FILE and size_t without declaring them.
#include <jpeglib.h>

// The message codes in this header depend on macros from jpeglib.h.
#include <jerror.h>

#include "runtime/data/images/decode/decoded_image.h"

namespace tfjob::data {
namespace {

// The decoder processes the whole image for every scan of a progressive image, even if the scan has
// only a few bytes. Without a limit, a small file with many scans could take a very long time to
// decode. Encoders write at most a few dozen scans.
constexpr int kMostScans = 500;
constexpr int64_t kMostScannedPixels = int64_t{1} << 32;
constexpr int kMostRowsAtOnce = 16;

struct JpegState {
  jpeg_decompress_struct library;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf failed;
  char message[JMSG_LENGTH_MAX];
  bool unsupported;    // the error means that the kind of image is unsupported
  bool out_of_memory;  // the error means that memory could not be allocated
  uint8_t* pixels;     // the memory for the rows
  size_t row_bytes;
};
using JpegStep = void (*)(JpegState&);

JpegState& StateOf(j_common_ptr library) {
  return *static_cast<JpegState*>(library->client_data);
}

[[noreturn]] void FailJpeg(j_common_ptr library) {
  JpegState& state = StateOf(library);
  state.errors.format_message(library, state.message);
  state.out_of_memory = state.errors.msg_code == JERR_OUT_OF_MEMORY;
  state.unsupported = false;
  for (const int code : {JERR_BAD_PRECISION, JERR_SOF_UNSUPPORTED, JERR_CONVERSION_NOTIMPL,
                         JERR_ARITH_NOTIMPL, JERR_NOT_COMPILED, JERR_COMPONENT_COUNT})
    state.unsupported |= state.errors.msg_code == code;
  std::longjmp(state.failed, 1);
}

[[noreturn]] void FailJpegWith(JpegState& state, const char* message) {
  std::snprintf(state.message, sizeof(state.message), "%s", message);
  state.unsupported = state.out_of_memory = false;
  std::longjmp(state.failed, 1);
}

// Handles warnings (level -1) and ignores trace messages. Treats warnings about missing or wrong
// pixels as errors.
void OnJpegMessage(j_common_ptr library, int level) {
  if (level >= 0) return;
  for (const int code : {JWRN_ARITH_BAD_CODE, JWRN_BOGUS_PROGRESSION, JWRN_HIT_MARKER,
                         JWRN_HUFF_BAD_CODE, JWRN_JPEG_EOF, JWRN_MUST_RESYNC, JWRN_NOT_SEQUENTIAL})
    if (library->err->msg_code == code) FailJpeg(library);
}

void OnJpegProgress(j_common_ptr library) {
  JpegState& state = StateOf(library);
  const int64_t scan = state.library.input_scan_number;
  if (scan > kMostScans ||
      scan * state.library.image_width * state.library.image_height > kMostScannedPixels)
    FailJpegWith(state, "it has too many scans");
}

void IgnoreLibrary(j_decompress_ptr) {}
void IgnoreText(j_common_ptr) {}

boolean OnJpegEnd(j_decompress_ptr library) {
  FailJpegWith(StateOf(reinterpret_cast<j_common_ptr>(library)), "it ends too early");
}

void SkipJpeg(j_decompress_ptr library,
              long bytes) {  // NOLINT(google-runtime-int): the library's type
  if (bytes <= 0) return;
  jpeg_source_mgr& source = *library->src;
  if (static_cast<size_t>(bytes) > source.bytes_in_buffer) OnJpegEnd(library);
  source.next_input_byte += bytes;
  source.bytes_in_buffer -= static_cast<size_t>(bytes);
}

void ReadJpegHeader(JpegState& state) {
  jpeg_read_header(&state.library, TRUE);
}

// Fails if scans are missing from a file that ends properly; without this check, the library would
// leave the affected parts grey or blurred. Must be called after all scans have been read. In a
// progressive file, some AC coefficients may be missing from all scans; these coefficients are 0.
// However, every component needs DC coefficients (the library cannot write a file without them,
// either). If a scan contains a coefficient, the scans must contain all of its bits, as encoders
// always write it.
void CheckScans(JpegState& state) {
  const jpeg_decompress_struct& library = state.library;
  for (int c = 0; c < library.num_components; ++c) {
    // The library sets the pointer to a component's quantisation table at the first scan of the
    // component.
    bool complete = library.comp_info[c].quant_table != nullptr;
    // coef_bits is set for progressive files. An entry is -1 if no scan contains the coefficient, 0
    // if the coefficient is complete, and otherwise the number of missing bits.
    if (library.coef_bits != nullptr) {
      const int(&bits)[DCTSIZE2] = library.coef_bits[c];
      complete &= bits[0] != -1;
      for (const int missing : bits) complete &= missing <= 0;
    }
    if (!complete) FailJpegWith(state, "some of its scans are missing");
  }
}

void ReadJpegPixels(JpegState& state) {
  jpeg_decompress_struct& library = state.library;
  jpeg_start_decompress(&library);  // reads all scans, if there are several
  CheckScans(state);
  while (library.output_scanline < library.output_height) {
    JSAMPROW rows[kMostRowsAtOnce];
    JDIMENSION count = 0;
    for (; count < kMostRowsAtOnce && library.output_scanline + count < library.output_height;
         ++count)
      rows[count] = state.pixels + (library.output_scanline + count) * state.row_bytes;
    jpeg_read_scanlines(&library, rows, count);
  }
  jpeg_finish_decompress(&library);
}

Status Unsupported(std::string_view problem) {
  return InvalidArgument("the JPEG image is of a kind that is not supported: ", problem,
                         "; convert or remove the image");
}

class JpegReader {
 public:
  explicit JpegReader(std::string_view bytes) : state_() {
    jpeg_decompress_struct& library = state_.library;
    library.err = jpeg_std_error(&state_.errors);
    library.client_data = &state_;
    state_.errors.error_exit = FailJpeg;
    state_.errors.emit_message = OnJpegMessage;
    state_.errors.output_message = IgnoreText;
    state_.source = {.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data()),
                     .bytes_in_buffer = bytes.size(),
                     .init_source = IgnoreLibrary,
                     .fill_input_buffer = OnJpegEnd,
                     .skip_input_data = SkipJpeg,
                     .resync_to_restart = jpeg_resync_to_restart,
                     .term_source = IgnoreLibrary};
    state_.progress.progress_monitor = OnJpegProgress;
  }
  ~JpegReader() { jpeg_destroy_decompress(&state_.library); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  Status Run(JpegStep step) {
    if (Returns(state_, step)) return OkStatus();
    if (state_.out_of_memory) return ResourceExhausted("not enough memory to read a JPEG image");
    if (state_.unsupported) return Unsupported(state_.message);
    return DataLoss("the JPEG image is damaged: ", state_.message);
  }

  Status Open() {
    return Run([](JpegState& state) {
      jpeg_create_decompress(&state.library);
      state.library.src = &state.source;
      state.library.progress = &state.progress;
      ReadJpegHeader(state);
    });
  }
  jpeg_decompress_struct& library() { return state_.library; }
  void StoreAt(std::span<uint8_t> pixels) {
    state_.pixels = pixels.data();
    state_.row_bytes = pixels.size() / state_.library.image_height;
  }

 private:
  // Returns false if the library reported an error.
  static bool Returns(JpegState& state, JpegStep step) {
    // longjmp is safe, because no stack frame between this one and the call of longjmp has
    // destructors to run.
    if (setjmp(state.failed) != 0)
      return false;  // NOLINT(cert-err52-cpp,modernize-avoid-setjmp-longjmp)
    step(state);
    return true;
  }

  JpegState state_;
};

// Returns the colour space in which the library should store the pixels.
J_COLOR_SPACE ColoursFor(const jpeg_decompress_struct& library, int64_t channels) {
  if (library.jpeg_color_space == JCS_CMYK || library.jpeg_color_space == JCS_YCCK)
    return JCS_CMYK;  // the library cannot convert CMYK to RGB
  return channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_EXT_RGBA;
}

// Returns a · b / 255, rounded, as Pillow does.
uint8_t Product(uint32_t a, uint32_t b) {
  const uint32_t product = a * b + 128;
  return static_cast<uint8_t>(((product >> 8) + product) >> 8);
}

// Converts inverted CMYK to luminance, RGB or RGBA.
void ConvertCmyk(std::span<const uint8_t> from, int64_t channels, std::span<uint8_t> to) {
  uint8_t* out = to.data();
  for (size_t i = 0; i < from.size(); i += 4, out += channels) {
    const uint32_t key = from[i + 3];
    uint8_t rgb[3];
    for (size_t c = 0; c < 3; ++c)
      rgb[c] = static_cast<uint8_t>(key - Product(255u - from[i + c], key));
    if (channels == 1) {
      out[0] = Luminance(rgb[0], rgb[1], rgb[2]);
      continue;
    }
    std::memcpy(out, rgb, sizeof(rgb));
    if (channels == 4) out[3] = 255;
  }
}

}  // namespace

StatusOr<DecodedImage> DecodeJpeg(std::string_view bytes, const DecodeOptions& options,
                                  DecodeBuffers& buffers) {
  JpegReader reader(bytes);
  RETURN_IF_ERROR(reader.Open());
  jpeg_decompress_struct& library = reader.library();
  DecodedImage image{.format = "JPEG",
                     .file_channels = library.num_components,
                     .height = library.image_height,
                     .width = library.image_width,
                     .channels = options.channels};
  if (library.jpeg_color_space == JCS_UNKNOWN) {
    return Unsupported(
        StrCat("it has ", library.num_components, " components; expected 1, 3 or 4"));
  }
  if (library.arith_code) return Unsupported("it has arithmetic coding; expected Huffman coding");
  RETURN_IF_ERROR(CheckSize(image.height, image.width, image.file_channels, options));
  library.out_color_space = ColoursFor(library, options.channels);
  const bool cmyk = library.out_color_space == JCS_CMYK;
  const auto count = static_cast<size_t>(image.height * image.width);
  const auto channels = static_cast<size_t>(options.channels);
  const std::span<uint8_t> pixels = buffers.pixels.Take(count * channels);
  const std::span<uint8_t> stored = cmyk ? buffers.colours.Take(count * 4) : pixels;
  reader.StoreAt(stored);
  RETURN_IF_ERROR(reader.Run(ReadJpegPixels));
  if (cmyk) ConvertCmyk(stored, options.channels, pixels);
  image.pixels = pixels;
  return image;
}

}  // namespace tfjob::data
