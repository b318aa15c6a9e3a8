#include "cli/named_folder.h"

#include <filesystem>

namespace simile::cli {

std::string NamedFolder(const std::string& collection) {
  if (collection.find('=') != std::string::npos) return collection;
  const std::filesystem::path folder = (std::filesystem::path(collection) / "").parent_path();
  return folder.filename().string() + '=' + collection;
}

absl::StatusOr<app::ConfigReading> ReadConfigFor(const std::optional<std::string>& file,
                                                 const std::vector<std::string>& collections,
                                                 const std::optional<std::string>& threads) {
  app::ConfigSources sources;
  sources.file = file.value_or("");
  sources.environment = app::ProcessEnvironment();
  std::vector<std::string> named;
  for (const std::string& collection : collections) named.push_back(NamedFolder(collection));
  if (!named.empty()) sources.flags.push_back({"collections.serve", std::move(named)});
  if (threads) sources.flags.push_back({"backend.threads", {*threads}});
  return app::ReadConfig(sources);
}

}  // namespace simile::cli
