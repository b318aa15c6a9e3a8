#include "data/formats/vector_format.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "data/formats/buffered_reader.h"
#include "data/formats/json_reader.h"

namespace simile::data {
namespace {

struct Dtype {
  std::string_view name;
  std::uint64_t bytes;
  std::optional<ElementType> element;  // nothing: not served
};

constexpr std::array<Dtype, 15> kDtypes = {{
    {"F16", 2, ElementType::kFloat16},
    {"BF16", 2, ElementType::kBfloat16},
    {"F32", 4, ElementType::kFloat32},
    {"F64", 8, ElementType::kFloat64},
    {"BOOL", 1, {}},
    {"U8", 1, {}},
    {"I8", 1, {}},
    {"F8_E5M2", 1, {}},
    {"F8_E4M3", 1, {}},
    {"I16", 2, {}},
    {"U16", 2, {}},
    {"I32", 4, {}},
    {"U32", 4, {}},
    {"I64", 8, {}},
    {"U64", 8, {}},
}};

struct Tensor {
  std::string name;
  const PayloadObject* entry = nullptr;  // of the header
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

absl::StatusOr<PayloadObject> ReadHeaderObject(BufferedReader& in, const Limits& limits) {
  constexpr std::size_t kLengthBytes = 8;
  if (in.size() < kLengthBytes) {
    return Refuse(in, fmt::format("is {} long; a .safetensors file begins with the {} bytes of its "
                                  "header's length",
                                  base::Counted(in.size(), "byte"), kLengthBytes));
  }
  const absl::StatusOr<std::string> header =
      ReadSizedHeader(in, kLengthBytes, limits.safetensors_header_bytes_max);
  if (!header.ok()) return header.status();
  JsonReader reader(fmt::format("{}: header", in.display_name()),
                    {.depth_max = limits.json_depth_max, .text_bytes_max = header->size()});
  reader.Begin(*header);
  return ReadJsonObject(reader);
}

// The sizes in a list; nothing for any other value.
std::optional<std::vector<std::uint64_t>> ReadSizes(const PayloadValue* value) {
  const auto* const list = value == nullptr ? nullptr : std::get_if<PayloadList>(&value->value);
  if (list == nullptr) return std::nullopt;
  std::vector<std::uint64_t> sizes;
  sizes.reserve(list->size());
  for (const PayloadValue& item : *list) {
    const auto* const size = std::get_if<std::int64_t>(&item.value);
    if (size == nullptr || *size < 0) return std::nullopt;
    sizes.push_back(static_cast<std::uint64_t>(*size));
  }
  return sizes;
}

absl::StatusOr<const Dtype*> ParseDtype(const BufferedReader& in, std::string_view tensor,
                                        const PayloadValue* value) {
  const auto* const name = value == nullptr ? nullptr : std::get_if<std::string>(&value->value);
  if (name == nullptr) {
    return Refuse(in, fmt::format("tensor {} has no \"dtype\" string", base::Quoted(tensor)));
  }
  for (const Dtype& dtype : kDtypes) {
    if (dtype.name == *name) return &dtype;
  }
  return Refuse(in, fmt::format("tensor {} has the unknown dtype {}; F16, BF16, F32 and F64 are "
                                "served",
                                base::Quoted(tensor), base::Quoted(*name)));
}

// Parses one entry of the header. Reads only the tensor's place: its dtype may be newer than this
// program, and matters only for the tensor that is served.
absl::StatusOr<Tensor> ParseTensor(const BufferedReader& in, std::string_view name,
                                   const PayloadValue& value) {
  const auto* const entry = std::get_if<PayloadObject>(&value.value);
  if (entry == nullptr) {
    return Refuse(in, fmt::format("tensor {} is {}; an object with dtype, shape and data_offsets "
                                  "is needed",
                                  base::Quoted(name), Describe(value)));
  }
  const auto offsets = ReadSizes(FindMember(*entry, "data_offsets"));
  if (!offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1]) {
    return Refuse(in, fmt::format("tensor {} has no \"data_offsets\" of the form [begin, end]",
                                  base::Quoted(name)));
  }
  return Tensor{
      .name = std::string(name), .entry = entry, .begin = (*offsets)[0], .end = (*offsets)[1]};
}

// The layout of the served tensor, with its size checked by its shape.
absl::StatusOr<VectorLayout> MakeTensorLayout(const BufferedReader& in, const Tensor& tensor,
                                              const Limits& limits) {
  const absl::StatusOr<const Dtype*> found =
      ParseDtype(in, tensor.name, FindMember(*tensor.entry, "dtype"));
  if (!found.ok()) return found.status();
  const Dtype& dtype = **found;
  const std::optional<std::vector<std::uint64_t>> shape =
      ReadSizes(FindMember(*tensor.entry, "shape"));
  if (!shape) {
    return Refuse(
        in, fmt::format("tensor {} has no \"shape\" list of sizes", base::Quoted(tensor.name)));
  }
  if (tensor.entry->size() != 3) {
    return Refuse(in, fmt::format("tensor {} has {} members; dtype, shape and data_offsets are all "
                                  "there may be",
                                  base::Quoted(tensor.name), tensor.entry->size()));
  }
  std::uint64_t bytes = dtype.bytes;
  bool fits = true;
  for (const std::uint64_t size : *shape) fits &= !__builtin_mul_overflow(bytes, size, &bytes);
  const std::uint64_t given = tensor.end - tensor.begin;
  if (!fits || bytes != given) {
    return Refuse(in, fmt::format("tensor {}: shape {} of {} needs {} bytes, but data_offsets give "
                                  "{}",
                                  base::Quoted(tensor.name), ShapeText(*shape), dtype.name,
                                  fits ? base::Grouped(bytes) : std::string("more than 2^64"),
                                  base::Grouped(given)));
  }
  if (!dtype.element) {
    return Refuse(in, fmt::format("tensor {} holds {}; F16, BF16, F32 and F64 are served; save "
                                  "with x.to(torch.float32).contiguous()",
                                  base::Quoted(tensor.name), dtype.name));
  }
  return MakeVectorLayout(in.display_name(), *dtype.element, *shape, limits);
}

absl::StatusOr<std::vector<Tensor>> ParseTensors(const BufferedReader& in,
                                                 const PayloadObject& header) {
  std::vector<Tensor> tensors;
  for (const auto& [name, value] : header) {
    if (name == "__metadata__") continue;
    absl::StatusOr<Tensor> tensor = ParseTensor(in, name, value);
    if (!tensor.ok()) return tensor.status();
    tensors.push_back(*std::move(tensor));
  }
  if (tensors.empty())
    return Refuse(in, "holds no tensor; one of shape (rows, dimensions) is needed");
  return tensors;
}

// Checks that the tensors cover the data from the first byte to the last without holes or overlaps.
absl::Status CheckCoverage(const BufferedReader& in, std::vector<Tensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t end = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.begin != end) {
      return Refuse(in, fmt::format("tensor {} begins at byte {} of the data, but what lies before "
                                    "it ends at {}; there must be no {}",
                                    base::Quoted(tensor.name), tensor.begin, end,
                                    tensor.begin < end ? "overlap" : "hole"));
    }
    end = tensor.end;
  }
  return CheckDataBytes(in, "the tensors take", end);
}

std::string ListNames(const std::vector<std::string>& names) {
  constexpr std::size_t kListedMax = 8;
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kListedMax); ++i) {
    list += (i == 0 ? "" : ", ") + base::Quoted(names[i]);
  }
  return names.size() > kListedMax ? list + ", ..." : list;
}

absl::StatusOr<const Tensor*> Choose(const BufferedReader& in, const std::vector<Tensor>& tensors,
                                     std::string_view wanted) {
  if (wanted.empty() && tensors.size() == 1) return &tensors.front();
  std::vector<std::string> names;
  for (const Tensor& tensor : tensors) {
    if (tensor.name == wanted && !wanted.empty()) return &tensor;
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  if (wanted.empty()) {
    return Refuse(in, fmt::format("holds {} tensors ({}); say which in collection.json: "
                                  "\"tensor\": {}",
                                  base::Grouped(names.size()), ListNames(names),
                                  base::Quoted(names.front())));
  }
  const std::string nearest = base::NearestName(wanted, names);
  return Refuse(
      in, fmt::format("holds no tensor {}{}; it holds {}", base::Quoted(wanted),
                      nearest.empty() ? std::string()
                                      : fmt::format(" (did you mean {}?)", base::Quoted(nearest)),
                      ListNames(names)));
}

}  // namespace

absl::StatusOr<VectorLayout> ReadSafetensorsHeader(BufferedReader& in, std::string_view tensor,
                                                   const Limits& limits) {
  const absl::StatusOr<PayloadObject> header = ReadHeaderObject(in, limits);
  if (!header.ok()) return header.status();
  absl::StatusOr<std::vector<Tensor>> tensors = ParseTensors(in, *header);
  if (!tensors.ok()) return tensors.status();
  if (absl::Status status = CheckCoverage(in, *tensors); !status.ok()) return status;
  const absl::StatusOr<const Tensor*> chosen = Choose(in, *tensors, tensor);
  if (!chosen.ok()) return chosen.status();
  absl::StatusOr<VectorLayout> layout = MakeTensorLayout(in, **chosen, limits);
  if (!layout.ok()) return layout.status();
  if (absl::Status status = in.Skip((*chosen)->begin); !status.ok()) return status;
  return layout;
}

}  // namespace simile::data
