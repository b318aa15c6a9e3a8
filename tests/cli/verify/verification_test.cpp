// Rows of a server compared with the files, by servers that answer wrongly in ways of their own.
#include "cli/verify/verification.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include "engine/sample_data.h"
#include "simile/v1/lookup.grpc.pb.h"

namespace simile::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two rows without payload.
data::Dataset TwoRows() {
  data::Dataset dataset;
  dataset.vectors = engine::MakeMatrix({{1, 0}, {0, 1}});
  dataset.ids = engine::MakeIds({"a", "b"});
  return dataset;
}

v1::Item ItemA() {
  v1::Item item;
  item.set_id("a");
  item.mutable_vector()->add_values(1);
  item.mutable_vector()->add_values(0);
  return item;
}

v1::Item ItemB() {
  v1::Item item;
  item.set_id("b");
  item.mutable_vector()->add_values(0);
  item.mutable_vector()->add_values(1);
  return item;
}

// Answers every Fetch with the same items.
class ItemsServer final : public v1::LookupService::Service {
 public:
  explicit ItemsServer(std::vector<v1::Item> items) : items_(std::move(items)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~ItemsServer() override { server_->Shutdown(); }

  grpc::Status Fetch(grpc::ServerContext*, const v1::FetchRequest*,
                     v1::FetchResponse* response) override {
    for (const v1::Item& item : items_) *response->add_items() = item;
    return grpc::Status::OK;
  }

  StoredRows Compared() const {
    const Connection connection("127.0.0.1:" + std::to_string(port_), std::nullopt);
    const auto rows = CompareStoredRows(connection, "c", TwoRows(), 10, 10);
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() ? *rows : StoredRows();
  }

 private:
  const std::vector<v1::Item> items_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(StoredRowsTest, PassesTheRowsOfTheFiles) {
  const StoredRows rows = ItemsServer({ItemA(), ItemB()}).Compared();
  EXPECT_EQ(rows.compared, 2U);
  EXPECT_EQ(rows.different, 0U) << rows.findings[0];
}

TEST(StoredRowsTest, FewerOrMoreItemsThanAskedForAreADifference) {
  const std::pair<std::vector<v1::Item>, const char*> cases[] = {
      {{}, "2 rows from 0 on: 0 items served"},
      {{ItemA()}, "2 rows from 0 on: 1 item served"},
      {{ItemA(), ItemB(), ItemB()}, "2 rows from 0 on: 3 items served"},
  };
  for (const auto& [items, finding] : cases) {
    const StoredRows rows = ItemsServer(items).Compared();
    EXPECT_EQ(rows.different, 1U) << finding;
    EXPECT_THAT(rows.findings, ElementsAre(finding));
  }
}

TEST(StoredRowsTest, APayloadThatTheFilesDoNotHaveIsADifference) {
  v1::Item item = ItemB();
  (*item.mutable_payload())["title"].set_string_value("x");
  EXPECT_THAT(ItemsServer({ItemA(), item}).Compared().findings,
              ElementsAre(HasSubstr("row 1 (b): payload field \"title\" is not in the files")));
}

}  // namespace
}  // namespace simile::cli
