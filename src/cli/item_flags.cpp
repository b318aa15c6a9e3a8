#include "cli/item_flags.h"

#include <fmt/format.h>

namespace simile::cli {

void AddItemFlags(Command& command, ItemFlags& flags, const char* fields_help) {
  command.Collection(flags.collection, "The collection (default: the server's only one)")
      .List("--fields", flags.fields, "FIELD", fields_help)
      .Switch("--with-rows", flags.with_rows,
              "Return each item's position in the loaded files, from 0")
      .Text("--required-filter", flags.required_filter, "TEXT",
            "Items that do not pass are treated as not in the collection")
      .Text("--expect-snapshot", flags.expected_snapshot, "ID", kExpectSnapshotHelp);
  AddClientFlags(command, flags.client, fmt::format("default {:.0f}", kItemTimeoutSeconds));
}

}  // namespace simile::cli
