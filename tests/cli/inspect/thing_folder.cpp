#include "cli/inspect/thing_folder.h"

#include <array>
#include <cmath>
#include <cstring>
#include <sstream>

#include <fmt/format.h>

#include "certificate/seeded_random.h"

namespace simile::cli {
namespace {

constexpr const char* kGoodSettings =
    R"({
  "metric": "cosine",
  "lookup_fields": ["title"],
  "field_types": {"year": "integer", "genres": "list of keywords"}
}
)";

struct StoredFormat {
  std::size_t bytes;
  std::string_view descr;  // .npy
  std::string_view dtype;  // .safetensors
};
const StoredFormat& FormatOf(Stored type) {
  static constexpr std::array<StoredFormat, 4> kFormats = {
      {{2, "<f2", "F16"}, {2, "", "BF16"}, {4, "<f4", "F32"}, {8, "<f8", "F64"}}};
  return kFormats[static_cast<std::size_t>(type)];
}

// Multiples of 1/16 between -4 and 4, never 0.
std::vector<double> GridNumbers(std::size_t count, std::uint64_t seed) {
  tests::SeededRandom random(seed);
  std::vector<double> numbers(count);
  for (double& number : numbers) {
    number = static_cast<double>(random.Between(1, 64)) / 16;
    if (random.OneIn(2)) number = -number;
  }
  return numbers;
}

// REQUIRES: the value is not finite, 0, or one that fp16 holds exactly with a normal exponent.
std::uint16_t Fp16Of(double value) {
  const unsigned sign = std::signbit(value) ? 0x8000U : 0U;
  if (std::isnan(value)) return 0x7E00;
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (value == 0) return static_cast<std::uint16_t>(sign);
  int exponent = 0;
  const double fraction = std::frexp(std::abs(value), &exponent);
  const auto biased = static_cast<unsigned>(exponent + 14);
  return static_cast<std::uint16_t>(sign | (biased << 10) |
                                    (static_cast<unsigned>(std::ldexp(fraction, 11)) - 1024U));
}

template <typename Number>
void Append(std::string& bytes, Number number) {
  std::array<char, sizeof number> raw;
  std::memcpy(raw.data(), &number, sizeof number);
  bytes.append(raw.data(), raw.size());
}

std::string LittleEndian(std::size_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}

std::string FormatShape(const std::vector<double>& numbers, std::size_t dim) {
  return fmt::format("{}, {}", numbers.size() / dim, dim);
}

}  // namespace

std::vector<double> ThingNumbers() { return GridNumbers(kThings * kDim, 1); }
std::vector<double> UserNumbers() { return GridNumbers(kUsers * kDim, 2); }

std::string Encode(Stored type, const std::vector<double>& numbers) {
  std::string bytes;
  for (const double number : numbers) {
    switch (type) {
      case Stored::kFloat16:
        Append(bytes, Fp16Of(number));
        break;
      case Stored::kBfloat16: {
        const auto single = static_cast<float>(number);
        std::uint32_t bits = 0;
        std::memcpy(&bits, &single, sizeof bits);
        Append(bytes, static_cast<std::uint16_t>(bits >> 16));
        break;
      }
      case Stored::kFloat32:
        Append(bytes, static_cast<float>(number));
        break;
      case Stored::kFloat64:
        Append(bytes, number);
        break;
    }
  }
  return bytes;
}

std::string MakeNpy(std::string_view dictionary, std::string_view data, char version) {
  const std::size_t width = version == 1 ? 2 : 4;
  std::string header(dictionary);
  const std::size_t unpadded = 8 + width + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file += version;
  file += '\0';
  file += LittleEndian(header.size(), width);
  file += header;
  file += data;
  return file;
}

std::string NpyDictionary(std::string_view descr, std::string_view shape) {
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
}

std::string MakeNpy(Stored type, const std::vector<double>& numbers, std::size_t dim) {
  return MakeNpy(NpyDictionary(FormatOf(type).descr, FormatShape(numbers, dim)),
                 Encode(type, numbers));
}

std::string MakeSafetensors(std::string_view header, std::string_view data) {
  std::string file = LittleEndian(header.size(), 8);
  file += header;
  file += data;
  return file;
}

std::string SafetensorsHeader(std::string_view dtype, std::string_view shape, std::size_t bytes) {
  return fmt::format(R"({{"embeddings":{{"dtype":"{}","shape":[{}],"data_offsets":[0,{}]}}}})",
                     dtype, shape, bytes);
}

std::string MakeSafetensors(Stored type, const std::vector<double>& numbers, std::size_t dim) {
  const std::string data = Encode(type, numbers);
  return MakeSafetensors(
      SafetensorsHeader(FormatOf(type).dtype, FormatShape(numbers, dim), data.size()), data);
}

std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string JoinLines(const std::vector<std::string>& lines) {
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

std::string PayloadLine(std::size_t n) {
  return fmt::format(
      R"({{"id": "thing-{}", "title": "Thing {}", "year": {}, "rating": {}.5, "genres": ["one", "two"], "released": "20{:02}-05-01T12:00:00Z", "kept": {}}})",
      n, n, 1950 + n, n % 9, n, n % 2 == 0);
}

std::string InteractionLine(std::size_t n) {
  return fmt::format(
      R"({{"user_id": "user-{}", "id": "thing-{}", "weight": {}, "time": "2024-05-01T12:00:00Z"}})",
      n % kUsers, n, n % 5 + 1);
}

FolderContent ThingFolder() {
  std::vector<std::string> things;
  for (std::size_t n = 0; n < kThings; ++n) things.push_back(PayloadLine(n));
  std::vector<std::string> seen;
  for (std::size_t n = 0; n < kInteractions; ++n) seen.push_back(InteractionLine(n));
  std::vector<std::string> users;
  for (std::size_t n = 0; n < kUsers; ++n) users.push_back(fmt::format("\"user-{}\"", n));
  FolderContent folder;
  folder.Put(kVectorsNpy, MakeNpy(Stored::kFloat32, ThingNumbers(), kDim));
  folder.Put(kPayload, JoinLines(things));
  folder.Put(kUserIds, fmt::format("[\n{}\n]\n", fmt::join(users, ",\n")));
  folder.Put(kUserVectors, MakeNpy(Stored::kFloat32, UserNumbers(), kDim));
  folder.Put(kInteractionLines, JoinLines(seen));
  folder.Put(kSettings, kGoodSettings);
  return folder;
}

FolderContent ThingFolderOfSafetensors() {
  FolderContent folder = ThingFolder();
  folder.Remove(kVectorsNpy);
  folder.Put(kVectorsSafetensors, MakeSafetensors(Stored::kFloat32, ThingNumbers(), kDim));
  return folder;
}

}  // namespace simile::cli
