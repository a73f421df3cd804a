#include "runtime/data/images/decode/image_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/base/philox.h"
#include "runtime/data/images/decode/test_images.h"

namespace tfjob::data {
namespace {

using testing::Gradient;
using testing::JpegForm;
using testing::PngForm;
using testing::TestImage;
using testing::Uniform;
using testing::WriteJpeg;
using testing::WritePng;
using Values = std::vector<uint8_t>;

// Decodes an image, which must be intact.
Values Decoded(const std::string& bytes, int64_t channels) {
  ImageDecoder decoder({.channels = channels});
  const StatusOr<DecodedImage> image = decoder.Decode(bytes);
  EXPECT_TRUE(image.ok()) << image.status();
  if (!image.ok()) return {};
  EXPECT_EQ(image->channels, channels);
  EXPECT_EQ(static_cast<int64_t>(image->pixels.size()), image->height * image->width * channels);
  return {image->pixels.begin(), image->pixels.end()};
}

Status ErrorOf(std::string_view bytes, const DecodeOptions& options = {}) {
  return ImageDecoder(options).Decode(bytes).status();
}

int LargestDifference(const Values& a, const Values& b) {
  EXPECT_EQ(a.size(), b.size());
  int largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(int{a[i]} - int{b[i]}));
  return largest;
}

// Returns the pixels with an additional channel, whose values are all `alpha`.
Values WithAlpha(const Values& rgb, uint8_t alpha = 255) {
  Values rgba;
  for (size_t i = 0; i < rgb.size(); i += 3) {
    rgba.insert(rgba.end(), rgb.begin() + static_cast<int64_t>(i),
                rgb.begin() + static_cast<int64_t>(i) + 3);
    rgba.push_back(alpha);
  }
  return rgba;
}

Values Repeated(const Values& grey) {
  Values rgb;
  for (const uint8_t value : grey) rgb.insert(rgb.end(), 3, value);
  return rgb;
}

Values LuminanceOf(const Values& rgb) {
  Values grey;
  for (size_t i = 0; i < rgb.size(); i += 3)
    grey.push_back(
        static_cast<uint8_t>(0.299 * rgb[i] + 0.587 * rgb[i + 1] + 0.114 * rgb[i + 2] + 0.5));
  return grey;
}

TEST(Jpeg, KeepsItsColours) {
  const TestImage rgb = Gradient(37, 53, 3), grey = Gradient(37, 53, 1);
  for (const bool progressive : {false, true}) {
    const std::string jpeg = WriteJpeg(rgb, {.progressive = progressive});
    EXPECT_LE(LargestDifference(Decoded(jpeg, 3), rgb.values), 8);
    EXPECT_EQ(Decoded(jpeg, 4), WithAlpha(Decoded(jpeg, 3)));
    EXPECT_LE(LargestDifference(Decoded(jpeg, 1), LuminanceOf(Decoded(jpeg, 3))), 1);
    const std::string of_grey = WriteJpeg(grey, {.progressive = progressive});
    EXPECT_LE(LargestDifference(Decoded(of_grey, 1), grey.values), 4);
    EXPECT_EQ(Decoded(of_grey, 3), Repeated(Decoded(of_grey, 1)));
    EXPECT_EQ(Decoded(of_grey, 4), WithAlpha(Repeated(Decoded(of_grey, 1))));
  }
  EXPECT_EQ(Decoded(WriteJpeg(rgb, {.progressive = true}), 3), Decoded(WriteJpeg(rgb), 3));
  const std::string of_rgb = WriteJpeg(rgb, {.colours = JCS_RGB});
  EXPECT_LE(LargestDifference(Decoded(of_rgb, 3), rgb.values), 8);
  EXPECT_LE(LargestDifference(Decoded(of_rgb, 1), LuminanceOf(Decoded(of_rgb, 3))), 1);
}

TEST(Jpeg, CmykIsInvertedAndBecomesRgb) {
  // These values are the inverse of cyan 100 %, magenta 50 %, yellow 0 % and black 20 %.
  const TestImage ink = Uniform(16, 16, {0, 127, 255, 204});
  const Values expected = Uniform(16, 16, {0, 102, 204}).values;
  for (const J_COLOR_SPACE colours : {JCS_CMYK, JCS_YCCK}) {
    const std::string jpeg = WriteJpeg(ink, {.quality = 100, .colours = colours});
    EXPECT_LE(LargestDifference(Decoded(jpeg, 3), expected), 2);
    EXPECT_EQ(Decoded(jpeg, 4), WithAlpha(Decoded(jpeg, 3)));
    EXPECT_LE(LargestDifference(Decoded(jpeg, 1), LuminanceOf(expected)), 2);
  }
}

TEST(Jpeg, ReportsItsForm) {
  ImageDecoder decoder({.channels = 1});
  const StatusOr<DecodedImage> image = decoder.Decode(WriteJpeg(Gradient(5, 7, 4)));
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->format, "JPEG");
  EXPECT_EQ(image->file_channels, 4);
  EXPECT_EQ(image->height, 5);
  EXPECT_EQ(image->width, 7);
}

TEST(Png, KeepsItsColours) {
  for (const bool interlaced : {false, true}) {
    const TestImage rgb = Gradient(13, 21, 3), rgba = Gradient(13, 21, 4);
    const std::string of_rgb = WritePng(rgb, {.interlaced = interlaced});
    EXPECT_EQ(Decoded(of_rgb, 3), rgb.values);
    EXPECT_EQ(Decoded(of_rgb, 4), WithAlpha(rgb.values));
    EXPECT_EQ(Decoded(of_rgb, 1), LuminanceOf(rgb.values));
    const std::string of_rgba =
        WritePng(rgba, {.kind = PNG_COLOR_TYPE_RGBA, .interlaced = interlaced});
    EXPECT_EQ(Decoded(of_rgba, 4), rgba.values);
    Values opaque;
    for (size_t i = 0; i < rgba.values.size(); ++i)
      if (i % 4 != 3) opaque.push_back(rgba.values[i]);
    EXPECT_EQ(Decoded(of_rgba, 3), opaque);
    EXPECT_EQ(Decoded(of_rgba, 1), LuminanceOf(opaque));
  }
}

TEST(Png, GreyOfEveryDepthBecomesBytes) {
  const TestImage two_rows{
      .height = 2, .width = 8, .channels = 1, .values = {0b10110001, 0b00000001}};
  const Values bits = {255, 0, 255, 255, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 255};
  const std::string one_bit = WritePng(two_rows, {.kind = PNG_COLOR_TYPE_GRAY, .bits = 1});
  EXPECT_EQ(Decoded(one_bit, 1), bits);
  EXPECT_EQ(Decoded(one_bit, 3), Repeated(bits));
  EXPECT_EQ(Decoded(one_bit, 4), WithAlpha(Repeated(bits)));
  const TestImage packed{.height = 1, .width = 4, .channels = 1, .values = {0b00011011}};
  EXPECT_EQ(Decoded(WritePng(packed, {.kind = PNG_COLOR_TYPE_GRAY, .bits = 2}), 1),
            (Values{0, 85, 170, 255}));
  const TestImage nibbles{.height = 1, .width = 2, .channels = 1, .values = {0x2F}};
  EXPECT_EQ(Decoded(WritePng(nibbles, {.kind = PNG_COLOR_TYPE_GRAY, .bits = 4}), 1),
            (Values{34, 255}));
  const TestImage words{.height = 1, .width = 2, .channels = 1, .values = {0x12, 0xFF, 0xAB, 0x00}};
  EXPECT_EQ(Decoded(WritePng(words, {.kind = PNG_COLOR_TYPE_GRAY, .bits = 16}), 1),
            (Values{0x12, 0xAB}));
  const TestImage colours{.height = 1, .width = 1, .channels = 3, .values = {1, 200, 2, 200, 3, 0}};
  EXPECT_EQ(Decoded(WritePng(colours, {.bits = 16}), 3), (Values{1, 2, 3}));
  const TestImage with_alpha{.height = 1, .width = 2, .channels = 2, .values = {7, 100, 9, 255}};
  const std::string alpha = WritePng(with_alpha, {.kind = PNG_COLOR_TYPE_GRAY_ALPHA});
  EXPECT_EQ(Decoded(alpha, 1), (Values{7, 9}));
  EXPECT_EQ(Decoded(alpha, 4), (Values{7, 7, 7, 100, 9, 9, 9, 255}));
}

TEST(Png, PalettesAndTransparentColours) {
  const std::vector<png_color> palette = {{10, 20, 30}, {200, 100, 50}, {1, 2, 3}};
  const TestImage indices{.height = 1, .width = 4, .channels = 1, .values = {0b00011001}};
  const Values rgb = {10, 20, 30, 200, 100, 50, 1, 2, 3, 200, 100, 50};
  const PngForm form{.kind = PNG_COLOR_TYPE_PALETTE, .bits = 2, .palette = palette};
  EXPECT_EQ(Decoded(WritePng(indices, form), 3), rgb);
  EXPECT_EQ(Decoded(WritePng(indices, form), 4), WithAlpha(rgb));
  EXPECT_EQ(Decoded(WritePng(indices, form), 1), LuminanceOf(rgb));
  PngForm faded = form;
  faded.palette_alpha = {0, 128};
  EXPECT_EQ(Decoded(WritePng(indices, faded), 3), rgb);
  EXPECT_EQ(Decoded(WritePng(indices, faded), 1), LuminanceOf(rgb));
  EXPECT_EQ(Decoded(WritePng(indices, faded), 4),
            (Values{10, 20, 30, 0, 200, 100, 50, 128, 1, 2, 3, 255, 200, 100, 50, 128}));
  const png_color_16 grey{.gray = 5};
  const TestImage greys{.height = 1, .width = 2, .channels = 1, .values = {5, 6}};
  const std::string keyed = WritePng(greys, {.kind = PNG_COLOR_TYPE_GRAY, .transparent = &grey});
  EXPECT_EQ(Decoded(keyed, 4), (Values{5, 5, 5, 0, 6, 6, 6, 255}));
  EXPECT_EQ(Decoded(keyed, 1), (Values{5, 6}));
  const png_color_16 colour{.red = 1, .green = 2, .blue = 3};
  const TestImage two{.height = 1, .width = 2, .channels = 3, .values = {1, 2, 3, 1, 2, 4}};
  EXPECT_EQ(Decoded(WritePng(two, {.transparent = &colour}), 4),
            (Values{1, 2, 3, 0, 1, 2, 4, 255}));
}

TEST(Png, TheChecksumOfTransparencyIsChecked) {
  // By default, libpng would only issue a warning, and make all pixels opaque.
  std::string png =
      WritePng({.height = 1, .width = 1, .channels = 1, .values = {0}},
               {.kind = PNG_COLOR_TYPE_PALETTE, .palette = {{10, 20, 30}}, .palette_alpha = {128}});
  EXPECT_EQ(Decoded(png, 4), (Values{10, 20, 30, 128}));
  png[png.find("tRNS") + 4] ^= 1;
  EXPECT_EQ(ErrorOf(png, {.channels = 4}).code(), StatusCode::kDataLoss);
}

TEST(Images, OfOtherFormatsAreNamed) {
  EXPECT_EQ(Message(ErrorOf("GIF89a")), "expected a JPEG or PNG image, got a GIF image");
  EXPECT_EQ(Message(ErrorOf("")), "expected a JPEG or PNG image, got no bytes");
  EXPECT_EQ(Message(ErrorOf("hi\x01")),
            "expected a JPEG or PNG image, got bytes that begin with \"hi\\x01\"");
  EXPECT_EQ(Message(ErrorOf(std::string_view("RIFF\0\0\0\0WEBPVP8 ", 16))),
            "expected a JPEG or PNG image, got a WebP image");
  EXPECT_EQ(ErrorOf("GIF89a").code(), StatusCode::kDataLoss);
  EXPECT_FALSE(IsImage("\xFF\xD8"));
}

TEST(Images, CutAnywhereAreErrors) {
  for (const std::string& image :
       {WriteJpeg(Gradient(20, 20, 3)), WriteJpeg(Gradient(20, 20, 3), {.progressive = true}),
        WritePng(Gradient(9, 9, 3)), WritePng(Gradient(9, 9, 3), {.interlaced = true})}) {
    EXPECT_TRUE(ErrorOf(image).ok()) << ErrorOf(image);
    EXPECT_TRUE(ErrorOf(image + "more").ok()) << "what follows is ignored";
    for (size_t size = 0; size < image.size(); ++size) {
      const Status cut = ErrorOf(image.substr(0, size));
      ASSERT_EQ(cut.code(), StatusCode::kDataLoss) << size << " of " << image.size() << ": " << cut;
    }
  }
  const std::string jpeg = WriteJpeg(Gradient(20, 20, 3));
  EXPECT_EQ(Message(ErrorOf(jpeg.substr(0, jpeg.size() - 2))),
            "the JPEG image is damaged: it ends too early");
}

TEST(Jpeg, WhoseDataEndBeforeTheImageIsDamaged) {
  for (const bool progressive : {false, true}) {
    const std::string jpeg = WriteJpeg(Gradient(64, 64, 3), {.progressive = progressive});
    // By default, libjpeg would only issue a warning, and make the missing part of the image grey.
    const std::string half = jpeg.substr(0, jpeg.size() * 2 / 3) + "\xFF\xD9";
    EXPECT_EQ(ErrorOf(half).code(), StatusCode::kDataLoss) << ErrorOf(half);
  }
}

TEST(Jpeg, ThatLacksScansIsDamaged) {
  for (const JpegForm& form : {JpegForm{.progressive = true}, JpegForm{.separate = true}}) {
    const std::string jpeg = WriteJpeg(Gradient(20, 20, 3), form);
    EXPECT_EQ(Decoded(jpeg, 3), Decoded(WriteJpeg(Gradient(20, 20, 3)), 3));
    int scans = 0;
    for (size_t at = jpeg.find("\xFF\xDA"); at != std::string::npos;
         at = jpeg.find("\xFF\xDA", at + 1)) {
      if (scans++ == 0) continue;
      // By default, libjpeg would not even issue a warning.
      const Status cut = ErrorOf(jpeg.substr(0, at) + "\xFF\xD9");
      EXPECT_EQ(Message(cut), "the JPEG image is damaged: some of its scans are missing") << scans;
      EXPECT_EQ(cut.code(), StatusCode::kDataLoss);
    }
    EXPECT_EQ(scans, form.progressive ? 10 : 3);
  }
}

// Tests a file with DC coefficients only. Each block of such an image has a single colour.
TEST(Jpeg, WithoutAcCoefficientsIsIntact) {
  const std::string jpeg = WriteJpeg(Uniform(16, 16, {90, 90, 90}), {.only_dc = true});
  EXPECT_LE(LargestDifference(Decoded(jpeg, 3), Uniform(16, 16, {90, 90, 90}).values), 1);
}

TEST(Images, WithAFlippedBit) {
  PhiloxStream random(7);
  ::testing::internal::CaptureStderr();
  for (const std::string& image :
       {WriteJpeg(Gradient(24, 24, 3), {.subsampled = true}),
        WriteJpeg(Gradient(24, 24, 4), {.progressive = true}), WritePng(Gradient(24, 24, 3))}) {
    ImageDecoder decoder({.channels = 3, .most_values = 1 << 20});
    const Values intact = Decoded(image, 3);
    int errors = 0;
    for (int i = 0; i < 1000; ++i) {
      std::string changed = image;
      const uint32_t bit = random.Below(static_cast<uint32_t>(8 * image.size()));
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
      const StatusOr<DecodedImage> decoded = decoder.Decode(changed);
      errors += decoded.ok() ? 0 : 1;
      // Every chunk of a PNG image has a checksum. JPEG images have none, so damage may stay
      // undetected.
      if (decoded.ok() && image[0] == '\x89')
        ADD_FAILURE() << "bit " << bit << " of a PNG image may be changed";
    }
    EXPECT_GT(errors, 100);
    // The decoder can still decode an intact image.
    const StatusOr<DecodedImage> again = decoder.Decode(image);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(std::ranges::equal(again->pixels, intact));
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "the libraries print nothing";
}

TEST(Images, ThatAreTooLargeAreRefusedByTheirHeader) {
  std::string jpeg = WriteJpeg(Gradient(8, 8, 3));
  const size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xFF\xDC\xFF\xDC");  // 65500 × 65500 pixels
  EXPECT_EQ(ErrorOf(jpeg).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(ErrorOf(jpeg)),
            "the image has 65500 × 65500 pixels of 3 values; expected at most 268435456 values; "
            "make it smaller, or remove it");
  // Returns a PNG image whose IHDR chunk contains another size and a correct checksum.
  const auto header_of = [](uint32_t size) {
    std::string bytes = WritePng(Gradient(2, 2, 3)).substr(0, 33);
    for (const size_t at : {16u, 20u}) {
      for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(size >> (24 - 8 * i));
    }
    uint32_t crc = ~0u;
    for (const char byte : bytes.substr(12, 17)) {
      crc ^= static_cast<uint8_t>(byte);
      for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xEDB88320 : crc >> 1;
    }
    for (size_t i = 0; i < 4; ++i) bytes[29 + i] = static_cast<char>(~crc >> (24 - 8 * i));
    return bytes + WritePng(Gradient(2, 2, 3)).substr(33);
  };
  EXPECT_EQ(ErrorOf(header_of(0x7FFFFFFF)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf(header_of(3)).code(), StatusCode::kDataLoss);
  EXPECT_TRUE(ErrorOf(header_of(2)).ok());
  EXPECT_EQ(ErrorOf(WritePng(Gradient(4, 4, 3)), {.channels = 4, .most_values = 63}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(ErrorOf(WritePng(Gradient(4, 4, 3)), {.channels = 4, .most_values = 64}).ok());
}

TEST(Images, ThatAreNotSupportedAreNoDamage) {
  std::string jpeg = WriteJpeg(Gradient(8, 8, 3));
  jpeg[jpeg.find("\xFF\xC0") + 4] = 12;  // bits per value
  const Status deep = ErrorOf(jpeg);
  EXPECT_EQ(deep.code(), StatusCode::kInvalidArgument) << deep;
  std::string arithmetic = WriteJpeg(Gradient(8, 8, 3));
  arithmetic[arithmetic.find("\xFF\xC0") + 1] = '\xC9';
  EXPECT_EQ(ErrorOf(arithmetic).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(ErrorOf(arithmetic)),
            "the JPEG image is of a kind that is not supported: it has arithmetic coding; expected "
            "Huffman coding; convert or remove the image");
}

TEST(Jpeg, BytesBetweenMarkersAreSkipped) {
  std::string jpeg = WriteJpeg(Gradient(8, 8, 3));
  const Values intact = Decoded(jpeg, 3);
  jpeg.insert(jpeg.size() - 2, "padding");
  EXPECT_EQ(Decoded(jpeg, 3), intact);
}

}  // namespace
}  // namespace tfjob::data
