#include <unistd.h>

#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "cli/inspect/mutations.h"
#include "cli/inspect/thing_folder.h"

namespace simile::cli {
namespace {

constexpr std::array<const char*, 6> kNames = {kVectorsNpy,  kPayload,          kUserIds,
                                               kUserVectors, kInteractionLines, kSettings};
// The keys of collection.json that name the first five.
constexpr std::array<const char*, 5> kKeys = {"vectors", "payload", "user_ids", "user_vectors",
                                              "interactions"};

using Apply = std::function<void(FolderContent& folder)>;

// Collects the mutations of a folder.
class FolderList {
 public:
  void Refuse(std::string name, Apply apply, std::string says = "") {
    list_.push_back({std::move(name), std::move(apply), std::move(says), Fate::kRefused});
  }
  void Load(std::string name, Apply apply) {
    list_.push_back({std::move(name), std::move(apply), "", Fate::kLoads});
  }
  std::vector<Mutation> Build() && { return std::move(list_); }

 private:
  std::vector<Mutation> list_;
};

std::string NpyRows(std::size_t rows, std::size_t dim) {
  return MakeNpy(Stored::kFloat32, std::vector<double>(rows * dim, 0.5), dim);
}

Apply Put(std::string name, std::string bytes) {
  return [name = std::move(name), bytes = std::move(bytes)](FolderContent& folder) {
    folder.Put(name, bytes);
  };
}

Apply Without(std::vector<std::string> names) {
  return [names = std::move(names)](FolderContent& folder) {
    for (const std::string& name : names) folder.Remove(name);
  };
}

Apply Renamed(std::string from, std::string to) {
  return [from = std::move(from), to = std::move(to)](FolderContent& folder) {
    folder.Rename(from, to);
  };
}

Apply Exchanged(std::string one, std::string other) {
  return [one = std::move(one), other = std::move(other)](FolderContent& folder) {
    folder.Rename(one, "between");
    folder.Rename(other, one);
    folder.Rename("between", other);
  };
}

// Two files under both names.
Apply Doubled(std::string name, std::string second) {
  return [name = std::move(name), second = std::move(second)](FolderContent& folder) {
    const std::string* const bytes = folder.FindBytes(name);
    if (bytes != nullptr) folder.Put(second, *bytes);
  };
}

void AddAbsent(FolderList& list) {
  list.Refuse("no_vectors", Without({kVectorsNpy}), "no vectors in the folder");
  list.Refuse("no_payload", Without({kPayload}), "there is no payload");
  list.Refuse("no_user_ids", Without({kUserIds}), "has no ids beside it");
  list.Refuse("no_user_vectors", Without({kUserVectors}), "has no vectors beside it");
  list.Refuse(
      "nothing_at_all",
      Without({kVectorsNpy, kPayload, kUserIds, kUserVectors, kInteractionLines, kSettings}),
      "no vectors in the folder");
  list.Refuse("only_users", Without({kVectorsNpy, kPayload, kInteractionLines, kSettings}),
              "no vectors in the folder");
  list.Load("no_interactions", Without({kInteractionLines}));
  list.Load("no_settings", Without({kSettings}));
  list.Load("no_users", Without({kUserIds, kUserVectors}));
  list.Load("only_vectors",
            Without({kPayload, kUserIds, kUserVectors, kInteractionLines, kSettings}));
  list.Refuse("vectors_renamed", Renamed(kVectorsNpy, "embeddings.npy"), "embeddings.npy");
  list.Refuse("vectors_upper_case", Renamed(kVectorsNpy, "CONTENT_VECTORS.NPY"), "no vectors");
  list.Refuse("payload_csv", Renamed(kPayload, "metadata.csv"), "there is no payload");
  list.Refuse("users_renamed", Renamed(kUserIds, "users.json"), "has no ids beside it");
  list.Refuse("vectors_too_deep", Renamed(kVectorsNpy, "a/content_vectors.npy"), "no vectors");
  list.Load("in_subfolders", [](FolderContent& folder) {
    folder.Rename(kVectorsNpy, "media/content_vectors.npy");
    folder.Rename(kPayload, "media/metadata.jsonl");
    folder.Rename(kUserIds, "users/user_ids.json");
    folder.Rename(kUserVectors, "users/preference_vectors.npy");
    folder.Rename(kInteractionLines, "users/interactions.jsonl");
  });
  list.Load("other_files", [](FolderContent& folder) {
    folder.Put("README.md", "things");
    folder.Put("metadata.csv", "id,title\n");
    folder.Put("metadata.parquet", "PAR1");
    folder.PutPipe("pipe");
    folder.PutLink("loop", "loop");
  });
}

void AddDoubled(FolderList& list) {
  constexpr std::array<std::pair<const char*, const char*>, 9> kDoubled = {{
      {kVectorsNpy, "vectors.npy"},
      {kVectorsNpy, "media/content_vectors.npy"},
      {kVectorsNpy, "media/vectors.npy"},
      {kVectorsNpy, "vectors.safetensors"},
      {kPayload, "media/metadata.jsonl"},
      {kUserIds, "users/user_ids.json"},
      {kUserVectors, "users/preference_vectors.npy"},
      {kUserVectors, "preference_vectors.safetensors"},
      {kInteractionLines, "users/interactions.jsonl"},
  }};
  for (const auto& [name, second] : kDoubled) {
    list.Refuse(fmt::format("{}_and_{}", name, second), Doubled(name, second),
                fmt::format("{} is there, too", second));
  }
  list.Refuse(
      "vectors_and_a_folder_of_the_other_name",
      [](FolderContent& folder) { folder.PutFolder("vectors.npy"); }, "is there, too");
  list.Refuse(
      "vectors_and_a_broken_link",
      [](FolderContent& folder) { folder.PutLink("vectors.npy", "nowhere"); }, "is there, too");
}

// Files that are good by themselves and belong to other collections.
void AddOfOthers(FolderList& list) {
  for (const std::size_t rows : {1, 8, 49, 51, 5'000}) {
    list.Refuse(fmt::format("vectors_of_{}_rows", rows), Put(kVectorsNpy, NpyRows(rows, kDim)),
                "one object a row is needed");
  }
  for (const std::size_t rows : {1, 7, 9, 50}) {
    list.Refuse(fmt::format("users_of_{}_rows", rows), Put(kUserVectors, NpyRows(rows, kDim)),
                "one id a row is needed");
  }
  for (const std::size_t dim : {1, 15, 17, 384, 4'096}) {
    list.Refuse(fmt::format("users_of_{}_dimensions", dim), Put(kUserVectors, NpyRows(8, dim)),
                "one model");
    list.Refuse(fmt::format("vectors_of_{}_dimensions", dim), Put(kVectorsNpy, NpyRows(50, dim)),
                "one model");
  }
  list.Refuse("users_and_vectors_exchanged", Exchanged(kVectorsNpy, kUserVectors), "8 rows");
  list.Refuse("payload_and_interactions_exchanged", Exchanged(kPayload, kInteractionLines),
              "has 50 rows");
  list.Refuse("ids_and_settings_exchanged", Exchanged(kUserIds, kSettings), kSettings);
  list.Refuse("vectors_and_payload_exchanged", Exchanged(kVectorsNpy, kPayload),
              "content_vectors.npy: is no .npy file");
  list.Refuse(
      "ids_of_the_things",
      [](FolderContent& folder) {
        std::vector<std::string> ids;
        for (std::size_t n = 0; n < kThings; ++n) ids.push_back(fmt::format("\"t{}\"", n));
        folder.Put(kUserIds, fmt::format("[{}]", fmt::join(ids, ",")));
      },
      "one id a row is needed");
  list.Refuse(
      "payload_of_the_users",
      [](FolderContent& folder) {
        std::string text;
        for (std::size_t n = 0; n < kUsers; ++n) text += fmt::format("{}\n", PayloadLine(n));
        folder.Put(kPayload, text);
      },
      "8 lines");
  list.Refuse("interactions_of_csv", Put(kInteractionLines, "user_id,id\nuser-1,thing-1\n"),
              "looks like CSV");
  list.Refuse(
      "empty_files",
      [](FolderContent& folder) {
        for (const char* const name : kNames) folder.Put(name, "");
      },
      "collection.json");
}

// Entries that are no regular files.
void AddOddEntries(FolderList& list) {
  for (const char* const name : kNames) {
    const auto refuse = [&](const char* label, const char* says, const Apply& apply) {
      list.Refuse(fmt::format("{}_{}", name, label), apply, fmt::format("{}: {}", name, says));
    };
    refuse("a_folder", "is a folder", [name](FolderContent& folder) { folder.PutFolder(name); });
    refuse("a_pipe", "is a pipe", [name](FolderContent& folder) { folder.PutPipe(name); });
    list.Load(fmt::format("{}_a_link_out", name), [name](FolderContent& folder) {
      folder.PutLink(name, fmt::format("../outside/{}", name));
    });
    refuse("a_link_to_another_kind", "",
           [name](FolderContent& folder) { folder.PutLink(name, "/etc/passwd"); });
    refuse("a_device", "", [name](FolderContent& folder) { folder.PutLink(name, "/dev/zero"); });
    refuse("a_broken_link", "is a link to a file that is not there",
           [name](FolderContent& folder) { folder.PutLink(name, "nowhere"); });
    refuse("a_loop", "", [name](FolderContent& folder) { folder.PutLink(name, name); });
    refuse("a_link_to_a_folder", "is a folder", [name](FolderContent& folder) {
      folder.PutFolder("inner");
      folder.PutLink(name, "inner");
    });
    list.Load(fmt::format("{}_a_link_inside", name), [name](FolderContent& folder) {
      folder.Rename(name, "data/the_file");
      folder.PutLink(name, "data/the_file");
    });
    if (geteuid() != 0) {
      refuse("unreadable", "cannot be opened",
             [name](FolderContent& folder) { folder.MakeUnreadable(name); });
    }
  }
  list.Load("users_is_a_file", Put("users", "not a folder"));
  list.Load("media_is_a_link_out", [](FolderContent& folder) {
    folder.Remove(kVectorsNpy);
    folder.Remove(kPayload);
    folder.PutLink("media", "../outside");
  });
}

// collection.json that names files which are not there, not inside, or of no use.
void AddNamed(FolderList& list) {
  const auto refuse = [&](const std::string& name, const std::string& settings, const char* says) {
    list.Refuse(name, Put(kSettings, settings), says);
  };
  for (const char* const key : kKeys) {
    const auto set = [&](const char* label, const char* value, const char* says) {
      refuse(fmt::format("{}_{}", key, label), fmt::format(R"({{"{}": "{}"}})", key, value), says);
    };
    set("not_there", "absent.npy", "not in the folder");
    set("leads_out", "../outside/content_vectors.npy", "inside the collection's folder");
    set("leads_out_and_back", "media/../../outside/x.npy", "inside the collection's folder");
    set("absolute", "/etc/passwd", "inside the collection's folder");
    set("a_folder", "media/", "inside the collection's folder");
    set("dot", ".", "inside the collection's folder");
    set("settings_itself", "collection.json", "");
  }
  refuse("vectors_named_users", R"({"vectors": "preference_vectors.npy"})", "8 rows");
  refuse("users_named_vectors", R"({"user_vectors": "content_vectors.npy"})", "50 rows");
  refuse("payload_named_interactions", R"({"payload": "interactions.jsonl"})", "40 lines");
  // All of its lines are of nobody.
  list.Load("interactions_named_payload", Put(kSettings, R"({"interactions": "metadata.jsonl"})"));
  refuse("ids_named_payload", R"({"user_ids": "metadata.jsonl"})", "metadata.jsonl");
  refuse("vectors_named_payload", R"({"vectors": "metadata.jsonl"})", ".npy and .safetensors");
  refuse("payload_named_vectors", R"({"payload": "content_vectors.npy"})", "line 1");
  list.Refuse(
      "vectors_of_another_ending",
      [](FolderContent& folder) {
        folder.Rename(kVectorsNpy, "v.bin");
        folder.Put(kSettings, R"({"vectors": "v.bin"})");
      },
      ".npy and .safetensors");
  list.Refuse(
      "tensor_near",
      [](FolderContent& folder) {
        folder = ThingFolderOfSafetensors();
        folder.Put(kSettings, R"({"tensor": "embedings"})");
      },
      "did you mean \"embeddings\"?");
  list.Refuse(
      "tensor_of_no_file",
      [](FolderContent& folder) {
        folder.Put(kSettings, R"({"tensor": "embeddings", "metric": "dot"})");
      },
      "leave it out");
  list.Load("tensor_named", [](FolderContent& folder) {
    folder = ThingFolderOfSafetensors();
    folder.Put(kSettings, R"({"tensor": "embeddings"})");
  });
  list.Load("named_of_two", [](FolderContent& folder) {
    folder.Put("vectors.npy", "another");
    folder.Put(kSettings, R"({"vectors": "content_vectors.npy"})");
  });
}

// What the metric and on_zero_row change.
void AddZeroRows(FolderList& list) {
  const auto with = [](const char* settings, std::vector<std::size_t> rows) {
    return [settings, rows = std::move(rows)](FolderContent& folder) {
      std::vector<double> numbers = ThingNumbers();
      for (const std::size_t row : rows) {
        for (std::size_t i = 0; i < kDim; ++i) numbers[row * kDim + i] = 0;
      }
      folder.Put(kVectorsNpy, MakeNpy(Stored::kFloat32, numbers, kDim));
      folder.Put(kSettings, settings);
    };
  };
  list.Refuse("zero_rows_refused", with(R"({"on_zero_row": "refuse"})", {3, 4}), "row 3");
  list.Load("zero_rows_skipped", with(R"({"on_zero_row": "skip"})", {0, 3, 49}));
  list.Load("zero_rows_of_dot", with(R"({"metric": "dot"})", {0, 3, 49}));
  list.Refuse(
      "nan_of_dot",
      [](FolderContent& folder) {
        std::vector<double> numbers = ThingNumbers();
        numbers[5] = std::numeric_limits<double>::quiet_NaN();
        folder.Put(kVectorsNpy, MakeNpy(Stored::kFloat32, numbers, kDim));
        folder.Put(kSettings, R"({"metric": "dot"})");
      },
      "NaN");
  list.Load("zero_user_of_dot", [](FolderContent& folder) {
    std::vector<double> numbers = UserNumbers();
    for (std::size_t i = 0; i < kDim; ++i) numbers[i] = 0;
    folder.Put(kUserVectors, MakeNpy(Stored::kFloat32, numbers, kDim));
    folder.Put(kSettings, R"({"metric": "dot"})");
  });
}

}  // namespace

std::vector<Mutation> FolderMutations() {
  FolderList list;
  AddAbsent(list);
  AddDoubled(list);
  AddOfOthers(list);
  AddOddEntries(list);
  AddNamed(list);
  AddZeroRows(list);
  return std::move(list).Build();
}

}  // namespace simile::cli
