#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/inspect/mutations.h"
#include "cli/inspect/thing_folder.h"

namespace simile::cli {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A format that vectors are stored in.
struct VectorFile {
  const char* label;
  Stored type;
  bool safetensors;
};
constexpr std::array<VectorFile, 7> kVectorFiles = {{{"npy_f2", Stored::kFloat16, false},
                                                     {"npy_f4", Stored::kFloat32, false},
                                                     {"npy_f8", Stored::kFloat64, false},
                                                     {"safetensors_f16", Stored::kFloat16, true},
                                                     {"safetensors_bf16", Stored::kBfloat16, true},
                                                     {"safetensors_f32", Stored::kFloat32, true},
                                                     {"safetensors_f64", Stored::kFloat64, true}}};

struct Place {
  std::size_t row;
  std::size_t column;
};
constexpr std::array<Place, 3> kThingPlaces = {{{0, 0}, {17, 3}, {kThings - 1, kDim - 1}}};
constexpr std::array<Place, 3> kUserPlaces = {{{0, 0}, {5, 9}, {kUsers - 1, kDim - 1}}};

// A number in place of one, or a whole row times `scale`.
struct WrongNumbers {
  const char* label;
  std::optional<double> number;
  double scale;
  const char* says;  // a format with the row and the column
  bool fits_fp16 = true;
};
constexpr std::array<WrongNumbers, 7> kWrongNumbers = {{
    {"nan", kNan, 1, "row {} holds NaN at column {}"},
    {"infinity", kInfinity, 1, "row {} holds infinity at column {}"},
    {"minus_infinity", -kInfinity, 1, "row {} holds -infinity at column {}"},
    {"zero_row", {}, 0.0, "row {} is all zeros"},
    {"minus_zero_row", {}, -0.0, "row {} is all zeros"},
    {"long_row", {}, 0x1p61, "row {} has length", false},
    {"short_row", {}, 0x1p-70, "row {} has length", false},
}};

std::vector<double> Spoil(std::vector<double> numbers, const WrongNumbers& wrong, Place place) {
  if (wrong.number) {
    numbers[place.row * kDim + place.column] = *wrong.number;
    return numbers;
  }
  for (std::size_t i = 0; i < kDim; ++i) numbers[place.row * kDim + i] *= wrong.scale;
  return numbers;
}

void PutVectors(FolderContent& folder, const VectorFile& file, const std::vector<double>& numbers) {
  folder.Remove(kVectorsNpy);
  if (file.safetensors) {
    folder.Put(kVectorsSafetensors, MakeSafetensors(file.type, numbers, kDim));
  } else {
    folder.Put(kVectorsNpy, MakeNpy(file.type, numbers, kDim));
  }
}

std::string SaysAt(const WrongNumbers& wrong, Place place) {
  return fmt::format(fmt::runtime(wrong.says), place.row, place.column);
}

void AddWrongNumbers(std::vector<Mutation>& mutations) {
  for (const WrongNumbers& wrong : kWrongNumbers) {
    for (const Place place : kThingPlaces) {
      for (const VectorFile& file : kVectorFiles) {
        if (file.type == Stored::kFloat16 && !wrong.fits_fp16) continue;
        mutations.push_back({fmt::format("{}_{}_row_{}", file.label, wrong.label, place.row),
                             [=, &wrong, &file](FolderContent& folder) {
                               PutVectors(folder, file, Spoil(ThingNumbers(), wrong, place));
                             },
                             SaysAt(wrong, place)});
      }
    }
    for (const Place place : kUserPlaces) {
      mutations.push_back(
          {fmt::format("users_{}_row_{}", wrong.label, place.row),
           [=, &wrong](FolderContent& folder) {
             folder.Put(kUserVectors,
                        MakeNpy(Stored::kFloat32, Spoil(UserNumbers(), wrong, place), kDim));
           },
           SaysAt(wrong, place)});
    }
  }
}

// A .npy file with another dictionary before the same data.
struct WrongHeader {
  const char* label;
  const char* header;
  const char* says;
  Fate fate = Fate::kRefused;
};
constexpr std::array<WrongHeader, 38> kWrongNpyHeaders = {{
    {"big_endian", "{'descr': '>f4', 'fortran_order': False, 'shape': (50, 16), }", "big-endian"},
    {"objects", "{'descr': '|O', 'fortran_order': False, 'shape': (50, 16), }", "pickled"},
    {"int32", "{'descr': '<i4', 'fortran_order': False, 'shape': (50, 16), }", "\"<i4\""},
    {"int8", "{'descr': '|i1', 'fortran_order': False, 'shape': (50, 64), }", "\"|i1\""},
    {"complex", "{'descr': '<c8', 'fortran_order': False, 'shape': (50, 8), }", "\"<c8\""},
    {"text_type", "{'descr': '<U1', 'fortran_order': False, 'shape': (50, 16), }", "\"<U1\""},
    {"boolean", "{'descr': '|b1', 'fortran_order': False, 'shape': (50, 64), }", "\"|b1\""},
    {"bare_type", "{'descr': 'f4', 'fortran_order': False, 'shape': (50, 16), }", "\"f4\""},
    {"no_type", "{'descr': '', 'fortran_order': False, 'shape': (50, 16), }", "float32"},
    {"f8_of_f4", "{'descr': '<f8', 'fortran_order': False, 'shape': (50, 16), }", "cut short"},
    {"f2_of_f4", "{'descr': '<f2', 'fortran_order': False, 'shape': (50, 16), }", "too many"},
    {"records", "{'descr': [('x', '<f4', (16,))], 'fortran_order': False, 'shape': (50,), }",
     "records"},
    {"records_open", "{'descr': [('x', '<f4'), 'fortran_order': False, 'shape': (50,), }",
     "not closed"},
    {"fortran_number", "{'descr': '<f4', 'fortran_order': 0, 'shape': (50, 16), }",
     "True or False"},
    {"no_axes", "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "0 axes"},
    {"one_axis", "{'descr': '<f4', 'fortran_order': False, 'shape': (800,), }", "1 axis"},
    {"three_axes", "{'descr': '<f4', 'fortran_order': False, 'shape': (50, 4, 4), }", "3 axes"},
    {"no_rows", "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 16), }", "no rows"},
    {"no_dims", "{'descr': '<f4', 'fortran_order': False, 'shape': (50, 0), }", "no dimensions"},
    {"dims_4097", "{'descr': '<f4', 'fortran_order': False, 'shape': (50, 4097), }", "4,096"},
    {"rows_51", "{'descr': '<f4', 'fortran_order': False, 'shape': (51, 16), }", "cut short"},
    {"rows_49", "{'descr': '<f4', 'fortran_order': False, 'shape': (49, 16), }", "64 bytes too"},
    {"dims_15", "{'descr': '<f4', 'fortran_order': False, 'shape': (50, 15), }", "too many"},
    {"dims_17", "{'descr': '<f4', 'fortran_order': False, 'shape': (50, 17), }", "cut short"},
    {"turned", "{'descr': '<f4', 'fortran_order': False, 'shape': (16, 50), }", ""},
    {"rows_2_40", "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 16), }",
     "4,294,967,280"},
    {"rows_2_70",
     "{'descr': '<f4', 'fortran_order': False, 'shape': (1180591620717411303424, 1), }", "64 bits"},
    {"negative", "{'descr': '<f4', 'fortran_order': False, 'shape': (-50, 16), }", "negative"},
    {"fraction", "{'descr': '<f4', 'fortran_order': False, 'shape': (50.0, 16), }", "column 5"},
    {"shape_list", "{'descr': '<f4', 'fortran_order': False, 'shape': [50, 16], }", "'('"},
    {"no_shape", "{'descr': '<f4', 'fortran_order': False, }", "lacks 'shape'"},
    {"no_descr", "{'fortran_order': False, 'shape': (50, 16), }", "lacks 'descr'"},
    {"no_order", "{'descr': '<f4', 'shape': (50, 16), }", "lacks 'fortran_order'"},
    {"key_twice", "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (50, 16), }",
     "twice"},
    {"key_unknown", "{'descr': '<f4', 'fortran_order': False, 'shape': (50, 16), 'x': 1, }",
     "\"x\""},
    {"json", "{\"descr\": \"<f4\", \"fortran_order\": false, \"shape\": [50, 16]}",
     "True or False"},
    {"no_dictionary", "50 16", "'{'"},
    {"open", "{'descr': '<f4', 'fortran_order': False, 'shape': (50, 16), ", ""},
}};
constexpr std::array<WrongHeader, 4> kHarmlessNpyHeaders = {{
    {"by_column", "{'descr': '<f4', 'fortran_order': True, 'shape': (50, 16), }", "", Fate::kLoads},
    {"native", "{'descr': '=f4', 'fortran_order': False, 'shape': (50, 16), }", "", Fate::kLoads},
    {"python_2", "{'descr': '<f4', 'fortran_order': False, 'shape': (50L, 16L)}", "", Fate::kLoads},
    {"spaces", " { 'shape':(50,16),'descr':\"<f4\",\n'fortran_order':False } ", "", Fate::kLoads},
}};

void AddNpyHeaders(std::vector<Mutation>& mutations) {
  const auto add = [&](const WrongHeader& header) {
    mutations.push_back({fmt::format("npy_header_{}", header.label),
                         [&header](FolderContent& folder) {
                           folder.Put(kVectorsNpy, MakeNpy(header.header, Encode(Stored::kFloat32,
                                                                                 ThingNumbers())));
                         },
                         header.says, header.fate});
  };
  for (const WrongHeader& header : kWrongNpyHeaders) add(header);
  for (const WrongHeader& header : kHarmlessNpyHeaders) add(header);
}

// Puts a file in place of the vectors of the items or of the users.
void AddVectorFile(std::vector<Mutation>& mutations, const std::string& label,
                   const std::string& name, std::string bytes, const std::string& says,
                   Fate fate = Fate::kRefused) {
  mutations.push_back({label,
                       [name, bytes = std::move(bytes)](FolderContent& folder) {
                         if (name == kVectorsSafetensors) folder.Remove(kVectorsNpy);
                         folder.Put(name, bytes);
                       },
                       says, fate});
}

// Other formats under the name of a .npy file, wrong versions, and lengths of the header.
void AddNpyStarts(std::vector<Mutation>& mutations) {
  const std::string data = Encode(Stored::kFloat32, ThingNumbers());
  const std::string dictionary = NpyDictionary("<f4", "50, 16");
  const std::string good = MakeNpy(dictionary, data);
  const auto add = [&](const char* label, const std::string& bytes, const char* says,
                       Fate fate = Fate::kRefused) {
    AddVectorFile(mutations, fmt::format("npy_{}", label), kVectorsNpy, bytes, says, fate);
  };
  const auto with = [&](std::size_t at, char byte) {
    std::string bytes = good;
    bytes[at] = byte;
    return bytes;
  };
  add("raw_numbers", data, "no .npy file");
  add("zip", fmt::format("PK\x03\x04{}", data), "zip archive");
  add("pickle", fmt::format("\x80\x04{}", data), "pickle");
  add("hdf5", fmt::format("\x89HDF\r\n{}", data), "HDF5");
  add("csv", "0.5,0.25\n0.5,0.25\n", "no .npy file");
  add("safetensors_inside", MakeSafetensors(Stored::kFloat32, ThingNumbers(), kDim),
      "looks like a .safetensors file");
  add("magic_lower_case", with(1, 'n'), "no .npy file");
  add("version_0", with(6, '\0'), "version 0.0");
  add("version_2_of_1", with(6, '\2'), "");
  add("version_9", with(6, '\x09'), "version 9.0");
  add("version_1_1", with(7, '\1'), "version 1.1");
  add("version_2", MakeNpy(dictionary, data, 2), "", Fate::kLoads);
  add("version_3", MakeNpy(dictionary, data, 3), "", Fate::kLoads);
  add("header_0_bytes", with(8, '\0'), "newline");
  add("header_255_bytes", with(8, '\xFF'), "");
  add("header_65398_bytes", with(9, '\xFF'), "at most 10,000");
  add("header_no_newline", with(127, ' '), "newline");
  add("header_not_ascii", with(12, '\xE9'), "0xe9");
  add("header_nul", with(12, '\0'), "0x00");
}

void AddVectorCuts(std::vector<Mutation>& mutations, const char* label, const char* name,
                   const std::string& good, const std::vector<std::size_t>& sizes) {
  for (const std::size_t size : sizes) {
    AddVectorFile(mutations, fmt::format("{}_cut_to_{}", label, size), name, good.substr(0, size),
                  "");
  }
  AddVectorFile(mutations, fmt::format("{}_one_byte_more", label), name, fmt::format("{}x", good),
                "1 byte too many");
  AddVectorFile(mutations, fmt::format("{}_one_row_more", label), name,
                good + good.substr(good.size() - kDim * sizeof(float)), "64 bytes too many");
}

struct WrongTensors {
  const char* label;
  const char* header;
  const char* says;
};
// Their data is that of the 50 rows of 16 fp32 numbers: 3,200 bytes.
constexpr std::array<WrongTensors, 31> kWrongTensors = {{
    {"no_tensor", R"({})", "holds no tensor"},
    {"only_metadata", R"({"__metadata__":{"format":"pt"}})", "holds no tensor"},
    {"list", R"([1])", "an object"},
    {"number", R"(7)", "an object"},
    {"no_json", R"(embeddings)", "column 1"},
    {"open", R"({"e":{"dtype":"F32","shape":[50,16],"data_offsets":[0,3200]})", "column"},
    {"trailing_comma", R"({"e":{"dtype":"F32","shape":[50,16],"data_offsets":[0,3200]},})",
     "column"},
    {"dtype_int", R"({"e":{"dtype":"I32","shape":[50,16],"data_offsets":[0,3200]}})", "I32"},
    {"dtype_unknown", R"({"e":{"dtype":"FP32","shape":[50,16],"data_offsets":[0,3200]}})",
     "\"FP32\""},
    {"dtype_number", R"({"e":{"dtype":32,"shape":[50,16],"data_offsets":[0,3200]}})", "dtype"},
    {"dtype_missing", R"({"e":{"shape":[50,16],"data_offsets":[0,3200]}})", "dtype"},
    {"shape_missing", R"({"e":{"dtype":"F32","data_offsets":[0,3200]}})", "shape"},
    {"shape_text", R"({"e":{"dtype":"F32","shape":"50x16","data_offsets":[0,3200]}})", "shape"},
    {"shape_negative", R"({"e":{"dtype":"F32","shape":[-50,16],"data_offsets":[0,3200]}})",
     "shape"},
    {"shape_fraction", R"({"e":{"dtype":"F32","shape":[50.0,16],"data_offsets":[0,3200]}})",
     "shape"},
    {"shape_1d", R"({"e":{"dtype":"F32","shape":[800],"data_offsets":[0,3200]}})", "1 axis"},
    {"shape_3d", R"({"e":{"dtype":"F32","shape":[50,4,4],"data_offsets":[0,3200]}})", "3 axes"},
    {"shape_no_rows", R"({"e":{"dtype":"F32","shape":[0,16],"data_offsets":[0,0]}})", ""},
    {"shape_no_dims", R"({"e":{"dtype":"F32","shape":[50,0],"data_offsets":[0,0]}})", ""},
    {"shape_17", R"({"e":{"dtype":"F32","shape":[50,17],"data_offsets":[0,3200]}})", "3,400"},
    {"shape_overflow",
     R"({"e":{"dtype":"F32","shape":[4611686018427387904,16],"data_offsets":[0,3200]}})", "2^64"},
    {"offsets_missing", R"({"e":{"dtype":"F32","shape":[50,16]}})", "data_offsets"},
    {"offsets_backwards", R"({"e":{"dtype":"F32","shape":[50,16],"data_offsets":[3200,0]}})",
     "data_offsets"},
    {"offsets_three", R"({"e":{"dtype":"F32","shape":[50,16],"data_offsets":[0,1,3200]}})",
     "data_offsets"},
    {"offsets_hole", R"({"e":{"dtype":"F32","shape":[49,16],"data_offsets":[64,3200]}})", "hole"},
    {"offsets_beyond", R"({"e":{"dtype":"F32","shape":[51,16],"data_offsets":[0,3264]}})",
     "cut short"},
    {"offsets_short", R"({"e":{"dtype":"F32","shape":[49,16],"data_offsets":[0,3136]}})",
     "64 bytes too many"},
    {"member_unknown",
     R"({"e":{"dtype":"F32","shape":[50,16],"data_offsets":[0,3200],"order":"C"}})", "4 members"},
    {"member_twice",
     R"({"e":{"dtype":"F32","dtype":"F32","shape":[50,16],"data_offsets":[0,3200]}})", "twice"},
    {"overlap",
     R"({"a":{"dtype":"F32","shape":[25,16],"data_offsets":[0,1600]},"b":{"dtype":"F32","shape":[26,16],"data_offsets":[1536,3200]}})",
     "overlap"},
    {"two_tensors",
     R"({"a":{"dtype":"F32","shape":[25,16],"data_offsets":[0,1600]},"b":{"dtype":"F32","shape":[25,16],"data_offsets":[1600,3200]}})",
     "say which in collection.json"},
}};

void AddSafetensors(std::vector<Mutation>& mutations) {
  const std::string data = Encode(Stored::kFloat32, ThingNumbers());
  const std::string good = MakeSafetensors(Stored::kFloat32, ThingNumbers(), kDim);
  const auto add = [&](const std::string& label, const std::string& bytes, const char* says,
                       Fate fate = Fate::kRefused) {
    AddVectorFile(mutations, fmt::format("safetensors_{}", label), kVectorsSafetensors, bytes, says,
                  fate);
  };
  for (const WrongTensors& wrong : kWrongTensors) {
    add(wrong.label, MakeSafetensors(wrong.header, data), wrong.says);
  }
  add("header_2_63", fmt::format("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F{}", good.substr(8)),
      "at most 1,048,576");
  add("header_0", MakeSafetensors("", data), "");
  add("header_longer", MakeSafetensors(good.substr(8), "").replace(1, 1, "\x7F"), "cut short");
  add("npy_inside", MakeNpy(Stored::kFloat32, ThingNumbers(), kDim), "looks like a .npy file");
  add("spaces_after_header",
      MakeSafetensors(fmt::format("{}   ", SafetensorsHeader("F32", "50, 16", data.size())), data),
      "", Fate::kLoads);
  add("with_metadata",
      MakeSafetensors(
          R"({"__metadata__":{"a":"b"},"e":{"dtype":"F32","shape":[50,16],"data_offsets":[0,3200]}})",
          data),
      "", Fate::kLoads);
}

}  // namespace

std::vector<Mutation> VectorMutations() {
  std::vector<Mutation> mutations;
  AddWrongNumbers(mutations);
  AddNpyHeaders(mutations);
  AddNpyStarts(mutations);
  AddSafetensors(mutations);
  const std::size_t row = kDim * sizeof(float);
  // Within magic, version, length, dictionary, the first row, the last one; at each of their ends.
  AddVectorCuts(
      mutations, "npy", kVectorsNpy, MakeNpy(Stored::kFloat32, ThingNumbers(), kDim),
      {0, 3, 6, 7, 8, 9, 10, 60, 127, 128, 129, 128 + row, 128 + 49 * row, 128 + 50 * row - 1});
  AddVectorCuts(mutations, "users", kUserVectors, MakeNpy(Stored::kFloat32, UserNumbers(), kDim),
                {0, 5, 8, 128, 128 + 7 * row, 128 + 8 * row - 1});
  const std::string tensors = MakeSafetensors(Stored::kFloat32, ThingNumbers(), kDim);
  const std::size_t header = tensors.size() - kThings * row;
  AddVectorCuts(mutations, "safetensors", kVectorsSafetensors, tensors,
                {0, 4, 8, 9, header - 1, header, header + 1, header + row, tensors.size() - 1});
  return mutations;
}

}  // namespace simile::cli
