#include "data/read_kind.h"

#include <initializer_list>
#include <optional>
#include <utility>

#include "data/formats/buffered_reader.h"
#include "data/formats/vector_format.h"
#include "data/formats/vector_reader.h"
#include "data/load/collection_files.h"
#include "data/load/id_list_reader.h"
#include "data/load/interactions_reader.h"
#include "data/payload/payload_reader.h"
#include "simile/limits.h"

namespace simile::data {
namespace {

IdIndex MakeIndex(std::initializer_list<std::string_view> ids) {
  IdIndex::Builder builder(ids.size());
  for (const std::string_view id : ids) builder.Add(id).IgnoreError();
  return std::move(builder).Build();
}

absl::Status ReadVectors(BufferedReader& in) {
  const absl::StatusOr<VectorLayout> layout = ReadVectorLayout(in, "", Limits{});
  if (!layout.ok()) return layout.status();
  VectorFacts facts;
  return ReadMatrix(in, *layout, {}, facts).status();
}

}  // namespace

absl::Status ReadKind(std::string_view kind, ByteSource& source) {
  const Limits limits;
  BufferedReader in(source);
  if (kind == "jsonl") return ReadPayload(in, {}, limits).status();
  if (kind == "ids") return ReadIdList(in, std::nullopt, limits).status();
  if (kind == "collection_json") return ReadCollectionJson(in, limits).status();
  if (kind == "interactions") {
    return ReadInteractions(in, MakeIndex({"u1", "u2"}), MakeIndex({"a", "b"}), "", Keep::kRows,
                            limits)
        .status();
  }
  return ReadVectors(in);
}

}  // namespace simile::data
